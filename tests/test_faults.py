"""Plans and the faults in them: pure functions, so that each is tested without a server."""

from __future__ import annotations

import math
from itertools import islice

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamparse.errors import UsageError
from streamparse.server.faults import NO_FAULTS, SPECS, Faults, Refusal, Stall, parse_faults
from streamparse.server.plan import COMMENT, Step, body, event_ends, plan_of, recut, with_faults
from streamparse.transport.recording import Piece
from streamparse.transport.sse import BOM
from tests.conftest import ROOT

EVENTS = 'data: {"a": "é"}\n\ndata: {"b": "中文"}\n\ndata: [DONE]\n\n'.encode()
TWO_EVENTS = EVENTS.removesuffix(b"data: [DONE]\n\n")
ERROR = b'data: {"error": {}}\n\n'

PLANS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.5, 2.0]), st.binary(max_size=6) | st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n"])
    )
).map(lambda steps: [Step(*step) for step in steps])


def faulty(steps: list[Step], *specs: str) -> list[Step]:
    """The plan with these faults; of an endless one the first hundred steps."""
    return list(islice(with_faults(steps, parse_faults(specs), ERROR), 100))


def in_pieces(data: bytes, size: int = 4) -> list[Step]:
    return [Step(1.0, data[at : at + size]) for at in range(0, len(data), size)]


def told(*specs: str) -> bytes:
    """The body with these faults, which must not depend on how it was cut."""
    bodies = {body(faulty(in_pieces(EVENTS, size), *specs)) for size in (1, 2, 3, 7, 1000)}
    [one] = bodies
    return one


# Specs


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ("cut=0", Faults(cut=0)),
        ("close=12", Faults(close=12)),
        ("stall=3", Faults(stall=Stall(3, math.inf))),
        ("stall=3:0.5", Faults(stall=Stall(3, 0.5))),
        ("slow-start=1.5", Faults(slow_start=1.5)),
        ("hang", Faults(hang=True)),
        ("status=429", Faults(status=Refusal(429))),
        ("status=429:2", Faults(status=Refusal(429, 2.0))),
        ("first=529:1,times=3", Faults(first=Refusal(529, 1.0), times=3)),
        ("content-type=text/html; charset=x", Faults(content_type="text/html; charset=x")),
        ("content-type=", Faults(content_type="")),
        ("crlf", Faults(line_end=b"\r\n")),
        ("cr", Faults(line_end=b"\r")),
        ("crlf, cr", Faults(line_end=b"\r")),
        ("keepalive=0.2", Faults(keepalive=0.2)),
        ("error-event=7", Faults(error_event=7)),
        (" bom , drip,", Faults(bom=True, drip=True)),
        ("", NO_FAULTS),
    ],
)
def test_specs(spec, faults):
    assert parse_faults([spec]) == faults


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("cutt=3", "fault 'cutt=3': expected one of cut=N, close=N,"),
        ("cut", "fault 'cut': expected cut=N"),
        ("cut=", "fault 'cut=': expected cut=N, N a number of bytes, found ''"),
        ("cut=-1", "expected cut=N"),
        ("cut=١", "expected cut=N"),
        ("bom=1", "fault 'bom=1': expected bom"),
        ("slow-start=nan", "a number of seconds, found 'nan'"),
        ("slow-start=inf", "a number of seconds, found 'inf'"),
        ("stall=3:x", "a number of seconds, found 'x'"),
        ("keepalive=0", "at least 0.001 seconds, found '0'"),
        ("status=200", "an HTTP status from 400 to 599, found '200'"),
        ("status=600", "an HTTP status from 400 to 599, found '600'"),
        ("content-type=é", "printable ASCII"),
        ("drip,what", "fault 'what'"),
    ],
)
def test_specs_that_are_none(spec, words):
    with pytest.raises(UsageError) as caught:
        parse_faults([spec])
    assert words in str(caught.value)


@given(
    st.text(max_size=12)
    | st.sampled_from(list(SPECS)).flatmap(lambda name: st.text(max_size=6).map(f"{name}={{}}".format))
)
def test_any_spec_is_read_or_refused(spec):
    try:
        faults = parse_faults([spec])
    except UsageError as caught:
        error = str(caught)
    else:
        error = ""
        assert parse_faults([spec], faults) == faults
    assert not error or error.startswith("fault ")


def test_all_specs_are_documented():
    page = (ROOT / "docs" / "serve.md").read_text("utf-8")
    for spec in SPECS.values():
        assert f"| `{spec.form}` | {spec.means} |\n" in page


def test_later_specs_count():
    base = parse_faults(["cut=3", "bom"])
    assert parse_faults(["cut=5"], base) == Faults(cut=5, bom=True)


# Without faults


@given(PLANS, st.integers(1, 9) | st.sampled_from(["event", None]))
def test_writes_may_be_cut_in_any_way(steps, size):
    again = recut(steps, size)
    assert body(again) == body(steps)
    assert sum(step.wait for step in again) == sum(step.wait for step in steps)
    if isinstance(size, int):
        full = [len(step.data) for step in again if step.data]
        assert all(length == size for length in full[:-1])
        assert full[-1:] <= [size]


@given(PLANS)
def test_no_faults_change_nothing(steps):
    assert list(with_faults(steps, NO_FAULTS)) == steps


def test_a_write_comes_with_its_last_byte():
    steps = [Step(1.0, b"abc"), Step(2.0, b"de")]
    assert recut(steps, 2) == [Step(1.0, b"ab"), Step(2.0, b"cd"), Step(0.0, b"e")]


def test_writes_of_one_event():
    assert [step.data for step in recut(in_pieces(EVENTS), "event")] == EVENTS.replace(b"\n\n", b"\n\n|").split(b"|")[
        :-1
    ]


def test_recordings_have_their_times():
    pieces = [Piece(0.5, "a"), Piece(2.5, base64=b"\xff"), Piece(3.0, broken=True)]
    steps = [Step(0.5, b"a"), Step(2.0, b"\xff"), Step(0.5, b"", True)]
    assert plan_of(pieces) == steps
    assert [step.wait for step in plan_of(pieces, 2.0)] == [0.25, 1.0, 0.25]
    assert [step.wait for step in plan_of(pieces, math.inf)] == [0.0, 0.0, 0.0]
    assert recut(steps, 5)[-1].breaks


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_where_events_end(end):
    data = b"data: 1" + end + end + b"id: 2" + end + b"data: 2" + end + end
    assert [data[:at] for at in event_ends(data)] == [b"data: 1" + end + end, data]


# What the body says


def test_no_done():
    assert told("no-done") == TWO_EVENTS
    stop = b'event: message_stop\ndata: {"type": "message_stop"}\n\n'
    assert body(faulty(in_pieces(TWO_EVENTS + stop), "no-done")) == TWO_EVENTS
    quoted = b'data: {"text": "data: [DONE]"}\n\n'
    assert body(faulty(in_pieces(quoted), "no-done")) == quoted


def test_no_blank():
    assert told("no-blank") == EVENTS[:-1]
    assert told("no-blank,crlf") == EVENTS[:-1].replace(b"\n", b"\r\n")
    assert told("no-blank,no-done") == TWO_EVENTS[:-1]


@pytest.mark.parametrize("after", range(len(EVENTS) + 3))
def test_an_error_stands_between_events(after):
    ends = [0, *event_ends(EVENTS)]
    kept = next((end for end in ends if end >= after), len(EVENTS))
    assert told(f"error-event={after}") == EVENTS[:kept] + ERROR


# How it is written


def test_line_ends_and_the_mark():
    assert told("crlf") == EVENTS.replace(b"\n", b"\r\n")
    assert told("cr") == EVENTS.replace(b"\n", b"\r")
    assert told("bom") == BOM + EVENTS
    assert told("bom,crlf") == BOM + EVENTS.replace(b"\n", b"\r\n")


@given(PLANS, st.sampled_from(["crlf", "cr"]))
def test_all_line_ends_are_one(steps, spec):
    plain = body(steps).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert body(faulty(steps, spec)) == plain.replace(b"\n", b"\r\n" if spec == "crlf" else b"\r")


# The writes


@given(st.lists(st.text(max_size=8)), st.integers(1, 9))
@example(["日本 é 🎉"], 1000)
def test_every_character_is_split(texts, size):
    data = "".join(texts).encode()
    writes = [step.data for step in with_faults(in_pieces(data, size), parse_faults(["split-utf8"]))]
    assert b"".join(writes) == data
    for write in writes:
        assert all(len(character.encode()) == 1 for character in write.decode("utf-8", "ignore"))


def test_one_byte_a_write():
    writes = faulty([Step(1.0, b"abc"), Step(2.0, b""), Step(1.0, b"d", True)], "drip")
    assert writes == [Step(1.0, b"a"), Step(0.0, b"b"), Step(0.0, b"c"), Step(2.0, b""), Step(1.0, b"d", True)]


# The times


def test_a_slow_start():
    assert faulty([Step(1.0, b"a")], "slow-start=2") == [Step(2.0, b""), Step(1.0, b"a")]


@pytest.mark.parametrize("after", range(6))
def test_a_stall(after):
    steps = faulty([Step(1.0, b"abc"), Step(1.0, b"de")], f"stall={after}:5")
    assert body(steps) == b"abcde"
    assert sum(step.wait for step in steps) == 7.0
    at = next(number for number, step in enumerate(steps) if step.wait >= 5)
    assert body(steps[:at]) == b"abcde"[:after]


def test_no_stall_behind_the_end():
    assert faulty([Step(1.0, b"abc")], "stall=4:5") == [Step(1.0, b"abc")]


def test_comments_while_nothing_comes():
    steps = faulty([Step(1.0, TWO_EVENTS), Step(0.1, b"data: 1"), Step(1.0, b"\n\n")], "keepalive=0.4")
    assert [step.data for step in steps] == [COMMENT, COMMENT, TWO_EVENTS, b"data: 1", b"\n\n"]  # not inside an event
    assert sum(step.wait for step in steps) == pytest.approx(2.1)
    assert max(step.wait for step in steps[:3]) <= 0.4


def test_no_comment_before_the_mark():
    steps = faulty([Step(1.0, TWO_EVENTS)], "keepalive=0.4", "bom", "slow-start=0.1")
    assert [step.data for step in steps] == [b"", BOM, COMMENT, COMMENT, TWO_EVENTS]


def test_comments_for_ever():
    steps = faulty([Step(0.0, TWO_EVENTS), Step(0.0, b"x")], f"stall={len(TWO_EVENTS)}", "keepalive=1")
    assert [step.data for step in steps[1:]] == [COMMENT] * 99


# The end


@given(PLANS, st.integers(0, 30), st.booleans())
def test_the_end_behind_so_many_bytes(steps, after, breaks):
    whole = body(steps)
    played = faulty(steps, f"{'cut' if breaks else 'close'}={after}")
    assert body(played) == whole[:after]
    assert any(step.breaks for step in played) == (breaks and after <= len(whole))


def test_faults_together():
    written = told("error-event=1", "crlf", "bom", "split-utf8", "cut=20")
    assert written == (BOM + EVENTS.replace(b"\n", b"\r\n"))[:20]
