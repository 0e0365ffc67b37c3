"""Long random searches (``make fuzz``). Each target states one invariant. Exceptions that are allowed: none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamparse import (
    ArgumentDelta,
    ArgumentValue,
    JsonDecoder,
    Limits,
    NativeDecoder,
    ToolCallFinished,
)
from streamparse.events import dumps, loads

from .chunks import join
from .documents import (
    CHARACTERS,
    DIALECTS,
    FINISH_REASONS,
    M2,
    OPTIONS,
    SOUP_TOOLS,
    Document,
    Piece,
    any_documents,
    broken,
    chunkings,
    documents,
    said_by,
    soups,
)
from .test_promises import check_lifecycles

pytestmark = pytest.mark.fuzz

LIMITS = st.sampled_from([Limits(), Limits(), Limits(name=12, arguments=20, depth=2, calls=2, parameters=2)])
SPICE = st.text(st.characters()) | st.text(CHARACTERS, max_size=4) | st.text("<>/\"'`= \n\r[]~e!b{}:,\\u", max_size=8)


def decode(chunks: list[str], document: Document, finish_reason: str | None, options: dict[str, Any]) -> list[Any]:
    """The joined events of a document in chunks."""
    decoder = NativeDecoder(document.dialect.name, **{**document.options, **options})
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return join(events + decoder.close(finish_reason))


@st.composite
def spiced(draw: st.DrawFn) -> Document:
    """Soup, or a broken document, with any characters somewhere in it."""
    document = draw(soups(max_size=25) | any_documents() | broken(broken(documents())))
    pieces = list(document.pieces)
    for _ in range(draw(st.integers(0, 2))):
        pieces.insert(draw(st.integers(0, len(pieces))), Piece(draw(SPICE), "spice", "text"))
    return Document(document.dialect, document.start, document.tools, tuple(pieces))


@given(st.data(), spiced(), OPTIONS, LIMITS, FINISH_REASONS)
def test_chunks_give_the_events_of_the_whole(data, document, options, limits, finish_reason):
    """Any chunking of any text gives the joined events of the text in one chunk; nothing raises."""
    options = {**options, "limits": limits}
    whole = decode([document.text], document, finish_reason, options)
    assert decode(list(document.text), document, finish_reason, options) == whole
    assert decode(data.draw(chunkings(document.text)), document, finish_reason, options) == whole


@given(spiced(), OPTIONS, LIMITS, FINISH_REASONS)
def test_every_stream_of_events_is_well_formed(document, options, limits, finish_reason):
    """Started, values, one end for each call; one ``Ended``, the last."""
    check_lifecycles(document.decode(finish_reason, limits=limits, **options))


@given(spiced(), OPTIONS, FINISH_REASONS)
def test_events_survive_as_json_lines(document, options, finish_reason):
    """``loads(dumps(event)) == event`` for every event of a text that UTF-8 has."""
    text = document.text.encode(errors="replace").decode()
    decoder = document.decoder(**options)
    for event in decoder.feed(text) + decoder.close(finish_reason):
        assert loads(dumps(event).encode()) == event


@given(spiced(), OPTIONS, FINISH_REASONS)
def test_a_longer_answer_takes_nothing_back(document, options, finish_reason):
    """What a prefix of a text has said is a prefix of what the whole text says."""
    text = document.text
    decoder = document.decoder(**options)
    seen: list[Any] = []
    for character in text:
        seen += decoder.feed(character)
    seen += decoder.close(finish_reason)
    for size in range(0, len(text), max(1, len(text) // 7)):
        before = document.decoder(**options).feed(text[:size])
        assert units(before) == units(seen)[: len(units(before))]


def units(events: list[Any]) -> list[Any]:
    """Events, with deltas in characters."""
    found: list[Any] = []
    for event in events:
        text = getattr(event, "text", None)
        if text is None:
            found.append(event)
        else:
            found += [(type(event), getattr(event, "index", None), getattr(event, "path", None), c) for c in text]
    return found


@given(st.data(), documents(M2, min_calls=1, end_of_turn=False), documents(M2, min_calls=1, start="text"))
def test_two_answers_in_one_say_what_each_says(data, first, second):
    """A well-formed answer behind another changes neither (the calls of both, with the first one's tools).

    Without its tools an answer may be none: a tag inside a JSON string is a tag then (T5), and its value stays open."""
    tools = data.draw(st.sampled_from([None, first.tools, SOUP_TOOLS]))
    events = [part.decode(tools=tools) for part in (first, second)]
    assume(events[0][-1].clean)
    alone = [said_by(each) for each in events]
    text = f"{first.text}\n\n\n{second.text}"
    decoder = NativeDecoder("minimax_m2", tools=tools, start=first.start)
    both = said_by(decoder.feed(text) + decoder.close("stop"))
    calls = [[item for item in said if not isinstance(item, tuple)] for said in (*alone, both)]
    assert calls[0] + calls[1] == calls[2]


@given(st.data(), spiced(), OPTIONS)
def test_a_snapshot_is_never_contradicted(data, document, options):
    """At any time the strings of ``partial(index)`` are beginnings of the final ones."""
    decoder = document.decoder(**options)
    snapshots: list[tuple[int, dict[str, Any]]] = []
    running: set[int] = set()
    events: list[Any] = []
    for chunk in data.draw(chunkings(document.text)):
        new = decoder.feed(chunk)
        events += new
        running |= {event.index for event in new if isinstance(event, ArgumentDelta | ArgumentValue)}
        snapshots += [(index, decoder.partial(index).arguments) for index in running]
    events += decoder.close("stop")
    final = {event.index: event.call.arguments for event in events if isinstance(event, ToolCallFinished)}
    for index, arguments in snapshots:
        if index in final:
            assert grows(arguments, final[index])


def grows(before: Any, after: Any) -> bool:
    """Whether a value may become another: strings get longer, lists and objects get more, all else stays."""
    if isinstance(before, str):
        return isinstance(after, str) and after.startswith(before)
    if isinstance(before, dict):
        return isinstance(after, dict) and all(key in after and grows(before[key], after[key]) for key in before)
    if isinstance(before, list):
        return isinstance(after, list) and len(before) <= len(after) and all(map(grows, before, after))
    return before == after and type(before) is type(after)


# -- JSON --------------------------------------------------------------------------------------------------------------

# fmt: off
JSON_CRUMBS = [
    "{", "}", "[", "]", ",", ":", '"', '"a"', '"a": ', '{"a": ', "1", "-", "0", ".5", "e1", "E+", "true", "false",
    "null", "tru", "nul", "\\", "\\n", "\\u", "\\u00e9", "\\ud83d", "\\ude00", "ud83d", " ", "\n", "\t", "\x00", "é",
    "𝄞", "\ud800", "//", "/*", "*/", "#", "```", "```json\n", "'", "NaN", "Infinity", "None", "True", ", ", "\u2028",
    "\ufeff", "(", "}}",
]
# fmt: on
JSON_SOUP = st.lists(st.sampled_from(JSON_CRUMBS), max_size=16).map("".join)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)
JSON_OBJECTS = st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=4)
JSON_TEXTS = st.builds(json.dumps, JSON_OBJECTS, indent=st.sampled_from([None, 1]), ensure_ascii=st.booleans())


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    """JSON, JSON with a piece lost or put in, and soup."""
    text = draw(JSON_TEXTS | JSON_SOUP)
    match draw(st.sampled_from(["whole", "cut", "without", "with"])):
        case "cut":
            return text[: draw(st.integers(0, len(text)))]
        case "without":
            at = draw(st.integers(0, len(text)))
            return text[:at] + text[at + draw(st.integers(1, 3)) :]
        case "with":
            at = draw(st.integers(0, len(text)))
            return text[:at] + draw(st.sampled_from(JSON_CRUMBS)) + text[at:]
        case _:
            return text


def read(chunks: list[str], **options: Any) -> tuple[list[Any], Any, Any, str]:
    """Joined events, value, error and state of a reader."""
    decoder = JsonDecoder(**options)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    events += decoder.close()
    return join(events), decoder.value if decoder.state == "complete" else None, decoder.error, decoder.state


REPAIR = st.integers(0, 3)


@given(st.data(), json_texts(), REPAIR)
def test_json_in_chunks_is_json_whole(data, text, repair):
    """Any chunking gives the joined events, the value and the error of the text in one chunk; nothing raises."""
    whole = read([text], repair=repair)
    assert read(list(text), repair=repair) == whole
    assert read(data.draw(chunkings(text)), repair=repair) == whole


@given(json_texts())
def test_strict_json_is_what_the_standard_library_reads(text):
    """With ``repair=0`` an object is accepted if and only if ``json.loads`` does, less its leniencies; then equal."""
    _, value, error, _ = read([text], repair=0)
    expected = strict(text)
    if expected is None:
        assert error is not None or value is None
    else:
        assert error is None
        assert json.dumps(value) == json.dumps(expected)


def strict(text: str) -> dict[str, Any] | None:
    """The object that a text is, or None: no NaN, no duplicate keys, no lone surrogates, nothing out of range."""

    def refuse(word: str) -> Any:
        raise ValueError(word)

    def number(word: str) -> float:
        value = float(word)
        return value if value not in (float("inf"), float("-inf")) else refuse(word)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return dict(pairs) if len(dict(pairs)) == len(pairs) else refuse("duplicate")

    try:
        value = json.loads(text, parse_constant=refuse, parse_float=number, object_pairs_hook=unique)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


@given(JSON_OBJECTS, st.data())
def test_a_partial_view_is_never_contradicted(value, data):
    """At any time the partial value may still become the final one, and the deltas at a path are its string."""
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    decoder = JsonDecoder()
    deltas: dict[tuple[Any, ...], str] = {}
    for character in text:
        for event in decoder.feed(character):
            if isinstance(event, ArgumentDelta):
                deltas[event.path] = deltas.get(event.path, "") + event.text
        if decoder.partial is not None:
            assert grows(decoder.partial, value)
    decoder.close()
    assert json.dumps(decoder.value) == json.dumps(value)
    for path, told in deltas.items():
        found: Any = value
        for step in path:
            found = found[step]
        assert told == found


def test_every_dialect_is_fuzzed():
    assert {dialect.name for dialect in DIALECTS} == {"minimax_m2", "hermes", "qwen3_coder"}
