"""The loop under anything that can go wrong: properties over random conversations, and a soak of 2,000 turns."""

from __future__ import annotations

import gc
import random
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse.agent.adapters.openai import to_messages
from streamparse.agent.budgets import Budget
from streamparse.agent.compaction import Compactor
from streamparse.agent.events import AgentEvent, EndState, LoopEnded, ToolFinished, ToolStarted, TurnStarted
from streamparse.agent.healing import heal
from streamparse.agent.loop import ToolLoop
from streamparse.agent.models import Script, ScriptedModel
from streamparse.agent.states import CallState
from streamparse.errors import ConnectError, StreamInterruptedError
from streamparse.tools.issues import ArgumentRejectedError
from streamparse.transport.wires import Wire
from tests.agents import calls, check_history, native, says, tool
from tests.clocks import BACKENDS, FakeClock, run

ARGUMENTS: list[Any] = [
    {"name": "a"},
    {"name": "b"},
    {"nme": "a"},
    {},
    '{"name": "a',
    "{'name': 'a', 'x': None}",
    "[1]",
    "",
]
TOOLS = ["see", "put", "send", "bad", "hang", "missing"]


class Faults:
    """Chance, and what the tools did: ``wrote`` has an entry for each time that a write ran."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = FakeClock()
        self.wrote: list[str] = []

    # What the model says

    def turn(self) -> Any:
        chance = self.chance
        kind = chance.random()
        if kind < 0.25:
            return says(chance.choice(["Done.", "", "I am done."]), chance.choice(["stop", "stop", "length"]))
        wanted = [(chance.choice(TOOLS), chance.choice(ARGUMENTS)) for _ in range(chance.randint(1, 3))]
        if kind < 0.4:
            well = [(name, given) for name, given in wanted if isinstance(given, dict)]
            text = native(*well) if well else "Nothing."
            content: Any = f"```\n{text}\n```" if chance.random() < 0.2 else text
        else:
            content = calls(*wanted, ids=[f"c{chance.randint(0, 9)}" for _ in wanted], text=chance.choice(["", "Hm."]))
        if chance.random() < 0.2:
            return Script(content=content, size=7, cut=chance.randint(1, 60))
        if chance.random() < 0.1:
            fault = chance.choice([ConnectError("no response"), StreamInterruptedError("broke")])
            return Script(content=content, size=7, fault=fault, fault_after=chance.choice([0, 1, 4]))
        return content

    # What the tools do

    def tools(self) -> list[Any]:
        def see(name):
            if self.chance.random() < 0.2:
                raise RuntimeError("cannot see")
            return "\n".join(f"{number}: def {name}{number}" for number in range(self.chance.choice([1, 80])))

        def put(name):
            self.wrote.append(name)
            if self.chance.random() < 0.2:
                raise self.chance.choice([OSError("full"), TimeoutError("late"), ArgumentRejectedError("name", ["c"])])
            return "put"

        async def send(name):
            self.wrote.append(name)
            if self.chance.random() < 0.2:
                await hang(name)
            return "sent"

        async def hang(name):
            self.clock.advance(400.0)
            await anyio.sleep_forever()

        def bad(name):
            raise SystemExit(3)

        functions: list[tuple[str, Any, str]] = [
            ("see", see, "read"),
            ("put", put, "write"),
            ("send", send, "external"),
            ("bad", bad, "read"),
            ("hang", hang, "read"),
        ]
        return [tool(name, function, effect, name=None) for name, function, effect in functions]


class Endless(ScriptedModel):
    """A script that is made up as it is asked for."""

    def __init__(self, faults: Faults, **options: Any) -> None:
        super().__init__([], clock=faults.clock, **options)
        self._faults = faults

    def stream(self, request: Any, **options: Any) -> Any:
        self.requests.clear()
        self._turns = [self._faults.turn()]
        return super().stream({}, **options)  # a copy of each request would cost more than all the rest


def conversation(faults: Faults, wire: Wire = Wire.CHAT) -> ToolLoop:
    compactor = Compactor(threshold=1_500, keep=2, cache=20_000, summarize=lambda summary, gone: f"{len(gone)} went")
    return ToolLoop(
        Endless(faults, wire=wire, repair=3),
        faults.tools(),
        system="You work.",
        budget=Budget(turns=12, calls=20, seconds=5_000.0),
        nudges=1,
        compactor=compactor,
        clock=faults.clock,
    )


class Watch:
    """Sees the events of a run, and now and then cancels it."""

    def __init__(self, loop: ToolLoop, faults: Faults, cancels: float) -> None:
        self.events: list[AgentEvent] = []
        self._loop, self._faults, self._cancels = loop, faults, cancels
        self._before = len(faults.wrote)

    def __call__(self, event: AgentEvent) -> None:
        self.events.append(event)
        often = 10 if isinstance(event, ToolStarted) else 1
        if self._faults.chance.random() < self._cancels * often:
            self._loop.cancel("enough")

    def check(self) -> LoopEnded:
        """One end, and the last word; each tool that began has its result; what is in doubt never wrote."""
        *before, ended = self.events
        assert isinstance(ended, LoopEnded)
        assert not any(isinstance(event, LoopEnded) for event in before)
        turn: list[int] = []
        finished: list[int] = []
        for event in before:
            if isinstance(event, TurnStarted):
                assert sorted(turn) == sorted(set(turn) & set(finished))
                turn, finished = [], []
            elif isinstance(event, ToolStarted):
                turn.append(event.index)
            elif isinstance(event, ToolFinished):
                assert event.index not in finished  # exactly one result
                finished.append(event.index)
        assert set(turn) <= set(finished)
        self._check_once(before)
        return ended

    def _check_once(self, events: list[AgentEvent]) -> None:
        """B13: a write ran once for each call that says so, and for no other. A thread that was just begun when the run
        was cancelled may not have come to it yet."""
        begun: set[int] = set()
        ran: list[ToolFinished] = []
        for event in events:
            if isinstance(event, TurnStarted):
                begun.clear()
            elif isinstance(event, ToolStarted):
                begun.add(event.index)
            elif isinstance(event, ToolFinished) and event.index in begun and event.repeats is None:
                ran += [event] if event.name in ("put", "send") else []
        unsure = [end for end in ran if end.result.state in (CallState.CANCELLED, CallState.IN_DOUBT)]
        wrote = len(self._faults.wrote) - self._before
        assert len(ran) - len(unsure) <= wrote <= len(ran)


def check_writes(loop: ToolLoop, faults: Faults) -> None:
    """B15: whatever ran, no write came of a call that was not sealed, not trusted, or read by guessing."""
    for call in loop.ledger.calls:
        if call.call.name not in ("put", "send") or call.result is None or not call.result.wrote:
            continue
        assert call.error is None
        assert getattr(call.call, "trusted", False)
        assert all(each.tier < 2 for each in call.call.deviations)
    assert set(faults.wrote) <= {"a", "b"}


@pytest.mark.parametrize("wire", [Wire.CHAT, Wire.MESSAGES, Wire.COMPLETIONS])
@given(seed=st.integers(0, 2**32), runs=st.integers(1, 4))
def test_any_conversation_can_be_sent(wire, seed, runs):
    faults = Faults(seed)
    loop = conversation(faults, wire)

    async def main():
        for number in range(runs):
            watch = Watch(loop, faults, 0.02)
            await loop.run(f"task {number}", on_event=watch)
            watch.check()
            messages = check_history(loop.ledger)
            assert heal(messages).repairs == []
            check_writes(loop, faults)

    run(main)


@given(seed=st.integers(0, 2**32), steps=st.integers(0, 60))
def test_a_run_may_be_broken_off_anywhere(seed, steps):
    """Its task is cancelled after so many events, or its callback raises; then it goes on."""
    faults = Faults(seed)
    loop = conversation(faults)
    left = steps

    async def main():
        nonlocal left
        with anyio.CancelScope() as scope:

            def told(event):
                nonlocal left
                left -= 1
                if left == 0 and seed % 2:
                    scope.cancel()
                elif left == 0:
                    raise KeyError("mine")

            try:
                await loop.run("go", on_event=told)
            except KeyError:
                assert not seed % 2
        check_history(loop.ledger)
        check_writes(loop, faults)
        await loop.run("go on")
        check_history(loop.ledger)

    run(main)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_soak_of_2000_turns(backend):
    """Model cut, tool crash, timeout, cancel: the ledger stays consistent, and memory bounded."""
    faults = Faults(20)
    loop = conversation(faults)
    ends: dict[EndState, int] = {}
    sizes: list[int] = []
    objects: list[int] = []

    async def main():
        turns = 0
        while turns < 2_000:
            watch = Watch(loop, faults, 0.004)
            ended = await loop.run("go on", on_event=watch)
            assert watch.check() == ended
            ends[ended.state] = ends.get(ended.state, 0) + 1
            turns += ended.turns
            check_history(loop.ledger)
            check_writes(loop, faults)
            sizes.append(len(str(to_messages(loop.ledger))))
            if turns >= 1_000 * (1 + len(objects)):
                gc.collect()
                objects.append(len(gc.get_objects()))

    run(main, backend)
    assert set(ends) == set(EndState)
    assert max(sizes) < 30_000  # characters of the history
    assert objects[1] - objects[0] < 3_000  # one for each of a thousand turns would be found, whatever the last one is
    states = {state for tally in loop.executor.tallies.values() for state in tally}
    assert {"ok", "error", "rejected", "timeout", "cancelled", "not_executed", "in_doubt"} <= states
