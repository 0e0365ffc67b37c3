"""Calls that are content blocks: where they start, what they get, when they end (rules A, C3, C5, C6, C7).

Theory. A block has its index, its id and its name at once, so a call starts with it. ``content_block_stop`` is the
delimiter: a call whose arguments are complete is sealed there, one whose arguments are not fails there. One thing stays
open. A call without arguments may be one that was cut before the first of them, since a block that is cut is stopped
like any other. So it *waits* until the next block starts, the stop reason comes, or the stream ends.

==========================  =============================================================================
a piece of arguments finds  it goes to
==========================  =============================================================================
a call that runs            this call
a call that waits           this call (``late_fragment``: not trusted)
a call whose ``input`` was  nowhere; the same value once more is ``repeated_arguments``, another one is
given whole                 ``late_fragment``, and the call is not trusted
a call that has ended       nowhere (``late_fragment``, ``repeated_arguments``)
no call                     the only call that runs (``orphan_fragment``), or a new one without a name, which
                            can only fail
a block that is ignored     nowhere: its result is the provider's, or it is beyond the limit of calls
==========================  =============================================================================
"""

from __future__ import annotations

import json
from typing import Any

from streamparse.decoding.account import Account
from streamparse.decoding.blocks import Block
from streamparse.decoding.lenient import plain, sound
from streamparse.decoding.pieces import Pieces
from streamparse.decoding.roster import LENGTH, Roster
from streamparse.decoding.wirecall import Settings, WireCall, argument_text
from streamparse.events import DeviationCode

LOCAL = "tool_use"
"""The type of a call that the caller runs; those of the provider's own end in it."""

_DOUBTFUL = frozenset({LENGTH, "refusal", "content_filter"})
"""Stop reasons by which a block may have been cut anywhere."""


class BlockCalls(Roster):
    """The structured calls of one answer that came in content blocks."""

    __slots__ = ("_given", "_reason_given", "_slots", "_waiting")

    def __init__(self, account: Account, settings: Settings) -> None:
        super().__init__(account, settings)
        self._reason_given = False
        self._slots: dict[int, WireCall | None] = {}  # None: a block that is ignored
        self._given: dict[int, _Late] = {}  # by the order of opening: the input was given whole
        self._waiting: dict[int, WireCall] = {}  # stopped since the last start, and not ended

    # Blocks

    def start(self, index: int, block: Block) -> None:
        """A block that is a call."""
        call = self._slots.get(index)
        if call is not None and _restates(block, call) and call.order not in self._waiting:
            call.add_name(sound(block.name or ""))
        else:
            self.end(index)
            call = self._slots[index] = self._new(server="" if block.type in (LOCAL, None) else block.type or "")
            if call is None:
                return
            call.add_id(sound(block.id or ""))
            call.add_name(sound(block.name or ""))
        if call.name.strip():
            call.start()
        text = _input_text(block.input)
        if text and not call.begun:
            self._account.place += len(text)
            call.add_arguments(text)
            self._given[call.order] = _Late(self._settings.limits.arguments)

    def end(self, index: int) -> None:
        """A block starts here: the one before it is over, and the answer went on behind all that were stopped."""
        self.stop(index)
        self._slots.pop(index, None)
        waiting = list(self._waiting.values())
        self._waiting.clear()
        for call in waiting:
            self._seal_stopped(call)

    def ignore(self, index: int) -> None:
        """The block here is neither text nor a call."""
        self._slots[index] = None

    def ignores(self, index: int) -> bool:
        """Whether what comes for this block is ignored."""
        return index in self._slots and self._slots[index] is None

    def take(self, index: int, piece: Any) -> None:
        """A piece of the arguments, or all of them as an object (C7)."""
        call = self._slots.get(index)
        if call is not None and call.flowing and type(piece) is str and not self._given and not self._waiting:
            self._account.place += len(piece)  # the fast path
            call.more(piece)
            return
        text = _input_text(piece)
        if not text or (call is None and index in self._slots):
            return
        self._account.place += len(text)
        if call is None:
            call = self._slots[index] = self._adopt() or self._new()
            if call is None:
                return
        self._take(call, text, as_text=isinstance(piece, str))

    def _take(self, call: WireCall, text: str, *, as_text: bool) -> None:
        if call.over:
            call.late(text)
        elif call.order in self._given:
            self._given[call.order].add(text)
        else:
            if call.order in self._waiting and text.strip():
                call.deviate(DeviationCode.LATE_FRAGMENT, text)
            call.add_arguments(text, as_text=as_text)

    def _adopt(self) -> WireCall | None:
        """The only call that is open, if it wants arguments."""
        if len(self._open) != 1:
            return None
        (call,) = self._open.values()
        if call.complete or call.order in self._waiting:
            return None
        call.deviate(DeviationCode.ORPHAN_FRAGMENT)
        return call

    # Ends

    def stop(self, index: int) -> None:
        """``content_block_stop``."""
        call = self._slots.get(index)
        if call is None or call.over or call.order in self._waiting:
            return
        call.drop_repetition()
        if not call.name.strip():
            self._end_nameless(call)
            self._close(call)
        elif call.empty:
            self._waiting[call.order] = call
        elif call.complete:
            self._seal_stopped(call)
        else:
            call.fail_unfinished()
            self._close(call)

    def _seal_stopped(self, call: WireCall) -> None:
        if call.without or call.complete:
            self._seal_one(call, empty=call.without)

    def _seal_one(self, call: WireCall, *, empty: bool = False, cut: bool = False) -> None:
        late = self._given.pop(call.order, None)
        if late is not None and late.text.strip():
            same = late.repeats(call.partial().arguments)
            code = DeviationCode.REPEATED_ARGUMENTS if same else DeviationCode.LATE_FRAGMENT
            call.deviate(code, "" if same else late.text)
        super()._seal_one(call, empty=empty, cut=cut)

    def reason_given(self, finish_reason: str) -> None:
        """The first one counts: blocks that come behind it have their own stop, or the end."""
        if not self._reason_given:
            self._reason_given = True
            self.seal_complete(finish_reason)

    def seal_complete(self, finish_reason: str | None = None) -> None:
        """The stop reason, or the end: what was stopped without arguments needs none, unless it may have been cut."""
        super().seal_complete(finish_reason)
        if finish_reason not in _DOUBTFUL:
            for call in list(self._waiting.values()):
                self._seal_stopped(call)

    def _close(self, call: WireCall) -> None:
        super()._close(call)
        self._waiting.pop(call.order, None)
        self._given.pop(call.order, None)


class _Late:
    """What came behind an ``input`` that was given whole."""

    __slots__ = ("_pieces", "_room")

    def __init__(self, room: int) -> None:
        self._pieces = Pieces()
        self._room = room

    def add(self, text: str) -> None:
        self._room -= len(text)
        if self._room >= 0:
            self._pieces.add(text)

    @property
    def text(self) -> str:
        return self._pieces.text()

    def repeats(self, arguments: dict[str, Any]) -> bool:
        """Whether it is the same value once more."""
        try:
            return self._room >= 0 and bool(json.loads(self.text) == arguments)
        except (ValueError, RecursionError):
            return False


def _restates(block: Block, call: WireCall) -> bool:
    """C3: the start of a call that runs, once more."""
    same_name = not block.name or not call.name or sound(block.name).strip() == call.name.strip()
    return not call.over and bool(block.id) and sound(block.id or "") == call.wire_id and same_name


def _input_text(given: Any) -> str:
    """The text of an ``input``; none where it is empty, which only says that deltas follow (or none, for ``{}``)."""
    if given is None or (isinstance(given, dict | list | tuple | str) and not given):
        return ""
    known = isinstance(given, dict | list | tuple | str | int | float)
    return argument_text(given if known else plain(given))[0]
