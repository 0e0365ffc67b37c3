"""Anthropic-style events -> events: the decoder of every endpoint that speaks messages (rules A).

Theory. An event is read leniently into one shape (``blocks``). What it adds goes three ways, as in ``chat``: text and
thinking through native decoders where the model writes native text (``embedded``), blocks that are calls, and the JSON
text of their arguments, to ``blockcalls``. How an answer ends is in ``endpoint``.

=======================  ============================================================================================
event                    what it says
=======================  ============================================================================================
``message_start``        the model, and usage so far. Its content is empty, unless it has a stop reason: then it is the
                         whole message, and no block follows
``content_block_start``  a call; or a first piece of text, of thinking. Every other block is ignored: the results of
                         the provider's own tools, what is not known. Of ``redacted_thinking`` there are no events, but
                         ``thinking`` has it
``content_block_delta``  more text, thinking, or JSON. Of signatures there are no events, but ``thinking`` has them;
                         citations are ignored
``content_block_stop``   the end of a call. An SDK's helper adds the whole block, which is ignored
``message_delta``        the stop reason, and usage: what is not null replaces what was there
``message_stop``         the end. An SDK's helper adds the whole message
``message``              a whole message: its content counts if no block came before it, otherwise only its stop
                         reason and its usage
``error``                the answer failed
=======================  ============================================================================================

Everything else is skipped: ``ping``, the helper's ``text``, ``thinking``, ``input_json``, ``citation`` and
``signature``, which repeat the delta before them, and what has no type.

A text is text, whatever block it comes for, and none but one that is ignored can lose it. An event without an index
belongs to the block that started last. Offsets as in ``chat``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from streamparse.decoding import blocks
from streamparse.decoding.blockcalls import LOCAL, BlockCalls
from streamparse.decoding.endpoint import EndpointDecoder
from streamparse.decoding.lenient import plain
from streamparse.decoding.native import default_id
from streamparse.events import ErrorCode
from streamparse.limits import DEFAULT_LIMITS, Limits

_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_PROSE: Final = frozenset({"text", "thinking", ""})
_DELTAS: Final = frozenset({"text_delta", "thinking_delta", "input_json_delta", None})
_SIGNATURES: Final = frozenset({"signature_delta", None})
"""The blocks of thinking and of text, and the deltas, that are read. One without a type is what its fields are."""


class _Thought:
    """A block of thinking, as it came."""

    __slots__ = ("_data", "_signature", "_text", "whole")

    def __init__(self, block: blocks.Block) -> None:
        self._data = block.data if block.type == "redacted_thinking" else None
        self._text = [block.thinking or ""]
        self._signature = [block.signature or ""]
        self.whole = False

    def take(self, delta: blocks.Delta) -> None:
        if delta.thinking and delta.type in _DELTAS:
            self._text.append(delta.thinking)
        if delta.signature and delta.type in _SIGNATURES:
            self._signature.append(delta.signature)

    def block(self) -> dict[str, Any] | None:
        if self._data is not None:
            return {"type": "redacted_thinking", "data": self._data}
        signature = "".join(self._signature)
        return {"type": "thinking", "thinking": "".join(self._text), "signature": signature} if signature else None


class MessagesDecoder(EndpointDecoder[BlockCalls]):
    """Decodes one answer. ``feed`` takes an event, ``close`` ends it; both return events, in order.

    An event is a dict, JSON text or bytes, ``"[DONE]"``, a struct, or an object of an SDK with the same attributes,
    from its raw stream or from its helper; a whole message gives the same events. No event makes ``feed`` raise: text
    that is no JSON is ``Failed`` (and the running calls fail, since a piece of them may be lost), what has nothing
    known in it is skipped.

    Calls that the provider runs itself (``server_tool_use``, ``mcp_tool_use``) are calls like any other, except that
    each has the deviation ``server_tool`` and is not ``trusted``: it was run already.

    ``Ended.finish_reason`` is the provider's own word (``end_turn``, ``tool_use``, ``max_tokens`` …); ``max_tokens``
    and ``model_context_window_exceeded`` are judged as ``length`` is on other wires.

    Keyword options:

    * ``tools``: as for ``NativeDecoder``. They tell unknown tools (T7), and type native text. Arguments that came as
      JSON have the types of JSON.
    * ``dialect``: native text inside text and thinking (C9). ``"auto"`` decodes it when ``message_start`` names a
      MiniMax M2 model, a dialect's name always, ``None`` never.
    * ``start``: ``"reasoning"`` when text begins inside the reasoning, whose opening tag stood in the prompt (N1).
    * ``repair``, ``early``, ``id_factory``, ``limits``: as for ``NativeDecoder``; ids are made for calls that come
      without one.

    Raises ``UnknownDialectError``, ``GrammarError``, ``ToolDefinitionError`` or ``UsageError`` when made; ``feed`` and
    ``close`` raise only ``ClosedError``, after ``close``.
    """

    __slots__ = ("_last", "_saw_block", "_thoughts")

    def __init__(
        self,
        *,
        tools: Iterable[Any] | None = None,
        dialect: str | None = "auto",
        start: Literal["text", "reasoning"] = "text",
        repair: int = 1,
        early: bool = False,
        id_factory: Callable[[int], str] = default_id,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(BlockCalls, tools, dialect, start, repair, early, id_factory, limits)
        self._last = -1  # the index of the block that started last
        self._saw_block = False
        self._thoughts: dict[int, _Thought] = {}

    @property
    def thinking(self) -> list[dict[str, Any]]:
        """The blocks of thinking that have to go back as they came, in order: those with a signature, ``{"type":
        "thinking", "thinking": …, "signature": …}``, and ``{"type": "redacted_thinking", "data": …}``. The provider
        refuses a history whose calls come without them, and half a signature just so: a block is among them once it has
        ended."""
        whole = (each for index, each in self._thoughts.items() if each.whole or index != self._last)
        return [block for thought in whole if (block := thought.block()) is not None]

    # Events

    def _take(self, given: Any) -> None:
        event = blocks.read(given)
        if event.type == "content_block_delta":
            if event.delta is not None and not self._done:
                self._take_delta(self._last if event.index is None else event.index, event.delta)
        elif event.type in _EVENTS:
            _EVENTS[event.type](self, event)
        if event.error or event.base_resp is not None or event.type == "error":
            error = blocks.failure_of(event)
            if error:
                self._fail(ErrorCode.PROVIDER_ERROR, error)

    def _take_start(self, event: blocks.Event) -> None:
        if event.content_block is not None and not self._done:
            self._start(self._last + 1 if event.index is None else event.index, event.content_block)

    def _take_stop(self, event: blocks.Event) -> None:
        if not self._done:
            self._stop(self._last if event.index is None else event.index)

    def _take_message_start(self, event: blocks.Event) -> None:
        if event.message is None:
            return
        if event.message.stop_reason:  # it is over before it began: calls that the provider's own tools wrote
            self._take_whole(event.message)
        else:
            self._take_head(event.message)

    def _take_message_delta(self, event: blocks.Event) -> None:
        self._take_usage(event.usage)
        if event.delta is not None:
            self._take_stop_reason(event.delta.stop_reason)

    def _take_message_stop(self, event: blocks.Event) -> None:
        if event.message is not None:
            self._take_whole(event.message)
        self._take_done()

    def _take_message(self, event: blocks.Event) -> None:
        self._take_whole(event.whole())

    # Messages

    def _take_head(self, message: blocks.Message) -> None:
        if message.model:
            self._take_model(message.model)
        self._take_usage(message.usage)

    def _take_whole(self, message: blocks.Message) -> None:
        """A message that is whole (C7)."""
        self._take_head(message)
        if not self._saw_block and not self._done:
            for index, block in enumerate(blocks.blocks_of(message)):
                self._start(index, block)
                self._stop(index)
        self._take_stop_reason(message.stop_reason)

    def _take_usage(self, usage: Any) -> None:
        told = plain(usage)
        if told:
            self._usage = {**(self._usage or {}), **{key: value for key, value in told.items() if value is not None}}

    def _take_stop_reason(self, reason: str | None) -> None:
        if reason and not self._done:
            self._take_finish(reason)

    # Blocks

    def _start(self, index: int, block: blocks.Block) -> None:
        self._saw_block = True
        self._last = index
        kind = block.type or ""
        if kind.endswith(LOCAL) or (not kind and block.name):
            self._embedded.pause()
            self._roster.start(index, block)
            return
        self._roster.end(index)
        if kind in _THINKING:
            self._thoughts[index] = _Thought(block)
        if kind in _PROSE:
            self._take_prose(block.text, block.thinking)
        else:
            self._roster.ignore(index)

    def _stop(self, index: int) -> None:
        self._roster.stop(index)
        if index in self._thoughts:
            self._thoughts[index].whole = True

    def _take_delta(self, index: int, delta: blocks.Delta) -> None:
        self._saw_block = True
        if (thought := self._thoughts.get(index)) is not None:
            thought.take(delta)
        if delta.type not in _DELTAS:
            return
        if delta.partial_json is not None:
            self._roster.take(index, delta.partial_json)
        elif not self._roster.ignores(index):
            self._take_prose(delta.text, delta.thinking)

    def _take_prose(self, text: str | None, thinking: str | None) -> None:
        if thinking:
            self._embedded.reason(thinking)
        if text:
            self._embedded.text(text)


_EVENTS: Final[dict[str | None, Callable[[MessagesDecoder, blocks.Event], None]]] = {
    "content_block_start": MessagesDecoder._take_start,
    "content_block_stop": MessagesDecoder._take_stop,
    "message_start": MessagesDecoder._take_message_start,
    "message_delta": MessagesDecoder._take_message_delta,
    "message_stop": MessagesDecoder._take_message_stop,
    "message": MessagesDecoder._take_message,
}
