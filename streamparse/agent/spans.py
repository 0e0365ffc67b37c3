"""OpenTelemetry: one ``execute_tool`` span for each call that runs (B19). Extra ``otel``, loaded when it is asked for.

Names and attributes are those of the GenAI conventions: the span is ``execute_tool NAME``; ``gen_ai.operation.name``,
``gen_ai.tool.name``, ``gen_ai.tool.type``, ``gen_ai.tool.call.id``; ``error.type`` and the status where it went wrong.
Arguments and results may be anything, also secrets: they are recorded only with ``content=True``.
"""

from __future__ import annotations

from typing import Any

from streamparse.agent.results import Execution
from streamparse.agent.states import CallState
from streamparse.errors import MissingExtraError
from streamparse.events import ToolCall


class ToolSpans:
    """Makes the spans. ``tracer`` None is the one that the program has configured.

    Raises ``MissingExtraError`` without opentelemetry-api.
    """

    def __init__(self, tracer: Any = None, *, content: bool = False) -> None:
        try:
            from opentelemetry import context, trace
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] != "opentelemetry":
                raise
            raise MissingExtraError(
                "spans need opentelemetry-api, which is in the extra 'otel': pip install 'streamparse-toolcalls[otel]'"
            ) from None
        self._trace = trace
        self._context = context
        self._tracer = tracer or trace.get_tracer("streamparse")
        self._content = content
        self._open: dict[int, Any] = {}

    def start(self, index: int, call: ToolCall) -> None:
        """The call at this place of the turn begins to run, in this task: spans of the tool's own go below it."""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.id,
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = call.arguments_json
        span = self._tracer.start_span(f"execute_tool {call.name}", attributes=attributes)
        # Never detached: the executor runs each call in a task of its own, and the context ends with that.
        self._context.attach(self._trace.set_span_in_context(span))
        self._open[index] = span

    def end(self, execution: Execution) -> None:
        """The call at this place has its result. Nothing happens for one that did not run."""
        span = self._open.pop(execution.index, None)
        if span is None:
            return
        result = execution.result
        if self._content:
            span.set_attribute("gen_ai.tool.call.result", result.text)
        if result.state is not CallState.OK:
            span.set_attribute("error.type", result.state.value)
            span.set_status(self._trace.StatusCode.ERROR)
        span.end()
