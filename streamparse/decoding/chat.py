"""OpenAI-style chunks -> events: the decoder of every endpoint that speaks chat completions (rules C).

Theory. A chunk is read leniently into one shape (``wire``). What it adds goes three ways, all of which write their
events into one ``Account``: reasoning and content through native decoders where the model writes native text
(``embedded``), fragments of calls to the call that they belong to (``assembly``), whose argument text goes through the
incremental JSON reader (``wirecall``). How an answer ends is in ``endpoint``.

Offsets of errors and deviations count, for a call, the characters of its argument text; for native text, the
characters of the field; else the characters of text, reasoning and arguments that came before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Literal

from streamparse.decoding import wire
from streamparse.decoding.assembly import Assembly
from streamparse.decoding.endpoint import DONE, EndpointDecoder
from streamparse.decoding.lenient import get, plain
from streamparse.decoding.native import default_id
from streamparse.decoding.roster import LENGTH, judged
from streamparse.errors import UsageError
from streamparse.events import DeviationCode, ErrorCode
from streamparse.limits import DEFAULT_LIMITS, Limits

__all__ = ["DONE", "ChatDecoder"]

_SNAPSHOTS = frozenset({"content", "reasoning"})


class ChatDecoder(EndpointDecoder[Assembly]):
    """Decodes one choice of one answer. ``feed`` takes a chunk, ``close`` ends it; both return events, in order.

    A chunk is a dict, JSON text or bytes, ``"[DONE]"``, a struct, or an object of an SDK with the same attributes; a
    whole ``chat.completion`` gives the same events. No chunk makes ``feed`` raise: text that is no JSON is ``Failed``
    (and the running calls fail, since a piece of them may be lost), what has nothing known in it is skipped.

    Keyword options:

    * ``tools``: as for ``NativeDecoder``. They settle names that come in pieces (C3), tell unknown tools (T7), and
      type native text. Arguments that came as JSON have the types of JSON.
    * ``dialect``: native text inside content and reasoning (C9). ``"auto"`` decodes it from the chunk on
      whose ``model`` names a MiniMax M2 model, a dialect's name always, ``None`` never.
    * ``start``: ``"reasoning"`` when content begins inside the reasoning, whose opening tag stood in the prompt (N1).
    * ``choice``: the index of the choice to read. ``None`` reads the one that comes first and tells of others
      (``other_choice``). For several, make one decoder each and feed every chunk to all; ``wire.read`` makes a struct
      of a chunk once for all of them. ``choices`` are the indexes seen so far.
    * ``cumulative``: which of ``"content"`` and ``"reasoning"`` hold all text so far instead of what is new (C1).
    * ``repair``, ``early``, ``id_factory``, ``limits``: as for ``NativeDecoder``; ids are made for calls that come
      without one.

    Raises ``UnknownDialectError``, ``GrammarError``, ``ToolDefinitionError`` or ``UsageError`` when made; ``feed`` and
    ``close`` raise only ``ClosedError``, after ``close``.
    """

    __slots__ = ("_choice", "_choices", "_known", "_saw_delta", "_selected", "_snapshots")

    def __init__(
        self,
        *,
        tools: Iterable[Any] | None = None,
        dialect: str | None = "auto",
        start: Literal["text", "reasoning"] = "text",
        choice: int | None = None,
        cumulative: Collection[str] = (),
        repair: int = 1,
        early: bool = False,
        id_factory: Callable[[int], str] = default_id,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        _check(cumulative)
        super().__init__(Assembly, tools, dialect, start, repair, early, id_factory, limits)
        self._choice = choice
        self._known: int | None = None  # the choice that is read, once the stream has shown one
        self._selected = choice is not None
        self._choices: set[int] = set()
        self._snapshots = dict.fromkeys(cumulative, "")
        self._saw_delta = False

    @property
    def choices(self) -> list[int]:
        """The indexes of the choices that the stream has shown so far, sorted."""
        return sorted(self._choices)

    # Chunks

    def _take(self, given: Any) -> None:
        chunk = wire.read(given)
        if chunk.model and self._auto:
            self._take_model(chunk.model)
        if chunk.usage is not None:
            self._take_usage(chunk.usage)
        mine: wire.Choice | None = None
        for choice in chunk.choices or ():
            if (choice.index or 0) == self._known or self._is_mine(choice):
                mine = choice
                self._take_choice(choice)
        if mine is not None and mine.finish_reason and chunk.x_groq is not None:
            self._take_usage(get(chunk.x_groq, "usage"))
        if chunk.error or chunk.base_resp is not None or (mine is not None and mine.error):
            error = wire.failure_of(chunk, mine)
            if error:
                self._fail(ErrorCode.PROVIDER_ERROR, error)

    def _take_usage(self, usage: Any) -> None:
        self._usage = plain(usage) or self._usage

    def _is_mine(self, choice: wire.Choice) -> bool:
        index = choice.index or 0
        if self._choice is None:
            self._choice = index
        self._choices.add(index)
        if index == self._choice:
            self._known = index
        if index != self._choice and not self._selected:
            self._account.tell_once(DeviationCode.OTHER_CHOICE, self._account.place, str(index))
        return index == self._choice

    def _take_choice(self, choice: wire.Choice) -> None:
        if self._done:
            return  # S: after [DONE] only usage counts
        if choice.delta is not None:
            self._take_delta(choice.delta)
        elif choice.text:
            self._take_text(choice.text)
        if choice.message is not None and not self._saw_delta:
            self._take_delta(choice.message, whole=True)
        if choice.finish_reason or choice.native_finish_reason:
            if choice.usage:
                self._take_usage(choice.usage)
            if judged(choice.native_finish_reason) == LENGTH:  # C6: whatever ``finish_reason`` says
                self._finish = LENGTH
            self._take_finish(choice.finish_reason)

    def _take_delta(self, delta: wire.Delta, *, whole: bool = False) -> None:
        """A delta, or the whole message of a completion, whose calls need no index (C7)."""
        if delta.reasoning_content or delta.reasoning or delta.reasoning_details:
            self._take_reasoning(wire.reasoning_of(delta))
        content = delta.content
        if isinstance(content, str):
            if content:
                self._take_text(content)
        elif content is not None:
            for is_reasoning, text in wire.parts_of(content):
                (self._take_reasoning if is_reasoning else self._take_text)(text)
        if delta.refusal:
            self._take_text(delta.refusal)
        if delta.tool_calls or delta.function_call is not None:
            self._take_calls(delta, whole)

    def _take_calls(self, delta: wire.Delta, whole: bool) -> None:
        self._saw_delta = True
        self._embedded.pause()
        take = self._roster.take
        for position, fragment in enumerate(delta.tool_calls or ()):
            take(fragment, position if whole else None)
        if delta.function_call is not None and not delta.tool_calls:
            self._roster.take_legacy(delta.function_call)

    def _take_text(self, text: str) -> None:
        self._saw_delta = True
        if "content" in self._snapshots:
            text = self._new("content", text)
        if text:
            self._embedded.text(text)

    def _take_reasoning(self, text: str) -> None:
        self._saw_delta = True
        if "reasoning" in self._snapshots:
            text = self._new("reasoning", text)
        if text:
            self._embedded.reason(text)

    def _new(self, field: str, text: str) -> str:
        """What is new in a cumulative field (C1): all of it, unless it goes on from where it was."""
        before, self._snapshots[field] = self._snapshots[field], text
        return text.removeprefix(before)


def _check(cumulative: Collection[str]) -> None:
    if isinstance(cumulative, str) or not set(cumulative) <= _SNAPSHOTS:
        raise UsageError(f"cumulative={cumulative!r} is not an option; use a collection of {sorted(_SNAPSHOTS)}")
