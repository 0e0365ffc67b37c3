"""Which call a fragment belongs to, and when the next one has started (rules C2, C5).

Theory. A fragment says where it belongs with up to three words, of which providers leave out any: index, id, name.
``slots`` maps an index to the call that used it last, ``ids`` an id. Where the words are silent, the state of the
arguments decides: text behind complete JSON cannot belong to it, so a name that comes there opens the next call, and a
fragment without any word goes to the call that still needs it.

=================  ===================  ============================================================================
index              the fragment has     it belongs to
=================  ===================  ============================================================================
used               another id           a new call
used               the id of the call   the call there; behind complete arguments a new one for another name, or for
                                        the same name with other arguments
used               a name, or the       a new call if the arguments there are complete, and it does not restate them
                   first id there
used               anything else        the call there
unused             a name or a new id   a new call
unused             a known id, no name  the call of this id
unused             neither              the only call whose arguments are not complete (``orphan_fragment``)
none               an id                the call of this id; the last call if it had none and is not complete, and
                                        no other name comes; or a new one
none               a name               a new call, unless it repeats or continues the name of the last call
none               neither              the last call
=================  ===================  ============================================================================

A fragment that finds no call and has neither id nor name opens one that can only fail (``missing_name``).
"""

from __future__ import annotations

from streamparse.decoding.account import Account
from streamparse.decoding.lenient import sound
from streamparse.decoding.roster import LENGTH, Roster
from streamparse.decoding.wire import Fragment, Function
from streamparse.decoding.wirecall import Settings, WireCall, argument_text
from streamparse.events import DeviationCode

_LEGACY = -(2**64)
"""C10: the slot of ``function_call``, which is no index of the wire."""


class Assembly(Roster):
    """The structured calls of one answer that came in fragments."""

    __slots__ = ("_ids", "_last", "_slots", "_touched")

    def __init__(self, account: Account, settings: Settings) -> None:
        super().__init__(account, settings)
        self._touched: dict[int, WireCall] = {}  # the open calls that got anything since they were last looked at
        self._slots: dict[int, WireCall] = {}
        self._ids: dict[str, WireCall] = {}
        self._last: WireCall | None = None

    # Fragments

    def take(self, fragment: Fragment, index: int | None = None) -> None:
        """A fragment of ``tool_calls``; ``index`` stands in for a missing one."""
        function = fragment.function or fragment.flat()
        call = self._slots.get(fragment.index)  # type: ignore[arg-type]  # None is no key
        if call is not None and not fragment.id and not function.name and call.flowing:
            text = function.arguments
            if type(text) is str:  # the fast path: more arguments of a call that is started
                self._last = self._touched[call.order] = call
                self._account.place += len(text)
                call.more(text)
                return
        place = index if fragment.index is None else fragment.index
        if place is not None and place < 0:
            place = None
        self._take(place, sound(fragment.id or ""), function)

    def take_legacy(self, function: Function) -> None:
        """C10: a ``function_call``."""
        self._take(_LEGACY, "", function)

    def _take(self, index: int | None, id_: str, function: Function) -> None:
        name = sound(function.name or "")
        text, as_text = argument_text(function.arguments)
        if not (id_ or name or text):
            return
        self._account.place += len(text)
        call = self._find(index, id_, name, text)
        if call is None:
            call = self._begin(index, id_)
            if call is None:
                return
        self._last = call
        if call.over:
            call.late(text)
            return
        self._touched[call.order] = call
        call.add_id(id_)
        if id_:
            self._ids.setdefault(id_, call)
        call.add_name(name)
        call.add_arguments(text, as_text=as_text)
        call.start_if_certain()

    def _find(self, index: int | None, id_: str, name: str, text: str) -> WireCall | None:
        """The call of a fragment by the table above; None for a new one."""
        if index is None:
            return self._named(id_, name, text) if id_ else self._continued(name, text)
        call = self._slots.get(index)
        if call is None:
            if name or id_:
                return None if name else self._ids.get(id_)
            return self._adopt(index)
        if id_ and call.wire_id:
            return call if id_ == call.wire_id and not _reuses(call, name, text) else None
        if id_ and not name:
            return call if call.wants_id(text) or call.begins_with(text) else None
        if id_ and call.over and not text:
            return None
        return None if name and _opens(call, name, text) else call

    def _named(self, id_: str, name: str, text: str) -> WireCall | None:
        """A fragment with an id and without index."""
        call = self._ids.get(id_)
        if call is None:
            return self._continued(name, text) if self._last is not None and self._last.wants_id(text) else None
        return None if _reuses(call, name, text) else call

    def _continued(self, name: str, text: str) -> WireCall | None:
        """A fragment without index and id."""
        call = self._last
        if call is None or not name or name.strip() == call.name.strip():
            return None if call is not None and name and _opens(call, name, text) else call
        if not call.name:
            return call
        tools = self._settings.tools
        piece = not call.begun and not call.started and tools is not None and (call.name + name).strip() in tools
        return call if piece else None

    def _adopt(self, index: int) -> WireCall | None:
        """A fragment that says nothing, on an unused index."""
        if len(self._open) - len(self._touched) > 1:  # what was not touched is not complete, or it would be sealed
            return None
        wanting = [call for call in self._open.values() if not call.complete]
        if len(wanting) != 1 or len(self._slots) >= self._settings.limits.calls:
            return None
        (call,) = wanting
        call.deviate(DeviationCode.ORPHAN_FRAGMENT)
        self._slots[index] = call
        return call

    def _begin(self, index: int | None, id_: str) -> WireCall | None:
        """C5: the next call starts, so the ones before it that are complete are sealed."""
        touched = self._take_touched()
        for before in touched:
            before.start_if_certain(" ")
        self._seal(touched)
        call = self._new(legacy=index == _LEGACY)
        if call is None:
            return None
        if index is not None:
            self._slots[index] = call
        if id_:
            self._ids[id_] = call
        return call

    def reason_given(self, finish_reason: str) -> None:
        """Only what got something since the last reason can be complete: a stream may give one in every chunk."""
        self._seal(self._take_touched(), cut=finish_reason == LENGTH)

    def _take_touched(self) -> list[WireCall]:
        """The open calls that got something since they were last looked at, in the order of their opening."""
        touched = [self._touched[order] for order in sorted(self._touched)]
        self._touched.clear()
        return touched

    def _close(self, call: WireCall) -> None:
        super()._close(call)
        self._touched.pop(call.order, None)


def _reuses(call: WireCall, name: str, text: str) -> bool:
    """C2, C4: a name where the arguments are complete opens the next call although it repeats the id, unless what comes
    may repeat the call, whole or piece by piece."""
    same = name.strip() == call.name.strip()
    return bool(name) and _opens(call, name, text) and not (same and call.begins_with(text))


def _opens(call: WireCall, name: str, text: str) -> bool:
    """C2: a name where the arguments are complete opens the next call, unless it restates the one that is there."""
    return (call.over or call.complete) and not call.restates(name, text)
