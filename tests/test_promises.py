"""The ten promises of the architecture, each a property over well-formed documents, broken ones and soup."""

from __future__ import annotations

import gc
import itertools
import re
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamparse import (
    ArgumentDelta,
    ArgumentValue,
    Deviated,
    Ended,
    Event,
    Failed,
    Limits,
    NativeDecoder,
    Reasoning,
    Text,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
)
from streamparse.decoding import native
from streamparse.decoding.grammar import load
from streamparse.decoding.native import decode
from streamparse.decoding.scanner import LOST, NOTE, SPACE, TAG, Kind, Lexeme, Scanner
from streamparse.limits import EXCERPT, LOOKAHEAD

from .chunks import check_chunking, join
from .documents import (
    CHARACTERS,
    DIALECTS,
    FINISH_REASONS,
    HERMES,
    M2,
    OPTIONS,
    QWEN,
    SOUP_TOOLS,
    Call,
    Dialect,
    Document,
    Piece,
    any_documents,
    broken,
    chunkings,
    documents,
    said_by,
    soups,
    texts,
)

by_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)

SMALL = documents(max_calls=2, max_envelopes=1)


# -- 1 -----------------------------------------------------------------------------------------------------------------


@given(SMALL | broken(SMALL), OPTIONS, FINISH_REASONS)
def test_promise_1_chunking(document, options, finish_reason):
    check_chunking(lambda chunks: document.run(chunks, finish_reason, **options), document.text)


@given(soups(max_size=8), OPTIONS, FINISH_REASONS)
def test_promise_1_chunking_of_soup(document, options, finish_reason):
    check_chunking(lambda chunks: document.run(chunks, finish_reason, **options), document.text)


VALUE = '<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">v'
OVER = "</minimax:tool_call>"
END = f"</parameter>\n</invoke>\n{OVER}"

# fmt: off
AT_THE_BOUNDS: dict[str, Callable[[int], str]] = {
    "space behind a closing tag": lambda n: f"{VALUE}</parameter>{' ' * n}</invoke>\n</minimax:tool_call>",
    "space, and no tag": lambda n: f"{VALUE}</parameter>{' ' * n}x{END}",
    "space behind a call": lambda n: f"{VALUE}</parameter></invoke>{' ' * n}</minimax:tool_call>",
    "space in two places": lambda n: f"{VALUE}</parameter>{' ' * 500}</invoke>{' ' * (n - 500)}{OVER}{END}",
    "text behind a call": lambda n: f"{VALUE}</parameter></invoke>{'x' * n}</minimax:tool_call>{END}",
    "text, and a call": lambda n: f"{VALUE}</parameter></invoke>{'x' * n}<invoke name=f></invoke>{OVER}{END}",
    "text, and a parameter": lambda n: f'{VALUE}</parameter></invoke>{"x" * n}<parameter name="q">{END}',
    "text, and the end": lambda n: f"{VALUE}</parameter></invoke>{'x' * n}",
    "last resort": lambda n: f'{VALUE}<parameter name="q">{END}{" " * n}',
    "last resort, and a marker": lambda n: f'{VALUE}<parameter name="q">{END}{" " * n}[e~[',
    "an opener in a line": lambda n: f"x<minimax:tool_call>{' ' * n}<invoke name=f></invoke></minimax:tool_call>",
    "an opener in a line, and text": lambda n: f"x<minimax:tool_call>{' ' * n}y",
    "an opener in a line, and the end": lambda n: f"x<minimax:tool_call>{' ' * n}",
    "a name": lambda n: f'<minimax:tool_call><invoke name="{"m" * n}"></invoke></minimax:tool_call>',
    "signs in a quoted name": lambda n: f'<minimax:tool_call><invoke name="{">" * n}"></invoke></minimax:tool_call>',
    "a quote that is closed": lambda n: f'<minimax:tool_call><invoke name="f>{"m" * n}"></invoke></minimax:tool_call>',
    "a quote that is not": lambda n: f'<minimax:tool_call><invoke name="f>{"m" * n}\n</invoke></minimax:tool_call>',
    "an inner name": lambda n: f'{VALUE}<parameter name="{"q" * n}">{END}{END}',
    "signs in an inner name": lambda n: f'{VALUE}<parameter name="{">" * n}">{END}{END}',
}
# fmt: on


@pytest.mark.parametrize("title", AT_THE_BOUNDS)
def test_promise_1_chunking_at_the_bounds(title):
    """Where waiting ends (N4, N5): one character more or less, in chunks of any size."""
    for length in (*range(1_005, 1_030), 2_048):
        text = AT_THE_BOUNDS[title](length)
        whole = run_m2([text])
        for size in (1, 7, 64):
            assert run_m2([text[at : at + size] for at in range(0, len(text), size)]) == whole


def run_m2(chunks: list[str]) -> list[Event]:
    """The joined events of an answer of M2."""
    decoder = NativeDecoder("minimax_m2", tools=SOUP_TOOLS)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return join(events + decoder.close("stop"))


# -- 2 -----------------------------------------------------------------------------------------------------------------

LexemeAt = tuple[Kind, str, int]


class Recorder(Scanner):
    """A scanner that writes down its lexemes: kind, text and offset; text that it was told to pass over, too."""

    log: ClassVar[list[LexemeAt]] = []

    def pull(self, final: bool = False) -> Lexeme | None:
        lexeme = super().pull(final)
        if lexeme is not None:
            kind, tag, text = lexeme
            if kind is TAG and text:
                self.log.append((SPACE, text, self.offset - len(text)))
            if kind not in (NOTE, LOST):
                self.log.append((kind, text if tag is None else tag.text, self.offset))
        return lexeme

    def pass_over(self, length: int) -> None:
        self.log.append((Kind.TEXT, "\0" * length, self.position))
        super().pass_over(length)


def whole_input(log: list[LexemeAt], text: str) -> None:
    """Lexemes, joined, are the input; each says where it stands."""
    at = 0
    for kind, piece, offset in log:
        if set(piece) != {"\0"}:
            assert text[at : at + len(piece)] == piece
        assert kind is SPACE or offset == at, f"{piece!r} at {at} says that it stands at {offset}"
        at += len(piece)
    assert at == len(text)


@given(st.data(), any_documents(), st.booleans(), st.booleans())
def test_promise_2_nothing_lost_by_the_scanner(data, document, chains, bare):
    start = "resumed" if document.start == "reasoning" else "start"
    scanner = Recorder(load(document.dialect.name), start, chains=chains, bare=bare)
    log: list[LexemeAt] = []
    with mock.patch.object(Recorder, "log", log):
        for chunk in data.draw(chunkings(document.text)):
            for _ in scanner.feed(chunk):
                pass
        for _ in scanner.close():
            pass
    whole_input(log, document.text)


@given(st.data(), any_documents(), OPTIONS)
def test_promise_2_nothing_lost_with_the_decoder_s_guards(data, document, options):
    chunks = data.draw(chunkings(document.text))
    log: list[LexemeAt] = []
    with mock.patch.object(native, "Scanner", Recorder), mock.patch.object(Recorder, "log", log):
        document.run(chunks, **options)
    whole_input(log, document.text)


WORD = re.compile(r"q\d+z")


def words(document: Document) -> Document:
    """The document with every opaque text, and some garbage, replaced by words that occur nowhere else."""
    count = itertools.count()

    def piece(old: Piece) -> Piece:
        if old.kind in ("tag", "space"):
            return old
        if old.kind in ("name", "key"):
            return Piece(old.text, old.kind, old.place)
        if old.kind == "payload":
            return Piece(f'\n{{"name": "f", "arguments": {{"a": "q{next(count)}z"}}}}\n', old.kind, old.place)
        return Piece(f"q{next(count)}z", old.kind, old.place)

    return Document(document.dialect, document.start, document.tools, tuple(map(piece, document.pieces)))


@st.composite
def worded(draw: st.DrawFn) -> Document:
    """Words between tags; some tags doubled, deleted, moved, and words where none belong."""
    document = draw(documents(max_calls=2))
    pieces = list(words(document).pieces)
    for number in range(draw(st.integers(0, 4))):
        if not pieces:
            break
        at = draw(st.integers(0, len(pieces) - 1))
        match draw(st.sampled_from(["word", "delete tag", "double tag", "swap", "cut tag", "truncate"])):
            case "word":
                pieces.insert(at, Piece(f" q{900 + number}z ", "garbage", "text"))
            case "delete tag" if pieces[at].kind == "tag":
                del pieces[at]
            case "double tag" if pieces[at].kind == "tag":
                pieces.insert(at, pieces[at])
            case "swap":
                other = draw(st.integers(0, len(pieces) - 1))
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case "cut tag" if pieces[at].kind == "tag":
                pieces[at] = Piece(pieces[at].text[: draw(st.integers(0, len(pieces[at].text)))], "tag", "text")
            case "truncate":
                del pieces[at + 1 :]
    return Document(document.dialect, document.start, document.tools, tuple(pieces))


@given(worded(), OPTIONS, FINISH_REASONS)
def test_promise_2_nothing_lost_in_the_events(document, options, finish_reason):
    # Short documents only: an excerpt is clipped.
    told = str(document.decode(finish_reason, **options))
    missing = set(WORD.findall(document.text)) - set(WORD.findall(told))
    assert not missing


@given(st.data(), documents(min_calls=1) | any_documents(), FINISH_REASONS)
def test_promise_2_the_raw_text_of_a_failed_call_is_as_it_came(data, document, finish_reason):
    """In order, without a gap: from the call's opening tag on, in one piece of the input."""
    decoder = document.decoder()
    text = document.text[: data.draw(st.integers(0, len(document.text)))]
    for chunk in [*data.draw(chunkings(text)), None]:
        for event in decoder.close(finish_reason) if chunk is None else decoder.feed(chunk):
            if isinstance(event, ToolCallStarted) and chunk is not None:
                assert decoder.partial(event.index).name == event.name
            if isinstance(event, ToolCallFailed):
                assert event.call.raw in text


# -- 3 -----------------------------------------------------------------------------------------------------------------


def at_path(value: Any, path: tuple[str | int, ...]) -> Any:
    """The value at a path, or None."""
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


@given(st.data(), any_documents(), OPTIONS, FINISH_REASONS)
def test_promise_3_nothing_taken_back(data, document, options, finish_reason):
    decoder = document.decoder(**options)
    deltas: dict[tuple[int, tuple[str | int, ...]], str] = {}
    values: dict[tuple[int, tuple[str | int, ...]], Any] = {}
    for chunk in [*data.draw(chunkings(document.text)), None]:
        for event in decoder.close(finish_reason) if chunk is None else decoder.feed(chunk):
            if isinstance(event, ArgumentDelta):
                place = (event.index, event.path)
                assert place not in values, "a delta after the value"
                deltas[place] = deltas.get(place, "") + event.text
            elif isinstance(event, ArgumentValue):
                place = (event.index, event.path)
                assert place not in values, "a second value"
                values[place] = event.value
                if place in deltas and isinstance(event.value, str):
                    assert deltas[place] == event.value
            elif isinstance(event, ToolCallFinished | ToolCallFailed):
                sealed = isinstance(event, ToolCallFinished)
                agrees(event.call.arguments, event.index, deltas, values if sealed else {})
                if sealed:
                    told = {path[0] for index, path in values if index == event.index and len(path) == 1}
                    assert told == set(event.call.arguments)
        for index in {index for index, _ in deltas}:
            agrees(decoder.partial(index).arguments, index, deltas, {})


BROKEN_JSON = {
    M2.name: '<minimax:tool_call>\n<invoke name="f">\n<parameter name="o">{"k": "v", "l": ["w"}',
    QWEN.name: '<tool_call>\n<function=f>\n<parameter=o>\n{"k": "v", "l": ["w"}',
    HERMES.name: '<tool_call>\n{"name": "f", "arguments": {"k": "v", "l": ["w"}}',
}


@by_dialect
@pytest.mark.parametrize("rest", ["", " more", "\n\n"])
def test_promise_3_what_was_told_before_an_error_is_kept(dialect, rest):
    """A value whose JSON is broken, and which is never closed: the failed call holds what was streamed."""
    events = decode(BROKEN_JSON[dialect.name] + rest, dialect.name, tools=SOUP_TOOLS, finish_reason="length")
    (failed,) = [event for event in events if isinstance(event, ToolCallFailed)]
    deltas = {(event.index, event.path): event.text for event in events if isinstance(event, ArgumentDelta)}
    assert deltas
    agrees(failed.call.arguments, 0, deltas, {})


def agrees(arguments: Any, index: int, deltas: dict, values: dict) -> None:
    """What was streamed is what the call holds."""
    for (owner, path), text in deltas.items():
        if owner == index:
            found = at_path(arguments, path)
            # A value that turned out not to be JSON is kept as its text (the call fails).
            kept_as_text = len(path) > 1 and isinstance(at_path(arguments, path[:1]), str)
            assert found == text or kept_as_text, path
    for (owner, path), value in values.items():
        if owner == index:
            assert at_path(arguments, path) == value, path


# -- 4 -----------------------------------------------------------------------------------------------------------------

TINY = r"""
start: _answer*
resumed: reasoning_resumed _answer*
_answer: TEXT | reasoning | calls | call_bare | END_OF_TURN
reasoning: "<r" _thought* "</r"
reasoning_resumed: "<r"? _thought* "</r"
_thought: REASONING | calls
calls: "<a" call* "</a"
call: "<c" NAME* ">" argument* "</c"
call_bare: "<c" NAME* ">" argument* "</c"
argument: "<p" KEY* ">" VALUE* "</p"
END_OF_TURN: "[e"
BEFORE_CALLS: /\n{0,1}/
AFTER_CALLS: /([ \t]*\n){0,2}/
AFTER_REASONING: /([ \t]*\n){0,2}/
FOREIGN_X: "<x"
%declare TEXT REASONING NAME KEY VALUE
%ignore /\s+/
"""

STRINGS = [
    {"name": "f", "parameters": {"properties": {"k": {"type": "string"}, "l": {"type": "string"}}}},
    {"name": "g", "parameters": {"properties": {}}},
]

# fmt: off
TINY_UNITS = [
    "y", "\n", "<a", "</a", "<cf>", "</c", "<pk>", "</p", "<pl>", "<r", "</r", "`", ">", " ", "<x", "<", "[e", "\r\n",
]
TINY_SCENES = [
    "", "y", "y<a", "<a<cf><pk>", "<a<cf>", "<rz", "<a<cf><pk>y<pk>", "<a<cf><pk>y</p</c", "<a", "\n<a<cf></c",
]
M2_UNITS = [
    "y", "\n", "<minimax:tool_call>", "</minimax:tool_call>", '<invoke name="f">', "</invoke>", '<parameter name="k">',
    "</parameter>", '<parameter name="l">', "<think>", "</think>", "`", ">", " ", '"', "<", "[e~[", "]~b]", "<invoke ",
    "</mm:think>", "<parameter ", "<tool_call>", "\r\n",
]
M2_VALUE = '<minimax:tool_call>\n<invoke name="f">\n<parameter name="k">'
M2_SCENES = [
    "", "y", "<think>y", "y<minimax:tool_call>", '<minimax:tool_call><invoke name="',
    '<minimax:tool_call><invoke name="f">', M2_VALUE, f"{M2_VALUE}<parameter", f"{M2_VALUE}y</parameter></invoke>",
]
# fmt: on


def units_of(events: list[Event]) -> list[object]:
    """Events, with every character of a delta for itself: what two streams may have in common."""
    units: list[object] = []
    for event in events:
        match event:
            case Text(text) | Reasoning(text):
                units += [(type(event).__name__, character) for character in text]
            case ArgumentDelta(index, path, text):
                units += [(index, path, character) for character in text]
            case _:
                units.append(event)
    return units


def common(a: list[object], b: list[object], limit: int) -> int:
    """How many units two streams share at their beginning."""
    for at in range(min(len(a), len(b), limit)):
        if a[at] != b[at]:
            return at
    return min(len(a), len(b), limit)


def continuations(prefix: str, alphabet: list[str], tags: list[str]) -> Iterator[str]:
    """What may come: the rest of a tag that has begun, and up to three units; the short ones first."""
    rests = [tag[k:] for tag in tags for k in range(1, len(tag)) if prefix.endswith(tag[:k])]
    firsts = ["", *rests, *alphabet]
    for size in range(3):
        for first in firsts:
            for more in itertools.product(alphabet, repeat=size):
                yield first + "".join(more)


def as_early_as_possible(
    prefix: str, make: Callable[[], NativeDecoder], alphabet: list[str], finish_reasons: tuple[str | None, ...]
) -> None:
    """What is emitted after a prefix is what all continuations agree on.

    A finite set of continuations can only agree on too much. So the search stops as soon as they agree on no more than
    what was emitted, and a failure names what it holds back for nothing.
    """
    emitted = units_of(run(make(), prefix))
    shared: list[object] | None = None
    length = 0
    for tail in continuations(prefix, alphabet, alphabet):
        for finish_reason in finish_reasons:
            decoder = make()
            stream = units_of(decoder.feed(prefix + tail) + decoder.close(finish_reason))
            assert stream[: len(emitted)] == emitted, f"taken back when {tail!r} follows"
            if shared is None:
                shared, length = stream, len(stream)
            length = common(shared, stream, length)
            if length <= len(emitted):
                return
    assert shared is not None
    raise AssertionError(f"after {prefix!r} all agree on {shared[len(emitted) : length]}")


def run(decoder: NativeDecoder, text: str) -> list[Event]:
    """Fed one character at a time, not closed."""
    return [event for character in text for event in decoder.feed(character)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    """The path of a dialect with tags so short that all that may follow can be tried."""
    file = tmp_path_factory.mktemp("dialects") / "tiny.lark"
    file.write_text(TINY, encoding="utf-8")
    return str(file)


@given(
    st.sampled_from(TINY_SCENES),
    st.lists(st.sampled_from(TINY_UNITS), max_size=4).map("".join),
    st.sampled_from(["text", "reasoning"]),
    st.sampled_from(["text", "call"]),
)
def test_promise_4_as_early_as_possible(tiny, scene, more, start, bare):
    text = scene + more

    def make() -> NativeDecoder:
        return NativeDecoder(tiny, tools=STRINGS, start=start, bare_invoke=bare)

    for size in range(len(scene), len(text) + 1):
        as_early_as_possible(text[:size], make, TINY_UNITS, (None,))


@given(
    st.sampled_from(M2_SCENES),
    st.lists(st.sampled_from(M2_UNITS), max_size=3).map("".join),
    st.sampled_from(["text", "reasoning"]),
)
def test_promise_4_as_early_as_possible_in_m2(scene, more, start):
    text = scene + more

    def make() -> NativeDecoder:
        return NativeDecoder("minimax_m2", tools=STRINGS, start=start)

    for size in range(len(scene), len(text) + 1):
        as_early_as_possible(text[:size], make, M2_UNITS, (None,))


@given(st.lists(st.sampled_from(TINY_UNITS), max_size=8).map("".join), st.sampled_from(["text", "reasoning"]))
def test_promise_4_does_not_depend_on_how_the_prefix_was_cut(tiny, text, start):
    for size in range(len(text) + 1):
        whole = NativeDecoder(tiny, tools=STRINGS, start=start).feed(text[:size])
        single = run(NativeDecoder(tiny, tools=STRINGS, start=start), text[:size])
        assert join(whole) == join(single)


# -- 5 -----------------------------------------------------------------------------------------------------------------


@given(documents(min_calls=1))
def test_promise_5_sealed_means_sealed(document):
    """Never before the call's closing tag came, in any prefix, and then whole."""
    ends = []
    at = 0
    for piece, before in zip(document.pieces, (None, *document.pieces), strict=False):
        at += len(piece.text)
        if piece.kind == "tag" and before is not None and _closes_a_call(piece, document.dialect):
            ends.append(at)
    decoder = document.decoder()
    for seen, character in enumerate(document.text, 1):
        for event in decoder.feed(character):
            assert not isinstance(event, ToolCallFailed | Failed)
            if isinstance(event, ToolCallFinished):
                assert seen >= ends[event.index]
                assert Call(event.call.name, event.call.arguments) == document.calls[event.index]
    assert len(decoder.calls) <= len(ends)
    decoder.close("stop")
    assert len(decoder.calls) == len(ends)


def _closes_a_call(piece: Piece, dialect: Dialect) -> bool:
    return piece.text == (dialect.call_end or dialect.calls[1])


@given(any_documents(), OPTIONS, FINISH_REASONS)
def test_promise_5_no_seal_without_a_closing_tag(document, options, finish_reason):
    closer = document.dialect.call_end or document.dialect.calls[1]
    decoder = document.decoder(**options)
    sealed = 0
    text = document.text
    for seen, character in enumerate(text, 1):
        sealed += sum(isinstance(event, ToolCallFinished) for event in decoder.feed(character))
        assert sealed <= text[:seen].count(closer)
    sealed += sum(isinstance(event, ToolCallFinished) for event in decoder.close(finish_reason))
    assert sealed <= text.count(closer)


# -- 6 -----------------------------------------------------------------------------------------------------------------


def check_lifecycles(events: list[Event]) -> None:
    """Started, then its values, then exactly one end; ``Ended`` once, last, and clean only if nothing failed."""
    started: dict[int, ToolCallStarted] = {}
    ended: dict[int, Event] = {}
    for event in events[:-1]:
        match event:
            case ToolCallStarted(index, _, name):
                assert index not in started
                assert index not in ended
                assert name
                assert not started or index > max(started), "indexes count up"
                started[index] = event
            case ArgumentDelta(index, path, text):
                assert index in started
                assert index not in ended
                assert text
                assert path
            case ArgumentValue(index):
                assert index in started
                assert index not in ended
            case Deviated(int(index)):
                assert index not in ended
            case ToolCallFinished(index, call):
                assert index in started
                assert index not in ended
                assert (call.id, call.name) == (started[index].id, started[index].name)
                ended[index] = event
            case ToolCallFailed(index, call, error):
                assert index not in ended
                if index in started:
                    assert (call.id, call.name) == (started[index].id, started[index].name)
                assert error.reason
                ended[index] = event
            case Text(text) | Reasoning(text):
                assert text
            case Ended():
                raise AssertionError("Ended is not the last event")
    assert started.keys() <= ended.keys()
    assert sorted(ended) == list(range(len(ended)))
    assert len({call.id for call in started.values()}) == len(started)
    last = events[-1]
    assert isinstance(last, Ended)
    failed = any(isinstance(event, ToolCallFailed | Failed) for event in events)
    assert not (failed and last.clean)
    assert failed or last.clean or last.finish_reason in ("length", "error")
    check_bounds(events)


def check_bounds(events: list[Event]) -> None:
    """Errors and deviations quote a bounded piece of the input."""
    for event in events:
        if isinstance(event, ToolCallFailed | Failed):
            assert len(event.error.excerpt) <= EXCERPT
            assert event.error.offset >= 0
            assert len(event.error.message) <= 10 * EXCERPT
        elif isinstance(event, Deviated):
            assert len(event.deviation.detail) <= EXCERPT
            assert len(event.deviation.found) <= EXCERPT
            assert event.deviation.offset >= 0


@given(any_documents(), OPTIONS, FINISH_REASONS)
def test_promise_6_each_started_call_ends_once(document, options, finish_reason):
    check_lifecycles(document.decode(finish_reason, **options))


@given(any_documents(), FINISH_REASONS)
def test_promise_6_the_decoder_s_own_books_agree(document, finish_reason):
    decoder = document.decoder()
    events = decoder.feed(document.text) + decoder.close(finish_reason)
    assert decoder.calls == [event.call for event in sorted_by_index(events, ToolCallFinished)]
    for event in events:
        if isinstance(event, ToolCallFailed):
            assert decoder.partial(event.index) == event.call


def sorted_by_index(events: list[Event], kind: type) -> list[Any]:
    return sorted((event for event in events if isinstance(event, kind)), key=lambda event: event.index)


# -- 7 -----------------------------------------------------------------------------------------------------------------

ANYTHING = st.text(st.characters()) | st.text(st.sampled_from("<>/`\"'\n\r =\x00\x1c\x85\u2028\ud800\udfff{}[]~e!b"))


@given(st.data(), ANYTHING, st.sampled_from(DIALECTS), st.sampled_from(["text", "reasoning"]), OPTIONS, FINISH_REASONS)
def test_promise_7_total(data, text, dialect, start, options, finish_reason):
    decoder = NativeDecoder(dialect.name, start=start, tools=data.draw(st.sampled_from([None, SOUP_TOOLS])), **options)
    events = [event for chunk in data.draw(chunkings(text)) for event in decoder.feed(chunk)]
    check_lifecycles(events + decoder.close(finish_reason))


@given(st.data(), soups(max_size=30), ANYTHING, OPTIONS, FINISH_REASONS)
def test_promise_7_total_on_soup(data, document, spice, options, finish_reason):
    at = data.draw(st.integers(0, len(document.pieces)))
    pieces = (*document.pieces[:at], Piece(spice, "soup", "text"), *document.pieces[at:])
    document = Document(document.dialect, document.start, document.tools, pieces)
    limits = data.draw(st.sampled_from([Limits(), Limits(name=3, arguments=5, depth=1, calls=1, parameters=1)]))
    chunks = data.draw(chunkings(document.text))
    check_lifecycles(document.run(chunks, finish_reason, limits=limits, **options))


# -- 8 -----------------------------------------------------------------------------------------------------------------

MID = {"a": "string", "o": "object", "n": "integer"}
ISOLATION_TOOLS = [
    {"name": "before", "parameters": {"properties": {"x": {"type": "string"}}}},
    {"name": "mid", "parameters": {"properties": {k: {"type": t} for k, t in MID.items()}}},
    {"name": "after", "parameters": {"properties": {"x": {"type": "string"}}}},
]

# A malformed call that keeps its closing tags. Two losses are no malformed call but, by rule, a longer value, and may
# swallow what follows: a value without its closing tag (N5: it ends at the next chain that is right; N7 then fails it)
# or a last parameter without the call's own closing tag behind it (N5: the chain is not right), and a JSON string
# without its closing quote (N6: everything in it is data).
MALFORMED = {
    M2.name: {
        "no name": '<invoke name="">\n</invoke>',
        "no name, with a parameter": '<invoke >\n<parameter name="a">v</parameter>\n</invoke>',
        "no name attribute": '<invoke id="3">\n</invoke>',
        "text instead of parameters": '<invoke name="mid">oops</invoke>',
        "text before the first parameter": '<invoke name="mid">\noops\n<parameter name="a">v</parameter>\n</invoke>',
        "text that looks like tags": '<invoke name="mid">\n<a></a> </para <\n</invoke>',
        "an envelope's opening tag": '<invoke name="mid">\n<minimax:tool_call>\n</invoke>',
        "one parameter twice": (
            '<invoke name="mid">\n<parameter name="a">v</parameter>\n<parameter name="a">w</parameter>\n</invoke>'
        ),
        "a parameter without a name": '<invoke name="mid">\n<parameter name="">v</parameter>\n</invoke>',
        "broken JSON": '<invoke name="mid">\n<parameter name="o">{"a": </parameter>\n</invoke>',
        "JSON of another type": '<invoke name="mid">\n<parameter name="o">[1, 2]</parameter>\n</invoke>',
        "no JSON": '<invoke name="mid">\n<parameter name="o">oops "</parameter>\n</invoke>',
        "deep JSON": f'<invoke name="mid">\n<parameter name="o">{{"a": {"[" * 200}</parameter>\n</invoke>',
        "no integer": '<invoke name="mid">\n<parameter name="n">two</parameter>\n</invoke>',
        "an open quote": '<invoke name="mid>\n<parameter name="a">v</parameter>\n</invoke>',
        "an open quote in a key": '<invoke name="mid">\n<parameter name="a>v\n</parameter>\n</invoke>',
        "a long value": f'<invoke name="mid">\n<parameter name="a">{"v" * 500}</parameter>\n</invoke>',
        "a long JSON value": f'<invoke name="mid">\n<parameter name="o">{{"a": "{"v" * 500}"}}</parameter>\n</invoke>',
        "a long name": f'<invoke name="{"m" * 500}">\n</invoke>',
        "a long key": f'<invoke name="mid">\n<parameter name="{"m" * 500}">v</parameter>\n</invoke>',
        "an unknown tool": '<invoke name="nobody">\n<parameter name="a">v</parameter>\n</invoke>',
        "a lost parameter's end": (
            '<invoke name="mid">\n<parameter name="a">v\n<parameter name="n">3</parameter>\n</invoke>'
        ),
        "a call left open": '<invoke name="mid">\n',
        "text between calls": "oops",
        "a stray end": "</invoke>",
        "a stray parameter's end": "</parameter>",
        "nothing": "",
    },
    QWEN.name: {
        "no name": "<function=>\n</function>",
        "text instead of parameters": "<function=mid>oops</function>",
        "text before the first parameter": "<function=mid>\noops\n<parameter=a>\nv\n</parameter>\n</function>",
        "one parameter twice": (
            "<function=mid>\n<parameter=a>\nv\n</parameter>\n<parameter=a>\nw\n</parameter>\n</function>"
        ),
        "a parameter without a name": "<function=mid>\n<parameter=>\nv\n</parameter>\n</function>",
        "broken JSON": '<function=mid>\n<parameter=o>\n{"a": \n</parameter>\n</function>',
        "a long value": f"<function=mid>\n<parameter=a>\n{'v' * 500}\n</parameter>\n</function>",
        "a long name": f"<function={'m' * 500}>\n</function>",
        "a call left open": "<function=mid>\n",
        "text between calls": "oops",
        "nothing": "",
    },
    HERMES.name: {
        "no JSON": "oops",
        "nothing": "",
        "blank": "\n\n",
        "a list": "[]",
        "a string": '"x"',
        "no name": '{"arguments": {}}',
        "a name that is none": '{"name": 3, "arguments": {}}',
        "broken JSON": '{"name": "mid", "arguments": {"a": }}',
        "cut JSON": '{"name": "mid", "arguments": {"a": 1',
        "arguments that are none": '{"name": "mid", "arguments": 3}',
        "a key twice": '{"name": "mid", "arguments": {"a": 1, "a": 2}}',
        "the name twice": '{"name": "mid", "name": "mid", "arguments": {}}',
        "text behind it": '{"name": "mid", "arguments": {}} oops',
        "two objects": '{"name": "mid", "arguments": {}}{"name": "mid", "arguments": {}}',
        "a long value": f'{{"name": "mid", "arguments": {{"a": "{"v" * 500}"}}}}',
        "deep JSON": f'{{"name": "mid", "arguments": {{"a": {"[" * 200}',
    },
}

SWALLOWED = ("a stray end", "a stray parameter's end")

CASES = [(dialect, title) for dialect in DIALECTS for title in MALFORMED[dialect.name]]


def _call_text(dialect: Dialect, name: str, value: str) -> str:
    if dialect.kind == "json":
        return f'{{"name": "{name}", "arguments": {{"x": "{value}"}}}}'
    head = f"{dialect.call[0]}{name}{dialect.call[1]}\n{dialect.argument[0]}x{dialect.argument[1]}"
    return f"{head}{dialect.margin}{value}{dialect.margin}{dialect.argument_end}\n{dialect.call_end}"


def _answer(dialect: Dialect, bodies: list[str], several: bool) -> str:
    """Calls in one envelope, or in an envelope each."""
    opening, closing = dialect.calls
    if several or dialect.kind == "json":
        return "\n".join(f"{opening}\n{body}\n{closing}" for body in bodies)
    return f"{opening}\n" + "\n".join(bodies) + f"\n{closing}"


ISOLATED = [
    pytest.param(
        dialect, title, several, id=f"{dialect.name}: {title}-{'an envelope each' if several else 'one envelope'}"
    )
    for dialect, title in CASES
    for several in (False, True)
    if several or title not in SWALLOWED
]


@pytest.mark.parametrize(("dialect", "title", "several"), ISOLATED)
def test_promise_8_isolation(dialect, title, several):
    limits = Limits(name=100, arguments=100)
    bodies = [_call_text(dialect, "before", "one"), MALFORMED[dialect.name][title], _call_text(dialect, "after", "two")]
    text = _answer(dialect, bodies, several)

    def run(chunks):
        decoder = NativeDecoder(dialect.name, tools=ISOLATION_TOOLS, limits=limits)
        return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close("stop")

    events = check_chunking(run, text)
    check_lifecycles(events)
    calls = {event.call.name: event.call for event in events if isinstance(event, ToolCallFinished)}
    for name, value in (("before", "one"), ("after", "two")):
        assert calls[name].arguments == {"x": value}
        assert calls[name].deviations == ()
        assert calls[name].trusted


@given(st.sampled_from(CASES), documents(min_calls=1, max_envelopes=1), documents(min_calls=1, max_envelopes=1))
def test_promise_8_isolation_of_whole_answers(case, before, after):
    """What was said before a malformed envelope, and after it, stays what it was."""
    dialect, title = case
    if before.dialect is not dialect or after.dialect is not dialect or after.start == "reasoning":
        return
    if title in ("a call left open", "a lost parameter's end"):
        return  # its envelope's closing tag follows; N5: these tools do not declare the parameter, so it opens a pair
    middle = Piece(f"\n{_answer(dialect, [MALFORMED[dialect.name][title]], True)}\n\n", "tag", "text")
    whole = Document(dialect, before.start, before.tools, (*before.pieces, middle, *after.pieces))
    events = whole.decode(limits=Limits(name=100, arguments=10**6))
    check_lifecycles(events)
    calls = [item for item in said_by(events) if isinstance(item, Call) and item.name in NAMED]
    alone = [said_by(part.decode(tools=before.tools)) for part in (before, after)]
    assert calls == [item for said in alone for item in said if isinstance(item, Call)]


NAMED = ("f", "get_weather", "a.b-c", "搜索", "str_replace_editor")
"""The names of the calls in generated documents; those of the malformed ones are others."""


# -- 9 -----------------------------------------------------------------------------------------------------------------


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Counts every call of a function, in Python and in C: work, whatever the machine."""
    work: Counter[str] = Counter()

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            work["calls"] += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield work
    finally:
        sys.setprofile(before)


class Copied(str):
    """Text that counts the characters copied or searched in it: a slice of the rest at every tag is quadratic."""

    __slots__ = ()
    work = 0

    def _count(self, text: str, extra: int = 0) -> Copied:
        Copied.work += len(text) + extra
        return Copied(text)

    def __add__(self, other: str) -> Copied:
        return self._count(str.__add__(self, other))

    def __radd__(self, other: str) -> Copied:
        return self._count(str.__add__(other, self))

    def __getitem__(self, key: Any) -> Copied:
        return self._count(str.__getitem__(self, key))

    def find(self, sub: str, start: Any = 0, end: Any = None) -> int:
        at = str.find(self, sub, start, end)
        Copied.work += (len(self) if at < 0 else at) - (start or 0)
        return at

    def strip(self, characters: str | None = None) -> Copied:
        return self._count(str.strip(self, characters))

    def lstrip(self, characters: str | None = None) -> Copied:
        return self._count(str.lstrip(self, characters))

    def rstrip(self, characters: str | None = None) -> Copied:
        return self._count(str.rstrip(self, characters))


M2_STRING = '<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">'
M2_OBJECT = '<minimax:tool_call>\n<invoke name="f">\n<parameter name="o">{"k": "'
QWEN_VALUE = "<tool_call>\n<function=f>\n<parameter=a>\n"
ADVERSARIAL = {
    "angle brackets in text": (M2, "", "<"),
    "angle brackets in a value": (M2, M2_STRING, "<"),
    "beginnings of a closing tag": (M2, M2_STRING, "</parameter"),
    "closing tags": (M2, M2_STRING, "</parameter>"),
    "closing tags on lines": (M2, M2_STRING, "</parameter>\n"),
    "closing tags and text": (M2, M2_STRING, "</parameter>x"),
    "chains that break": (M2, M2_STRING, "</parameter>\n</invoke>x"),
    "chains that break late": (M2, M2_STRING, "</parameter>\n</invoke>\n</minimax:tool_call"),
    "chains and far text": (M2, M2_STRING, "</parameter>\n</invoke>\n" + "x" * 200),
    "opening tags of a lost parameter": (M2, M2_STRING, '<parameter name="b">'),
    "opening tags of a quoted pair": (M2, M2_STRING, '<parameter name="x">'),
    "headers without an end": (M2, M2_STRING, '<parameter name="x'),
    "quotes in a header": (M2, '<minimax:tool_call>\n<invoke name="', '>"'),
    "parameters": (M2, '<minimax:tool_call>\n<invoke name="g">', '<parameter name="x"></parameter>\n'),
    "calls": (M2, "<minimax:tool_call>\n", '<invoke name="g">\n</invoke>\n'),
    "calls left open": (M2, "<minimax:tool_call>\n", '<invoke name="g">\n'),
    "envelopes": (M2, "", '<minimax:tool_call><invoke name="g"></invoke></minimax:tool_call>'),
    "empty envelopes": (M2, "", "\n<minimax:tool_call></minimax:tool_call>"),
    "openers in the middle of a line": (M2, "x", "<minimax:tool_call> "),
    "bare calls": (M2, "x", "<invoke "),
    "text in an envelope": (M2, "<minimax:tool_call>", "x "),
    "text before a parameter": (M2, '<minimax:tool_call>\n<invoke name="f">', "x "),
    "spaces behind reasoning": (M2, "<think>x</think>", " "),
    "spaces in an envelope": (M2, "<minimax:tool_call>", " "),
    "spaces in a value": (M2, M2_STRING, " "),
    "spaces behind a closing tag": (M2, M2_STRING + "</parameter>", " "),
    "lines behind an envelope": (M2, '<minimax:tool_call><invoke name="g"></invoke></minimax:tool_call>', " \n"),
    "lines in text": (M2, "", "\n"),
    "carriage returns in text": (M2, "", "\r"),
    "back ticks in reasoning": (M2, "<think>", "`</think>`"),
    "role markers": (M2, "x", "]~b]"),
    "fences": (M2, "", "```\n"),
    "braces of an undeclared value": (M2, M2_STRING.replace('"a"', '"x"'), "{"),
    "tags in a JSON string": (M2, M2_OBJECT, "</parameter>\n</invoke>\n"),
    "escapes in a JSON string": (M2, M2_OBJECT, "\\n"),
    "members of an object": (M2, M2_OBJECT + '": [0', ', {"a": "b"}'),
    "provisional calls": (M2, "<think>\n<minimax:tool_call>", '<invoke name="g"></invoke>\n'),
    "values of qwen": (QWEN, QWEN_VALUE, "\n</parameter>"),
    "line breaks of qwen": (QWEN, QWEN_VALUE, "\n"),
    "calls of qwen": (QWEN, "<tool_call>\n", "<function=g>\n</function>\n"),
    "payloads": (HERMES, "", '<tool_call>{"name": "f", "arguments": {}}</tool_call>\n'),
    "closing tags in a payload": (HERMES, '<tool_call>{"name": "f", "arguments": {"a": "', "</tool_call>"),
    "closing tags behind a broken payload": (HERMES, "<tool_call>{]", "</tool_call>"),
}

adversarial = pytest.mark.parametrize("title", ADVERSARIAL)
OPTION_SETS: list[dict[str, Any]] = [{}, {"close": "first", "whitespace": "strip", "bare_invoke": "call"}]


def _feed(dialect: Dialect, chunks: list[str], options: dict[str, Any]) -> None:
    decoder = NativeDecoder(dialect.name, tools=SOUP_TOOLS, **options)
    for chunk in chunks:
        decoder.feed(chunk)
    decoder.close()


def _adversary(title: str, times: int, size: int) -> tuple[Dialect, list[str]]:
    dialect, head, unit = ADVERSARIAL[title]
    text = head + unit * max(1, times // len(unit))
    return dialect, [text[at : at + size] for at in range(0, len(text), size)]


@adversarial
@pytest.mark.parametrize("options", OPTION_SETS, ids=["default", "other options"])
@pytest.mark.parametrize("size", [1, 7, 10**9], ids=["characters", "pieces", "whole"])
def test_promise_9_linear(title, options, size):
    work = []
    for times in (500, 1_500, 6_000, 12_000):  # the first only warms up: tables, caches
        dialect, chunks = _adversary(title, times, size)
        with counting() as counter:
            _feed(dialect, chunks, options)
        work.append(counter["calls"])
    assert work[3] - work[1] <= 2.5 * (work[2] - work[1]) + 200


@adversarial
@pytest.mark.parametrize("options", OPTION_SETS, ids=["default", "other options"])
@pytest.mark.parametrize("size", [1, 7, 10**9], ids=["characters", "pieces", "whole"])
def test_promise_9_linear_in_characters_copied(title, options, size):
    work = []
    for times in (6_000, 12_000):
        dialect, chunks = _adversary(title, times, size)
        Copied.work = 0
        _feed(dialect, [Copied(chunk) for chunk in chunks], options)
        work.append(Copied.work)
    assert work[1] <= 2.4 * work[0] + 1_000


@adversarial
@pytest.mark.parametrize("size", [1, 7])
def test_promise_9_what_is_held_back_is_bounded(title, size):
    dialect, chunks = _adversary(title, 6_000, size)
    bound = longest_tag(dialect.name) + LOOKAHEAD + size
    decoder = NativeDecoder(dialect.name, tools=SOUP_TOOLS)
    for chunk in chunks:
        decoder.feed(chunk)
        assert len(decoder._scanner._buffer) <= bound


TIGHT = Limits(name=100, arguments=1_000, depth=4, calls=3, parameters=3)
ENDLESS: dict[str, tuple[str, Callable[[int], str]]] = {
    "a string": (M2_STRING, lambda n: f"{n:064}"),
    "a JSON string": (M2_OBJECT, lambda n: f"{n:064}"),
    "a JSON array": (M2_STRING.replace('"a"', '"l"') + "[1", lambda n: f", {n}"),
    "an integer": (M2_STRING.replace('"a"', '"n"'), lambda n: f"{n:064}"),
    "a union": (M2_STRING.replace('"a"', '"u"'), lambda n: f"{n:064}"),
    "an undeclared value": (M2_STRING.replace('"a"', '"x"') + "{", lambda n: f"{n:064}"),
    "a tool's name": ('<minimax:tool_call>\n<invoke name="', lambda n: f"{n:064}"),
    "a parameter's name": (M2_STRING + '</parameter><parameter name="', lambda n: f"{n:064}"),
    "attributes": ("<minimax:tool_call>\n<invoke ", lambda n: f"x{n:064}=1 "),
    "calls": ("<minimax:tool_call>\n", lambda n: f'<invoke name="f{n:064}"></invoke>\n'),
    "calls without a name": ("<minimax:tool_call>\n", lambda n: f'<invoke x="f{n:064}"></invoke>\n'),
    "calls in reasoning": ("<think>\n<minimax:tool_call>", lambda n: f'<invoke name="f{n:064}"></invoke>\n'),
    "parameters": ("<minimax:tool_call>\n<invoke name=g>", lambda n: f'<parameter name="x{n:064}"></parameter>'),
    "one parameter": ("<minimax:tool_call>\n<invoke name=g>", lambda n: f'<parameter name="x">{n:1}</parameter>'),
    "one parameter, always equal": (
        "<minimax:tool_call>\n<invoke name=g>",
        lambda n: '<parameter name="x"></parameter>' + "\n" * (n % 7),
    ),
    "lost parameters": (M2_STRING, lambda n: f'<parameter name="b">{n:064}'),
    "quoted parameters": (M2_STRING, lambda n: f'<parameter name="x{n:064}">'),
    "text in an envelope": ("<minimax:tool_call>", lambda n: f"{n:064}"),
    "text in a call": ('<minimax:tool_call>\n<invoke name="f">', lambda n: f"{n:064}"),
    "lines in a call": ('<minimax:tool_call>\n<invoke name="f">', lambda n: " " * (50 + n % 15) + "\n"),
    "text behind a role marker": ("x]~b]", lambda n: f"{n:064}"),
    "text": ("", lambda n: f"{n:064}"),
    "reasoning": ("<think>", lambda n: f"{n:064}"),
}


@pytest.mark.parametrize("title", ENDLESS)
def test_promise_9_nothing_is_kept_behind_a_bound(title):
    """A stream that runs away costs no memory."""
    head, unit = ENDLESS[title]
    decoder = NativeDecoder("minimax_m2", tools=SOUP_TOOLS, limits=TIGHT)
    decoder.feed(head)
    for number in range(1_500):
        decoder.feed(unit(number))
    tracemalloc.start()
    try:
        for number in range(1_500, 6_000):
            decoder.feed(unit(number))
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 30_000


def longest_tag(name: str) -> int:
    return max(len(tag.text) for state in load(name).states for tag in (*state.tags, *state.mentions))


@given(any_documents())
def test_promise_9_text_is_never_held_back_for_longer_than_a_tag(document):
    """Where no chain and no opener waits: in text, reasoning and values that hold no whole tag."""
    text = re.sub("|".join(re.escape(tag) for tag in document.dialect.tags), "", document.text)
    decoder = NativeDecoder(document.dialect.name, tools=SOUP_TOOLS)
    for character in text:
        decoder.feed(character)
        if decoder._scanner.state.opaque == "TEXT":
            held = decoder._scanner._buffer
            assert len(held) <= longest_tag(document.dialect.name) + 2 or "<" in held or held.isspace()


# -- 10 ----------------------------------------------------------------------------------------------------------------


@given(documents(), FINISH_REASONS.filter(lambda reason: reason != "error"))
def test_promise_10_faithful(document, finish_reason):
    """Text, reasoning, names and values come out as they were written, whatever tags the values hold."""
    events = document.decode(finish_reason)
    if finish_reason == "length" and document.pieces[-1].kind == "text":
        return  # E1: a tag that had begun at the end is no text then
    assert said_by(events) == list(document.said)
    last = events[-1]
    assert isinstance(last, Ended)
    assert last.clean


@by_dialect
@given(data=st.data())
def test_promise_10_no_markup_in_text(dialect, data):
    document = data.draw(documents(dialect, min_calls=1))
    said = "".join(text for item in document.said if isinstance(item, tuple) for text in item[1:])
    told = "".join(event.text for event in document.decode() if isinstance(event, Text | Reasoning))
    for tag in dialect.tags:
        assert told.count(tag) == said.count(tag)


LAYOUT = st.text(" \n\t\r\x0b\x0c\u2003", max_size=8)
INSIDE = ("envelope", "envelope with calls", "call")


@given(st.data(), documents(min_calls=1))
def test_promise_10_any_layout_between_tags(data, document):
    """White space between the tags of an envelope means nothing, none included."""

    def piece(old: Piece) -> Piece:
        return Piece(data.draw(LAYOUT), "space", old.place) if old.kind == "space" and old.place in INSIDE else old

    other = Document(document.dialect, document.start, document.tools, tuple(map(piece, document.pieces)))
    assert said_by(other.decode()) == list(document.said)


@given(documents(min_calls=1))
def test_promise_10_line_breaks_of_windows(document):
    """A line break of the format may be CR LF."""

    def piece(old: Piece) -> Piece:
        return Piece(old.text.replace("\n", "\r\n"), "space", old.place) if old.kind == "space" else old

    other = Document(document.dialect, document.start, document.tools, tuple(map(piece, document.pieces)))
    assert said_by(other.decode()) == list(document.said)
    assert said_by(other.run(list(other.text))) == list(document.said)


@given(st.text(CHARACTERS), texts(), st.sampled_from([M2, QWEN]))
@example("</parameter>\n</invoke>\n<invoke", "", M2)
@example("</parameter>\n<param", "", M2)
@example("</parameter>\n</invoke>\n</minimax:tool_call", "", M2)
def test_promise_10_any_string_without_a_closing_chain(text, more, dialect):
    """A string is whole whenever no closing tag in it is followed by what the format allows there (N5)."""
    value = text + more
    if re.search(re.escape(dialect.argument_end) + r"\s*$", value) or dialect.argument[0][:11] in value:
        return
    body = f"{dialect.call[0]}f{dialect.call[1]}\n{dialect.argument[0]}a{dialect.argument[1]}{dialect.margin}"
    body += f"{value}{dialect.margin}{dialect.argument_end}\n{dialect.call_end}\n"
    events = decode(f"{dialect.calls[0]}\n{body}{dialect.calls[1]}", dialect.name, tools=SOUP_TOOLS)
    assert [item for item in said_by(events) if isinstance(item, Call)] == [Call("f", {"a": value})]


# -- N5, by the letter -------------------------------------------------------------------------------------------------

STRUCTURE = re.compile(r"<minimax:tool_call>|</minimax:tool_call>|<invoke |</invoke>|<parameter |</parameter>")
LAST_RESORT = re.compile(rf"\s*</invoke>(?:(?!{STRUCTURE.pattern}).)*</minimax:tool_call>\s*(?:\[e~\[|\Z)", re.DOTALL)
"""*last resort*: the same chain, stray text included, and then nothing."""
AFTER_CALL = ("<invoke ", "</minimax:tool_call>")


def where_n5_ends(text: str, declared: set[str], own: str) -> int:
    """Where the value at the start of ``text`` ends, when the stream ends with ``text``; -1 if it never does.

    The rule as it is written, over the whole text at once. The call has no other parameter than ``own``.
    """
    depth = 0
    for found in re.finditer(r"</parameter>|<parameter ([^<>\"']*(?:\"[^\"\n]*\"|'[^'\n]*')?[^<>\"']*)>", text):
        if found[0] != "</parameter>":
            name = re.search(r"name\s*=\s*[\"']?([^\"'\s]+)", found[1])
            if name and (name[1] == own or name[1] not in declared):
                depth += 1
        elif depth:
            if LAST_RESORT.match(text[found.end() :]):
                return found.start()
            depth -= 1
        elif chain_is_right(text[found.end() :]):
            return found.start()
    return -1


def chain_is_right(rest: str) -> bool:
    """*chain* of N5."""
    at = rest.lstrip()
    if not at or any(tag.startswith(at) for tag in ("<parameter ", "</invoke>")):
        return True  # at the end of the stream a chain that is right so far counts
    if at.startswith("<parameter "):
        return True
    if not at.startswith("</invoke>"):
        return False
    at = at[len("</invoke>") :].lstrip()
    if not at or at.startswith(AFTER_CALL) or any(tag.startswith(at) for tag in AFTER_CALL):
        return True
    tag = STRUCTURE.search(at)
    return tag is None or tag[0] in AFTER_CALL


# fmt: off
N5_CRUMBS = [
    "</parameter>", "</parameter>", "</parameter>\n</invoke>", "</parameter>\n</invoke>\n</minimax:tool_call>",
    "</invoke>", "</minimax:tool_call>", "<minimax:tool_call>", '<invoke name="f">', '<parameter name="x">',
    '<parameter name="b">', '<parameter name="a">', "<parameter name=x>", "x", " ", "\n", "<", "</", "<b>", '"',
    "</par", "</inv", "[e~[", "<think>",
]
# fmt: on


@given(st.lists(st.sampled_from(N5_CRUMBS), max_size=9).map("".join))
@example('<parameter name="x"></parameter></parameter>')
@example('<parameter name="x"></parameter>\n</invoke>\n</minimax:tool_call>')
@example('<parameter name="x"></parameter>\n</invoke>\n</minimax:tool_call>\n[e~[\n')
@example('</parameter>\n</invoke>\nstray\n<invoke name="f">')
@example("</parameter>\n</invoke>\nstray\n</invoke>")
def test_promise_10_a_value_ends_where_n5_says(value):
    text = f'<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">{value}'
    end = where_n5_ends(value, {"a", "b", "o", "l", "n", "u", "z"}, "a")
    values = [
        event.value
        for event in decode(text, tools=SOUP_TOOLS)
        if isinstance(event, ArgumentValue) and (event.index, event.path) == (0, ("a",))
    ]
    assert values == ([] if end < 0 else [value[:end]])
