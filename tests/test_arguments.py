"""The incremental JSON reader (rules J): properties first, then the rules one by one."""

from __future__ import annotations

import json
import sys
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.history import _MANY
from streamparse.decoding.jsontext import MAX_NUMBER
from streamparse.errors import ClosedError, UsageError
from streamparse.events import ArgumentDelta, ArgumentValue, Deviated, DeviationCode, ErrorCode, ErrorDetail
from streamparse.limits import EXCERPT, Limits
from tests.chunks import check_chunking, join

# What hypothesis draws ----------------------------------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(10**400), max_value=10**400),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.text(alphabet='"\\/\b\n\t\x00\x7f\u2028é\U0001f600', max_size=12),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=4)
LAYOUTS = st.fixed_dictionaries(
    {
        "ensure_ascii": st.booleans(),
        "indent": st.sampled_from([None, 0, 2, "\t"]),
        "separators": st.sampled_from([(", ", ": "), (",", ":"), (" ,\r\n", " : ")]),
    }
)

# Pieces from which broken documents are made: every character that means something, and every word that begins with it.
PIECES = st.sampled_from(
    [
        *'{}[],:"\\-01.eE+ \n\t/*`Nx\x00é\u2028\ud83d',
        *("true", "tr", "null", "false", "//", "/*", "*/", "```", "json", "12", "1e400"),
        *('"a"', '{"a":', '["', '"]', "\\u", "\\ud834", "\\udd1e", "\\u00e9", "\\n"),
    ]
)
BROKEN = st.builds("".join, st.lists(PIECES, max_size=14)) | st.text(max_size=30)
OPTIONS = st.fixed_dictionaries(
    {
        "repair": st.sampled_from([0, 1, 2, 3]),
        "root": st.sampled_from(["object", "container", "any"]),
        "path": st.sampled_from([(), ("p",)]),
        "limits": st.builds(Limits, arguments=st.sampled_from([5, 15, 10**6]), depth=st.sampled_from([2, 100])),
    }
)


def fed(*chunks: str, **options: Any) -> JsonDecoder:
    reader = JsonDecoder(**options)
    for chunk in chunks:
        reader.feed(chunk)
    return reader


def read(text: str, **options: Any) -> tuple[list, JsonDecoder]:
    reader = JsonDecoder(**options)
    return reader.feed(text) + reader.close(), reader


def closed(text: str, **options: Any) -> JsonDecoder:
    return read(text, **options)[1]


def error(text: str, **options: Any) -> ErrorDetail:
    found = closed(text, **options).error
    assert found is not None, text
    return found


def everything(reader: JsonDecoder) -> tuple:
    """All that a caller can ask, exact to the type (1 is not 1.0 is not True)."""
    partial = reader.partial
    return reader.state, reader.error, repr(partial), reader.in_string, reader.spans, reader.start, reader.end


def run(**options: Any):
    """For ``check_chunking``: the events, and after them what the reader says of itself."""

    def run_chunks(chunks: list[str]) -> list:
        reader = JsonDecoder(**options)
        events: list[Any] = [event for chunk in chunks for event in reader.feed(chunk)]
        return [*events, *reader.close(), everything(reader)]

    return run_chunks


def tokens(text: str, size: int = 4) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def grew(before: Any, after: Any) -> bool:
    """Whether a view only became more: strings longer, keys and items more, everything else the same."""
    if isinstance(before, str):
        return isinstance(after, str) and after.startswith(before)
    if isinstance(before, dict):
        return isinstance(after, dict) and all(key in after and grew(before[key], after[key]) for key in before)
    if isinstance(before, list):
        return isinstance(after, list) and len(before) <= len(after) and all(map(grew, before, after))
    return before is None or repr(before) == repr(after)


# Properties -----------------------------------------------------------------------------------------------------------


@given(VALUES, LAYOUTS)
def test_reads_what_the_standard_library_reads(value, layout):
    text = json.dumps(value, **layout)
    reader = closed(text, root="any", repair=0)
    assert reader.error is None
    assert repr(reader.value) == repr(json.loads(text))  # exact: integers, -0.0, the order of keys


@given(OBJECTS, LAYOUTS)
def test_chunking_of_valid_text(value, layout):
    check_chunking(run(), json.dumps(value, **layout))


@given(BROKEN, OPTIONS)
def test_chunking_of_any_text(text, options):
    """Events, state, error with its place and excerpt, partial view: the same for every split. And nothing raises."""
    check_chunking(run(**options), text)


@given(BROKEN, OPTIONS)
def test_every_prefix_says_the_same(text, options):
    """Between the chunks, too: what a reader says depends on the text so far, not on how it came."""
    reader = JsonDecoder(**options)
    for end, char in enumerate(text, 1):
        reader.feed(char)
        assert everything(reader) == everything(fed(text[:end], **options)), text[:end]


@given(VALUES, LAYOUTS)
def test_events_tell_the_value(value, layout):
    """The deltas at a path, joined, are the final string; each value below the root is announced once, inside out."""
    events, reader = read(json.dumps(value, **layout), root="any", path=("p",))
    deltas = {event.path: event.text for event in join(events) if isinstance(event, ArgumentDelta)}
    values = [(event.path, event.value) for event in events if isinstance(event, ArgumentValue)]
    *expected, root = walk(("p",), json.loads(json.dumps(value)))
    assert repr(values) == repr(expected)
    assert deltas == {path: item for path, item in [*expected, root] if isinstance(item, str) and item}
    assert repr(reader.value) == repr(root[1])


def walk(path, value):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from walk((*path, key), item)
    yield path, value


@given(OBJECTS, LAYOUTS)
def test_partial_views_only_grow(value, layout):
    text = json.dumps(value, **layout)
    reader, views = JsonDecoder(), [None]
    for char in text:
        reader.feed(char)
        views.append(reader.partial)
    assert all(map(grew, views, views[1:]))
    assert all(grew(view, value) for view in views)


@given(OBJECTS, LAYOUTS)
def test_a_prefix_is_incomplete(value, layout):
    """J4, J5: truncation is judged first. No prefix of a document is complete, and none is invalid."""
    text = json.dumps(value, **layout)
    for end in range(len(text)):
        reader = fed(text[:end])
        assert reader.state == ("incomplete" if end else "empty")
        reader.close()
        assert reader.state == ("incomplete" if end else "empty")
        assert (reader.error is None) == (end == 0)


@given(OBJECTS, LAYOUTS)
def test_spans_are_the_members_text(value, layout):
    text = "  " + json.dumps(value, **layout) + "\n"
    for chunks in ([text], list(text), tokens(text)):
        reader = fed(*chunks)
        assert reader.start == 2
        assert reader.end == len(text) - 1
        assert list(reader.spans) == list(value)
        for key, (start, end) in reader.spans.items():
            assert repr(json.loads(text[start:end])) == repr(value[key])


@given(OBJECTS, LAYOUTS)
def test_in_string_is_where_quotes_say_it(value, layout):
    text = json.dumps(value, **layout)
    reader, inside, escaped = JsonDecoder(), False, False
    for char in text:
        reader.feed(char)
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"':
            inside = not inside
        assert reader.in_string is inside


@pytest.mark.parametrize(("alphabet", "longest", "prefixes"), [('[],1-".', 6, 3), ('{}":1,', 7, 3)])
def test_invalid_as_early_as_possible(alphabet, longest, prefixes):
    """Against brute force: a prefix is invalid if and only if no document begins with it."""
    documents = filter(is_json, map("".join, texts(alphabet, longest)))
    possible = {document[:end] for document in documents for end in range(prefixes + 1)}
    for text in map("".join, texts(alphabet, prefixes)):
        assert (fed(text, root="any", repair=0).state != "invalid") == (text in possible), text


def texts(alphabet, longest):
    return (letters for size in range(longest + 1) for letters in product(alphabet, repeat=size))


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@given(BROKEN)
def test_strict_reading_is_that_of_the_standard_library(text):
    """J1, J3: whoever differs has a reason that the rules name."""
    reader = closed(text, root="any", repair=0)
    try:
        value = json.loads(text, parse_constant=refuse, object_pairs_hook=no_duplicates)
    except ValueError:
        assert reader.state != "complete"
        return
    if reader.error is None:
        assert repr(reader.value) == repr(value)
    else:  # the standard library lets infinity and lone surrogates pass
        assert reader.error.code is ErrorCode.LONE_SURROGATE or "out of range" in reader.error.reason


def refuse(constant):
    raise ValueError(constant)


def no_duplicates(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("duplicate key")
    return dict(pairs)


# Time and memory ------------------------------------------------------------------------------------------------------

LONG = {
    "string": lambda n: '{"a": "' + "x" * n + '"}',
    "key": lambda n: '{"' + "k" * n + '": 1}',
    "escapes": lambda n: '{"a": "' + "\\n" * (n // 2) + '"}',
    "backslashes": lambda n: '{"a": "' + "\\\\" * (n // 2) + '"}',
    "half escapes": lambda n: '{"a": "' + "\\ud83d\\ude00" * (n // 12) + '"}',
    "control characters": lambda n: '{"a": "' + "\n" * n + '"}',
    "numbers": lambda n: '{"a": [' + "1," * (n // 2) + "1]}",
    "long numbers": lambda n: '{"a": [' + ("1" * 799 + ",") * (n // 800) + "1]}",
    "too long a number": lambda n: '{"a": ' + "1" * n + "}",
    "members": lambda n: "{" + ",".join(f'"{i}":{i}' for i in range(n // 10)) + "}",
    "brackets": lambda n: "[" * n,
    "nesting": lambda n: '{"a": [' + "[[[[]]]]," * (n // 9) + "1]}",
    "blanks": lambda n: '{"a":' + " \n" * (n // 2) + "1}",
    "comment": lambda n: '{"a": /*' + "*" * n + "*/ 1}",
    "comments": lambda n: '{"a": ' + "/**/" * (n // 4) + "1}",
    "trailing text": lambda n: "{}" + "x" * n,
    "quotes": lambda n: '{"a": "' + '\\"' * (n // 2) + '"}',
}


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize("name", LONG)
def test_time_is_linear(name, size):
    """Counted, not measured: lines of the library that run for a text some 4 times as long. (Not exactly in proportion:
    behind an error a chunk costs other lines than before it. Quadratic would be 4 times as many.)"""
    small, large = (tokens(LONG[name](n), size) for n in (8_000, 32_000))
    longer = sum(map(len, large)) / sum(map(len, small))
    assert steps(large) < 1.5 * longer * steps(small)


def steps(chunks: list[str], **options: Any) -> int:
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if "streamparse" not in frame.f_code.co_filename:
            return None
        count += 1
        return trace

    reader, before = JsonDecoder(**options), sys.gettrace()
    sys.settrace(trace)
    try:
        for chunk in chunks:
            reader.feed(chunk)
        reader.close()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("filler", ["abcd", "a\\nb", "日本語文", 'a"\n'])
def test_a_growing_string_is_a_few_blocks(filler):
    """Memory: not one object per chunk."""
    reader = fed('{"a": "', *[filler.replace('"', '\\"')] * 20_000)
    assert len(reader._pieces) + len(reader._recent) < 1500
    assert reader.partial == {"a": filler.replace("\\n", "\n") * 20_000}


def test_nothing_is_kept_behind_an_error():
    reader = fed('{"a": x')
    for _ in range(1000):
        assert reader.feed("y" * 1000) == []
    assert sum(map(len, reader._recent)) == 0
    assert reader.error is not None
    assert reader.error.offset == 6


def test_partial_of_deep_text():
    """J1: no recursion, wherever the limit of depth is."""
    depth = 3000
    reader = fed("[" * depth, root="container", limits=Limits(depth=depth))
    view, levels = reader.partial, 0
    while view:
        view, levels = view[0], levels + 1
    assert levels == depth - 1
    reader.feed("]" * depth)
    assert reader.state == "complete"


# J1: numbers and literals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["0", "-0", "2512292042121000001", "1" * MAX_NUMBER, "-" + "9" * (MAX_NUMBER - 1)])
def test_integers_are_exact(text):
    assert closed(text, root="any").value == int(text)


@pytest.mark.parametrize("text", ["1" * (MAX_NUMBER + 1), "-" + "1" * MAX_NUMBER, "0." + "0" * MAX_NUMBER])
def test_numbers_have_a_limit(text):
    for end in ("]", "x", "5", ""):
        events = check_chunking(run(root="any"), f"[{text}{end}")
        found = events[-1][1]
        assert found.code is ErrorCode.LIMIT_EXCEEDED
        assert found.offset == 1 + MAX_NUMBER
        assert "4300 characters" in found.reason


def test_integers_and_a_lowered_limit_of_the_interpreter():
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert error(f"[{'1' * 641}]", root="any").code is ErrorCode.LIMIT_EXCEEDED
        assert closed(f"[{'1' * 640}]", root="any").state == "complete"
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize("text", ["1e400", "-1e400", "1" * 400 + ".0", "12.5E+999"])
def test_numbers_out_of_range(text):
    found = error(f'{{"x": {text}, "y": 1}}')
    assert (found.code, found.reason, found.offset) == (ErrorCode.INVALID_JSON, "number out of range", 6)
    assert error(text, root="any").reason == "number out of range"


def test_too_small_a_number_is_zero():
    assert repr(closed("[1e-999, -1e-999]", root="any").value) == "[0.0, -0.0]"


@pytest.mark.parametrize(
    ("text", "word"),
    [("NaN", "NaN"), ("Infinity", "Infinity"), ("-Infinity", "Infinity"), ("None", "None"), ("True", "True")],
)
def test_words_of_other_languages(text, word):
    found = error(f'{{"x": {text}}}')
    assert found.code is ErrorCode.INVALID_JSON
    assert f"{word} is not JSON" in found.reason or "nor is None" in found.reason
    assert found.path == ("x",)


def test_a_number_is_a_value_when_the_next_character_proves_it():
    reader = fed('{"a": 1')
    assert reader.partial == {}
    assert reader.feed("2") == []
    assert reader.partial == {}
    assert reader.feed(",") == [ArgumentValue(0, ("a",), 12)]
    assert reader.feed(' "b": -') == []
    assert reader.partial == {"a": 12}


@pytest.mark.parametrize(
    ("text", "bad"), [("01", 1), ("1a", 1), ('1"', 1), ("1.e", 2), ("1e+]", 3), ("--", 1), ("1:", 1)]
)
def test_a_number_that_goes_wrong_is_no_value(text, bad):
    events, reader = read(f"[{text}", root="any")
    assert events == []
    assert reader.error is not None
    assert reader.error.offset == 1 + bad
    assert reader.error.path == (0,)


def test_a_root_scalar_ends_at_white_space_or_the_end():
    assert fed("12", root="any").state == "incomplete"
    assert fed("12\n", root="any").state == "complete"
    assert closed("12", root="any").value == 12
    assert closed("-", root="any").state == "incomplete"
    assert closed("1 2", root="any").error.code is ErrorCode.TRAILING_TEXT  # type: ignore[union-attr]
    assert read("12", root="any", path=("p",))[0] == []
    assert read("12", root="any")[0] == []
    assert read('"ab"', root="any")[0] == [ArgumentDelta(0, (), "ab")]


def test_a_literal_is_a_value_at_its_last_character():
    reader = fed('{"a": tru')
    assert reader.partial == {}
    assert reader.feed("e") == [ArgumentValue(0, ("a",), True)]
    assert fed('{"a": tx').state == "invalid"


# J2: strings ----------------------------------------------------------------------------------------------------------


def test_deltas_come_with_each_chunk():
    reader = fed('{"a": "')
    assert reader.feed("He") == [ArgumentDelta(0, ("a",), "He")]
    assert reader.feed("llo\\") == [ArgumentDelta(0, ("a",), "llo")]
    assert reader.feed("n") == [ArgumentDelta(0, ("a",), "\n")]
    assert reader.feed('!"') == [ArgumentDelta(0, ("a",), "!"), ArgumentValue(0, ("a",), "Hello\n!")]
    assert reader.feed("") == []


@pytest.mark.parametrize("held", ["\\", "\\u", "\\u0", "\\u00e", "\\ud834", "\\ud834\\", "\\ud834\\u", "\\ud834\\udd1"])
def test_half_an_escape_is_never_shown(held):
    reader = fed('{"a": "x', held)
    assert reader.partial == {"a": "x"}
    assert reader.in_string
    assert reader.state == "incomplete"


def test_half_a_key_is_never_shown():
    assert fed('{"a": {"b": 1}, "c\\"').partial == {"a": {"b": 1}}
    assert fed('{"a": "').partial == {"a": ""}
    assert fed("{").partial == {}
    assert fed(" ").partial is None


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('"\\ud834"', '"\\ud834"'),
        ('"\\ud834x', '"\\ud834x'),
        ('"\\ud834\\n"', '"\\ud834\\n'),
        ('"\\ud834\\u0041"', '"\\ud834\\u0'),
        ('"\\ud834\\ud834"', '"\\ud834\\ud8'),
        ('"\\udd1e"', '"\\udd'),
        ('"\ud834"', '"\ufffd'),
        ('"\ud834\udd1e"', '"\ufffd'),
    ],
)
def test_lone_surrogates(text, seen):
    events = check_chunking(run(root="any"), text)
    found = events[-1][1]
    assert found.code is ErrorCode.LONE_SURROGATE
    assert found.offset == 1
    assert found.excerpt == seen


@pytest.mark.parametrize("text", ['"\\x"', '"\\u12g4"', '"\\U0041"', "\"\\'"])
def test_illegal_escapes(text):
    found = error(text, root="any")
    assert found.code is ErrorCode.INVALID_JSON
    assert found.offset == 1
    assert "illegal escape" in found.reason
    assert found.expected


def test_del_and_line_separators_are_legal():
    text = "\x7f\x85\xa0\u2028\u2029\ufeff\ufffe"
    for chunks in ([f'["{text}"]'], [*f'["{text}"]']):
        assert fed(*chunks, root="any", repair=0).value == [text]


# J3 -------------------------------------------------------------------------------------------------------------------


def test_duplicate_key():
    found = error('{"a": {"k": 1, "k": 2}}')
    assert (found.code, found.offset, found.path) == (ErrorCode.DUPLICATE_KEY, 17, ("a", "k"))
    assert found.excerpt == '{"a": {"k": 1, "k"'
    assert error('{"\\u0061": 1, "a": 2}').code is ErrorCode.DUPLICATE_KEY
    assert len(error(f'{{"{"k" * 9999}": 1, "{"k" * 9999}": 2}}').reason) < 100


def test_trailing_text():
    found = error('{"a": 1} Let me')
    assert (found.code, found.offset, found.excerpt) == (ErrorCode.TRAILING_TEXT, 9, '{"a": 1} L')
    assert found.message == "text after the value at 9; expected end of text"


@pytest.mark.parametrize(
    ("text", "root", "code"),
    [
        ("[1]", "object", ErrorCode.NOT_AN_OBJECT),
        (' "{}"', "object", ErrorCode.NOT_AN_OBJECT),
        ("1", "container", ErrorCode.NOT_AN_OBJECT),
        ("true", "container", ErrorCode.NOT_AN_OBJECT),
        ("x", "object", ErrorCode.INVALID_JSON),
        ("NaN", "object", ErrorCode.INVALID_JSON),
        ("[1]", "container", None),
        ("{}", "container", None),
        ("1", "any", None),
    ],
)
def test_kinds_of_root(text, root, code):
    found = closed(text, root=root).error
    assert (found and found.code) is code


# J5: tolerance, tier 1 (2 and 3: test_repair) -------------------------------------------------------------------------

A_FENCE = "```json\n"

TOLERATED = [
    # text, value, (what, where, path) of each deviation
    ('{"a": 1, // one\n "b": 2}', {"a": 1, "b": 2}, [("comment", 9, ())]),
    ('{"a": /* one */ 1 /**/}', {"a": 1}, [("comment", 6, ()), ("comment", 18, ())]),
    (
        '/*/ */{"a": [1/***/,2]}// end',
        {"a": [1, 2]},
        [("comment", 0, ()), ("comment", 14, ("a",)), ("comment", 23, ())],
    ),
    ('{"a": [1, ], }', {"a": [1]}, [("trailing comma", 10, ("a",)), ("trailing comma", 13, ())]),
    (
        '{"a": "x\ny\t\x00", "b": "\n"}',
        {"a": "x\ny\t\x00", "b": "\n"},
        [("control character", 8, ("a",)), ("control character", 21, ("b",))],
    ),
    ('{"a\nb": 1}', {"a\nb": 1}, [("control character", 3, ())]),
    ("```\n{}\n```\n", {}, [("code fence", 0, ())]),
    ('  ```JSON {"a": "```"}```', {"a": "```"}, [("code fence", 2, ())]),
    ('```json{"a": 1,}\n``` // x', {"a": 1}, [("code fence", 0, ()), ("trailing comma", 15, ()), ("comment", 21, ())]),
]


@pytest.mark.parametrize(("text", "value", "found"), TOLERATED)
def test_tier_1(text, value, found):
    events = check_chunking(run(index=7), text)
    deviations = [event.deviation for event in events[:-1] if isinstance(event, Deviated)]
    assert [(d.detail, d.offset, d.path) for d in deviations] == found
    assert all((d.code, d.tier) == (DeviationCode.REPAIRED, 1) for d in deviations)
    assert closed(text).value == value


@pytest.mark.parametrize("text", [text for text, _, _ in TOLERATED])
def test_tier_0_tolerates_nothing(text):
    events, reader = read(text, repair=0)
    assert reader.state == "invalid"
    assert not any(isinstance(event, Deviated) for event in events)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1', "',' or '}'"),
        ('{"a": "x\n', "'\"'"),
        ('{"a": 1, ', "a key in double quotes"),
        ('{"a": [1,', "a JSON value"),
        ('{"a": 1} /* x', "'*/'"),
        ('{"a": 1} /', ""),
        (f'{A_FENCE}{{"a": 1}}', "'```'"),
        (f'{A_FENCE}{{"a": 1}}\n``', "'```'"),
        ("/* x */ ", "'{'"),
        ('{"a', "'\"'"),
        ('{"a"', "':'"),
    ],
)
def test_truncation_is_judged_first(text, expected):
    reader = closed(text)
    assert reader.state == "incomplete"
    assert reader.error is not None
    assert reader.error.code is ErrorCode.UNTERMINATED_JSON
    assert reader.error.offset == len(text)
    assert reader.error.excerpt == text
    assert reader.error.message.endswith(expected)


@pytest.mark.parametrize(
    "text", ["[,]", "[1,,]", '{,"a":1}', '{"a",}', '{"a":,}', "[1 2]", "{} ```", "`` {}", "```js\n{}```"]
)
def test_what_no_tier_1_repairs(text):
    assert closed(text, root="container").state == "invalid"


# J6: what is wrong ----------------------------------------------------------------------------------------------------

ERRORS = [
    ('{"a" 1}', "unexpected 1 at 5; expected ':'", ("a",)),
    ('{"a": 1 "b": 2}', "unexpected \" at 8; expected ',' or '}'", ()),
    ('{"a": [1 2]}', "unexpected 2 at 9; expected ',' or ']'", ("a",)),
    ('{"a": [x', "unexpected x at 7; expected a JSON value or ']'", ("a", 0)),
    ('{"a": [1, x', "unexpected x at 10; expected a JSON value", ("a", 1)),
    ("{a: 1}", "unexpected a at 1; expected a key in double quotes or '}'", ()),
    ('{"a": 1, }', "unexpected } at 9; expected a key in double quotes", ()),
    ('{"a": tree}', "unexpected e in true at 8; expected 'ue'", ("a",)),
    ('{"a": 1.}', "unexpected } in a number at 8; expected a digit", ("a",)),
    ('{"a": 1x}', "unexpected x in a number at 7; expected a digit, ',' or '}'", ("a",)),
    ('{"a": "\x01"}', "raw control character U+0001 in a string at 7", ("a",)),
    ("{\x00", "unexpected U+0000 at 1; expected a key in double quotes or '}'", ()),
    ("\ud800", "unexpected U+D800 at 0; expected '{'", ()),
    ("[1]", "the top level is an array, not an object at 0; expected '{'", ()),
    ("", None, ()),
]


@pytest.mark.parametrize(("text", "message", "path"), ERRORS)
def test_messages(text, message, path):
    found = closed(text, repair=0).error
    assert (found and found.message) == message
    if found is not None:
        assert found.path == path
        assert found.level == "representation"


def test_an_error_comes_after_all_that_was_decoded():
    events, reader = read('{"a": "bc", "d": [1, "ef\\q')
    assert events == [
        ArgumentDelta(0, ("a",), "bc"),
        ArgumentValue(0, ("a",), "bc"),
        ArgumentValue(0, ("d", 0), 1),
        ArgumentDelta(0, ("d", 1), "ef"),
    ]
    assert reader.partial == {"a": "bc", "d": [1, "ef"]}
    assert reader.feed is not None
    with pytest.raises(UsageError, match=r"invalid.*\.error"):
        _ = reader.value


@pytest.mark.parametrize("before", [0, 1, 199, 200, 201, 5000, 300_000])
def test_excerpts_are_bounded(before):
    text = '{"a": "' + "x" * before + "\\q rest"
    for chunks in ([text], tokens(text), tokens(text, 700)):
        found = fed(*chunks).error
        assert found is not None
        assert found.excerpt == text[: text.index("q") + 1][-EXCERPT:]


# Limits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 8, 20, 600])
def test_the_limit_is_exact(limit):
    text = '{"a": "' + "xy\\n" * 200 + '"}'
    events = check_chunking(run(limits=Limits(arguments=limit)), text)
    found = events[-1][1]
    assert (found.code, found.offset) == (ErrorCode.LIMIT_EXCEEDED, limit)
    assert "limits.arguments" in found.reason
    assert closed(text, limits=Limits(arguments=len(text))).state == "complete"


def test_the_limit_is_exact_behind_the_fast_path():
    limit = 3 * _MANY * _MANY
    for size in (3, 4, 100, 5000):
        reader = JsonDecoder(limits=Limits(arguments=limit))
        events = [event for chunk in tokens('{"a": "' + "x" * (limit + 99), size) for event in reader.feed(chunk)]
        assert reader.error is not None
        assert (reader.error.code, reader.error.offset) == (ErrorCode.LIMIT_EXCEEDED, limit)
        assert reader.error.excerpt == "x" * EXCERPT
        assert sum(len(event.text) for event in events if isinstance(event, ArgumentDelta)) == limit - 7
        assert reader.partial == {"a": "x" * (limit - 7)}


def test_depth():
    assert closed("[" * 128 + "]" * 128, root="container").state == "complete"
    found = error("[" * 129, root="container")
    assert (found.code, found.offset) == (ErrorCode.LIMIT_EXCEEDED, 128)
    assert "depth" in found.reason
    assert error('{"x":' * 5000 + "0" + "}" * 5000).code is ErrorCode.LIMIT_EXCEEDED


# The caller's side ----------------------------------------------------------------------------------------------------


def test_states():
    reader = JsonDecoder()
    seen = [reader.state]
    for chunk in ("", " ", "{", '"a"', ": 1", "}", " \n"):
        reader.feed(chunk)
        seen.append(reader.state)
    assert seen == ["empty", "empty", "empty", "incomplete", "incomplete", "incomplete", "complete", "complete"]
    assert reader.close() == []
    assert reader.state == "complete"
    assert reader.value == {"a": 1}


def test_empty_text_is_no_error():
    """C5 decides what it means."""
    reader = fed(" \t")
    reader.close()
    assert (reader.state, reader.error) == ("empty", None)
    with pytest.raises(UsageError, match="empty"):
        _ = reader.value


def test_index_and_path_go_into_every_event():
    events, _ = read('{"b": ["c"], /**/}', index=3, path=("a",))
    assert {event.index for event in events} == {3}
    assert [event.path for event in events if not isinstance(event, Deviated)] == [
        ("a", "b", 0),
        ("a", "b", 0),
        ("a", "b"),
    ]
    assert [event.deviation.path for event in events if isinstance(event, Deviated)] == [("a",), ("a",)]


def test_offset_is_where_the_text_stands():
    reader = JsonDecoder(offset=100)
    reader.feed('{"a": 1, /**/ x')
    assert [deviation.offset for deviation in reader.deviations] == [109]
    assert reader.error is not None
    assert reader.error.offset == 114
    assert reader.spans == {"a": (6, 7)}


def test_misuse():
    reader = fed("{}")
    reader.close()
    assert reader.close() == []
    with pytest.raises(ClosedError, match="new one"):
        reader.feed("")
    with pytest.raises(ClosedError):
        reader.feed("{")
    failed = fed("x")
    failed.close()
    with pytest.raises(ClosedError):
        failed.feed("x")
    with pytest.raises(UsageError, match="repair=4"):
        JsonDecoder(repair=4)
    with pytest.raises(UsageError, match="object, container, any"):
        JsonDecoder(root="array")  # type: ignore[arg-type]


def test_the_partial_view_belongs_to_the_caller():
    reader = fed('{"a": [1, {"b": "x')
    view = reader.partial
    view["a"][1]["b"] = "changed"
    view["a"].append(2)
    assert reader.partial == {"a": [1, {"b": "x"}]}
    reader.feed('y"}]}')
    assert reader.partial == reader.value == {"a": [1, {"b": "xy"}]}


def test_two_readers_share_nothing():
    one, two = JsonDecoder(), JsonDecoder()
    one.feed('{"a": 12')
    two.feed('{"b": "x')
    one.feed("3}")
    two.feed('y"}')
    assert (one.value, two.value) == ({"a": 123}, {"b": "xy"})
