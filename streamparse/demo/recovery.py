"""The last part of the demo: the stock case of the recovery check, with a scripted model behind the local server.

The model repeats the rejected call once, then corrects it, and then uses what the (mock) tool returned.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx

from streamparse.agent.recovery import End, RecoveryCase, RecoveryCheck, TurnClass, TurnReport, stock_case
from streamparse.commands.sinks import View
from streamparse.decoding.encode import render_answer
from streamparse.events import Event
from streamparse.server import Recording, Server
from streamparse.transport.http import stream
from streamparse.transport.recording import Header, Piece

TITLE = "The recovery check: does a model fix an argument that was rejected?"
LOOK = "A prepared call asks for kelvin. What is told to the model, and what it does then."

ENDPOINT = "/v1/chat/completions"

_GOOD = (TurnClass.FIXED, TurnClass.USED)
_EXPECTED = [TurnClass.REPEAT_IDENTICAL, TurnClass.FIXED, TurnClass.USED]
_PACE = 0.02  # seconds for each word


def play_recovery(make_view: Callable[[], View], speed: float) -> bool:
    """Lead the dialogue, and show it. Whether it came out as scripted."""
    case = stock_case()
    check = RecoveryCheck(case)
    prepared = check.report().prepared.calls[0]
    view = make_view()
    view.remark(f"prepared, not observed: {prepared.name} {prepared.arguments}", False)
    _told(view, prepared.observation)
    with Server(script(case), speed=speed) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        while not check.is_over:
            events: list[Event] = []
            view = make_view()
            with (
                view,
                stream(client, ENDPOINT, check.request(model="scripted"), id_factory=check.ledger.make_id) as answer,
            ):
                for event in answer:
                    view.show([event])
                    events.append(event)
            _tell(view, check.take(events))
    good = check.end is End.RECOVERED and [turn.turn_class for turn in check.turns] == _EXPECTED
    make_view().remark(f"the stock case ended: {check.end}, after {len(check.turns)} turns", good)
    return good


def _tell(view: View, turn: TurnReport) -> None:
    view.remark(f"turn {turn.number} is {turn.turn_class}", turn.turn_class in _GOOD)
    for call in turn.calls:
        _told(view, call.observation)


def _told(view: View, observation: str) -> None:
    for line in observation.splitlines():
        view.remark(f"told: {line}", True)


def script(case: RecoveryCase) -> list[Recording]:
    """What the model says, as recordings of raw text."""
    calls = [
        ("The place is right. Perhaps once more.", case.prepared.arguments or {}),
        ("Only celsius and fahrenheit are allowed, and the user wants celsius.", case.expected),
    ]
    texts = [render_answer(reasoning=why, calls=[(case.tool, arguments)], opened=True) for why, arguments in calls]
    texts.append(render_answer(reasoning="17.5 it is.", text="It is 17.5 degrees celsius in Bern.", opened=True))
    return [_recording(case, number, text) for number, text in enumerate(texts, 1)]


def _recording(case: RecoveryCase, number: int, text: str) -> Recording:
    reason = "stop" if number == len(_EXPECTED) else "tool_calls"
    header = Header(start="reasoning", finish_reason=reason, tools=list(case.tools))
    words = text.split(" ")
    spaced = [f"{word} " for word in words[:-1]] + words[-1:]
    return Recording(f"turn_{number}", header, [Piece(round(at * _PACE, 3), word) for at, word in enumerate(spaced)])
