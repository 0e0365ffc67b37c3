"""What goes back to the model: the bound first, then what has to be in it, then the forms of the wires."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse import (
    ErrorCode,
    ErrorDetail,
    JsonDecoder,
    Level,
    PartialToolCall,
    ToolCall,
    ToolCallFailed,
    UsageError,
)
from streamparse.tools.definition import Tool
from streamparse.tools.issues import ArgumentRejectedError, Issue, IssueCode, Verdict
from streamparse.tools.observation import (
    SIZE,
    failure,
    fingerprint,
    native_results,
    observation,
    tool_message,
    tool_result,
)
from streamparse.tools.validation import Judge, check
from tests.test_tools_validation import WEATHER, call, judge, tool, tools_and_calls

NASTY = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["x" * 50_000, "\x1b[2J" * 9000, "漢字" * 25_000, "\u202e", "\ud800", "\n" * 700, '"' * 700, "🦊" * 900]
    ),
)
PATHS = st.lists(NASTY | st.integers(0, 10**9), max_size=200).map(tuple)
ISSUES = st.builds(
    Issue,
    st.sampled_from(IssueCode),
    PATHS,
    st.sampled_from(["", "string", "object", "array"]),
    NASTY,
    st.lists(NASTY, max_size=8).map(tuple),
    st.integers(0, 10**9),
    NASTY,
    st.sampled_from(Level),
)
VERDICTS = st.builds(
    Verdict,
    tool=NASTY,
    issues=st.lists(ISSUES, max_size=6).map(tuple),
    doubts=st.lists(NASTY, max_size=4).map(tuple),
    keep=st.lists(NASTY, max_size=20).map(tuple),
    more=st.integers(0, 10**9),
)
COUNTS = st.integers(-3, 10**30)


@given(VERDICTS, COUNTS, COUNTS, COUNTS)
def test_it_is_bounded_whatever_comes(verdict, attempt, limit, repeats):
    """Also for a verdict that no judge would give: long texts everywhere."""
    text = observation(verdict, attempt=attempt, limit=limit, repeats=repeats)
    assert 0 < len(text) <= SIZE
    assert "Nothing was executed (attempt " in text
    assert observation(verdict, attempt=attempt, limit=limit, repeats=repeats) == text


@given(tools_and_calls(), st.integers(1, 4), st.integers(0, 3))
def test_every_judged_call_has_one(pair, attempt, repeats):
    tool_, arguments = pair
    verdict = check(call(arguments, trusted=False), [tool_])
    text = observation(verdict, attempt=attempt, limit=4, repeats=repeats)
    assert len(text) <= SIZE
    assert f"(attempt {attempt} of 4)" in text
    assert all(line.isprintable() for line in text.split("\n"))
    if len(verdict.issues) + verdict.more > 3:
        assert f"+{len(verdict.issues) + verdict.more - 3} more" in text
    assert text.count("\n- ") == min(len(verdict.issues), 3) or verdict.valid


HOSTILE = [
    ({"enum": [f"value_{number}" for number in range(500)]}, "v" * 50_000),
    ({"enum": ["漢" * 5000, "字" * 5000]}, "漢字" * 25_000),
    ({"type": "integer"}, "\x00\x1b[31m" * 10_000),
    ({"type": "string"}, {f"key {number}": "secret" for number in range(5000)}),
    ({"pattern": "(" + "a|" * 5000 + "b)"}, "c" * 50_000),
    ({"type": "object", "required": ["r" * 50_000]}, {}),
    ({"type": "array", "items": {"type": "integer"}}, ["x" * 50_000] * 50),
]


@pytest.mark.parametrize(("schema", "value"), HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("name", ["v", "名" * 64, "deep " * 400])
def test_hostile_calls(schema, value, name):
    tool_ = Tool("f" * 64, parameters={"type": "object", "properties": {name: schema}})
    for depth in range(3):
        verdict = check(ToolCall("c", "f" * 64, {name: value}), [tool_])
        assert not verdict.valid
        text = observation(verdict, attempt=depth + 1, limit=3, repeats=depth)
        assert len(text) <= SIZE
        assert "secret" not in text
        assert all(line.isprintable() for line in text.split("\n"))


def test_a_deep_path_keeps_the_field():
    schema: dict[str, Any] = {"type": "integer"}
    value: Any = "x"
    for _ in range(40):
        schema, value = {"type": "object", "properties": {"level": schema}}, {"level": value}
    schema = {"type": "object", "properties": {"target": schema}}
    text = observation(judge(schema, {"target": value}))
    assert '.level: found string "x"; allowed: integer' in text


def test_the_stock_case():
    """A3, A6: field, found, allowed, what to keep, the attempt, that nothing was executed."""
    text = observation(check(call({"location": "Bern", "unit": "kelvin"}), [WEATHER]), attempt=1, limit=3)
    assert text == (
        'The call "f" was rejected. Nothing was executed (attempt 1 of 3).\n'
        '- unit: found string "kelvin"; allowed: "celsius" or "fahrenheit"\n'
        "Keep as they are: location.\n"
        "Correct this and send the call again."
    )


def test_a_missing_field_and_its_drifted_name():
    tool_ = tool({"start_line": {"type": "integer", "minimum": 1}}, ["start_line"])
    text = observation(check(call({"startLine": 3}), [tool_]))
    assert '- start_line: required, but missing; allowed: integer at least 1; did you mean it by "startLine"?' in text


def test_a_drifted_name_of_an_optional_field():
    text = observation(check(call({"endLine": 3}), [tool({"end_line": {"type": "integer"}})]))
    assert '- end_line: missing; allowed: integer; did you mean it by "endLine"?' in text


def test_null_and_long_values():
    text = observation(judge({"type": "integer"}, None))
    assert "- v: found null; allowed: integer; leave it out if there is no value" in text
    fields = {key: {"type": "integer"} for key in "abc"}
    text = observation(check(call(dict.fromkeys("abc", "x" * 5000)), [tool(fields)]))
    assert text.count('x…" (5,000 characters); allowed: integer') == 3
    name = "n" * 64
    assert f'The call "{name}" was rejected' in observation(check(call({}, name), []))


def test_four_issues_are_three_and_a_count():
    fields = {key: {"type": "integer"} for key in "abcde"}
    text = observation(check(call(dict.fromkeys("abcde", "x")), [tool(fields)]))
    assert text.count("\n- ") == 3
    assert "\n+2 more\n" in text
    assert text.count("allowed: integer") == 3


def test_the_nearest_of_many_are_listed():
    names = [f"zone_{number}" for number in range(500)]
    text = observation(judge({"enum": names}, "zone_4x"))
    assert '"zone_4"' in text
    assert '"zone_300"' not in text
    assert "more" in text
    assert len(text) <= SIZE


def test_it_escalates():
    verdict = check(call({"unit": "kelvin", "location": "Bern"}), [WEATHER])
    once, again, third, last = (
        observation(verdict, attempt=attempt, limit=5, repeats=repeats)
        for attempt, repeats in ((1, 0), (2, 1), (3, 2), (5, 3))
    )
    assert "same call" not in once
    assert "the same call as before" in again
    assert "The same call came 3 times" in third
    assert "last attempt" in last
    assert "send the call again" not in last
    assert all('allowed: "celsius" or "fahrenheit"' in text for text in (once, again, third, last))


def test_unknown_tool():
    tools = [Tool(f"tool_{number}") for number in range(40)] + [Tool("get_weather")]
    text = observation(check(call({}, "getWeather"), tools))
    assert 'there is no tool of this name; allowed: "get_weather"' in text
    assert "+33 more" in text
    assert "Call a tool that exists." in text


def test_a_call_that_may_run_has_no_observation():
    with pytest.raises(UsageError, match="may be executed"):
        observation(check(call({"location": "Bern", "unit": "celsius"}), [WEATHER]))


def test_a_doubtful_write_asks_for_confirmation():
    text = observation(check(call({"a": 1}, trusted=False), [tool({"a": {"type": "integer"}})]))
    assert "needs a confirmation. Nothing was executed" in text
    assert "not trusted" in text


def failed(code: ErrorCode, **details: Any) -> str:
    error = ErrorDetail(code, "end of stream", 20, **details)
    return observation(check(ToolCallFailed(0, PartialToolCall("c", "f", {"path": "x"}), error), []))


def test_b271_truncation_is_named_as_the_cause():
    text = failed(ErrorCode.UNTERMINATED_JSON, excerpt='{"path":"x"')
    assert all(word in text for word in ("truncated", "output limit", "smaller"))
    assert "missing" not in text


@pytest.mark.parametrize("code", ErrorCode)
def test_every_failure_says_what_to_do(code):
    text = failed(code, expected=("'</parameter>'", "text"), excerpt="\x00" * 200)
    assert len(text) <= SIZE
    assert any(word in text for word in ("Send", "Close", "Give", "Finish"))


def test_b15_the_parse_error_goes_back():
    text = failed(ErrorCode.INVALID_JSON, expected=("','", "'}'"), excerpt='{"a" "b"}', path=("todos", 0))
    assert text.endswith(
        "could not be parsed as JSON. Send one correct JSON object. At todos[0]: end of stream; expected ',' or '}'"
    )


def of_text(text: str) -> str:
    reader = JsonDecoder()
    reader.feed(text)
    reader.close()
    assert reader.error is not None
    return observation(check(ToolCallFailed(0, PartialToolCall("c", "f", {}), reader.error), []))


def test_what_is_wrong_with_the_json_is_told():
    twice = of_text('{"path": 1, "path": 1}')
    assert "given twice. " in twice
    assert "At path: the key 'path' was given before" in twice
    assert r"At todos[1]: illegal escape \d" in of_text(r'{"todos": ["a", "\d"]}')
    for large, words in (("9" * 4400, "4300 characters"), ("[" * 200, "128")):
        text = of_text(f'{{"a": {large}}}')
        assert words in text
        assert "too large" not in text
        assert "smaller" not in text


def test_a_tool_that_refuses_an_argument():
    sent = call({"location": "Atlantis", "unit": "celsius"})
    verdict = Judge([WEATHER]).refused(sent, ArgumentRejectedError("location", ["Bern", "Oslo"], hint="no such city"))
    text = observation(verdict)
    assert '- location: found string "Atlantis"; allowed: Bern or Oslo; no such city' in text
    assert "Keep as they are: unit." in text


# Failures of tools (B12).


def test_the_error_of_a_tool_is_told():
    assert failure("read_file", ValueError("line 3 is empty")) == (
        'The tool "read_file" failed. ValueError: line 3 is empty'
    )
    assert "Nothing was executed" in failure("f", "no disk", started=False)
    assert failure("f", KeyError()) == 'The tool "f" failed. KeyError'


def test_no_directories_of_the_host():
    error = FileNotFoundError(2, "No such file or directory", "/srv/app/secret place/data/notes.md")
    text = failure("read_file", error)
    assert "notes.md" in text
    assert "/srv" not in text
    assert "C:" not in failure("f", r"cannot open C:\Users\someone\notes.md")
    assert "https://example.org/a/b" in failure("f", "GET https://example.org/a/b: 404")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("not found:/home/alice/x.txt", "not found:…/x.txt"),
        ("see file:///home/alice/p/x.py now", "see …/x.py now"),
        ("PATH=/a/b:/home/alice/bin", "PATH=…/b:…/bin"),
        ("open '/Users/John Smith/proj/x.py'", "open '…/x.py'"),
        ("at /Users/John Smith/proj/x.py line 3", "at …/x.py line 3"),
        ("dir is '/home/alice'", "dir is '…'"),
        ("dir is /home/alice/", "dir is …"),
        (r"in C:\Users\John Smith\a\n.md", "in …/n.md"),
        (r"in \\server\share\n.md", "in …/n.md"),
        ("src/a/b, ./x/y, 3/4/5, and/or, /etc", "src/a/b, ./x/y, 3/4/5, and/or, /etc"),
    ],
)
def test_directories_in_any_form(words, told):
    assert failure("f", words) == f'The tool "f" failed. {told}'


@given(
    st.sampled_from(["", "at ", "'", '"', "x:", "file://", "P=", "(", "[", "=> ", "a, "]),
    st.sampled_from([("/home/alice", "/"), ("/Users/alice", "/"), ("C:\\Users\\alice", "\\"), ("/home/alice b", "/")]),
    st.lists(st.sampled_from(["proj", "x.py", ".cache", "-"]), max_size=4),
    st.sampled_from(["", "/", "'", '"', ":3: no", ")", " is no file", "\nand more"]),
)
def test_no_user_is_named(before, home, parts, after):
    directory, step = home
    quote = '"' if " " in directory else ""
    path = f"{quote}{directory}{''.join(step + each for each in parts)}{quote}"
    assert "alice" not in failure("f", f"{before}{path}{after}")


def test_no_traceback():
    trace = 'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in f\n    1 / 0\nZeroDivisionError: no'
    text = failure("f", trace)
    assert text == 'The tool "f" failed. ZeroDivisionError: no'


FRAMES = "Traceback (most recent call last):\n" + '  File "/srv/a.py", line 1, in f\n    g()\n    ^^^\n' * 300


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{FRAMES}ValueError: real", "ValueError: real"),
        (f"{FRAMES}ValueError: one\n  two\nthree", "ValueError: one two three"),
        (
            f"it broke: {FRAMES}KeyError: 1\n\nDuring handling another one came:\n\n{FRAMES}ValueError: b",
            "it broke: ValueError: b",
        ),
    ],
    ids=["long", "lines", "chain"],
)
def test_the_reason_behind_a_traceback(text, told):
    assert failure("f", text) == f'The tool "f" failed. {told}'


class RudeError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@given(NASTY, NASTY.map(ValueError) | NASTY | st.just(RudeError()))
def test_failures_are_bounded(name, error):
    text = failure(name, error)
    assert len(text) <= SIZE
    assert text.isprintable()


# The same call again (B266, B267).


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.lists(st.integers(), max_size=2), max_size=5))
def test_the_order_of_keys_is_no_difference(arguments):
    turned = dict(reversed(arguments.items()))
    assert fingerprint(call({"a": arguments})) == fingerprint(call({"a": turned}, deviations=(), trusted=False))
    assert fingerprint(call({"a": arguments})) != fingerprint(call({"a": arguments}, "g"))
    assert fingerprint(call({"a": arguments, "new": 1})) != fingerprint(call({"a": arguments}))


def test_calls_that_could_not_be_read_have_one_too():
    one, same, other = (PartialToolCall("c", "f", {}, raw) for raw in ("{a", "{a", "{b"))
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)
    assert fingerprint(call({"a": {1, 2}})) != fingerprint(call({"a": {1, 2}, "b": 3}))


# The wires.


def test_messages_are_linked_by_the_call_id():
    assert tool_message("call_7", "no") == {"role": "tool", "tool_call_id": "call_7", "content": "no"}
    assert tool_result("call_7", "no", is_error=True) == {
        "type": "tool_result",
        "tool_use_id": "call_7",
        "content": "no",
        "is_error": True,
    }
    assert "is_error" not in tool_result("call_7", "yes")
    assert json.dumps(tool_result("c", "x"))


def test_native_results_are_in_call_order_and_unescaped():
    assert native_results(["a < b", "c"]) == "<response>a < b</response>\n<response>c</response>"


def test_a_hint_is_told_also_where_nothing_is_listed():
    issue = Issue(IssueCode.PATTERN, ("unit",), "string", '"kelvin"', (), 0, "the user asked for celsius", Level.SCHEMA)
    text = observation(Verdict("get_weather", Level.SCHEMA, (issue,)))
    assert "the user asked for celsius" in text
    assert len(text) <= SIZE
