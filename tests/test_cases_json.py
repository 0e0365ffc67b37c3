"""Faults of other systems with JSON that is incomplete or wrong (``cases/json_partial.jsonl``): each is read right
here.

The cases are facts and not names of this library: ``CODES`` maps their words for an error to ours. Each is run in every
cut. What a case says of a higher tier (``repair_tier``) is checked at the tier that ``TIERS`` names: it is accepted
there, and not below. ``BY_RULE`` names cases that ask for a value which a numbered rule gives at a higher tier only.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.repair import UNTRUSTED, Tier
from streamparse.events import Deviated, ErrorCode
from tests.chunks import check_chunking
from tests.conftest import shared

CASES: dict[str, dict[str, Any]] = {
    case["id"]: case
    for case in map(json.loads, shared("cases", "json_partial.jsonl").read_text(encoding="utf-8").splitlines())
}

CODES = {
    "arguments_not_object": ErrorCode.NOT_AN_OBJECT,
    "control_character": ErrorCode.INVALID_JSON,
    "invalid_escape": ErrorCode.INVALID_JSON,
    "invalid_json": ErrorCode.INVALID_JSON,
    "non_json_constant": ErrorCode.INVALID_JSON,
    "number_out_of_range": ErrorCode.INVALID_JSON,
    "too_deep": ErrorCode.LIMIT_EXCEEDED,
    "trailing_text": ErrorCode.TRAILING_TEXT,
}

TIERS = {"B120": Tier.GUESS, "B130": Tier.OBVIOUS, "B140": Tier.OBVIOUS}
"""The tier (J5) of the form that a case is about."""

BY_RULE = {
    "B130": (ErrorCode.INVALID_JSON, "J5: tuples and Python literals are tier 2, which is not the default"),
}
"""Cases that ask for a value, and have none by default."""


def pieces_of(case: dict[str, Any]) -> list[str]:
    source = case["input"]
    if source["type"] == "json_text":
        return [source["text"]]
    fragments = source["fragments"]
    if case["id"] == "B139":  # a generator, in words
        assert fragments == ["generator: '{\"x\":'*5000 + '0' + '}'*5000"]
        return ['{"x":' * 5000, "0", "}" * 5000]
    return list(fragments)


def fed(*chunks: str, repair: int = 1) -> JsonDecoder:
    reader = JsonDecoder(repair=repair)
    for chunk in chunks:
        reader.feed(chunk)
    return reader


def closed(text: str, repair: int = 1) -> JsonDecoder:
    reader = fed(text, repair=repair)
    reader.close()
    return reader


def run(chunks: list[str], repair: int = 1) -> list[Any]:
    reader = JsonDecoder(repair=repair)
    events: list[Any] = [event for chunk in chunks for event in reader.feed(chunk)]
    return [*events, *reader.close(), reader.state, reader.error, repr(reader.partial)]


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    case = CASES[name]
    pieces = pieces_of(case)
    text = "".join(pieces)
    events = check_chunking(run, text) if len(text) < 5000 else run(pieces)
    expected = case["expected"]
    if name in BY_RULE:
        assert closed(text).error.code is BY_RULE[name][0], BY_RULE[name][1]  # type: ignore[union-attr]
        check_tier(name, expected["value"])
        return
    if "repair_tier" in expected:
        check_tier(name, expected["repair_tier"])
    for key, check in CHECKS.items():
        if key in expected:
            check(text, expected)
    assert expected.keys() <= CHECKS.keys() | SAID_OTHERWISE, "a fact that nobody checks"
    if expected.get("status") == "repaired":
        assert any(isinstance(event, Deviated) for event in events)


def check_tier(name: str, value: Any) -> None:
    """The value at the tier of the case and above, told and untrusted; nothing below."""
    text = "".join(pieces_of(CASES[name]))
    for tier in Tier:
        reader = closed(text, repair=tier)
        if tier < TIERS[name]:
            assert reader.state == "invalid"
        else:
            check_chunking(partial(run, repair=tier), text)
            assert reader.value == value
            assert max(deviation.tier for deviation in reader.deviations) == TIERS[name] >= UNTRUSTED


def check_final(text, expected):
    assert closed(text, repair=0).value == expected["final"]


def check_value(text, expected):
    """At the default tier; strict reading refuses it."""
    assert closed(text).value == expected["value"]
    assert closed(text, repair=0).state == "invalid"


def check_partial(text, expected):
    assert fed(text).partial == expected["partial"]
    assert closed(text).state == "incomplete"


def check_partials(text, expected):
    for step in expected["partials"]:
        assert text.startswith(step["prefix"])
        assert fed(step["prefix"]).partial == step["partial"]


def check_states(text, expected):
    for step in expected["partials_state"]:
        assert fed(step["prefix"]).state == step["state"]


def check_status(text, expected):
    state = {"repaired": "complete"}.get(expected["status"], expected["status"])
    assert closed(text).state == state


def check_error(text, expected):
    error = closed(text).error
    assert error is not None
    assert error.code is CODES[expected["error"]]
    assert error.level == ("parse" if error.code is ErrorCode.LIMIT_EXCEEDED else "representation")


def check_strict_error(text, expected):
    assert closed(text, repair=0).error.code is CODES[expected["strict_error"]]  # type: ignore[union-attr]


def check_json_value(text, expected):
    reader = JsonDecoder(root="any")
    reader.feed(text)
    reader.close()
    assert reader.value == expected["json_value"]


CHECKS = {
    "final": check_final,
    "value": check_value,
    "partial": check_partial,
    "partials": check_partials,
    "partials_state": check_states,
    "status": check_status,
    "error": check_error,
    "strict_error": check_strict_error,
    "json_value": check_json_value,
}

SAID_OTHERWISE = {
    "must_not",  # follows from what is checked: an invalid text has no value at all
    "no_exception",  # holds of every case
    "note",
    "default_limit",  # limits.depth
    "partial_alternative",  # J1 decides: a number is shown when it is complete
    "repair_tier",  # see check_tier
}


def test_every_exception_is_a_case():
    assert TIERS.keys() | BY_RULE.keys() <= CASES.keys()
    asking = {name for name, case in CASES.items() if "repair_tier" in case["expected"]}
    assert asking | BY_RULE.keys() == TIERS.keys()
