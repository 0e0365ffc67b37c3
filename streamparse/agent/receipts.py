"""Receipts: that a write is not done twice, and not again while nobody knows what became of it (B13, B10).

Theory. A write is known by its tool and its canonical arguments. Each one that begins gets a number, and leaves it at
the resources that it may change; *fresh* is a write after which nothing else was written there.

* A write that ended well leaves a *receipt*, for the request of the user in which it ran. While it is fresh, and the
  resources have the version that they had after it, the same write is answered with the receipt. So A, A runs once,
  and A, B, A runs three times, if B may have changed what A changed. A tool that does not say what it changes may have
  changed everything.
* A write whose outcome nobody knows leaves a *doubt*, for good. The same write is answered with the advice to look
  first, until a read of what it may have changed has ended well in a turn between the two. What looks at nothing, such
  as ``recall``, is no such read. Where the write was in a thread that went on, and is over by now, the answer is what
  became of it.
* While such a thread goes on, nothing is written to what it may be changing: writes never overlap.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final

import msgspec

from streamparse.agent.resources import overlap, touches
from streamparse.agent.run import Returned, Run
from streamparse.events import ToolCall
from streamparse.tools.observation import fingerprint

MAX_DOUBTS: Final = 1024
"""Doubts that are remembered. A conversation has a handful; a server that runs for months forgets the oldest."""


class Write(msgspec.Struct, frozen=True):
    """A write that began. ``key`` is the same for the same write."""

    id: str
    key: str
    resources: tuple[str, ...]
    number: int


class Held(msgspec.Struct, frozen=True):
    """Why a write does not run now. ``repeats`` is the id of the call that was done already: then ``text`` is what
    that came to, and nothing is wrong."""

    text: str
    repeats: str | None = None


class Receipt(msgspec.Struct, frozen=True):
    """What a write came to. ``versions`` are those of its resources after it, None where nobody told them."""

    write: Write
    text: str
    versions: Any = None

    def held(self, versions: Any) -> Held | None:
        """This, if the resources hold now what they held then; None if the write has to run again."""
        if self.versions is not None and _differ(self.versions, versions):
            return None
        done = f"Not executed again: the call {self.write.id!r} did the same, and nothing else was written since."
        return Held(f"{done} It said:\n{self.text}", self.write.id)


def _differ(one: Any, other: Any) -> bool:
    """Values that cannot be compared say nothing, as if there were none."""
    try:
        return bool(one != other)
    except Exception:  # they are the tool's own
        return False


class Doubt(msgspec.Struct):
    """A write whose outcome is not known. ``run`` may still be running; ``turn`` is the turn in which it began, and
    ``looked`` the last in which what it may have changed was read, 0 if it never was."""

    write: Write
    run: Run | None
    turn: int
    looked: int = 0


def key_of(name: str, arguments: dict[str, Any]) -> str:
    """The same for calls that ask for the same: 32 hex digits, however large the arguments are."""
    canonical = fingerprint(ToolCall("", name, arguments))
    return blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Receipts:
    """See the module. One conversation has one. No clock, no files."""

    def __init__(self) -> None:
        self._numbers = 0
        self._written: dict[str, int] = {}  # resource -> the last write that may have changed it
        self._receipts: dict[str, Receipt] = {}
        self._doubts: dict[str, Doubt] = {}
        self._turn = 0

    @property
    def doubts(self) -> list[Write]:
        """The writes whose outcome is not known, oldest first."""
        return [doubt.write for doubt in self._doubts.values()]

    def new_request(self) -> None:
        """The user asks for something new: what was done for the last request may be done again. Doubts stay."""
        self._receipts.clear()
        self._written.clear()

    def new_turn(self) -> None:
        """The model answers: it has seen the results of the turn before."""
        self._turn += 1

    def looked(self, resources: Iterable[str]) -> None:
        """A read of these ended well."""
        resources = tuple(resources)
        for doubt in self._doubts.values():
            if doubt.turn < self._turn and overlap(doubt.write.resources, resources):
                doubt.looked = doubt.looked or self._turn

    def settle(self, call_id: str) -> None:
        """Somebody knows what became of the writes of this call, and that they are over: they may be repeated."""
        self._doubts = {key: each for key, each in self._doubts.items() if each.write.id != call_id}

    # A write

    def held(self, key: str, resources: Iterable[str]) -> Held | None:
        """Why this write must not run now; None if it may."""
        resources = tuple(resources)
        doubt = self._doubts.get(key)
        if doubt is not None and (held := self._doubted(key, doubt)) is not None:
            return held
        for other in self._doubts.values():
            if other.run is not None and other.run.is_running and overlap(other.write.resources, resources):
                return Held(
                    f"Nothing was executed. The write {other.write.id!r} was given up, and is still running; nothing "
                    "else is written to what it may be changing. Try again later, or tell the user."
                )
        return None

    def fresh(self, key: str) -> Receipt | None:
        """The receipt of this write, if it was done, and nothing else was written since."""
        receipt = self._receipts.get(key)
        return receipt if receipt is not None and self._is_fresh(receipt.write) else None

    def begin(self, call_id: str, key: str, resources: Iterable[str]) -> Write:
        """The write begins."""
        self._numbers += 1
        write = Write(call_id, key, tuple(resources), self._numbers)
        self._mark(write.resources)
        self._doubts.pop(key, None)
        return write

    def also(self, write: Write, resource: str) -> Write:
        """The write turned out to have changed this, too."""
        self._mark([resource])
        return msgspec.structs.replace(write, resources=(*write.resources, resource))

    def done(self, write: Write, text: str) -> None:
        """It ran to its end; ``text`` is what the model was told."""
        self._receipts[write.key] = Receipt(write, text)

    def version(self, write: Write, versions: Any) -> None:
        """What its resources hold now, directly after it."""
        self._receipts[write.key] = msgspec.structs.replace(self._receipts[write.key], versions=versions)

    def in_doubt(self, write: Write, run: Run | None) -> None:
        """Nobody knows how it ended. ``run`` where it may go on in a thread."""
        self._doubts[write.key] = Doubt(write, run, self._turn)
        over = [key for key, each in self._doubts.items() if each.run is None or not each.run.is_running]
        for key in over[: max(len(self._doubts) - MAX_DOUBTS, 0)]:
            del self._doubts[key]

    # Inside

    def _doubted(self, key: str, doubt: Doubt) -> Held | None:
        outcome = None if doubt.run is None else doubt.run.outcome
        if outcome is not None:
            del self._doubts[key]
            if isinstance(outcome, Returned):
                self.done(doubt.write, "It was given up, and was done after that.")
            return None
        if doubt.run is not None and doubt.run.is_running:
            return Held(
                f"Nothing was executed. The same write (call {doubt.write.id!r}) was given up, and is still running. "
                "Do not repeat it: wait, and verify what became of it."
            )
        if 0 < doubt.looked < self._turn:
            return None
        return Held(
            f"Nothing was executed. The same write (call {doubt.write.id!r}) ended in doubt: it may have taken effect. "
            "Verify that first, with a tool that reads; repeat the write only if it did not."
        )

    def _mark(self, resources: Iterable[str]) -> None:
        self._written.update(dict.fromkeys(resources, self._numbers))

    def _is_fresh(self, write: Write) -> bool:
        return not any(
            number > write.number and touches(resource, own)
            for resource, number in self._written.items()
            for own in write.resources
        )
