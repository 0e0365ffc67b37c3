"""One structured call on its way: name, id, argument text (rules C3, C4, C5, C7).

Theory. A call is *waiting* until its name is certain: with the first character of its arguments, when it is a declared
name that begins no other, or when another call opens. From then on it is *started*, and its argument text goes through
the incremental JSON reader, whose events are the call's own. While it waits, a reader without listeners only tells
whether the arguments are complete.

It has two ids: the one that it was given (``wire_id``), by which later fragments find it, and the one that was told
(``id``), which may have been made before the other came, and stays.

A fragment may end in the first half of a surrogate pair (J2). It waits for the next one.

Offsets of errors and deviations of a call count the characters of its argument text."""

from __future__ import annotations

from typing import Any

import msgspec

from streamparse.decoding.account import Account
from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.calls import UNTRUSTED
from streamparse.decoding.early import Early
from streamparse.decoding.lenient import sound
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
    DeviationCode.REPEATED_CALL,
    DeviationCode.SERVER_TOOL,
}
"""Deviations that make a call unsafe to run without asking; repairs from tier 2 on do, too (J5)."""

_BLANKS = " \t\r\n"
"""JSON's white space."""

_SHORT = 64
"""Arguments of this length are not looked at for a ``null``."""


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
        "_again",
        "_deviations",
        "_doubt",
        "_half",
        "_most",
        "_raw",
        "_reader",
        "_settings",
        "_size",
        "_trusted",
        "_untold",
        "flowing",
        "held",
        "id",
        "index",
        "legacy",
        "name",
        "order",
        "over",
        "server",
        "started",
        "wire_id",
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
        self._half = ""  # the first half of a surrogate pair
        self._again: _Repetition | None = None  # the text behind complete arguments, once somebody has asked
        self._most = settings.limits.arguments
        self._untold: list[Deviation] = []  # they wait for the start
        self.id = ""
        self.wire_id = ""
        self.name = ""
        self.legacy = legacy
        self.server = server  # how the provider calls a call that it runs itself (A)
        self.held = False  # it may repeat a call that came in the text (C9)
        self.over = False
        self.flowing = False  # started, not over, and no text waits: ``more`` may be called

    # What is known

    @property
    def begun(self) -> bool:
        """Whether a character of the arguments has come."""
        return self._size > 0 or bool(self._half)

    @property
    def complete(self) -> bool:
        """Whether the arguments are complete JSON so far, which seals nothing (J4)."""
        return self._reader.state == "complete" and not self._half

    @property
    def blank(self) -> bool:
        """Whether no argument character but white space has come."""
        return self._reader.state == "empty" and not self._half

    @property
    def without(self) -> bool:
        """Whether the arguments so far are none, or ``null``, which some servers write where there are none (C5)."""
        return self.blank or (self._size < _SHORT and self._raw.text().strip(_BLANKS) == "null")

    @property
    def empty(self) -> bool:
        """Whether the arguments so far are none, or ``{}``."""
        return self.without or (self.complete and not self._reader.value)

    def restates(self, name: str, text: str) -> bool:
        """C3, C5: the same name, and the same arguments whole or none."""
        return name.strip() == self.name.strip() and (not text.strip(_BLANKS) or self._equals(text))

    def begins_with(self, text: str) -> bool:
        """Whether the arguments begin with this text, which may repeat them piece by piece (C5)."""
        return self._raw.text().startswith(text)

    def wants_id(self, text: str) -> bool:
        """Whether an id that comes with this text may be this call's own, late (C2)."""
        return not self.wire_id and not self.over and not (self.complete and text.strip(_BLANKS))

    def _equals(self, text: str) -> bool:
        return len(text) == self._size and text == self._raw.text()

    def partial(self) -> PartialToolCall:
        """A snapshot; costs as much as the call is long."""
        partial = self._reader.partial
        arguments = partial if isinstance(partial, dict) else {}
        return PartialToolCall(self.id, self.name.strip(), arguments, sound(self._raw.text()), tuple(self._deviations))

    # Fragments

    def add_id(self, id_: str) -> None:
        """C3: an empty id never overwrites, and an id that was told stays."""
        if id_ and not self.wire_id:
            self.wire_id = id_
            if not self.started:
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
        if self._half or not (text.isascii() or text.isprintable()):  # a surrogate is not printable
            text = self._whole(text)
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
        if self._again is not None:
            self._again.add(text)
        self._read(text)

    def _whole(self, text: str) -> str:
        """The text with pairs made whole; half a pair at its end waits."""
        text, self._half = self._half + text, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        self._steer()
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")

    def _end_half(self) -> None:
        """The second half does not come: the reader says what that is (J2)."""
        half, self._half = self._half, ""
        if half:
            self._size += 1
            self._raw.add(half)
            self._read(half)

    def _steer(self) -> None:
        self.flowing = self.started and not self.over and not self._half and self._again is None

    def more(self, text: str) -> None:
        """``add_arguments`` for a call that is ``flowing``."""
        size = len(text)
        if size == self._size or not (text.isascii() or text.isprintable()):
            self.add_arguments(text)  # perhaps the same text once more, or half a character
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
            self._account.tell(code, self._account.place, "" if again else sound(text), self.index)

    def drop_repetition(self) -> None:
        """C5: arguments that were repeated whole, however the fragments cut them, are dropped. Whether they were is
        known when no more may come, so this is asked at the ends that seal."""
        error = self._reader.error
        if error is None or error.code is not ErrorCode.TRAILING_TEXT:
            return
        if self._again is None:
            raw = self._raw.text()
            self._again = _Repetition(raw[: error.offset], raw[error.offset :])
            self._steer()
        if self._again.whole and self._size <= self._most and not self._half:
            self._keep(self._again)

    def _keep(self, again: _Repetition) -> None:
        once = again.once
        reader = self._new_reader(self.index)
        reader.feed(once)
        if reader.state == "complete":
            self._reader, self._raw, self._size, self._again = reader, Pieces(), len(once), None
            self._raw.add(once)
            self._steer()
            self.deviate(DeviationCode.REPEATED_ARGUMENTS)
        else:
            again.possible = False  # what was repeated is not complete, as in a code fence

    # Deviations

    def deviate(self, code: DeviationCode, detail: str = "") -> None:
        """A deviation of this call, told once it has started."""
        deviation = Deviation(code, self._size, sound(detail[:EXCERPT]))
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
        self._steer()
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
        if self.held:
            if self._repeats(arguments):
                return
        elif self._account.twins and self._account.twins.take(self.name.strip(), arguments) is not None:
            self.deviate(DeviationCode.REPEATED_CALL)  # it came in the text while this one ran, and both were told
        if not self.started:
            self.release()
        if empty and not self.blank:
            self.deviate(DeviationCode.ARGUMENTS_NOT_TEXT, "null")
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
        self.flowing = False
        repaired = any(deviation.code is DeviationCode.REPAIRED for deviation in self._deviations)
        verbatim = None if empty or repaired else self._raw.text()  # what goes into a history has to be JSON
        call = ToolCall(self.id, self.name.strip(), arguments, verbatim, tuple(self._deviations), self._trusted)
        self._account.twins.sealed(call)
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
        self._end_half()
        self._settle_name()
        broken = self._reader.error
        self._fail(broken or ErrorDetail(code, reason, self._size, excerpt=self._excerpt()))

    def fail_unfinished(self) -> None:
        """The answer ended inside the arguments."""
        self._end_half()
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
        self.flowing = False
        self._account.conclude(ToolCallFailed(self.index, self.partial(), error))

    def _excerpt(self) -> str:
        return sound(self._raw.text()[-EXCERPT:])


class _Repetition:
    """Whether the text behind complete arguments is these arguments once more, or several times, with nothing but white
    space around them. It grows with the text, so that asking costs nothing."""

    __slots__ = ("_at", "_text", "once", "possible")

    def __init__(self, once: str, rest: str) -> None:
        self.once = once
        self._text = once.strip(_BLANKS)
        self._at = 0  # how much of the text has come once more
        self.possible = bool(self._text)
        self.add(rest)

    @property
    def whole(self) -> bool:
        return self.possible and not self._at

    def add(self, text: str) -> None:
        at, end = 0, len(text)
        while self.possible and at < end:
            if not self._at and text[at] in _BLANKS:
                at += 1
                continue
            piece = self._text[self._at : self._at + end - at]
            self.possible = text.startswith(piece, at)
            at += len(piece)
            self._at = (self._at + len(piece)) % len(self._text)


def argument_text(given: Any) -> tuple[str, bool]:
    """The text of ``arguments``, and whether it was text (C7). What cannot be written as JSON is no object."""
    if isinstance(given, str):
        return given, True
    if given is None:
        return "", True
    try:
        return json_text(given), False
    except (TypeError, ValueError, RecursionError):
        return "false", False
