"""Events -> Anthropic-style events, the sibling of ``ChunkEncoder``: a ``/v1/messages`` before any decoder.

It stands on that encoder, so that each promise about arguments, failed calls and the end is kept in one place. Here
chunks become blocks: one for each run of reasoning, each run of text, and each call.

* Blocks are counted in the order of their start. Calls that run side by side have blocks that do.
* A sealed call's block is stopped. A failed call's is not, and its JSON has no last brace: nobody can run it.
* ``stop_reason`` is the ``finish_reason`` in Anthropic's words: ``max_tokens`` if anything failed or was cut. What has
  no words there stands in the field ``streamparse`` of ``message_delta``, as in a chunk.

The signature of thinking is empty: only the provider could make one.
"""

from __future__ import annotations

from collections.abc import Iterable
from json import loads
from typing import Any, TypeAlias

from streamparse.decoding.chunks import ChunkEncoder
from streamparse.errors import UsageError
from streamparse.events import Ended, Event, ToolCallFinished, ToolCallStarted

MessageEvent: TypeAlias = dict[str, Any]
"""An event of an Anthropic-style stream, ready for a JSON encoder; ``type`` is its name. It belongs to the caller."""

_STOP_REASONS = {
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
    "stop": "end_turn",
}


class MessageEncoder:
    """Writes the events of one answer as Anthropic-style events. Takes the events of any decoder, in their order.

    ``id`` and ``model`` go into ``message_start``. Raises as ``ChunkEncoder`` does.
    """

    __slots__ = ("_blocks", "_calls", "_chunks", "_id", "_model", "_open", "_positions", "_started")

    def __init__(self, *, id: str = "msg_0", model: str = "") -> None:  # noqa: A002 - the field's own name
        self._id = id
        self._model = model
        self._chunks = ChunkEncoder()
        self._started = False
        self._blocks = 0
        self._open: tuple[str, int] | None = None  # the block of text or thinking that is open
        self._calls: dict[int, int] = {}  # the block of a call, by the call's index
        self._positions: list[int] = []  # the same, by its place in tool_calls

    def feed(self, event: Event) -> list[MessageEvent]:
        """The events that this event makes certain. Raises ``ClosedError`` after ``Ended``, ``UsageError`` for events
        that no decoder gives."""
        chunks = self._chunks.feed(event)
        events = [] if self._started else [self._message_start()]
        self._started = True
        for chunk in chunks:
            for choice in chunk["choices"]:
                events += self._delta(choice["delta"])
        if type(event) is ToolCallStarted:
            self._calls[event.index] = self._positions[-1]
        elif type(event) is ToolCallFinished:  # a call that was never started is started with its end
            block = self._calls.get(event.index, self._positions[-1])
            events.append({"type": "content_block_stop", "index": block})
        elif type(event) is Ended:
            events += self._end(event, chunks)
        return events

    def feed_all(self, events: Iterable[Event]) -> list[MessageEvent]:
        """The events of several events."""
        return [each for event in events for each in self.feed(event)]

    def _message_start(self) -> MessageEvent:
        message: dict[str, Any] = {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        return {"type": "message_start", "message": message}

    def _delta(self, delta: dict[str, Any]) -> list[MessageEvent]:
        if thinking := delta.get("reasoning_content"):
            return self._prose("thinking", {"type": "thinking_delta", "thinking": thinking})
        if text := delta.get("content"):
            return self._prose("text", {"type": "text_delta", "text": text})
        return [each for call in delta.get("tool_calls", ()) for each in self._call(call)]

    def _prose(self, kind: str, delta: dict[str, Any]) -> list[MessageEvent]:
        events = []
        if self._open is None or self._open[0] != kind:
            events = self._stop()
            block = {"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})}
            self._open = (kind, self._blocks)
            events.append(self._start(block))
        assert self._open is not None
        return [*events, {"type": "content_block_delta", "index": self._open[1], "delta": delta}]

    def _call(self, call: dict[str, Any]) -> list[MessageEvent]:
        """A call begins, or a fragment of its arguments."""
        events: list[MessageEvent] = []
        function = call["function"]
        if "id" in call:
            events = self._stop()
            self._positions.append(self._blocks)
            events.append(self._start({"type": "tool_use", "id": call["id"], "name": function["name"], "input": {}}))
        if function["arguments"]:
            delta = {"type": "input_json_delta", "partial_json": function["arguments"]}
            index = self._positions[call["index"]]
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        return events

    def _start(self, block: dict[str, Any]) -> MessageEvent:
        index, self._blocks = self._blocks, self._blocks + 1
        return {"type": "content_block_start", "index": index, "content_block": block}

    def _stop(self) -> list[MessageEvent]:
        """Text or thinking is over."""
        if self._open is None:
            return []
        index, self._open = self._open[1], None
        return [{"type": "content_block_stop", "index": index}]

    def _end(self, event: Ended, chunks: list[dict[str, Any]]) -> list[MessageEvent]:
        last = next(chunk for chunk in chunks if chunk["choices"] and chunk["choices"][0]["finish_reason"])
        reason = _STOP_REASONS[last["choices"][0]["finish_reason"]]
        extension = {"streamparse": last["streamparse"]} if "streamparse" in last else {}
        delta = {"stop_reason": reason, "stop_sequence": None}
        usage = _usage(event.usage or {})
        return [
            *self._stop(),
            {"type": "message_delta", "delta": delta, "usage": usage, **extension},
            {"type": "message_stop"},
        ]


_COUNTS = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}


def _usage(given: dict[str, Any]) -> dict[str, int]:
    """Usage in Anthropic's words, whichever it was given in; 0 where nothing is known."""
    counts = {name: given.get(name, given.get(other)) for name, other in _COUNTS.items()}
    return {name: count if isinstance(count, int) else 0 for name, count in counts.items()}


def to_message(
    events: Iterable[Event],
    *,
    id: str = "msg_0",  # noqa: A002 - the field's own name
    model: str = "",
) -> dict[str, Any]:
    """The events of a whole answer as one Anthropic-style ``message``: what the events of ``MessageEncoder`` add up to.

    Only sealed calls stand in ``content``; what failed is told in the field ``streamparse``. Raises ``UsageError``
    without ``Ended``: close the decoder first.
    """
    whole: dict[str, Any] = {}
    blocks: dict[int, _Block] = {}
    for event in MessageEncoder(id=id, model=model).feed_all(events):
        match event["type"]:
            case "message_start":
                whole = event["message"]
            case "content_block_start":
                blocks[event["index"]] = _Block(event["content_block"])
            case "content_block_delta":
                blocks[event["index"]].parts.append(event["delta"])
            case "content_block_stop":
                blocks[event["index"]].stopped = True
            case "message_delta":
                extension = {"streamparse": event["streamparse"]} if "streamparse" in event else {}
                whole |= event["delta"] | {"usage": event["usage"]} | extension
    if whole.get("stop_reason") is None:
        raise UsageError("the answer has no end: add the events of the decoder's close()")
    whole["content"] = [block.whole() for block in blocks.values() if block.stopped]
    return whole


class _Block:
    """A block of a message, while its events come."""

    __slots__ = ("_start", "parts", "stopped")

    def __init__(self, start: dict[str, Any]) -> None:
        self._start = start
        self.parts: list[dict[str, Any]] = []
        self.stopped = False

    def whole(self) -> dict[str, Any]:
        kind = self._start["type"]
        if kind != "tool_use":
            return {**self._start, kind: "".join(part[kind] for part in self.parts)}
        return {**self._start, "input": loads("".join(part["partial_json"] for part in self.parts))}
