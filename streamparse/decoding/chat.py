"""OpenAI-style chunks -> events: the decoder of every endpoint that speaks chat completions (rules C).

Theory. A chunk is read leniently into one shape (``wire``). What it adds goes three ways, all of which write their
events into one ``Account``: reasoning and content through native decoders where the model writes native text
(``embedded``), fragments of calls to the call that they belong to (``assembly``), whose argument text goes through the
incremental JSON reader (``wirecall``). What a stream ends with decides about the calls that are open:

* ``finish_reason``: what is complete is sealed; the rest may still get its last fragment.
* ``[DONE]``, or ``close`` after a finish reason: what is not complete fails.
* ``close`` without either: the stream was interrupted, and everything that is open fails, complete or not (C6).

Offsets of errors and deviations count, for a call, the characters of its argument text; for native text, the
characters of the field; else the characters of text, reasoning and arguments that came before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Literal

from streamparse.decoding import wire
from streamparse.decoding.account import Account
from streamparse.decoding.assembly import Assembly
from streamparse.decoding.embedded import Embedded, Start, dialect_of
from streamparse.decoding.native import NativeDecoder, default_id
from streamparse.decoding.values import compile_tools
from streamparse.decoding.wirecall import Settings
from streamparse.errors import ClosedError, UsageError
from streamparse.events import DeviationCode, Ended, ErrorCode, Event, PartialToolCall, ToolCall
from streamparse.limits import DEFAULT_LIMITS, Limits

DONE = "[DONE]"
"""The last payload of an event stream."""

_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
"""C6: ``native_finish_reason`` by which an answer was cut, in lower case, whatever ``finish_reason`` says."""

_PROMISES = frozenset({"tool_calls", "tool_call", "function_call"})

_BROKEN = frozenset({"error"})
"""E4: finish reasons by which nothing more can be sealed."""

_TEXTS = (str, bytes, bytearray)
_SHORT = 64
"""Only payloads below this length can be ``[DONE]``, or blank."""

_SNAPSHOTS = frozenset({"content", "reasoning"})


class ChatDecoder:
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
    * ``repair``, ``id_factory``, ``limits``: as for ``NativeDecoder``; ids are made for calls that come without one.

    Raises ``UnknownDialectError``, ``GrammarError``, ``ToolDefinitionError`` or ``UsageError`` when made; ``feed`` and
    ``close`` raise only ``ClosedError``, after ``close``.
    """

    __slots__ = (
        "_account",
        "_assembly",
        "_auto",
        "_choice",
        "_choices",
        "_closed",
        "_done",
        "_embedded",
        "_finish",
        "_known",
        "_saw_delta",
        "_selected",
        "_snapshots",
        "_usage",
    )

    def __init__(
        self,
        *,
        tools: Iterable[Any] | None = None,
        dialect: str | None = "auto",
        start: Literal["text", "reasoning"] = "text",
        choice: int | None = None,
        cumulative: Collection[str] = (),
        repair: int = 1,
        id_factory: Callable[[int], str] = default_id,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        compiled = None if tools is None else compile_tools(tools)

        def make(name: str, first: Start, make_id: Callable[[int], str]) -> NativeDecoder:
            return NativeDecoder(name, tools=compiled, start=first, repair=repair, id_factory=make_id, limits=limits)

        self._auto = dialect == "auto"
        named = None if self._auto else dialect
        if named is not None:
            make(named, start, default_id)  # an unknown name is the caller's fault, and they are told here
        _check(start, cumulative, repair)
        self._account = Account(id_factory)
        self._assembly = Assembly(self._account, Settings(compiled, repair, limits))
        self._embedded = Embedded(self._account, make, named, start)
        self._choice = choice
        self._known: int | None = None  # the choice that is read, once the stream has shown one
        self._selected = choice is not None
        self._choices: set[int] = set()
        self._snapshots = dict.fromkeys(cumulative, "")
        self._saw_delta = False
        self._finish: str | None = None
        self._usage: dict[str, Any] | None = None
        self._done = False
        self._closed = False

    # The caller's side

    def feed(self, chunk: Any) -> list[Event]:
        """The events that this chunk makes certain, in order."""
        if self._closed:
            raise ClosedError("feed after close: a decoder reads one answer, make a new one for the next")
        events = self._account.begin()
        if isinstance(chunk, _TEXTS) and len(chunk) < _SHORT:
            word = chunk.strip()
            if not word or word in (DONE, DONE.encode()):
                if word:
                    self._take_done()
                return events
        try:
            self._take(wire.read(chunk))
        except wire.UnreadableError as error:
            self._break(f"a chunk is no JSON: {error}", chunk)
        return events

    def close(self, finish_reason: str | None = None) -> list[Event]:
        """The end of the answer: the last events, ``Ended`` at their end (rules C5, C6, E).

        ``finish_reason`` is the caller's word, where the stream gave none; ``"error"`` says that the transport broke
        (E4), which takes back what the stream said unless ``[DONE]`` had come.
        """
        if self._closed:
            raise ClosedError("close after close: a decoder reads one answer, make a new one for the next")
        self._closed = True
        account = self._account
        events = account.begin()
        if self._finish is None or (finish_reason in _BROKEN and not self._done):
            self._finish = finish_reason
        interrupted = self._finish in _BROKEN or (self._finish is None and not self._done)
        if not self._done:
            self._end(interrupted)
        if account.clean:
            self._judge_end(interrupted)
        events.append(Ended(self._finish, self._usage, account.clean))
        return events

    @property
    def calls(self) -> list[ToolCall]:
        """The sealed calls so far, in the order of their start."""
        return [call for _, call in sorted(self._account.finished.items(), key=lambda item: item[0])]

    @property
    def choices(self) -> list[int]:
        """The indexes of the choices that the stream has shown so far, sorted."""
        return sorted(self._choices)

    def partial(self, index: int) -> PartialToolCall:
        """A snapshot of the call with this index: running, sealed or failed. Costs as much as the call is long.

        Raises ``UsageError`` when no call with this index has begun.
        """
        running = self._assembly.running(index)
        found = running.partial() if running is not None else self._embedded.partial(index)
        found = found or self._account.failed.get(index)
        if found is not None:
            return found
        done = self._account.finished.get(index)
        if done is not None:
            return PartialToolCall(done.id, done.name, dict(done.arguments), done.arguments_json, done.deviations)
        raise UsageError(f"no call {index}: {self._account.count} calls have begun, counted from 0")

    # Chunks

    def _take(self, chunk: wire.Chunk) -> None:
        if chunk.model and self._auto:
            self._auto = False
            self._embedded.dialect = dialect_of(chunk.model)
        if chunk.usage is not None:
            self._usage = wire.plain(chunk.usage) or self._usage
        mine: wire.Choice | None = None
        for choice in chunk.choices or ():
            if (choice.index or 0) == self._known or self._is_mine(choice):
                mine = choice
                self._take_choice(choice)
        if chunk.error or chunk.base_resp is not None or (mine is not None and mine.error):
            error = wire.failure(chunk, mine)
            if error:
                self._fail(ErrorCode.PROVIDER_ERROR, error)

    def _is_mine(self, choice: wire.Choice) -> bool:
        index = choice.index or 0
        if self._choice is None:
            self._choice = index
        self._choices.add(index)
        if index == self._choice:
            self._known = index
        if index != self._choice and not self._selected:
            self._account.tell_once(DeviationCode.OTHER_CHOICE, str(index))
        return index == self._choice

    def _take_choice(self, choice: wire.Choice) -> None:
        if self._done:
            return  # S: after [DONE] only usage counts
        if choice.delta is not None:
            self._take_delta(choice.delta)
        if choice.message is not None and not self._saw_delta:
            self._take_delta(choice.message, whole=True)
        if choice.finish_reason or choice.native_finish_reason:
            self._take_finish(choice.finish_reason, choice.native_finish_reason)

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
        self._embedded.end_reasoning()
        take = self._assembly.take
        for position, fragment in enumerate(delta.tool_calls or ()):
            take(fragment, position if whole else None)
        if delta.function_call is not None and not delta.tool_calls:
            self._assembly.take_legacy(delta.function_call)

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

    # Ends

    def _take_finish(self, reason: str | None, native: str | None) -> None:
        """C5, C6: the first finish reason counts, unless the provider's own says that the answer was cut."""
        if native and native.lower() in _CUT:
            reason = self._finish = "length"
        elif self._finish is None:
            self._finish = reason
        if self._finish is not None and self._finish not in _BROKEN:
            self._assembly.seal_complete(cut=self._finish == "length")

    def _take_done(self) -> None:
        """``[DONE]``: calls that are not complete fail now."""
        if not self._done:
            self._done = True
            self._end(self._finish in _BROKEN)

    def _end(self, interrupted: bool) -> None:
        """What is open ends: first the text, so that a call in it is known when a structured one repeats it."""
        self._embedded.close("error" if interrupted else self._finish)
        self._assembly.finish(self._finish, interrupted=interrupted)

    def _break(self, reason: str, chunk: Any) -> None:
        """A chunk that cannot be read: nobody knows what of the running calls was in it."""
        text = chunk if isinstance(chunk, str) else bytes(chunk).decode("utf-8", "replace")
        self._assembly.fail_all(ErrorCode.INVALID_JSON, reason)
        self._account.fail(ErrorCode.INVALID_JSON, reason, text)

    def _fail(self, code: ErrorCode, reason: str) -> None:
        """C8: an error inside the stream."""
        self._assembly.fail_all(code, reason)
        self._account.fail(code, reason)

    def _judge_end(self, interrupted: bool) -> None:
        """An answer in which nothing failed yet, and which is not whole all the same."""
        if interrupted:
            reason = "the stream broke" if self._finish in _BROKEN else "the stream ended without a finish"
            self._account.fail(ErrorCode.STREAM_INTERRUPTED, reason)
        elif self._finish in _PROMISES and not self._account.count:
            self._account.fail(ErrorCode.MISSING_CALL, f"finish reason {self._finish!r}, and no call came")


def _check(start: str, cumulative: Collection[str], repair: int) -> None:
    if start not in ("text", "reasoning"):
        raise UsageError(f"start={start!r} is not an option; use 'text' or 'reasoning'")
    if isinstance(cumulative, str) or not set(cumulative) <= _SNAPSHOTS:
        raise UsageError(f"cumulative={cumulative!r} is not an option; use a collection of {sorted(_SNAPSHOTS)}")
    if repair not in (0, 1, 2, 3):
        raise UsageError(f"repair={repair!r} is not an option; use 0, 1, 2 or 3")
