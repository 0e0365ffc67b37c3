"""Compaction: a history that has grown too long is made shorter, and stays one that a server takes (B18).

Three layers, each used only if the one before it was not enough:

1. *Skeletons.* Old results become their skeletons, the oldest first. The full text goes into a cache, from which
   ``recall`` gives it back. A result that was too long to be told whole is there from the start (``store``).
2. *Summary.* The oldest turns are dropped, with all their results, and a rolling summary takes their place. Who writes
   it is the caller's matter: ``summarize`` gets the last summary and the messages that go, and returns the new one. It
   may ask a model: ``acompact`` runs it in a thread, or awaits it, with a limit, and what it raises costs nothing.
3. *The cache* answers for what is gone, and says when it is stale.

What is never touched: system messages, the last user message, the last ``keep`` turns, ids and arguments. A turn goes
as a whole, so that no result is without its call. Above ``threshold`` the history is brought down to ``target``, and
not just below the threshold: each change costs the server's cache of the prompt.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import msgspec

from streamparse.agent.adapters.openai import DEFAULT_STYLE, ChatStyle, last_user, messages_of, to_messages
from streamparse.agent.jobs import seconds
from streamparse.agent.ledger import Entry, Ledger, Message
from streamparse.agent.recall import MAX_CACHE, Recalled, ResultCache
from streamparse.agent.results import words_of
from streamparse.agent.run import Raised, Returned, Run, limit
from streamparse.agent.skeleton import skeleton
from streamparse.agent.tokens import Counter, count_messages
from streamparse.agent.turns import Proposal, Turn
from streamparse.errors import UsageError
from streamparse.tools.lint import estimate_tokens
from streamparse.transport.pace import CLOCK, Clock

Summarize = Callable[[str, list[dict[str, Any]]], str | Awaitable[str]]
"""The summary so far (``""`` at first) and the messages that are dropped -> the new summary."""

SUMMARY_TIMEOUT: Final = 120.0
"""Seconds for a summary: a model that reads 100,000 tokens and writes a page."""

THRESHOLD: Final = 100_000
"""Tokens: half of the context of a model with 200k, which leaves room for tools, reasoning and an answer."""

SKELETON: Final = 1_200
"""Characters of a skeleton: some 300 tokens, thirty lines."""

SHORT: Final = 400
"""A result of so few characters stays: its skeleton would save nothing."""


class Compacted(msgspec.Struct, frozen=True):
    """What was done. ``shortened`` are the handles of results that are skeletons now, ``dropped`` is how many entries
    went into the summary; tokens are of the messages, before and after. ``problem`` is why there is no summary."""

    before: int
    after: int
    shortened: tuple[str, ...] = ()
    dropped: int = 0
    fits: bool = True
    problem: str = ""


class Compactor:
    """See the module. One for each conversation.

    Options: ``threshold`` and ``target`` in tokens (the target is six tenths of the threshold), ``keep`` turns that
    stay as they are, ``counter``, ``summarize`` (None: nothing is dropped) with its ``timeout`` in seconds, ``cache``
    in characters. With ``keep=0`` not even what was just asked for stays; whoever goes on asking wants 1 at least.
    """

    def __init__(
        self,
        *,
        threshold: int = THRESHOLD,
        target: int | None = None,
        keep: int = 3,
        counter: Counter = estimate_tokens,
        summarize: Summarize | None = None,
        timeout: float = SUMMARY_TIMEOUT,
        cache: int = MAX_CACHE,
    ) -> None:
        self.threshold = threshold
        self.target = threshold * 6 // 10 if target is None else target
        if not 0 <= self.target <= threshold:
            raise UsageError(f"target={target} must be between 0 and the threshold, which is {threshold}")
        if keep < 0:
            raise UsageError(f"keep={keep} is no number of turns")
        self.keep = keep
        self._counter = counter
        self._summarize = summarize
        self._timeout = seconds("timeout", timeout)
        self._cache = ResultCache(cache)
        self._done: set[int] = set()  # by the ledger's number of the result

    def tokens(self, ledger: Ledger, style: ChatStyle = DEFAULT_STYLE) -> int:
        """What the history costs, estimated; tools are not in it."""
        return count_messages(to_messages(ledger, style), self._counter)

    def compact(self, ledger: Ledger, *, style: ChatStyle = DEFAULT_STYLE) -> Compacted:
        """Shorten the history if it is above the threshold. Raises ``UsageError`` while calls are open, for a
        ``summarize`` that is async, and what it raises."""
        work = _Work(self, ledger, style)
        if work.going and self._summarize is not None:
            summary = self._summarize(ledger.summary, messages_of(work.going))
            if inspect.iscoroutine(summary):
                summary.close()
                raise UsageError("summarize is async: use acompact")
            work.drop(summary)
        return work.done()

    async def acompact(self, ledger: Ledger, *, style: ChatStyle = DEFAULT_STYLE, clock: Clock = CLOCK) -> Compacted:
        """The same in an event loop, for a ``summarize`` that takes its time, or is async. Where it raises, or its time
        is over, nothing is dropped, and ``Compacted.problem`` says why."""
        work = _Work(self, ledger, style)
        if not work.going or self._summarize is None:
            return work.done()
        run = Run(partial(self._summarize, ledger.summary, messages_of(work.going)), {})
        async with limit(self._timeout, clock):
            await run.go()
        if isinstance(run.outcome, Returned) and isinstance(run.outcome.value, str):
            work.drop(run.outcome.value)
            return work.done()
        if isinstance(run.outcome, Returned):
            return work.done(f"summarize returned {type(run.outcome.value).__name__}, and not text")
        if isinstance(run.outcome, Raised):
            return work.done(f"summarize failed. {words_of(run.outcome.error)}")
        return work.done(f"summarize took longer than {self._timeout:g} s")

    def store(self, ledger: Ledger, call: Any, text: str) -> str | None:
        """Keeps a result that is too long to be told whole, for ``recall`` (``results.Keep``): says how to get at it.
        ``call`` is one of the open calls of the ledger; of another nothing is kept."""
        open_ = next((each for each in ledger.open_calls if each.call is call), None)
        return None if open_ is None else f"recall({self._cache.put(open_, text)!r}) gives it whole"

    def recall(self, handle: str, ledger: Ledger) -> Recalled | None:
        """The full result behind a skeleton (its marker names the handle); None if there is none, or no more."""
        return self._cache.recall(handle, ledger)

    # Layer 1

    def _shorten(self, ledger: Ledger, left: int) -> tuple[list[str], int]:
        """Skeletons, until the target is reached: their handles, and the tokens that are left."""
        handles: list[str] = []
        for turn in _old(ledger.turns, self.keep):
            for call in turn.calls:
                if left <= self.target:
                    return handles, left
                text = _text_of(call)
                if len(text) <= SHORT or call.number in self._done:
                    continue
                short = skeleton(text, min(SKELETON, len(text) // 2))
                handle = self._cache.handle_of(call) or self._cache.put(call, text)
                self._done.add(call.number)
                ledger.shorten(call, f"{short}\n{_marker(handle, text)}")
                left -= self._counter(text) - self._counter(_text_of(call))
                handles.append(handle)
        return handles, left

    # Layer 2

    def _droppable(self, ledger: Ledger, left: int) -> list[Entry]:
        """The oldest entries, until the target is reached."""
        going: list[Entry] = []
        for entry in _droppable(ledger, self.keep):
            if left <= self.target:
                break
            going.append(entry)
            left -= count_messages(messages_of([entry]), self._counter)
        return going


class _Work:
    """One compaction: results are shortened at once, then ``going`` wait for the summary that takes their place."""

    def __init__(self, compactor: Compactor, ledger: Ledger, style: ChatStyle) -> None:
        self.going: list[Entry] = []
        self._compactor, self._ledger, self._style = compactor, ledger, style
        self._before = compactor.tokens(ledger, style)
        self._shortened: list[str] = []
        self._dropped = 0
        if self._before > compactor.threshold:
            self._shortened, left = compactor._shorten(ledger, self._before)
            if left > compactor.target and compactor._summarize is not None:
                self.going = compactor._droppable(ledger, left)

    def drop(self, summary: Any) -> None:
        if not isinstance(summary, str):
            raise UsageError(f"summarize must return text, and returned {type(summary).__name__}")
        self._ledger.forget(self.going)
        self._ledger.summary = summary
        self._dropped = len(self.going)

    def done(self, problem: str = "") -> Compacted:
        if self._before <= self._compactor.threshold:
            return Compacted(self._before, self._before)
        after = self._compactor.tokens(self._ledger, self._style)
        fits = after <= self._compactor.threshold
        return Compacted(self._before, after, tuple(self._shortened), self._dropped, fits, problem)


def _old(turns: list[Turn], keep: int) -> list[Turn]:
    return turns[: max(0, len(turns) - keep)]


def _droppable(ledger: Ledger, keep: int) -> list[Entry]:
    """What may go, oldest first: all before the turns that are kept, but for the system and the last user message.

    What is left begins with what the user said last before it, as servers want it.
    """
    entries = ledger.entries
    turns = [place for place, entry in enumerate(entries) if isinstance(entry, Turn)]
    if keep > len(turns):
        return []
    end = turns[len(turns) - keep] if keep else len(entries)
    stays = {last_user(entries), last_user(entries[:end])}
    return [
        entry
        for place, entry in enumerate(entries[:end])
        if place not in stays and not (isinstance(entry, Message) and entry.role == "system")
    ]


def _text_of(call: Proposal) -> str:
    return call.result.text if call.result is not None else ""


def _marker(handle: str, text: str) -> str:
    lines = text.count("\n") + 1
    return f"[skeleton of an old result: {lines} lines, {len(text)} characters; recall({handle!r}) gives it whole]"
