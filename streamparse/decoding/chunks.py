"""Events -> OpenAI-style chunks, so that an OpenAI-compatible interface can stand before any decoder.

Theory. A client of that interface joins fragments of JSON text and parses them at the end. Our events are values at paths,
depth first in document order. So the text can be written as the events come: a path says which containers are open (a key
opens an object, an index a list), a delta is a run of characters of the string at its path, and JSON escapes a string
character by character, so a run can be escaped without the rest. What the encoder keeps per call is the stack of open
containers; a fragment costs time in its own length, whatever came before.

Promises:

* The fragments of a sealed call, joined, are exactly ``events.json_text(call.arguments)``. That is ``call.arguments_json``
  wherever ``call.verbatim`` is None; where the wire was JSON, its own layout is known only at the end, and what is sent is
  the canonical layout of the same value.
* Nothing is taken back: what was sent of a call is always the beginning of that text.
* The last brace is written at ``ToolCallFinished``. What was sent of a failed call is the beginning of an object that is
  never closed, at least ``{`` (clients read ``""`` as no arguments): no client can parse it, so none can run it.

The end. ``finish_reason`` has a value that every client knows: ``length`` if anything failed or was cut (the one value that
says: this answer is not whole, do not act on it), else ``content_filter`` if that was given, ``tool_calls`` if a call was
sealed, ``stop`` otherwise. What OpenAI has no words for stands in the field ``streamparse`` of the last chunk with a choice:
``errors`` and ``deviations`` with code, level, place and ``tool_call_id`` (null if it belongs to no call), ``untrusted`` (ids
of calls that should not run without asking), ``finish_reason`` (as given, if it is not the one that was sent). A field
without content is left out, and so is ``streamparse`` itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any, Final, TypeAlias

import msgspec

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
    Path,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
    json_text,
)

Chunk: TypeAlias = dict[str, Any]
"""A ``chat.completion.chunk``, ready for ``json.dumps``. It belongs to the caller."""

_CUT: Final = frozenset({"length", "max_tokens", "model_context_window_exceeded", "abort", "error"})
_FILTERED: Final = frozenset({"content_filter", "refusal"})


class ChunkEncoder:
    """Writes the events of one answer as chunks of one choice. Takes the events of any decoder, in their order.

    ``id``, ``model``, ``created`` (seconds) and ``choice`` go into every chunk as they are. ``reasoning_field`` names the field
    of the delta that takes reasoning: ``"reasoning_content"`` (vLLM, SGLang, DeepSeek) or ``"reasoning"`` (OpenRouter).

    Calls are counted on the wire in the order of their start, without gaps, as clients that index a list need it.
    """

    __slots__ = ("_calls", "_choice", "_created", "_ended", "_id", "_model", "_reasoning", "_record", "_started")

    def __init__(
        self,
        *,
        id: str = "chatcmpl-0",  # noqa: A002  # the field's own name
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
        self._calls: dict[int, _WireCall] = {}
        self._record = _Record()
        self._started = False
        self._ended = False

    def feed(self, event: Event) -> list[Chunk]:
        """The chunks that this event makes certain, often none.

        Raises ``ClosedError`` after ``Ended``, ``UsageError`` for events that no decoder gives: of a call that was not
        started, out of document order.
        """
        if type(event) is ArgumentDelta:  # one for each token of an argument: the fast path
            call = self._call(event.index)
            if event.path == call.string:
                return [self._fragment(call, encode_basestring(event.text)[1:-1])]
            return self._fragments(call, call.delta(event.path, event.text))
        if self._ended:
            raise ClosedError("an event after Ended: an encoder writes one answer, make a new one for the next")
        self._record.note(event)
        chunks = [] if self._started else [self._chunk({"role": "assistant", "content": ""})]
        self._started = True
        chunks += self._chunks(event)
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
            case ArgumentValue(index, path, value):
                call = self._call(index)
                return self._fragments(call, call.value(path, value))
            case ToolCallFinished(index, call_):
                return self._finish(index, call_)
            case ToolCallFailed(index):
                failed = self._calls.pop(index, None)
                return [] if failed is None else self._fragments(failed, failed.fail())
            case Ended():
                return self._end(event)
        return []

    # Chunks

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> Chunk:
        choice = {"index": self._choice, "delta": delta, "finish_reason": finish_reason}
        return self._frame([choice])

    def _frame(self, choices: list[dict[str, Any]]) -> Chunk:
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": choices,
        }

    def _fragment(self, call: _WireCall, arguments: str) -> Chunk:
        """More of a call's arguments. As ``_chunk`` would write it, in one expression."""
        function = {"arguments": arguments}
        choice = {
            "index": self._choice,
            "delta": {"tool_calls": [{"index": call.position, "function": function}]},
            "finish_reason": None,
        }
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": [choice],
        }

    def _fragments(self, call: _WireCall, fragment: str) -> list[Chunk]:
        return [self._fragment(call, fragment)] if fragment else []

    # Calls

    def _call(self, index: int) -> _WireCall:
        try:
            return self._calls[index]
        except KeyError:
            reason = f"an event of call {index}, which is not open: give the encoder all events, in order"
            raise UsageError(reason) from None

    def _start(self, index: int, id_: str, name: str) -> Chunk:
        if index in self._calls:
            raise UsageError(f"call {index} was started twice: an encoder writes one answer")
        position = self._record.start(index, id_)
        self._calls[index] = _WireCall(position)
        function = {"name": name, "arguments": ""}
        return self._chunk({"tool_calls": [{"index": position, "id": id_, "type": "function", "function": function}]})

    def _finish(self, index: int, call: ToolCall) -> list[Chunk]:
        chunks = [] if index in self._calls else [self._start(index, call.id, call.name)]
        open_call = self._calls.pop(index)
        return chunks + self._fragments(open_call, open_call.finish(call.arguments))

    def _end(self, event: Ended) -> list[Chunk]:
        self._ended = True
        self._calls.clear()
        last = self._chunk({}, self._record.finish_reason(event))
        last.update(self._record.extension(event))
        if event.usage is None:
            return [last]
        return [last, {**self._frame([]), "usage": event.usage}]


class _OutOfOrder(Exception):
    """An event that contradicts what was written."""


class _WireCall:
    """A call on the wire: path events -> fragments of the JSON text of its arguments.

    ``position`` is its place in ``tool_calls``. ``_closers`` and ``_counts`` describe the open containers, the argument object
    first; ``_path`` is the path of the innermost, ``string`` that of the string that is open in it, if one is. Before the first
    event nothing is open.

    A value that turns out broken (J6) may contradict its own path events: it is told as text after some of it was told as
    JSON. Nothing more is written of such a call then, because it fails.
    """

    __slots__ = ("_broken", "_closers", "_counts", "_path", "position", "string")

    def __init__(self, position: int) -> None:
        self.position = position
        self.string: Path | None = None
        self._closers: list[str] = []
        self._counts: list[int] = []
        self._path: Path = ()
        self._broken = False

    def delta(self, path: Path, text: str) -> str:
        """More characters of the string at ``path``."""
        if path == self.string:
            return encode_basestring(text)[1:-1]
        if self._broken:
            return ""
        try:
            head = self._reach(path)
        except _OutOfOrder:
            return ""
        self.string = path
        return head + encode_basestring(text)[:-1]

    def value(self, path: Path, value: Any) -> str:
        """The value at ``path`` is complete: its end, if some of it was written, else all of it."""
        if self._broken:
            return ""
        if path == self.string:
            self.string = None
            return '"'
        if not path:
            return self._root(value)
        try:
            if path == self._path:
                return self._shut(value)
            return self._reach(path) + json_text(value)
        except _OutOfOrder:
            return ""

    def finish(self, arguments: dict[str, Any]) -> str:
        """The call is sealed: what is left of its arguments, and the last brace."""
        if self._broken or self.string is not None or len(self._closers) > 1:
            raise UsageError("the events of a sealed call contradict each other: give the encoder all events, in order")
        rest = self._rest(arguments)
        if self._counts[0] != len(arguments):
            raise UsageError("a sealed call has fewer arguments than its events: give the encoder the events of one answer")
        return f"{rest}}}"

    def fail(self) -> str:
        """The call failed: nothing, or an opening brace where nothing was written."""
        return "" if self._closers else self._begin()

    def _rest(self, arguments: dict[str, Any]) -> str:
        """The members that no event told of."""
        parts = [] if self._closers else [self._begin()]
        if self._counts[0] < len(arguments):
            for key in list(arguments)[self._counts[0] :]:
                self._separate(key, parts)
                parts.append(json_text(arguments[key]))
        return "".join(parts)

    def _begin(self) -> str:
        self._closers.append("}")
        self._counts.append(0)
        return "{"

    def _root(self, value: Any) -> str:
        """The argument object itself is complete; its brace waits for the seal."""
        return self._rest(value) if isinstance(value, dict) and len(self._closers) < 2 else self._contradiction()

    def _contradiction(self) -> str:
        self._broken = True
        self.string = None
        raise _OutOfOrder

    def _shut(self, value: Any) -> str:
        """The innermost container is complete."""
        if self.string is not None or not isinstance(value, dict if self._closers[-1] == "}" else list):
            return self._contradiction()
        self._counts.pop()
        self._path = self._path[:-1]
        return self._closers.pop()

    def _reach(self, path: Path) -> str:
        """Everything that stands before the value at ``path``."""
        if self.string is not None or not path:
            return self._contradiction()
        parts = [] if self._closers else [self._begin()]
        depth = len(self._path)
        if path[:depth] != self._path or len(path) == depth:
            return self._contradiction()
        for step in range(depth, len(path) - 1):
            self._separate(path[step], parts)
            closer = "}" if isinstance(path[step + 1], str) else "]"
            parts.append("{" if closer == "}" else "[")
            self._closers.append(closer)
            self._counts.append(0)
        self._path = path[:-1]
        self._separate(path[-1], parts)
        return "".join(parts)

    def _separate(self, step: str | int, parts: list[str]) -> None:
        """The comma and the key before a member or item of the innermost container."""
        count = self._counts[-1]
        if count:
            parts.append(", ")
        if self._closers[-1] == "}" and isinstance(step, str):
            parts.append(f"{encode_basestring(step)}: ")
        elif self._closers[-1] == "}" or step != count:
            self._contradiction()
        self._counts[-1] = count + 1


# The whole answer ------------------------------------------------------------------------------------------------------


class _Record:
    """What is remembered of an answer for its end."""

    __slots__ = ("_deviations", "_errors", "_ids", "_sealed", "_untrusted")

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}
        self._sealed = 0
        self._untrusted: list[str] = []
        self._errors: list[tuple[int | None, ErrorDetail]] = []
        self._deviations: list[tuple[int | None, Deviation]] = []

    def start(self, index: int, id_: str) -> int:
        """A call began. Its place among the calls."""
        self._ids[index] = id_
        return len(self._ids) - 1

    def note(self, event: Event) -> None:
        """Remember what matters at the end."""
        match event:
            case ToolCallFinished(_, call):
                self._sealed += 1
                if not call.trusted:
                    self._untrusted.append(call.id)
            case ToolCallFailed(index, _, error):
                self._errors.append((index, error))
            case Failed(error):
                self._errors.append((None, error))
            case Deviated(index_, deviation):
                self._deviations.append((index_, deviation))

    def finish_reason(self, ended: Ended) -> str:
        """The end in OpenAI's words."""
        if self._errors or not ended.clean or ended.finish_reason in _CUT:
            return "length"
        if ended.finish_reason in _FILTERED:
            return "content_filter"
        return "tool_calls" if self._sealed else "stop"

    def extension(self, ended: Ended) -> dict[str, Any]:
        """What OpenAI has no words for, under ``streamparse``; nothing if there is nothing."""
        given = ended.finish_reason
        fields = {
            "errors": [self._entry(index, error) for index, error in self._errors],
            "deviations": [self._entry(index, deviation) for index, deviation in self._deviations],
            "untrusted": self._untrusted,
            "finish_reason": given if given != self.finish_reason(ended) else None,
        }
        fields = {name: value for name, value in fields.items() if value}
        return {"streamparse": fields} if fields else {}

    def _entry(self, index: int | None, detail: ErrorDetail | Deviation) -> dict[str, Any]:
        id_ = None if index is None else self._ids.get(index)
        fields = {name: value for name, value in msgspec.to_builtins(detail).items() if value or name == "offset"}
        entry = {"tool_call_id": id_, "level": str(detail.level), **fields}
        if isinstance(detail, ErrorDetail):
            entry["message"] = detail.message
        return entry


def to_chat_completion(
    events: Iterable[Event],
    *,
    id: str = "chatcmpl-0",  # noqa: A002  # the field's own name
    model: str = "",
    created: int = 0,
    choice: int = 0,
    reasoning_field: str = "reasoning_content",
) -> dict[str, Any]:
    """The events of a whole answer as one ``chat.completion``: what the chunks of ``ChunkEncoder`` add up to.

    ``content`` is null beside calls without text. Only sealed calls stand in ``tool_calls``, in the order of their start;
    what failed is in the field ``streamparse``. Raises ``UsageError`` if ``Ended`` is missing: close the decoder first.
    """
    record = _Record()
    text: list[str] = []
    reasoning: list[str] = []
    calls: dict[int, ToolCall] = {}
    ended: Ended | None = None
    for event in events:
        record.note(event)
        match event:
            case Text(piece):
                text.append(piece)
            case Reasoning(piece):
                reasoning.append(piece)
            case ToolCallStarted(index, id_, _):
                record.start(index, id_)
            case ToolCallFinished(index, call):
                record.start(index, call.id)
                calls[index] = call
            case Ended():
                ended = event
    if ended is None:
        raise UsageError("the answer has no end: add the events of the decoder's close()")
    message: dict[str, Any] = {"role": "assistant", "content": "".join(text) or (None if calls else "")}
    if reasoning:
        message[reasoning_field] = "".join(reasoning)
    if calls:
        message["tool_calls"] = [_whole_call(calls[index]) for index in sorted(calls)]
    finish_reason = record.finish_reason(ended)
    return {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": choice, "message": message, "finish_reason": finish_reason}],
        **({} if ended.usage is None else {"usage": ended.usage}),
        **record.extension(ended),
    }


def _whole_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json_text(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}
