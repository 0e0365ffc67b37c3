"""Events -> OpenAI-style chunks, so that an OpenAI-compatible interface can stand before any decoder.

A client of that interface joins fragments of JSON text and parses them at the end. What it is promised:

* The fragments of a sealed call, joined, are exactly ``events.json_text(call.arguments)``. That is
  ``call.arguments_json`` wherever ``call.verbatim`` is None. Where the wire was JSON, its own layout is known only at
  the end, and what is sent is the canonical layout of the same value.
* Nothing is taken back: what was sent of a call is always the beginning of that text.
* The last brace comes with ``ToolCallFinished``. What was sent of a failed call is the beginning of an object that is
  never closed, at least ``{`` (many clients read ``""`` as no arguments). Nobody can parse it, so nobody can run it.

*The end.* ``finish_reason`` has a value that every client knows: ``length`` if anything failed or was cut (the only one
that says: this answer is not whole, do not act on it), else ``content_filter`` if that was given, ``tool_calls`` if a
call was sealed, ``stop`` otherwise. What OpenAI has no words for stands in the field ``streamparse`` of the chunk with
the ``finish_reason``, where there is anything to say:

* ``errors`` and ``deviations``: code, level, place, and ``tool_call_id`` (null if it belongs to no call);
* ``untrusted``: the ids of sealed calls that are unsafe to run without asking;
* ``finish_reason``: the given one, if it is not the one that was sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import msgspec

from streamparse.decoding.fragments import ArgumentWriter, escaped
from streamparse.errors import ClosedError, UsageError
from streamparse.events import (
    ArgumentDelta,
    ArgumentValue,
    Deviated,
    Deviation,
    Ended,
    ErrorDetail,
    Event,
    Failed,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
    json_text,
)

Chunk: TypeAlias = dict[str, Any]
"""A ``chat.completion.chunk``, ready for a JSON encoder. It belongs to the caller."""

_CUT: Final = frozenset({"length", "max_tokens", "model_context_window_exceeded", "abort", "error"})
_FILTERED: Final = frozenset({"content_filter", "refusal"})


class ChunkEncoder:
    """Writes the events of one answer as chunks of one choice. Takes the events of any decoder, in their order.

    ``id``, ``model``, ``created`` (in seconds) and ``choice`` go into every chunk as they are. ``reasoning_field`` is
    the field of a delta that takes reasoning: ``"reasoning_content"`` (vLLM, SGLang, DeepSeek) or ``"reasoning"``
    (OpenRouter). Calls are counted in the order of their start, without gaps: clients use the index in a list.
    """

    __slots__ = ("_choice", "_created", "_ended", "_id", "_model", "_open", "_reasoning", "_record", "_started")

    def __init__(
        self,
        *,
        id: str = "chatcmpl-0",  # noqa: A002 - the field's own name
        model: str = "",
        created: int = 0,
        choice: int = 0,
        reasoning_field: str = "reasoning_content",
    ) -> None:
        self._id = id
        self._model = model
        self._created = created
        self._choice = choice
        self._reasoning = reasoning_field
        self._open: dict[int, ArgumentWriter] = {}
        self._record = _Record()
        self._started = False
        self._ended = False

    def feed(self, event: Event) -> list[Chunk]:
        """The chunks that this event makes certain, often one, sometimes none.

        Raises ``ClosedError`` after ``Ended``, and ``UsageError`` for events that no decoder gives: of a call that is
        not open, or that do not add up to the sealed call.
        """
        if type(event) is ArgumentDelta:  # one for each token of an argument: the fast path
            writer = self._writer(event.index)
            if event.path == writer.string:
                return [self._fragment(writer, escaped(event.text))]
            return self._fragments(writer, writer.delta(event.path, event.text))
        if type(event) is ArgumentValue:
            writer = self._writer(event.index)
            return self._fragments(writer, writer.value(event.path, event.value))
        if self._ended:
            raise ClosedError("an event after Ended: an encoder writes one answer, make a new one for the next")
        self._record.note(event)
        chunks = self._chunks(event)
        if not self._started:
            self._started = True
            return [self._chunk({"role": "assistant", "content": ""}), *chunks]
        return chunks

    def feed_all(self, events: Iterable[Event]) -> list[Chunk]:
        """The chunks of several events."""
        return [chunk for event in events for chunk in self.feed(event)]

    def _chunks(self, event: Event) -> list[Chunk]:
        match event:
            case Text(text):
                return [self._chunk({"content": text})] if text else []
            case Reasoning(text):
                return [self._chunk({self._reasoning: text})] if text else []
            case ToolCallStarted(index, id_, name):
                return [self._start(index, id_, name)]
            case ToolCallFinished(index, call):
                return self._finish(index, call)
            case ToolCallFailed(index):
                writer = self._open.pop(index, None)
                return [] if writer is None else self._fragments(writer, writer.fail())
            case Ended():
                return self._end(event)
        return []

    # Calls

    def _writer(self, index: int) -> ArgumentWriter:
        try:
            return self._open[index]
        except KeyError:
            reason = f"an event of call {index}, which is not open: give the encoder all events, in order"
            raise (ClosedError if self._ended else UsageError)(reason) from None

    def _start(self, index: int, id_: str, name: str) -> Chunk:
        position = self._record.started - 1
        self._open[index] = ArgumentWriter(position)
        function = {"name": name, "arguments": ""}
        return self._chunk({"tool_calls": [{"index": position, "id": id_, "type": "function", "function": function}]})

    def _finish(self, index: int, call: ToolCall) -> list[Chunk]:
        chunks = [] if index in self._open else [self._start(index, call.id, call.name)]
        writer = self._open.pop(index)
        return chunks + self._fragments(writer, writer.finish(call.arguments))

    def _end(self, event: Ended) -> list[Chunk]:
        self._ended = True
        self._open.clear()
        last = self._chunk({}, self._record.finish_reason(event)) | self._record.extension(event)
        return [last] if event.usage is None else [last, {**self._frame([]), "usage": event.usage}]

    # Chunks

    def _frame(self, choices: list[dict[str, Any]]) -> Chunk:
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": choices,
        }

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> Chunk:
        return self._frame([{"index": self._choice, "delta": delta, "finish_reason": finish_reason}])

    def _fragment(self, writer: ArgumentWriter, arguments: str) -> Chunk:
        function = {"arguments": arguments}
        return self._chunk({"tool_calls": [{"index": writer.position, "function": function}]})

    def _fragments(self, writer: ArgumentWriter, arguments: str) -> list[Chunk]:
        return [self._fragment(writer, arguments)] if arguments else []


def to_chat_completion(
    events: Iterable[Event],
    *,
    id: str = "chatcmpl-0",  # noqa: A002 - the field's own name
    model: str = "",
    created: int = 0,
    choice: int = 0,
    reasoning_field: str = "reasoning_content",
) -> dict[str, Any]:
    """The events of a whole answer as one ``chat.completion``: what the chunks of ``ChunkEncoder`` add up to.

    ``content`` is null beside calls without text. Only sealed calls stand in ``tool_calls``, in the order of their
    start; what failed is told in the field ``streamparse``. Raises ``UsageError`` without ``Ended``: close the decoder
    first.
    """
    record, message = _Record(), _Message()
    ended: Ended | None = None
    for event in events:
        record.note(event)
        message.note(event)
        if isinstance(event, Ended):
            ended = event
    if ended is None:
        raise UsageError("the answer has no end: add the events of the decoder's close()")
    finish_reason = record.finish_reason(ended)
    return {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": choice, "message": message.whole(reasoning_field), "finish_reason": finish_reason}],
        **({} if ended.usage is None else {"usage": ended.usage}),
        **record.extension(ended),
    }


class _Message:
    """The message of a completion, while its events come."""

    __slots__ = ("_calls", "_reasoning", "_text")

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, ToolCall] = {}

    def note(self, event: Event) -> None:
        match event:
            case Text(text):
                self._text.append(text)
            case Reasoning(text):
                self._reasoning.append(text)
            case ToolCallFinished(index, call):
                self._calls[index] = call

    def whole(self, reasoning_field: str) -> dict[str, Any]:
        text, reasoning = "".join(self._text), "".join(self._reasoning)
        message: dict[str, Any] = {"role": "assistant", "content": text or (None if self._calls else "")}
        if reasoning:
            message[reasoning_field] = reasoning
        if self._calls:
            message["tool_calls"] = [_whole_call(self._calls[index]) for index in sorted(self._calls)]
        return message


def _whole_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json_text(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


class _Record:
    """What is remembered of an answer for its end."""

    __slots__ = ("_deviations", "_errors", "_ids", "_sealed", "_untrusted")

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}
        self._sealed = False
        self._untrusted: list[str] = []
        self._errors: list[tuple[int | None, ErrorDetail]] = []
        self._deviations: list[tuple[int | None, Deviation]] = []

    @property
    def started(self) -> int:
        """How many calls began."""
        return len(self._ids)

    def note(self, event: Event) -> None:
        """Remember what matters at the end."""
        match event:
            case ToolCallStarted(index, id_, _):
                if index in self._ids:
                    raise UsageError(f"call {index} was started twice: an encoder writes one answer")
                self._ids[index] = id_
            case ToolCallFinished(index, call):
                self._ids.setdefault(index, call.id)
                self._sealed = True
                if not call.trusted:
                    self._untrusted.append(call.id)
            case ToolCallFailed(index, _, error):
                self._errors.append((index, error))
            case Failed(error):
                self._errors.append((None, error))
            case Deviated(whose, deviation):
                self._deviations.append((whose, deviation))

    def finish_reason(self, ended: Ended) -> str:
        """The end in OpenAI's words."""
        if self._errors or not ended.clean or ended.finish_reason in _CUT:
            return "length"
        if ended.finish_reason in _FILTERED:
            return "content_filter"
        return "tool_calls" if self._sealed else "stop"

    def extension(self, ended: Ended) -> dict[str, Any]:
        """What OpenAI has no words for, under ``streamparse``; empty if there is nothing."""
        given = ended.finish_reason
        fields = {
            "errors": [self._entry(index, error) for index, error in self._errors],
            "deviations": [self._entry(index, deviation) for index, deviation in self._deviations],
            "untrusted": self._untrusted,
            "finish_reason": None if given == self.finish_reason(ended) else given,
        }
        fields = {name: value for name, value in fields.items() if value}
        return {"streamparse": fields} if fields else {}

    def _entry(self, index: int | None, detail: ErrorDetail | Deviation) -> dict[str, Any]:
        fields = msgspec.to_builtins(detail)
        entry = {name: value for name, value in fields.items() if value or name == "offset"}
        message = {"message": detail.message} if isinstance(detail, ErrorDetail) else {}
        id_ = None if index is None else self._ids.get(index)
        return {"tool_call_id": id_, "level": detail.level.value, **entry, **message}
