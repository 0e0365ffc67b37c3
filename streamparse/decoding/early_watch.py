"""Follows a value while it is read, and says where it can fit its schema no more.

Theory. A reader tells a ``Watch`` what it reads: a value of some kind begins, a key is complete, a string grows, a
scalar is complete, a container closes. The watch keeps, per open container, the ``Plan`` of its schema, and of the
value that is read the ``Plan`` of its kind. Most values need nothing but a look-up for each of the two.

A union of which several branches are left is a ``_Union``: a ``_Run`` per branch, each of which is told the same. A run
in which something is wrong ends. When none is left, the union is what is wrong; when one is left, it is the schema, and
what is wrong in it is told at its own path.

At most one rejection comes for a path, and none for what is inside it. After ``MOST`` of them nothing more is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streamparse.decoding.early_rules import (
    ARRAY,
    NOTHING,
    NUMBER,
    OBJECT,
    STRING,
    Fault,
    Refusal,
    found_word,
    joined,
    kind_of,
)
from streamparse.decoding.early_schema import Plan, Shape
from streamparse.events import ArgumentDelta, ArgumentRejected, Path
from streamparse.wording import type_word

MOST: Final = 64
"""Rejections of one call; a model that got more wrong has misread the tool."""

_RUNS: Final = 64
"""Branches that are followed at one time. What more there is cannot be told."""

_FORBIDDEN: Final = Refusal((), frozenset()).fault(0)

_Found = tuple[Path, Fault, str, Any]
"""A path, what is wrong there, and the type and value that stand there."""

_Frame = tuple[Plan | None, str | int | None, bool, int]


class _Run:
    """One way in which the value may fit: the schema itself, or a branch of a union."""

    __slots__ = (
        "_array",
        "_begun",
        "_count",
        "_head",
        "_kind",
        "_plan",
        "_shape",
        "_size",
        "_stack",
        "_unions",
        "_value",
        "checked",
        "key_now",
        "mark",
    )

    def __init__(self, shape: Shape | None, plan: Plan | None = None, *, array: bool = False) -> None:
        self._shape = shape  # of the value that is awaited or read
        self._plan = plan  # of the innermost open container; None: nothing to check
        self._array = array  # that container is an array
        self.key_now: str | int | None = -1 if array else None  # the last key or index in it
        self._count = 0  # members that count
        self._stack: list[_Frame] = []  # what the four were before it, and so on outwards
        self._value: Plan | None = None  # of the value that is read
        self._kind = 0
        self._begun = False  # its first character has come
        self.checked = False  # it is a string whose characters matter
        self.mark = 0  # where its deltas begin in the list of events that is being written
        self._head = ""
        self._size = 0
        self._unions: list[_Union] = []

    # What the reader tells

    def key(self, key: str, out: list[Any]) -> None:
        """A key is complete."""
        self.key_now = key
        plan = self._plan
        self._shape = None if plan is None else self._member(plan, key, out)
        for union in self._unions:
            union.tell(_Run.key, key, out)

    def begin(self, kind: int, out: list[Any]) -> None:
        """The first character of a value. A second time for the same value it does nothing."""
        if self._begun:
            return
        self._begun = True
        self._kind = kind
        if self._array:
            self._next_item(out)
        shape = self._shape
        if shape is None:
            self._value = None
        else:
            plan = shape.plan(kind)
            if plan.refusal is not None and not plan.openers:
                self._value = None
                self._reject(plan.refusal.fault(kind), found_word(kind), NOTHING, out)
            else:
                self._value = None if plan.free else plan
        if kind == STRING:
            self._head, self._size = "", 0
            self.checked = self._value is not None and self._value.watched
            self.mark = len(out)
        if self._unions:
            for union in self._unions:
                union.tell(_Run.begin, kind, out)
            self._see_checks()

    def open(self, kind: int, out: list[Any]) -> None:
        """An object or array begins."""
        self.begin(kind, out)
        plan = self._value
        for union in self._unions:
            union.tell(_Run.open, kind, out)
        self._stack.append((self._plan, self.key_now, self._array, self._count))
        array = self._array = kind == ARRAY
        self._plan, self.key_now, self._count = plan, -1 if array else None, 0
        self._shape = None
        self._begun = False
        if plan is not None:
            for branches in plan.unions:
                if self.top.has_room(len(branches)):
                    _Union(self, branches, array)

    def shut(self, value: Any, out: list[Any]) -> None:
        """The innermost container is complete."""
        plan = self._plan
        if plan is not None:
            self._close(plan, value, out)
        if self._unions:
            depth = len(self._stack)
            for union in self._unions:
                union.tell(_Run.shut, value, out)
            self._unions = [union for union in self._unions if union.depth < depth]
        if self._stack:
            self._plan, self.key_now, self._array, self._count = self._stack.pop()
        self._begun = False

    def complete(self, value: Any, out: list[Any]) -> None:
        """A string, number or literal is complete. (A string that is ``checked`` has grown to its end before.)"""
        if not self._begun:
            self.begin(kind_of(value), out)
        self._begun = self.checked = False
        plan = self._value
        if plan is not None and self._kind & (STRING | NUMBER):
            fault = plan.fault(value)
            if fault is not None:
                self._reject(fault, type_word(value), value, out)
        for union in self._unions:
            union.tell(_Run.complete, value, out)

    def pass_by(self, piece: str) -> None:
        """More characters of a string that is ``checked``, with which nothing is wrong."""
        plan = self._value
        if plan is not None and plan.watched:
            self._grow(plan, piece)
        for union in self._unions:
            for run in union.runs:
                run.pass_by(piece)

    def _grow(self, plan: Plan, piece: str) -> None:
        if len(self._head) < plan.head:
            self._head = (self._head + piece)[: plan.head]
        self._size += len(piece)

    def take(self, piece: str, out: list[Any]) -> None:
        """More characters of a string that is ``checked``, of which the last may be wrong."""
        plan = self._value
        if plan is not None and plan.watched:
            fault = self._try(plan, piece)
            self._grow(plan, piece)
            if fault is not None:
                self._value = None
                self._reject(fault, "string", self._head, out)
        for union in self._unions:
            union.tell(_Run.take, piece, out)
        self._see_checks()

    def live(self) -> int:
        """How many branches are followed."""
        return sum(1 + run.live() for union in self._unions for run in union.runs)

    def doubts(self, piece: str) -> bool:
        """Whether these characters are wrong in any way that is left."""
        plan = self._value
        mine = plan is not None and plan.watched and self._try(plan, piece) is not None
        return mine or any(run.doubts(piece) for union in self._unions for run in union.runs if run.checked)

    # What is wrong

    @property
    def top(self) -> Watch:
        """The watch that this is a part of."""
        raise NotImplementedError

    def say(self, path: Path, fault: Fault, found: str, value: Any, out: list[Any]) -> None:
        """Something is wrong at a path."""
        raise NotImplementedError

    def _reject(self, fault: Fault, found: str, value: Any, out: list[Any]) -> None:
        """The value that is read is wrong."""
        self._shape = self._value = None
        self.say(self.top.path(), fault, found, value, out)

    def _reject_container(self, fault: Fault, found: str, out: list[Any]) -> None:
        """The innermost container is wrong."""
        self._plan = self._shape = None
        self.say(self.top.path_of_container(), fault, found, NOTHING, out)

    def _member(self, plan: Plan, key: str, out: list[Any]) -> Shape | None:
        shape = plan.field(key)
        if plan.most is not None and plan.counts(key):
            self._count += 1
            if self._count > plan.most:
                self._reject_container(plan.too_many(OBJECT), "object", out)
                return None
        if shape is None or shape.impossible:
            fault = plan.forbids(key) or (_FORBIDDEN if shape is not None else None)
            if fault is not None:
                self._reject(fault, "", NOTHING, out)
                return None
        return shape

    def _next_item(self, out: list[Any]) -> None:
        index = self.key_now = self.key_now + 1  # type: ignore[operator]  # an index: the container is an array
        plan = self._plan
        if plan is None:
            self._shape = None
        elif plan.most is not None and index >= plan.most:
            self._reject_container(plan.too_many(ARRAY), "array", out)
        else:
            self._shape = plan.item(index)

    def _close(self, plan: Plan, value: Any, out: list[Any]) -> None:
        for name in plan.required:
            if name not in value:
                self.say((*self.top.path_of_container(), name), plan.missing_fault(name), "", NOTHING, out)
        fault = plan.close_fault(value) if plan.closing else None
        if fault is not None:
            self.say(self.top.path_of_container(), fault, type_word(value), value, out)

    def _try(self, plan: Plan, piece: str) -> Fault | None:
        head = self._head
        if len(head) < plan.head:
            head = (head + piece)[: plan.head]
        return plan.prefix_fault(head, self._size + len(piece))

    def _see_checks(self) -> None:
        mine = self._begun and self._kind == STRING and self._value is not None and self._value.watched
        self.checked = mine or any(run.checked for union in self._unions for run in union.runs)


class _Branch(_Run):
    """A run of a union."""

    __slots__ = ("_top", "found", "union")

    def __init__(self, union: _Union, top: Watch, plan: Plan | None, array: bool) -> None:
        super().__init__(None, plan, array=array)
        self.union = union
        self.found: _Found | None = None  # what is wrong with it
        self._top = top

    @property
    def top(self) -> Watch:
        return self._top

    def say(self, path: Path, fault: Fault, found: str, value: Any, out: list[Any]) -> None:
        if len(self.union.runs) == 1:
            self.union.owner.say(path, fault, found, value, out)
        elif self.found is None:
            self.found = (path, fault, found, value)


class _Union:
    """The branches that are left of a union, while its value is read."""

    __slots__ = ("depth", "owner", "runs")

    def __init__(self, owner: _Run, branches: tuple[Plan, ...], array: bool) -> None:
        self.owner = owner
        self.depth = len(owner._stack)
        top = owner.top
        self.runs = [_Branch(self, top, plan, array) for plan in branches]
        owner._unions.append(self)
        for run, plan in zip(self.runs, branches, strict=True):
            for inner in plan.unions:
                if top.has_room(len(inner)):
                    _Union(run, inner, array)

    def tell(self, hook: Callable[[Any, Any, list[Any]], None], what: Any, out: list[Any]) -> None:
        """Tell each branch the same, and see which of them are left."""
        ended = False
        for run in self.runs:
            hook(run, what, out)
            ended = ended or run.found is not None
        if not ended:
            return
        found = [run.found for run in self.runs if run.found is not None]
        self.runs = [run for run in self.runs if run.found is None]
        if not self.runs:
            self.owner.say(*_joined(found), out)


def _joined(found: list[_Found]) -> _Found:
    """What is wrong, where nothing is left of a union: the innermost place, and what the branches wanted there."""
    path = max((each[0] for each in found), key=len)
    there = [each for each in found if each[0] == path]
    return path, joined([fault for _, fault, _, _ in there]), *there[0][2:]


class Watch(_Run):
    """Follows the arguments of one call: ``shape`` is that of the argument object, ``index`` goes into the events."""

    __slots__ = ("_left", "_told", "index")

    def __init__(self, shape: Shape | None, index: int) -> None:
        super().__init__(shape)
        self.index = index
        self._told: set[Path] = set()
        self._left = _RUNS

    @property
    def top(self) -> Watch:
        return self

    def grow(self, out: list[Any]) -> None:
        """The deltas of a checked string that came since the last time; what is wrong goes between two of them."""
        added, out[self.mark :] = out[self.mark :], []
        for event in added:
            if self.checked and type(event) is ArgumentDelta and self.doubts(event.text):
                self._cut(event, out)
            else:
                out.append(event)
                if self.checked and type(event) is ArgumentDelta:
                    self.pass_by(event.text)
        self.mark = 0

    def _cut(self, event: ArgumentDelta, out: list[Any]) -> None:
        """A delta in which something is wrong, up to each character where it is."""
        text, start, at = event.text, 0, 0
        while at < len(text) and self.checked:
            said: list[Any] = []
            size = self._good(text[at:]) + 1
            self.take(text[at : at + size], said)
            at += size
            if said:
                out.append(ArgumentDelta(event.index, event.path, text[start:at]))
                out += said
                start = at
        if start < len(text):
            out.append(ArgumentDelta(event.index, event.path, text[start:]))

    def _good(self, text: str) -> int:
        """How many characters nothing is wrong with."""
        good, bad = 0, len(text) + 1
        while bad - good > 1:
            size = (good + bad) // 2
            if self.doubts(text[:size]):
                bad = size
            else:
                good = size
        return good

    def whole(self, value: Any, out: list[Any]) -> None:
        """A value that is complete at once: everything inside it, in order. No recursion."""
        todo: list[tuple[int, Any]] = [(_VALUE, value)]
        while todo:
            step, what = todo.pop()
            if step == _KEY:
                self.key(what, out)
            elif step == _SHUT:
                self.shut(what, out)
            elif isinstance(what, Mapping):
                self.open(OBJECT, out)
                todo.append((_SHUT, what))
                for key, item in reversed(list(what.items())):
                    todo += ((_VALUE, item), (_KEY, key))
            elif isinstance(what, list):
                self.open(ARRAY, out)
                todo.append((_SHUT, what))
                todo += [(_VALUE, item) for item in reversed(what)]
            else:
                self.complete(what, out)

    # Native parameters

    @property
    def awaited(self) -> Shape | None:
        """What holds for the value whose first character has not come."""
        return None if self._begun else self._shape

    def reject_late(self, fault: Fault, found: str, text: str, out: list[Any]) -> None:
        """The value that is awaited can be nothing that fits: its text begins with ``text``."""
        self._reject(fault, found, text, out)

    # What is wrong

    def say(self, path: Path, fault: Fault, found: str, value: Any, out: list[Any]) -> None:
        told = self._told
        if len(told) >= MOST or any(path[:size] in told for size in range(len(path) + 1)):
            return
        told.add(path)
        out.append(ArgumentRejected(self.index, path, fault.issue(path, found, value)))

    def path(self) -> Path:
        """Where the value stands that is awaited or read."""
        return (*self.path_of_container(), self.key_now) if self._stack else ()  # type: ignore[arg-type]  # a key

    def path_of_container(self) -> Path:
        """Where the innermost open container stands."""
        return tuple(key for _, key, _, _ in self._stack[1:])  # type: ignore[misc]  # keys

    def has_room(self, count: int) -> bool:
        """Whether so many more branches may be followed."""
        self._left -= count
        if self._left < 0:
            self._left = _RUNS - count - self.live()
        return self._left >= 0


_VALUE, _KEY, _SHUT = range(3)
