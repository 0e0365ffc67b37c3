"""The cache of full results: what compaction took out of the history, to be had again (B18).

A result is found by its handle: the id of its call, with ``#2``, ``#3`` … where ids repeat over a conversation. The
cache is bounded; the oldest result goes first.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streamparse.agent.ledger import Ledger
from streamparse.agent.resources import EVERYTHING
from streamparse.agent.turns import Proposal

MAX_CACHE: Final = 8 * 1024 * 1024
"""Characters of all results that are kept: some hundred long files."""


_NAMED: Final = 3
"""Resources that a warning names."""


class Recalled(msgspec.Struct, frozen=True):
    """A full result. ``stale_by`` names the resources that were written since: what it shows of them may be over."""

    text: str
    stale_by: tuple[str, ...] = ()

    @property
    def is_stale(self) -> bool:
        """Whether a later write touched what it shows."""
        return bool(self.stale_by)

    @property
    def shown(self) -> str:
        """The text for a model, with a warning in front of it if it is stale."""
        if not self.is_stale:
            return self.text
        return f"[stale: {self._what} since; read it again before you rely on this]\n{self.text}"

    @property
    def _what(self) -> str:
        if EVERYTHING in self.stale_by:
            return "something ran that may have changed anything"
        more = len(self.stale_by) - _NAMED
        return f"{', '.join(self.stale_by[:_NAMED])}{f' and {more} more' if more > 0 else ''} was written"


class ResultCache:
    """Keeps at most ``limit`` characters of results."""

    def __init__(self, limit: int = MAX_CACHE) -> None:
        self._limit = limit
        self._size = 0
        self._kept: dict[str, tuple[Proposal, str]] = {}
        self._given: dict[str, int] = {}

    def put(self, call: Proposal, text: str) -> str:
        """Keep the full result of a call. Returns its handle."""
        count = self._given[call.id] = self._given.get(call.id, 0) + 1
        handle = call.id if count == 1 else f"{call.id}#{count}"
        self._kept[handle] = (call, text)
        self._size += len(text)
        while self._size > self._limit:
            oldest = next(iter(self._kept))
            self._size -= len(self._kept.pop(oldest)[1])
        return handle

    def handle_of(self, call: Proposal) -> str | None:
        """The handle of a result that is kept, None if it is not."""
        return next((handle for handle, (kept, _) in self._kept.items() if kept is call), None)

    def recall(self, handle: str, ledger: Ledger) -> Recalled | None:
        """The full result, marked if it is stale; None if there is none, or no more."""
        found = self._kept.get(handle)
        if found is None:
            return None
        call, text = found
        return Recalled(text, tuple(ledger.writes_after(call)))
