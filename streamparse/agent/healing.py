"""Heal: the nearest history that a server takes (B5).

Three steps, each linear in the messages. First every message is mended by itself (``mending``). Then each result finds
its call. Last, all is written in order: behind each turn its results in call order, and then what stood in between.

What is decided:

* A result belongs to the latest turn before it in which a call with its id waits; in that turn, to the first. Without
  an id it belongs to the first call that waits in the latest turn. A result that comes before its call is put behind
  it. No result is guessed to be another call's.
* A result that no call waits for becomes a user message that says so: the call that it would need was never proposed.
* A call without a result gets one that says that it was lost. Nobody knows whether the call had an effect.
* Broken arguments become ``{}``; the text itself goes on in the result.
* Equal ids in one turn, and empty ones, are replaced in call and result alike, the same way each time. All others stay.
* A system message further down becomes a user message that says what it was.

Deterministic, and idempotent: what came out goes in unchanged. ``heal`` finds nothing to do exactly where ``preflight``
finds no problem. No text is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

import msgspec

from streamparse.agent.ids import distinct, fresh
from streamparse.agent.mending import LOST, Tell, mended, mended_function, note
from streamparse.agent.problems import Problem, ProblemCode
from streamparse.agent.shape import SYSTEM, calls_of


class Repair(msgspec.Struct, frozen=True):
    """One thing that was done, to the problem that it ends."""

    problem: Problem
    done: str

    @property
    def message(self) -> str:
        """One line for people: ``messages[3]: missing_result 'c1': said that it was lost``."""
        of = f" {self.problem.id!r}" if self.problem.id else ""
        return f"messages[{self.problem.position}]: {self.problem.code}{of}: {self.done}"


class Healed(msgspec.Struct, frozen=True):
    """The messages, and all that was done to them; positions are those of the messages that were given."""

    messages: list[dict[str, Any]]
    repairs: list[Repair]


def heal(messages: Iterable[Any]) -> Healed:
    """See the module. Never raises on content, and changes none of the messages that it is given."""
    healer = _Healer()
    healed = healer.heal(messages)
    return Healed(healed, sorted(healer.repairs, key=lambda repair: repair.problem.position))


class _Step:
    """A message in the list, and for a turn with calls what they need."""

    def __init__(self, position: int, message: dict[str, Any]) -> None:
        self.position = position
        self.message = message
        self.is_result = message["role"] == "tool"
        self.ids = [_key(call.get("id")) for call in calls_of(message)]
        self.results: list[_Step | None] = [None] * len(self.ids)
        self.is_paired = False


class _Healer:
    def __init__(self) -> None:
        self.repairs: list[Repair] = []

    def heal(self, messages: Iterable[Any]) -> list[dict[str, Any]]:
        steps = []
        for position, message in enumerate(messages):
            whole = mended(message, self._teller(position))
            if whole is not None:
                steps.append(_Step(position, whole))
        _Pairing().pair(steps)
        taken = {id_ for step in steps for id_ in step.ids}
        made = fresh("call_healed", taken)
        self._tell_order(steps)
        return list(self._written(steps, made))

    def _teller(self, position: int, id_: str = "") -> Tell:
        return lambda code, done: self.repairs.append(Repair(Problem(code, position, id_), done))

    def _tell_order(self, steps: list[_Step]) -> None:
        """Say which results do not stand where they belong."""
        for index, turn in enumerate(steps):
            results = [result for result in turn.results if result is not None]
            mine = {id(result) for result in results}
            near = []  # those that follow their turn directly
            for step in steps[index + 1 : index + 1 + len(results)]:
                if id(step) not in mine:
                    break
                near.append(step)
            there = {id(step) for step in near}
            for result, found in zip_longest(results, near):
                if found is not result:
                    tell = self._teller(result.position, _key(result.message.get("tool_call_id")))
                    if id(result) in there:
                        tell(ProblemCode.UNORDERED_RESULT, "put into the order of the calls")
                    else:
                        tell(ProblemCode.SEPARATED_RESULT, "put behind the turn of its call")

    def _written(self, steps: list[_Step], made: Iterator[str]) -> Iterator[dict[str, Any]]:
        started = False
        answered: set[str] = set()
        for step in steps:
            if step.is_paired:
                continue
            message = step.message
            if step.is_result:
                message = self._orphan(step, answered)
            elif message["role"] in SYSTEM and started:
                self._teller(step.position)(ProblemCode.MISPLACED_SYSTEM, "kept as a user message")
                message = _as_user(message)
            started = started or message["role"] not in SYSTEM
            if step.ids:
                answered.update(step.ids)
                yield from self._turn(step, made)
            else:
                yield message

    def _orphan(self, step: _Step, answered: set[str]) -> dict[str, Any]:
        id_ = _key(step.message.get("tool_call_id"))
        repeated = bool(id_) and id_ in answered
        tell = self._teller(step.position, id_)
        tell(ProblemCode.REPEATED_RESULT if repeated else ProblemCode.ORPHAN_RESULT, "kept as a user message")
        what = "a second result of the call" if repeated else "a result without its call; its id was"
        return note(f"{what} {id_ or 'empty'}", step.message["content"])

    # A turn with its results

    def _turn(self, turn: _Step, made: Iterator[str]) -> Iterator[dict[str, Any]]:
        ids = self._ids(turn, made)
        calls, results, changed = [], [], False
        for id_, given, result in zip(ids, calls_of(turn.message), turn.results, strict=True):
            function, lost = self._function(turn.position, id_, given)
            changed = changed or function is not given["function"] or given.get("id") != id_
            calls.append({**given, "id": id_, "function": function})
            results.append(self._result(turn.position, id_, result, lost))
        yield {**turn.message, "tool_calls": calls} if changed else turn.message
        yield from results

    def _ids(self, turn: _Step, made: Iterator[str]) -> list[str]:
        """The ids of the calls as they will be sent."""
        given = [id_ or next(made) for id_ in turn.ids]
        ids = distinct(given)
        for call, key, before, id_ in zip(calls_of(turn.message), turn.ids, given, ids, strict=True):
            if not key or not isinstance(call.get("id"), str):
                self._teller(turn.position, id_)(ProblemCode.MISSING_ID, "gave it one")
            elif id_ != before:
                self._teller(turn.position, before)(ProblemCode.REPEATED_ID, f"replaced by {id_!r}")
        return ids

    def _function(self, position: int, id_: str, call: Any) -> tuple[Any, str]:
        """The function of a call; the one that was given if nothing is wrong with it."""
        before = len(self.repairs)
        function, lost = mended_function(call["function"], self._teller(position, id_))
        return (function, lost) if len(self.repairs) > before else (call["function"], "")

    def _result(self, position: int, id_: str, result: _Step | None, lost: str) -> dict[str, Any]:
        message: dict[str, Any]
        if result is None:
            self._teller(position, id_)(ProblemCode.MISSING_RESULT, "said that it was lost")
            message = {"role": "tool", "tool_call_id": id_, "content": LOST}
        elif result.message.get("tool_call_id") == id_:
            message = result.message
        else:
            if not isinstance(result.message.get("tool_call_id"), str) or not result.message["tool_call_id"]:
                self._teller(result.position, id_)(ProblemCode.UNKNOWN_ID, "took it for that of the call that waited")
            message = {**result.message, "tool_call_id": id_}
        if lost:
            message = {**message, "content": f"{message['content']}\n[the arguments were no JSON object]\n{lost}"}
        return message


class _Pairing:
    """Finds the call of each result. Calls that wait are kept by id, and those of one id by turn, the latest last."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[deque[tuple[_Step, int]]]] = {}
        self._latest: _Step | None = None
        self._first = 0  # all calls of the latest turn before this one have their results

    def pair(self, steps: list[_Step]) -> None:
        loose = []
        for step in steps:
            if step.ids:
                self._open(step)
            if step.is_result and not self._give(step):
                loose.append(step)
        for step in loose:
            id_ = _key(step.message.get("tool_call_id"))
            if id_ and (turns := self._waiting.get(id_)):
                self._join(step, turns[0])
                if not turns[0]:
                    turns.popleft()

    def _open(self, turn: _Step) -> None:
        self._latest, self._first = turn, 0
        queues: dict[str, deque[tuple[_Step, int]]] = {}
        for number, id_ in enumerate(turn.ids):
            queues.setdefault(id_, deque()).append((turn, number))
        for id_, queue in queues.items():
            self._waiting.setdefault(id_, deque()).append(queue)

    def _give(self, result: _Step) -> bool:
        """To the latest turn in which a call with this id waits; without an id, to the first that waits in the last."""
        id_ = _key(result.message.get("tool_call_id"))
        if not id_ and not self._waiting.get(id_):
            waiting = self._next_waiting()
            if waiting is None:
                return False
            id_ = waiting
        turns = self._waiting.get(id_)
        if not turns:
            return False
        self._join(result, turns[-1])
        if not turns[-1]:
            turns.pop()
        return True

    def _next_waiting(self) -> str | None:
        """The id of the first call of the latest turn that has no result. It is the first of its id there, too."""
        turn = self._latest
        if turn is None:
            return None
        while self._first < len(turn.ids) and turn.results[self._first] is not None:
            self._first += 1
        return turn.ids[self._first] if self._first < len(turn.ids) else None

    @staticmethod
    def _join(result: _Step, queue: deque[tuple[_Step, int]]) -> None:
        turn, number = queue.popleft()
        turn.results[number] = result
        result.is_paired = True


def _key(id_: Any) -> str:
    """An id as text: a number is its digits, anything else that is no text is no id."""
    if isinstance(id_, str):
        return id_
    return str(id_) if isinstance(id_, int) and not isinstance(id_, bool) else ""


def _as_user(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return note(f"{message['role']} message", content)
    return {**message, "role": "user", "content": [{"type": "text", "text": f"[{message['role']} message]"}, *content]}
