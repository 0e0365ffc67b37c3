"""Each bound: a clear error, what was decoded before it, nothing kept behind it, the calls after it unharmed."""

from __future__ import annotations

import tracemalloc

import pytest

from streamparse import (
    ArgumentDelta,
    Ended,
    ErrorCode,
    Failed,
    Limits,
    NativeDecoder,
    ToolCallFailed,
    ToolCallFinished,
)
from tests.chunks import check_chunking

TOOLS = [
    {
        "name": "f",
        "parameters": {"properties": {"s": {"type": "string"}, "o": {"type": "object"}, "n": {"type": "integer"}}},
    }
]
GOOD = '<invoke name="f">\n<parameter name="s">ok</parameter>\n</invoke>\n'


def call(*parameters: tuple[str, str], name: str = "f") -> str:
    inner = "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in parameters)
    return f'<invoke name="{name}">\n{inner}</invoke>\n'


def run(inner: str, **limits: int):
    def decode(chunks):
        decoder = NativeDecoder(tools=TOOLS, limits=Limits(**limits))
        return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()

    return check_chunking(decode, f"<minimax:tool_call>\n{inner}</minimax:tool_call>")


def ends(events) -> list[ToolCallFinished | ToolCallFailed]:
    return [event for event in events if isinstance(event, ToolCallFinished | ToolCallFailed)]


@pytest.mark.parametrize(
    ("bad", "limits", "reason"),
    [
        (call(("s", "x" * 11)), {"arguments": 10}, "arguments of more than 10 characters"),
        (call(("s", "x" * 6), ("n", "1" * 6)), {"arguments": 10}, "arguments of more than 10 characters"),
        (call(("o", '{"a": "xxxxxx"}')), {"arguments": 10}, "arguments of more than 10 characters"),
        (call(("s", "1"), ("n", "2"), ("u", "3")), {"parameters": 2}, "more than 2 parameters"),
        (call(name="x" * 30), {"name": 20}, "a tool name of more than 20 characters"),
        (call(("k" * 30, "v")), {"name": 20}, "a parameter name of more than 20 characters"),
        (call(("o", '{"a": {"b": {}}}')), {"depth": 2}, "depth"),
    ],
)
def test_a_call_beyond_a_bound_fails_and_its_neighbours_do_not(bad, limits, reason):
    before, failed, after = ends(run(GOOD + bad + GOOD, **limits))
    assert isinstance(failed, ToolCallFailed)
    assert failed.error.code is ErrorCode.LIMIT_EXCEEDED
    assert reason in failed.error.message
    for end in (before, after):
        assert isinstance(end, ToolCallFinished)
        assert end.call.arguments == {"s": "ok"}


def test_what_came_before_the_bound_is_handed_on():
    events = run(call(("s", "abcdefghijkl")), arguments=10)
    assert [event.text for event in events if isinstance(event, ArgumentDelta)] == ["abcdefghij"]
    (failed,) = ends(events)
    assert failed.call.arguments == {"s": "abcdefghij"}


def test_too_many_calls_are_told_once():
    events = run(GOOD * 5, calls=2)
    assert len(ends(events)) == 2
    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert failed.error.code is ErrorCode.LIMIT_EXCEEDED
    assert failed.error.reason == "more than 2 calls"
    assert events[-1] == Ended(None, None, False)


@pytest.mark.parametrize("piece", ["xxxx", "<x> ", '"a\\n'])
@pytest.mark.parametrize("key", ["s", "o", "undeclared"])
def test_nothing_is_kept_behind_a_bound(piece, key):
    decoder = NativeDecoder(tools=TOOLS, limits=Limits(arguments=1000))
    decoder.feed(f'<minimax:tool_call>\n<invoke name="f">\n<parameter name="{key}">' + ("[" if key == "o" else ""))
    for _ in range(1000):
        decoder.feed(piece)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(20_000):
        decoder.feed(piece)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000


@pytest.mark.parametrize("text", ['<invoke name="', "<invoke name='x\"", "<invoke "])
def test_a_header_without_an_end_is_not_kept(text):
    decoder = NativeDecoder(tools=TOOLS)
    decoder.feed(f"<minimax:tool_call>\n{text}")
    for _ in range(2000):
        decoder.feed("abcd")
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(20_000):
        decoder.feed("abcd")
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000
