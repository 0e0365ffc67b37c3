"""One structured call on its way: name, id, argument text (rules C3, C4, C5, C7).

Theory. A call is *waiting* until its name is certain: with the first character of its arguments, when it is a declared
name that begins no other, or when another call opens. From then on it is *started*, and its argument text goes through
the incremental JSON reader, whose events are the call's own. While it waits, a reader without listeners only tells
whether the arguments are complete.

Offsets of errors and deviations of a call count the characters of its argument text."""

from __future__ import annotations

from typing import Any

import msgspec

from streamparse.decoding.account import Account
from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.calls import UNTRUSTED
from streamparse.decoding.early import Early
from streamparse.decoding.pieces import Pieces
from streamparse.decoding.repair import UNTRUSTED as UNTRUSTED_TIER
from streamparse.decoding.values import CompiledTools
from streamparse.events import (
    ArgumentDelta,
    Deviated,
    Deviation,
    DeviationCode,
    ErrorCode,
    ErrorDetail,
    PartialToolCall,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
    json_text,
)
from streamparse.limits import EXCERPT, Limits

_UNTRUSTED = UNTRUSTED | {
    DeviationCode.CONFLICTING_NAME,
    DeviationCode.EMPTY_ARGUMENTS,
    DeviationCode.LATE_FRAGMENT,
    DeviationCode.SERVER_TOOL,
}
"""Deviations that make a call unsafe to run without asking; repairs from tier 2 on do, too (J5)."""

_BLANKS = " \t\r\n"
"""JSON's white space."""


class Settings(msgspec.Struct, frozen=True):
    """What all calls of an answer share."""

    tools: CompiledTools | None
    repair: int
    limits: Limits
    early: Early | None = None


class WireCall:
    """A call between its first fragment and its end."""

    __slots__ = (
        "_account",
        "_compared",
        "_deviations",
        "_doubt",
        "_most",
        "_raw",
        "_reader",
        "_settings",
        "_size",
        "_trusted",
        "_untold",
        "held",
        "id",
        "index",
        "legacy",
        "name",
        "order",
        "over",
        "server",
        "started",
    )

    def __init__(
        self, account: Account, settings: Settings, order: int, *, legacy: bool = False, server: str = ""
    ) -> None:
        self.order = order  # of opening, on this wire
        self._account = account
        self._settings = settings
        self.index = -1  # in the answer, from the start on
        self.started = False  # ToolCallStarted was given
        self._deviations: list[Deviation] = []
        self._trusted = True
        self._doubt: ErrorDetail | None = None  # what is wrong with the name
        self._reader = self._new_reader(0)
        self._raw = Pieces()
        self._size = 0
        self._compared = 0  # the size at which a repetition was looked for
        self._most = settings.limits.arguments
        self._untold: list[Deviation] = []  # they wait for the start
        self.id = ""
        self.name = ""
        self.legacy = legacy
        self.server = server  # how the provider calls a call that it runs itself (A)
        self.held = False  # it may repeat a call that came in the text (C9)
        self.over = False

    # What is known

    @property
    def begun(self) -> bool:
        """Whether a character of the arguments has come."""
        return self._size > 0

    @property
    def complete(self) -> bool:
        """Whether the arguments are complete JSON so far, which seals nothing (J4)."""
        return self._reader.state == "complete"

    @property
    def blank(self) -> bool:
        """Whether no argument character but white space has come."""
        return self._reader.state == "empty"

    @property
    def empty(self) -> bool:
        """Whether the arguments so far are none, or ``{}``."""
        return self.blank or (self.complete and not self._reader.value)

    def restates(self, name: str, text: str) -> bool:
        """C3, C5: the same name, and the same arguments whole or none."""
        return name.strip() == self.name.strip() and (not text or self._equals(text))

    def _equals(self, text: str) -> bool:
        return len(text) == self._size and text == self._raw.text()

    def partial(self) -> PartialToolCall:
        """A snapshot; costs as much as the call is long."""
        partial = self._reader.partial
        arguments = partial if isinstance(partial, dict) else {}
        return PartialToolCall(self.id, self.name.strip(), arguments, self._raw.text(), tuple(self._deviations))

    # Fragments

    def add_id(self, id_: str) -> None:
        """C3: an empty id never overwrites, and an id that was told stays."""
        if id_ and not self.id and not self.started:
            self.id = id_

    def add_name(self, name: str) -> None:
        """C3: set, repeated, or the next piece of it."""
        old = self.name.strip()
        if not name or name.strip() == old:
            return
        if not old:
            self.name = name[: self._settings.limits.name + 1]
        elif self.started or self.begun:
            self.deviate(DeviationCode.CONFLICTING_NAME, name)
        else:
            self.name = self._joined(name)[: self._settings.limits.name + 1]
        self._judge_name()

    def _judge_name(self) -> None:
        """Early verdicts: no declared name begins as this one does. One that may be a repetition (C9) is judged when it
        starts."""
        early, name = self._settings.early, self.name.strip()
        if early is None or self.server or self.started or self.index >= 0 or early.begins(name) or self._account.twins:
            return
        self.index = self._account.next_index()
        self._account.events.append(early.unknown(self.index, name))

    def _joined(self, name: str) -> str:
        """The declared names settle whether it is a piece or the whole name."""
        tools = self._settings.tools
        whole = self.name + name
        restated = tools is not None and whole.strip() not in tools and name.strip() in tools
        return name if restated else whole

    def add_arguments(self, text: str, *, as_text: bool = True) -> None:
        """More of the argument text, or all of it from an object (C7)."""
        if not text:
            return
        if self._equals(text) and self.complete:
            self.deviate(DeviationCode.REPEATED_ARGUMENTS)
            return
        if not as_text:
            self.deviate(DeviationCode.ARGUMENTS_NOT_TEXT)
        self.start_if_certain(text)
        self._size += len(text)
        if self._size <= self._most:
            self._raw.add(text)
        self._read(text)

    @property
    def flowing(self) -> bool:
        """Whether it is started and not over, so that ``more`` may be called."""
        return self.started and not self.over

    def more(self, text: str) -> None:
        """``add_arguments`` for a call that is ``flowing``."""
        size = len(text)
        if size == self._size:
            self.add_arguments(text)  # perhaps the same text once more
            return
        self._size += size
        if self._size <= self._most:
            self._raw.add(text)
        found = self._reader.feed(text)
        if len(found) == 1 and type(found[0]) is ArgumentDelta:
            self._account.events += found
        else:
            self._pass_on(found)

    def _read(self, text: str) -> None:
        found = self._reader.feed(text)
        if self.started:
            self._pass_on(found)

    def _pass_on(self, found: list[Any]) -> None:
        for event in found:
            if isinstance(event, Deviated):
                self._note(event.deviation)
            else:
                self._account.events.append(event)

    def late(self, text: str) -> None:
        """C5: a fragment for a call that has ended."""
        if text.strip():
            again = self._equals(text)
            code = DeviationCode.REPEATED_ARGUMENTS if again else DeviationCode.LATE_FRAGMENT
            self._account.tell(code, self._account.place, "" if again else text, self.index)

    def drop_repetition(self) -> None:
        """C5: arguments that were repeated whole, however the fragments cut them, are dropped. Whether they were is
        known when no more may come, so this is asked at the ends that seal."""
        error = self._reader.error
        if error is None or error.code is not ErrorCode.TRAILING_TEXT or self._size in (self._compared, 0):
            return
        self._compared = self._size
        raw = self._raw.text()
        reader = self._new_reader(self.index)
        once = raw[: error.offset]
        reader.feed(once)
        if len(raw) == self._size and reader.state == "complete" and _is_repeated(once.strip(), raw[error.offset :]):
            self._reader, self._raw, self._size = reader, Pieces(), len(once)
            self._raw.add(once)
            self.deviate(DeviationCode.REPEATED_ARGUMENTS)

    # Deviations

    def deviate(self, code: DeviationCode, detail: str = "") -> None:
        """A deviation of this call, told once it has started."""
        deviation = Deviation(code, self._size, detail[:EXCERPT])
        if self.started:
            self._note(deviation)
        else:
            self._untold.append(deviation)

    def _note(self, deviation: Deviation) -> None:
        self._deviations.append(deviation)
        if deviation.code in _UNTRUSTED or deviation.tier >= UNTRUSTED_TIER:
            self._trusted = False
        self._account.events.append(Deviated(self.index, deviation))

    # The start

    def start_if_certain(self, text: str = "") -> None:
        """Start if the name is certain. ``text`` are arguments that follow it."""
        if not self.started and not self.held and self.name.strip() and (text or self._size or self._declared()):
            self.start()

    def _declared(self) -> bool:
        """A declared name that begins no other declared name."""
        tools, name = self._settings.tools, self.name.strip()
        if tools is None or name not in tools:
            return False
        return not any(other != name and other.startswith(name) for other in tools)

    def start(self) -> None:
        """The name is certain: tell it, unless the call may be one that came in the text before (C9)."""
        if self.started or self.held:
            return
        if self._account.twins.any(self.name.strip()):
            self.held = True
            return
        self.release()

    def release(self) -> None:
        """Start for good, and tell what came while the call waited."""
        self.held = False
        account, name, most = self._account, self.name.strip(), self._settings.limits.name
        judged = self.index >= 0
        index = self.index = self.index if judged else account.next_index()
        if len(name) > most:
            name = name[:most]
            reason = f"a name of more than {most} characters"
            self._doubt = ErrorDetail(ErrorCode.LIMIT_EXCEEDED, reason, 0, excerpt=name[:EXCERPT])
        given, self.id, self.started = self.id, self.id or account.make_id(index), True
        account.events.append(ToolCallStarted(index, self.id, name))
        self._tell_of_start(name, given)
        self._reader = self._new_reader(index)
        if self._settings.early is not None and not judged and not self.server:
            self._begin_watch(self._settings.early, name)
        if self._size:
            self._read(self._raw.text())

    def _begin_watch(self, early: Early, name: str) -> None:
        """Early verdicts: from here on the arguments are followed."""
        self._reader.watch = early.watch(name, self.index)
        if self._reader.watch is None:
            self._account.events.append(early.unknown(self.index, name))

    def _tell_of_start(self, name: str, given: str) -> None:
        """What there is to say about the name and the id that was given."""
        untold, self._untold = self._untold, []
        tools = self._settings.tools
        if self.server:
            self.deviate(DeviationCode.SERVER_TOOL, self.server)
        elif tools is not None and name not in tools:
            self.deviate(DeviationCode.UNKNOWN_TOOL, name)
        if not given and not self.legacy:
            self.deviate(DeviationCode.MISSING_ID)
        if given and given in self._account.ids:
            self.deviate(DeviationCode.REPEATED_ID, given)
        self._account.ids.add(self.id)
        if self.name != self.name.strip():
            self.deviate(DeviationCode.NAME_TRIMMED)
        for deviation in untold:
            self._note(deviation)

    def _new_reader(self, index: int) -> JsonDecoder:
        return JsonDecoder(index=index, repair=self._settings.repair, limits=self._settings.limits)

    # The end

    def seal(self, *, empty: bool = False, cut: bool = False) -> None:
        """The call is complete and delimited. ``empty``: no argument came, which is ``{}`` (C5). ``cut``: the answer
        was cut at its length (C6)."""
        arguments: dict[str, Any] = {} if empty else self._reader.value
        if self.held and self._repeats(arguments):
            return
        if not self.started:
            self.release()
        if empty and self._reader.watch is not None:
            self._reader.watch.whole({}, self._account.events)
        if not empty:
            self._pass_on(self._reader.close())
            arguments = self._reader.value
        if cut and not arguments:
            self.deviate(DeviationCode.EMPTY_ARGUMENTS)
        if self._doubt is not None:
            self._fail(self._doubt)
            return
        self.over = True
        repaired = any(deviation.code is DeviationCode.REPAIRED for deviation in self._deviations)
        verbatim = None if empty or repaired else self._raw.text()  # what goes into a history has to be JSON
        call = ToolCall(self.id, self.name.strip(), arguments, verbatim, tuple(self._deviations), self._trusted)
        self._account.conclude(ToolCallFinished(self.index, call))

    def _repeats(self, arguments: dict[str, Any]) -> bool:
        """C9: a call in the text that came again is reported once. One that still runs there may yet be this one."""
        twins, name = self._account.twins, self.name.strip()
        twin = twins.take(name, arguments)
        if twin is None:
            return twins.running(name)
        self.over = True
        self.index = twin
        self._account.tell(DeviationCode.REPEATED_CALL, self._account.place, self.id, twin)
        return True

    def fail(self, code: ErrorCode, reason: str) -> None:
        """The call ends in its error state; broken JSON is the better reason, where there is one."""
        self.drop_repetition()
        self._settle_name()
        broken = self._reader.error
        self._fail(broken or ErrorDetail(code, reason, self._size, excerpt=self._excerpt()))

    def fail_unfinished(self) -> None:
        """The answer ended inside the arguments."""
        self._settle_name()
        if self.blank:
            reason = "the answer ended before the first argument"
            self._fail(ErrorDetail(ErrorCode.UNTERMINATED_JSON, reason, self._size, expected=("'{'",)))
            return
        self._pass_on(self._reader.close())
        reason = "the arguments are not complete"
        self._fail(self._reader.error or ErrorDetail(ErrorCode.UNTERMINATED_JSON, reason, self._size))

    def _settle_name(self) -> None:
        """A call that fails gets its index, and is started if it has a name."""
        if not self.started and self.name.strip():
            self.release()
        elif not self.started:
            self.index = self._account.next_index() if self.index < 0 else self.index
            self.id = self.id or self._account.make_id(self.index)
            for deviation in self._untold:
                self._note(deviation)

    def _fail(self, error: ErrorDetail) -> None:
        self.over = True
        self._account.conclude(ToolCallFailed(self.index, self.partial(), error))

    def _excerpt(self) -> str:
        return self._raw.text()[-EXCERPT:]


def _is_repeated(once: str, rest: str) -> bool:
    """Whether the rest is the same text once more, or several times, with nothing but white space around it."""
    at, end = 0, len(rest.rstrip(_BLANKS))
    while at < end and rest.startswith(once, at):
        at += len(once)
        while at < end and rest[at] in _BLANKS:
            at += 1
    return at == end


def argument_text(given: Any) -> tuple[str, bool]:
    """The text of ``arguments``, and whether it was text (C7). What cannot be written as JSON is no object."""
    if isinstance(given, str):
        return given, True
    if given is None:
        return "", True
    try:
        return json_text(given), False
    except (TypeError, ValueError, RecursionError):
        return "null", False
