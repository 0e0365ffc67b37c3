"""Tolerant reading (J5): properties over dirty texts that were made from a known value, then one test per repair."""

from __future__ import annotations

import ast
import json
import random
import warnings
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamparse import NativeDecoder, ToolCall, ToolCallFailed, ToolCallFinished
from streamparse.decoding import repair as repairs
from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.chat import ChatDecoder
from streamparse.decoding.repair import Tier
from streamparse.events import ArgumentDelta, ArgumentValue, Deviated, DeviationCode, ErrorCode
from streamparse.limits import EXCERPT, Limits
from tests.chunks import check_chunking, join
from tests.conftest import shared
from tests.test_arguments import LAYOUTS, OBJECTS, VALUES, closed, error, fed, grew, read, run, steps, tokens

TIERS = st.sampled_from(list(Tier))
ROOTS = st.sampled_from(["object", "container", "any"])

# Dirty texts ----------------------------------------------------------------------------------------------------------

WORDS = {"true", "false", "null", "True", "False", "None"}
KEYS = st.sampled_from(["a", "_b", "$c", "größe", "d4", "True", "not a key", "", "it's", 'say "x"', "é\n"])
STRINGS = st.text(max_size=8) | st.text(alphabet="ab'\"\\/\n\x7f\u2028é\U0001f600”’“‘", max_size=8)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | STRINGS
DIRTY_VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
DIRTY_OBJECTS = st.dictionaries(KEYS, DIRTY_VALUES, max_size=3)


class Renderer:
    """Writes a value as somebody might who does not know JSON: each form at random. ``tier`` is how far it goes."""

    def __init__(self, seed: int, tier: Tier) -> None:
        self.random = random.Random(seed)
        self.tier = tier

    def chance(self) -> bool:
        return self.random.random() < 0.5

    def one(self, *options: str) -> str:
        return self.random.choice(options)

    def gap(self) -> str:
        return self.one("", "", " ", '/* it\'s "x" */', "// {\n")

    def value(self, value: Any) -> str:
        if isinstance(value, dict):
            return self.row("{", [f"{self.key(k)}{self.gap()}:{self.gap()}{self.value(v)}" for k, v in value.items()])
        if isinstance(value, list):
            opener = "(" if self.tier >= Tier.OBVIOUS and self.chance() else "["
            return self.row(opener, [self.value(item) for item in value])
        if isinstance(value, str):
            return self.string(value)
        if self.tier >= Tier.OBVIOUS and (value is None or isinstance(value, bool)) and self.chance():
            return repr(value)
        return json.dumps(value)

    def row(self, opener: str, members: list[str]) -> str:
        text = ",".join(self.gap() + member + self.gap() for member in members)
        needed = opener == "(" and len(members) == 1
        if needed or (members and self.tier >= Tier.HARMLESS and self.chance()):
            text += ","
        return opener + text + self.gap() + {"{": "}", "[": "]", "(": ")"}[opener]

    def key(self, key: str) -> str:
        bare = key.replace("$", "_").isidentifier() and key not in WORDS
        return key if bare and self.tier >= Tier.OBVIOUS and self.chance() else self.string(key)

    def string(self, text: str) -> str:
        body = json.dumps(text, ensure_ascii=self.chance())[1:-1]
        quotes = self.one('"', *"'"[: self.tier // 2], *"“‘”’"[: 4 * (self.tier // 3)])
        if self.tier >= Tier.HARMLESS and self.chance():
            body = body.replace("\\n", "\n") if "\\\\" not in body else body
        if quotes == '"':
            return f'"{body}"'
        if quotes == "'":
            bare = body.replace('\\"', '"').replace("'", "\\'")
            return f"'{bare}'"
        closer = {"“": "”", "‘": "’"}.get(quotes, quotes)
        special = "“”" if closer == "”" else "‘’"
        if closer == "’":
            body = body.replace("'", "\\u0027")
        for char in special:
            body = body.replace(char, f"\\{char}")
        return f"{quotes}{body}{closer}"

    def document(self, value: dict[str, Any]) -> str:
        text = self.value(value)
        if self.tier < Tier.OBVIOUS:
            fenced = self.tier == Tier.HARMLESS and self.chance()
            return f"```json\n{text}\n```" if fenced else text
        match self.one("plain", "prose", "string", "call", "fence"):
            case "prose":
                return f"Sure, it's: \n{text} {self.one('', 'It is done (1).', '// done', '```')}"
            case "string":
                return json.dumps(text)
            case "call":
                return f"f({text})"
            case "fence":
                return f"Here:\n```python\n{text}\n```\nDone."
            case _:
                return text


@st.composite
def dirty(draw: Any) -> tuple[str, dict[str, Any], Tier]:
    """A text, the value that it stands for, and the tier at which it is read."""
    tier = draw(st.sampled_from([Tier.HARMLESS, Tier.OBVIOUS, Tier.GUESS]))
    value = draw(DIRTY_OBJECTS)
    return Renderer(draw(st.integers(0, 10**6)), tier).document(value), value, tier


CRUMBS = st.sampled_from(
    [
        *"{}[]()\"'“”‘’,:\\/`aTtN1-. \n\x00é$\ud83d",
        *("True", "None", "null", "\\'", "\\d", "\\x4", "\\U0001f60", "\\u", "\\ud834", "\\udd1e", "\\n", "\\\\"),
        *("```", "json", "//", "/*", "*/", "{'a':", '"{\\"a\\"', "Sure ", "(1,"),
    ]
)


@st.composite
def broken(draw: Any) -> str:
    """Any text of what means something, or a dirty text with a crumb too many, or too few."""
    if draw(st.booleans()):
        return "".join(draw(st.lists(CRUMBS, max_size=12)))
    text, _, _ = draw(dirty())
    at = draw(st.integers(0, len(text)))
    return text[:at] + draw(CRUMBS) + text[at + draw(st.integers(0, 3)) :]


# Properties -----------------------------------------------------------------------------------------------------------


@given(VALUES, LAYOUTS, TIERS, ROOTS)
def test_valid_text_is_read_strictly_at_every_tier(value, layout, tier, root):
    """No repair touches what needs none."""
    text = json.dumps(value, **layout)
    strict, strict_reader = read(text, repair=0, root=root)
    if strict_reader.state == "complete":
        events, reader = read(text, repair=tier, root=root)
        assert join(events) == join(strict)
        assert reader.deviations == []
        assert repr(reader.value) == repr(strict_reader.value)
        assert reader.spans == strict_reader.spans


@given(OBJECTS, LAYOUTS, TIERS)
def test_valid_text_in_pieces_is_read_strictly_at_every_tier(value, layout, tier):
    text = json.dumps(value, **layout)
    assert check_chunking(run(repair=tier), text) == check_chunking(run(repair=0), text)


@given(dirty())
def test_the_value_is_the_one_that_was_meant(case):
    text, value, tier = case
    reader = closed(text, repair=tier)
    assert reader.error is None, text
    assert repr(reader.value) == repr(value)


@given(dirty())
def test_every_repair_is_told(case):
    """Strict text has no deviation, anything else has one, of a tier that is needed: one tier less refuses it."""
    text, _, tier = case
    deviations = closed(text, repair=tier).deviations
    needed = max((deviation.tier for deviation in deviations), default=0)
    assert all(deviation.code is DeviationCode.REPAIRED for deviation in deviations)
    assert all(deviation.tier == repairs.REPAIRS[deviation.detail] <= tier for deviation in deviations)
    assert all(0 <= deviation.offset < len(text) for deviation in deviations)
    assert closed(text, repair=needed).state == "complete"
    if needed:
        assert closed(text, repair=needed - 1).state != "complete"


@given(broken(), TIERS, ROOTS, st.sampled_from([(), ("p",)]))
@example("'\ud834", Tier.GUESS, "any", ())
def test_chunking_of_broken_text(text, tier, root, path):
    """Events, state, error with its place and excerpt, partial view: the same for every split. And nothing raises."""
    check_chunking(run(repair=tier, root=root, path=path, limits=Limits(depth=5)), text)


@given(dirty())
def test_chunking_of_dirty_text(case):
    text, _, tier = case
    check_chunking(run(repair=tier), text)


@given(broken(), TIERS, ROOTS)
def test_every_prefix_says_the_same(text, tier, root):
    """What a reader says depends on the text so far, not on how it came."""
    reader = JsonDecoder(repair=tier, root=root)
    for end, char in enumerate(text, 1):
        reader.feed(char)
        whole = fed(text[:end], repair=tier, root=root)
        assert (reader.state, reader.error, repr(reader.partial)) == (whole.state, whole.error, repr(whole.partial))
        assert (reader.in_string, reader.start, reader.end) == (whole.in_string, whole.start, whole.end)


@given(broken(), ROOTS)
def test_a_tier_reads_what_the_one_below_reads(text, root):
    """Monotone: a higher tier accepts more, and never another value."""
    before: JsonDecoder | None = None
    for tier in Tier:
        reader = closed(text, repair=tier, root=root)
        if before is not None and before.state == "complete":
            assert reader.state == "complete", tier
            assert repr(reader.value) == repr(before.value)
            assert reader.deviations == before.deviations
        before = reader


@given(dirty())
def test_a_cut_text_is_never_a_value(case):
    """J5: truncation is judged first. Whatever is open, it is unterminated, and not a bit of it is closed."""
    text, value, tier = case
    end = closed(text, repair=tier).end
    assert end is not None
    for cut in range(end):
        reader = closed(text[:cut], repair=tier)
        assert reader.state == ("incomplete" if text[:cut].strip() else "empty"), text[:cut]
        if reader.error is not None:
            assert reader.error.code is ErrorCode.UNTERMINATED_JSON
            assert reader.error.offset == cut
        assert reader.partial is None or grew(reader.partial, value)


@given(dirty())
def test_nothing_is_taken_back(case):
    """The deltas at a path, joined, are the string there; each value is announced once; the views only grow."""
    text, value, tier = case
    reader, events, views = JsonDecoder(repair=tier), [], [None]
    for char in text:
        events += reader.feed(char)
        views.append(reader.partial)
    events += reader.close()
    assert all(map(grew, views, views[1:]))
    deltas: dict[Any, str] = {}
    for event in events:
        if isinstance(event, ArgumentDelta):
            deltas[event.path] = deltas.get(event.path, "") + event.text
    values = [(event.path, event.value) for event in events if isinstance(event, ArgumentValue)]
    expected = [(path, item) for path, item in walk((), value) if path]
    assert repr(values) == repr(expected)
    assert deltas == {path: item for path, item in expected if isinstance(item, str) and item}


def walk(path, value):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from walk((*path, key), item)
    yield path, value


@pytest.mark.parametrize(
    ("alphabet", "root", "longest", "prefixes"), [("{}:1a", "object", 6, 3), ("('1,)\\", "any", 6, 2)]
)
def test_invalid_as_early_as_possible(alphabet, root, longest, prefixes):
    """A text is invalid only if nothing that follows makes it whole, and as soon as that is so."""
    texts = [list(map("".join, product(alphabet, repeat=size))) for size in range(longest + 1)]
    whole = {text for same in texts for text in same if closed(text, repair=2, root=root).state == "complete"}
    possible = {text[:end] for text in whole for end in range(prefixes + 1)}
    for text in (text for same in texts[: prefixes + 1] for text in same):
        assert (fed(text, repair=2, root=root).state != "invalid") == (text in possible), text


# Python's literals, against Python ------------------------------------------------------------------------------------


def as_lists(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [as_lists(item) for item in value]
    return {key: as_lists(item) for key, item in value.items()} if isinstance(value, dict) else value


PYTHON_VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(STRINGS, inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(STRINGS, PYTHON_VALUES, max_size=3))
def test_what_python_writes_is_read_as_python_reads_it(value):
    text = repr(value)
    assert ast.literal_eval(text) == value
    reader = closed(text, repair=2)
    if reader.error is None:
        assert repr(reader.value) == repr(as_lists(value))
    else:  # Python takes double quotes for a string with an apostrophe; \x7f in these is no JSON
        assert "illegal escape" in reader.error.reason
        assert '"' in text


@given(st.dictionaries(STRINGS, PYTHON_VALUES, max_size=3).map(repr), st.data())
def test_no_text_is_read_otherwise_than_python_reads_it(text, data):
    """Texts with a crumb too many: where both accept it, they mean the same. Escapes aside, which differ."""
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + data.draw(st.sampled_from([*"{}()[],:'\"1 -#", "None", "True", "''", "()"])) + text[at:]
    reader = closed(text, repair=2, root="any")
    if reader.state != "complete" or "\\" in text:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return
    assert repr(reader.value) == repr(as_lists(value))


# Time -----------------------------------------------------------------------------------------------------------------

LONG = {
    "single quotes": lambda n: "{'a': '" + "x" * n + "'}",
    "single quotes, escapes": lambda n: "{'a': '" + "\\n\\'" * (n // 4) + "'}",
    "bare key": lambda n: "{" + "k" * n + ": 1}",
    "bare keys": lambda n: "{" + ",".join(f"k{i}:1" for i in range(n // 8)) + "}",
    "literals": lambda n: "{'a': [" + "None," * (n // 5) + "]}",
    "tuples": lambda n: "{'a': (" + "()," * (n // 3) + ")}",
    "text before": lambda n: "x" * n + "{}",
    "text after": lambda n: "{}" + "x" * n,
    "string": lambda n: json.dumps(json.dumps({"a": "x\n" * (n // 4)})),
    "illegal escapes": lambda n: '{"a": "' + "\\d" * (n // 2) + '"}',
    "surrogates": lambda n: '{"a": "' + "\\ud834" * (n // 6) + '"}',
    "raw surrogates": lambda n: '{"a": "' + "\ud834" * n + '"}',
    "typographic quotes": lambda n: "{“a”: “" + "x" * n + "”}",
}


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize("name", LONG)
def test_time_is_linear(name, size):
    """Counted, not measured: lines of the library that run for a text 4 times as long."""
    small, large = (tokens(LONG[name](n), size) for n in (8_000, 32_000))
    longer = sum(map(len, large)) / sum(map(len, small))
    assert fed(*large, repair=3).state == "complete"
    assert steps(large, repair=3) < 1.5 * longer * steps(small, repair=3)


def test_what_is_dropped_is_not_kept():
    reader = fed("x" * 9_000, "y" * 9_000, *["z"] * 9_000, "{}", *["more "] * 9_000, repair=2)
    assert reader.state == "complete"
    assert sum(map(len, reader._recent)) < 5_000
    reader.close()
    assert [len(deviation.found) for deviation in reader.deviations] == [EXCERPT, EXCERPT - 1]


# One by one -----------------------------------------------------------------------------------------------------------

# text, value, (what, where, path) of each deviation
OBVIOUS: list[tuple[str, Any, list[tuple[str, int, tuple]]]] = [
    ("{'a': 'b'}", {"a": "b"}, [("single quotes", 1, ()), ("single quotes", 6, ("a",))]),
    ('{"a": \'it\\\'s "x"\'}', {"a": 'it\'s "x"'}, [("single quotes", 6, ("a",))]),
    ("[ 'a', {\"b\": ''}]", ["a", {"b": ""}], [("single quotes", 2, (0,)), ("single quotes", 13, (1, "b"))]),
    (
        r"""['\x41\xe9\U0001f600\u00e9\n\\\/\"\ud834\udd1e']""",
        ['Aé\U0001f600é\n\\/"\U0001d11e'],
        [("single quotes", 1, (0,))],
    ),
    ("['a\nb']", ["a\nb"], [("single quotes", 1, (0,)), ("control character", 3, (0,))]),
    ("[True, False,None]", [True, False, None], [("Python literal", at, (n,)) for n, at in enumerate((1, 7, 13))]),
    ('{"a": True}', {"a": True}, [("Python literal", 6, ("a",))]),
    (
        '{"a": (1, (2,), ())}',
        {"a": [1, [2], []]},
        [("tuple", 6, ("a",)), ("tuple", 10, ("a", 1)), ("tuple", 16, ("a", 2))],
    ),
    ('(1, "x",)', [1, "x"], [("tuple", 0, ())]),
    (
        "{a: 1, $b_2: {ö : 2}}",
        {"a": 1, "$b_2": {"ö": 2}},
        [("unquoted key", at, path) for at, path in ((1, ()), (7, ()), (14, ("$b_2",)))],
    ),
    ("{a/**/: 1}", {"a": 1}, [("unquoted key", 1, ()), ("comment", 2, ())]),
    ('Sure: {"a": 1}', {"a": 1}, [("text before the value", 0, ())]),
    (' nothing {"a": 1}', {"a": 1}, [("text before the value", 1, ())]),
    ('{"a": 1} Let me know.', {"a": 1}, [("text after the value", 9, ())]),
    ('f({"a": 1});', {"a": 1}, [("text before the value", 0, ()), ("text after the value", 10, ())]),
    ('```python\n{"a": 1}\n```', {"a": 1}, [("code fence", 0, ()), ("text before the value", 3, ())]),
    ('{"a": 1}\n```', {"a": 1}, [("text after the value", 9, ())]),
    ('Here: ```json\n{"a": 1}\n```', {"a": 1}, [("text before the value", 0, ())]),
    ('```\nls\n```\n{"a": 1}', {"a": 1}, [("code fence", 0, ()), ("text before the value", 4, ())]),
    (r'"{\"a\": \"x\\ny\"}"', {"a": "x\ny"}, [("JSON in a string", 0, ())]),
    (""" '{"a": 1}' """, {"a": 1}, [("single quotes", 1, ()), ("JSON in a string", 1, ())]),
    (
        r'"{\"a\": 1,}" thanks',
        {"a": 1},
        [("JSON in a string", 0, ()), ("trailing comma", 9, ()), ("text after the value", 14, ())],
    ),
]

GUESS: list[tuple[str, Any, list[tuple[str, int, tuple]]]] = [
    (r'{"a": "\d+"}', {"a": r"\d+"}, [("illegal escape", 7, ("a",))]),
    (r'{"\d": 1}', {r"\d": 1}, [("illegal escape", 2, ())]),
    (r'{"a": "C:\\x \" \d"}', {"a": r"C:\x " + '" ' + r"\d"}, [("illegal escape", 16, ("a",))]),
    (
        r'["\u12g4", "\u", "\x41"]',
        [r"\u12g4", r"\u", r"\x41"],
        [("illegal escape", 2, (0,)), ("illegal escape", 12, (1,)), ("illegal escape", 18, (2,))],
    ),
    (r"['\d']", [r"\d"], [("single quotes", 1, (0,)), ("illegal escape", 2, (0,))]),
    # Who does not escape backslashes means none of them: \t, behind \d, is no tab.
    (r'["\d C:\temp"]', [r"\d C:\temp"], [("illegal escape", 2, (0,)), ("illegal escape", 7, (0,))]),
    (r'["\d\u0041", "\n"]', [r"\d\u0041", "\n"], [("illegal escape", 2, (0,)), ("illegal escape", 4, (0,))]),
    (r'["x\ud834y"]', ["x\ufffdy"], [("lone surrogate", 3, (0,))]),
    (
        r'["\ud834\ud834\udd1e\udd1e"]',
        ["\ufffd\U0001d11e\ufffd"],
        [("lone surrogate", 2, (0,)), ("lone surrogate", 20, (0,))],
    ),
    (r'["\ud834\n"]', ["\ufffd\n"], [("lone surrogate", 2, (0,))]),
    (r"['\U0000d834']", ["\ufffd"], [("single quotes", 1, (0,)), ("lone surrogate", 2, (0,))]),
    ('["x\ud834\udd1e"]', ["x\ufffd\ufffd"], [("lone surrogate", 3, (0,)), ("lone surrogate", 4, (0,))]),
    ("{“a”: ‘it\\’s’}", {"a": "it’s"}, [("typographic quotes", 1, ()), ("typographic quotes", 6, ("a",))]),
    ("[”a\\”b”, ’\\n’]", ["a”b", "\n"], [("typographic quotes", 1, (0,)), ("typographic quotes", 9, (1,))]),
]


@pytest.mark.parametrize(
    ("tier", "text", "value", "found"),
    [(tier, *case) for tier, cases in ((Tier.OBVIOUS, OBVIOUS), (Tier.GUESS, GUESS)) for case in cases],
)
def test_repairs(tier, text, value, found):
    root = "object" if isinstance(value, dict) else "container"
    events = check_chunking(run(repair=tier, root=root, index=7), text)
    deviations = [event.deviation for event in events[:-1] if isinstance(event, Deviated)]
    assert [(d.detail, d.offset, d.path) for d in deviations] == found
    assert max(d.tier for d in deviations) == tier
    assert repr(closed(text, repair=tier, root=root).value) == repr(value)
    assert closed(text, repair=tier - 1, root=root).state == "invalid"


def test_every_repair_has_a_case():
    shown = {kind for _, _, found in OBVIOUS + GUESS for kind, _, _ in found}
    assert {kind for kind, tier in repairs.REPAIRS.items() if tier >= Tier.OBVIOUS} <= shown


def test_text_around_the_value_is_quoted():
    before, after = closed('Sure,  {"a": 1} bye\ud834 \n', repair=2).deviations
    assert (before.found, after.found) == ("Sure,", "bye\ufffd")


AMBIGUOUS: list[tuple[str, str, ErrorCode, int]] = [
    # text, root, error, place
    ('{"a": 1}{"b": 2}', "object", ErrorCode.TRAILING_TEXT, 8),
    ('{"a": 1} or {"b": 2}', "object", ErrorCode.TRAILING_TEXT, 12),
    ('{"a": 1}, "b": 2}', "object", ErrorCode.TRAILING_TEXT, 8),
    ('{"a": 1}}', "object", ErrorCode.TRAILING_TEXT, 8),
    ('{"a": 1} end }', "object", ErrorCode.TRAILING_TEXT, 13),
    ('{"a": 1} "', "object", ErrorCode.TRAILING_TEXT, 9),
    ('{"a": 1} see [1]', "container", ErrorCode.TRAILING_TEXT, 13),
    ('Here: [{"a": 1}]', "object", ErrorCode.TRAILING_TEXT, 15),
    ("12 apples", "any", ErrorCode.TRAILING_TEXT, 3),
    ('[{"a": 1}]', "object", ErrorCode.NOT_AN_OBJECT, 0),
    ('1. {"a": 1}', "object", ErrorCode.NOT_AN_OBJECT, 0),
    ('null {"a": 1}', "object", ErrorCode.NOT_AN_OBJECT, 0),
    ('"Sure: {}"', "object", ErrorCode.NOT_AN_OBJECT, 0),
    ('"x"', "container", ErrorCode.NOT_AN_OBJECT, 0),
    ('""', "object", ErrorCode.NOT_AN_OBJECT, 0),
    ("' '", "object", ErrorCode.NOT_AN_OBJECT, 0),
    (r'"{\"a\": 1} thanks"', "object", ErrorCode.TRAILING_TEXT, 10),
    (json.dumps(json.dumps(json.dumps({}))), "object", ErrorCode.NOT_AN_OBJECT, 0),
    ("use {x} as {}", "object", ErrorCode.INVALID_JSON, 6),
    ("(1)", "any", ErrorCode.INVALID_JSON, 2),
    ("(1]", "any", ErrorCode.INVALID_JSON, 2),
    ("[1)", "any", ErrorCode.INVALID_JSON, 2),
    ("(,)", "any", ErrorCode.INVALID_JSON, 1),
    ("{1, 2}", "any", ErrorCode.INVALID_JSON, 1),
    ("{1: 2}", "any", ErrorCode.INVALID_JSON, 1),
    ("{True: 2}", "any", ErrorCode.INVALID_JSON, 1),
    ("{null: 2}", "any", ErrorCode.INVALID_JSON, 1),
    ("{a-b: 2}", "any", ErrorCode.INVALID_JSON, 2),
    ("{a: b}", "any", ErrorCode.INVALID_JSON, 4),
    ("[NaN]", "any", ErrorCode.INVALID_JSON, 2),
    ("['it's']", "any", ErrorCode.INVALID_JSON, 5),
    ("['a' 'b']", "any", ErrorCode.INVALID_JSON, 5),
    ("['''a''']", "any", ErrorCode.INVALID_JSON, 3),
    ("{'a': 1, \"a\": 2}", "any", ErrorCode.DUPLICATE_KEY, 11),
    ("{'a': 1, a: 2}", "any", ErrorCode.DUPLICATE_KEY, 9),
    (r"""['\U00110000']""", "any", ErrorCode.INVALID_JSON, 2),
]


@pytest.mark.parametrize(("text", "root", "code", "offset"), AMBIGUOUS)
def test_what_is_ambiguous_is_refused(text, root, code, offset):
    for tier in (Tier.OBVIOUS, Tier.GUESS):
        if tier == Tier.GUESS and "\\U" in text:
            continue  # kept literally
        events = check_chunking(run(repair=tier, root=root), text)
        found = events[-1][1]
        assert (found.code, found.offset) == (code, offset)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (r'["a\n\d"]', 5),  # is \n a line break, or a part of a path?
        (r'["\u0041\d"]', 8),
        ("[“a “b” c”]", 4),
        ('[“a", “b”]', 3),
        ("[‘it's’]", 4),
        ("[“a’]", None),
        ("[“a\\”]", None),
    ],
)
def test_what_is_ambiguous_at_tier_3(text, offset):
    found = error(text, repair=3, root="any")
    assert found.code is (ErrorCode.UNTERMINATED_JSON if offset is None else ErrorCode.INVALID_JSON)
    assert found.offset == (len(text) if offset is None else offset)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'a", '"\'"'),
        ("{'a': 'x\"", '"\'"'),
        ("{a", "':'"),
        ("{a: Tru", "a JSON value"),
        ("{'a': (1, ", "a JSON value or ')'"),
        ("{'a': (1", "a digit, ',' or ')'"),
        ("{“a", "'”'"),
        ("Sure, ", "'{'"),
        ('Here: ```json\n{"a": 1}', "'```'"),
        ('```\nls\n``` and ```\n{"a": 1} ', "'```'"),
        ('"{\\"a\\": 1', "'\"'"),
    ],
)
def test_truncation_is_judged_first(text, expected):
    found = error(text, repair=3)
    assert found.code is ErrorCode.UNTERMINATED_JSON
    assert (found.offset, found.excerpt) == (len(text), text)
    assert found.message.endswith(f"expected {expected}")


def test_a_string_that_holds_cut_json_is_unterminated():
    """The string is closed, and the object in it is not. Offsets count the characters of the string."""
    reader = closed(r'  "{\"a\": {\"b\": \"x"', repair=2)
    assert reader.state == "incomplete"
    assert reader.partial == {"a": {"b": "x"}}
    assert reader.error is not None
    assert (reader.error.code, reader.error.offset) == (ErrorCode.UNTERMINATED_JSON, 3 + len('{"a": {"b": "x'))


def test_json_in_a_string_streams():
    reader = fed(r'"{\"a\": ', repair=2)
    assert [type(event) for event in reader.feed(r"\"He")] == [ArgumentDelta]
    assert reader.in_string
    assert reader.feed("llo") == [ArgumentDelta(0, ("a",), "llo")]
    assert reader.partial == {"a": "Hello"}
    assert reader.feed(r"\"}") == [ArgumentValue(0, ("a",), "Hello")]
    assert reader.state == "incomplete"
    reader.feed('"')
    assert (reader.state, reader.start, reader.end, reader.spans) == ("complete", 0, 20, {})


def test_untrusted_from_tier_2_on():
    assert Tier.HARMLESS < repairs.UNTRUSTED == Tier.OBVIOUS


# In native values (T4, N6) --------------------------------------------------------------------------------------------

TOOLS = [
    {
        "name": "f",
        "parameters": {
            "type": "object",
            "properties": {
                "o": {"type": "object"},
                "l": {"type": "array"},
                "both": {"type": ["object", "array"]},
                "maybe": {"type": ["object", "null"]},
                "s": {"type": "string"},
            },
        },
    }
]


CLOSING = "</parameter>\n</invoke>\n</minimax:tool_call>"


def decoded(text: str, repair: int, dialect: str) -> list[Any]:
    def decode(chunks: list[str]) -> list[Any]:
        decoder = NativeDecoder(dialect, tools=TOOLS, repair=repair)
        return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close("stop")

    return check_chunking(decode, text)


def end_of(events: list[Any]) -> ToolCallFinished | ToolCallFailed:
    (end,) = [event for event in events if isinstance(event, ToolCallFinished | ToolCallFailed)]
    return end


def native(key: str, value: str, repair: int) -> ToolCallFinished | ToolCallFailed:
    text = f'<minimax:tool_call>\n<invoke name="f">\n<parameter name="{key}">{value}{CLOSING}'
    return end_of(decoded(text, repair, "minimax_m2"))


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("o", "{'a': True}", {"a": True}),
        ("o", 'Here: {"a": 1}', {"a": 1}),
        ("o", r'"{\"a\": 1}"', {"a": 1}),
        ("l", "(1, 2)", [1, 2]),
        ("l", "['x']", ["x"]),
        ("both", "see [1, 2]", [1, 2]),
        ("maybe", "{a: 1}", {"a": 1}),
        # N6: the reader says what a string is
        ("o", f"{{'a': '{CLOSING}'}}", {"a": CLOSING}),
        ("o", json.dumps(json.dumps({"a": CLOSING})), {"a": CLOSING}),
    ],
)
def test_native_values(key, text, value):
    end = native(key, text, 2)
    assert isinstance(end.call, ToolCall)
    assert end.call.arguments == {key: value}
    assert not end.call.trusted
    assert json.loads(end.call.arguments_json) == {key: value}
    before = native(key, text, 1)
    assert isinstance(before, ToolCallFailed) or before.call.arguments != {key: value}


@pytest.mark.parametrize("text", ["hello", "5", "True", '"x"', "'x'", "null", "(1)", ""])
@pytest.mark.parametrize("key", ["o", "l", "maybe"])
def test_what_holds_no_json_stays_text(key, text):
    """T6: without a bracket a value is read as at tier 1, also its tags (N7)."""
    if (key, text) == ("l", "(1)"):  # the bracket of a tuple
        assert isinstance(native(key, text, 2), ToolCallFailed)
        return
    assert native(key, text, 3) == native(key, text, 1)


def test_tags_in_quotes_of_tier_3_are_data():
    """N6. One tier below, these quotes open no string, and the first closing tag ends the value."""
    text = f"{{“a”: ‘{CLOSING}’}}"
    end = native("o", text, 3)
    assert isinstance(end, ToolCallFinished)
    assert end.call.arguments == {"o": {"a": CLOSING}}
    below = decoded(f'<minimax:tool_call>\n<invoke name="f">\n<parameter name="o">{text}{CLOSING}', 2, "minimax_m2")
    assert isinstance(end_of(below), ToolCallFailed)


def test_an_apostrophe_in_text_around_the_value_hides_nothing():
    """N6: it opens no string, so the tags behind it count."""
    value = """it's {"a": 1} isn't it"""
    end = native("o", value + '</parameter>\n<parameter name="s">don\'t', 2)
    assert isinstance(end, ToolCallFinished)
    assert end.call.arguments == {"o": {"a": 1}, "s": "don't"}


def test_a_lost_closing_tag_is_found_before_the_json_begins():
    swallowed = 'hello\n<parameter name="s">x'
    for repair in (1, 2):
        end = native("o", swallowed, repair)
        assert isinstance(end, ToolCallFailed)
        assert end.error.code is ErrorCode.AMBIGUOUS_DELIMITER


# In payloads (a call that is one JSON object) -------------------------------------------------------------------------


def payload(arguments: str, repair: int) -> list[Any]:
    return decoded(f'<tool_call>\n{{"name": "f", "arguments": {arguments}}}\n</tool_call>', repair, "hermes")


def test_arguments_of_a_payload_in_a_string():
    """Double encoding one level down: it streams as the object would."""
    given = json.dumps('{"o": {"k": [1, "x\\n</tool_call>"]}}')
    events = payload(given, 2)
    end = end_of(events)
    assert isinstance(end, ToolCallFinished)
    assert end.call.arguments == {"o": {"k": [1, "x\n</tool_call>"]}}
    assert json.loads(end.call.arguments_json) == end.call.arguments
    assert not end.call.trusted
    assert [(d.detail, d.tier) for d in end.call.deviations] == [("JSON in a string", 2)]
    straight = payload(json.loads(given), 2)
    kinds = (ArgumentDelta, ArgumentValue)
    assert [e for e in events if isinstance(e, kinds)] == [e for e in straight if isinstance(e, kinds)]


@pytest.mark.parametrize(
    ("arguments", "repair", "code"),
    [
        (r'"{\"o\": 1}"', 1, ErrorCode.NOT_AN_OBJECT),
        ('"hello"', 2, ErrorCode.NOT_AN_OBJECT),
        ('""', 2, ErrorCode.NOT_AN_OBJECT),
        ('"[1]"', 2, ErrorCode.NOT_AN_OBJECT),
        (r'"{\"o\": 1"', 2, ErrorCode.UNTERMINATED_JSON),
        (r'"{\"o\": 1, \"o\": 2}"', 2, ErrorCode.DUPLICATE_KEY),
        (r'"{\"o\": x}"', 2, ErrorCode.INVALID_JSON),
    ],
)
def test_what_is_no_object_in_a_payload(arguments, repair, code):
    end = end_of(payload(arguments, repair))
    assert isinstance(end, ToolCallFailed)
    assert end.error.code is code


def test_a_payload_in_single_quotes():
    end = end_of(decoded("<tool_call>{'name': 'f', 'arguments': {'s': 'a</tool_call>'}}</tool_call>", 2, "hermes"))
    assert isinstance(end, ToolCallFinished)
    assert end.call.arguments == {"s": "a</tool_call>"}
    assert not end.call.trusted


# On chunked wires -----------------------------------------------------------------------------------------------------


def wire_case(name: str) -> dict[str, Any]:
    lines = shared("cases", "m2_xml.jsonl").read_text(encoding="utf-8").splitlines()
    (case,) = [case for case in map(json.loads, lines) if case["id"] == name]
    return case


@pytest.mark.parametrize("tier", Tier)
def test_arguments_that_a_server_wrote_with_repr(tier):
    """Case B044: strictly the call fails; what it proposes holds at tier 2."""
    case = wire_case("B044")
    decoder = ChatDecoder(tools=case["tools"], repair=int(tier))
    end = end_of([event for chunk in case["input"]["chunks"] for event in decoder.feed(chunk)] + decoder.close())
    if tier < Tier.OBVIOUS:
        assert isinstance(end, ToolCallFailed)
        assert end.error.code is ErrorCode.INVALID_JSON
        return
    (wanted,) = case["expected"]["repair_tier_proposal"]
    assert isinstance(end, ToolCallFinished)
    assert (end.call.name, end.call.arguments) == (wanted["name"], wanted["arguments"])
    assert not end.call.trusted


@pytest.mark.parametrize("tier", Tier)
def test_a_cut_object_before_a_whole_one_is_no_repair(tier):
    """Case B045 proposes to take the whole object. J5: truncation is judged first, and two objects are ambiguous."""
    glued = wire_case("B045")["expected"]["orphan_fragments_kept"]
    assert closed(glued, repair=tier).state == "invalid"
