"""E1 to E3: every document, cut behind every character, with every finish reason.

A document of the tests knows for each of its pieces where the stream stands behind it, so the position of a cut, and
with it the code that E1 wants, come from the renderer and not from the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse import (
    Deviated,
    DeviationCode,
    Ended,
    ErrorCode,
    ErrorDetail,
    Event,
    Failed,
    NativeDecoder,
    Reasoning,
    Text,
    ToolCallFailed,
    ToolCallFinished,
)
from streamparse.decoding.grammar import load

from .documents import HERMES, M2, QWEN, SOUP_TOOLS, Call, Document, documents

REASONS: tuple[str | None, ...] = ("length", "stop", None, "tool_calls")

CODES = {
    "reasoning": ErrorCode.UNCLOSED_REASONING,
    "envelope": ErrorCode.UNCLOSED_ENVELOPE,
    "name": ErrorCode.UNCLOSED_HEADER,
    "key": ErrorCode.UNCLOSED_HEADER,
    "call": ErrorCode.UNCLOSED_CALL,
    "value": ErrorCode.UNCLOSED_PARAMETER,
    "payload": ErrorCode.UNCLOSED_CALL,
}

DOUBTFUL = "value or call"
"""Behind a closing tag inside a value: at the end of the stream a chain that is right so far counts (N5)."""

OPEN = {
    "reasoning": ("reasoning",),
    "envelope": ("calls",),
    "envelope with calls": ("calls",),
    "name": ("calls", "call"),
    "call": ("calls", "call"),
    "key": ("calls", "call", "argument"),
    "value": ("calls", "call", "argument"),
    "payload": ("call",),
}


@dataclass(frozen=True)
class Cut:
    """A document that ends early. ``place`` is where the stream stands, ``begun`` the part of a tag that had come,
    ``sealed`` the calls whose own closing tag has come."""

    document: Document
    at: int
    place: str
    begun: str
    sealed: list[Call]

    @property
    def text(self) -> str:
        return self.document.text[: self.at]

    def events(self, finish_reason: str | None) -> list[Event]:
        decoder = self.document.decoder()
        return decoder.feed(self.text) + decoder.close(finish_reason)


def cut_everywhere(document: Document) -> Iterator[Cut]:
    """The document cut before its first character, and behind each."""
    place = "reasoning" if document.start == "reasoning" else "text"
    closer = document.dialect.call_end or document.dialect.calls[1]
    at = count = 0
    yield Cut(document, 0, place, "", [])
    for piece in document.pieces:
        for size in range(1, len(piece.text) + 1):
            at += 1
            whole = size == len(piece.text)
            if piece.kind == "reasoning" and piece.text[:size].endswith("`</think>"):
                continue  # N3: the second backtick is what makes it data
            if piece.kind == "tag" and not whole:
                yield Cut(document, at, place, piece.text[:size], document.calls[:count])
                continue
            place = piece.place
            if whole and piece.kind == "tag" and piece.text == closer:
                count += 1
            chain = rf"{document.dialect.argument_end}\s*(<[^>]*)?$"
            doubtful = piece.kind == "value" and re.search(chain, piece.text[:size])
            yield Cut(document, at, DOUBTFUL if doubtful else place, "", document.calls[:count])


def errors_of(events: list[Event]) -> list[ErrorDetail]:
    return [event.error for event in events if isinstance(event, Failed | ToolCallFailed)]


def check_cut(cut: Cut, finish_reason: str | None) -> None:
    """E1, E2 and E3 at one place."""
    events = cut.events(finish_reason)
    last = events[-1]
    assert isinstance(last, Ended)
    assert last.finish_reason == finish_reason
    sealed = [event.call for event in events if isinstance(event, ToolCallFinished)]
    if cut.place == "value" and len(sealed) > len(cut.sealed) and finish_reason != "length":
        # N5, last resort: a quoted call at the very end cannot be told from the call's own end.
        assert cut.text.rstrip().endswith(cut.document.dialect.calls[1])
        assert not sealed.pop().trusted
        return
    finished = [Call(call.name, call.arguments) for call in sealed]
    assert finished == cut.sealed, "E2, E3: what was closed is sealed, and nothing else"
    errors = errors_of(events)
    deviations = [event.deviation.code for event in events if isinstance(event, Deviated)]
    if cut.place == "text":
        check_cut_in_text(cut, finish_reason, errors, last)
    elif cut.place == "envelope with calls":
        assert errors == []
        assert DeviationCode.UNCLOSED_ENVELOPE in deviations
        assert last.clean == (finish_reason != "length")
    elif cut.place == DOUBTFUL:
        (error,) = errors
        assert error.code in (ErrorCode.UNCLOSED_PARAMETER, ErrorCode.UNCLOSED_CALL)
        assert not last.clean
    else:
        (error,) = errors
        assert error.code is CODES[cut.place]
        assert not last.clean
        check_detail(cut, error)


def check_cut_in_text(cut: Cut, finish_reason: str | None, errors: list[ErrorDetail], last: Ended) -> None:
    """In text an answer may end; a tag that had begun there is text, unless the answer was cut for its length."""
    if finish_reason != "length":
        assert errors == []
        assert last.clean
    elif cut.begun:
        (error,) = errors
        assert error.code is ErrorCode.UNCLOSED_TAG
        assert not last.clean
    else:
        # The text itself may end like the beginning of a tag.
        assert all(error.code is ErrorCode.UNCLOSED_TAG for error in errors)
        assert last.clean == (not errors)


def check_detail(cut: Cut, error: ErrorDetail) -> None:
    """Where it is, what was open, and what would have been accepted, in the tags' own words."""
    open_rules = OPEN[cut.place]
    assert error.offset == cut.at
    assert error.open == open_rules
    closer = {"reasoning": "</think>", "payload": "</tool_call>", "value": "</parameter>"}.get(cut.place)
    if closer is not None:
        assert f"'{closer}'" in error.expected
    place = " > ".join(open_rules)
    assert re.fullmatch(rf"end of stream at {cut.at} in {place}; expected .+", error.message)
    assert " or " in error.message or len(error.expected) == 1


@given(documents(max_calls=2, max_envelopes=1), st.sampled_from(REASONS))
def test_every_cut_of_every_document(document, finish_reason):
    for cut in cut_everywhere(document):
        check_cut(cut, finish_reason)


@given(documents(min_calls=1, max_calls=2), st.sampled_from(REASONS))
def test_what_was_said_before_the_cut_was_said(document, finish_reason):
    """The events of a cut document, without what the end adds, are a prefix of those of the whole one."""
    decoder = document.decoder()
    whole = [event for character in document.text for event in decoder.feed(character)]
    decoder = document.decoder()
    seen: list[Event] = []
    for character in document.text:
        seen += decoder.feed(character)
        assert seen == whole[: len(seen)]


@given(documents(max_calls=2, max_envelopes=1), st.data())
def test_a_cut_stream_says_nothing_that_was_not_there(document, data):
    """No text, no reasoning and no value is invented at the end."""
    at = data.draw(st.integers(0, len(document.text)))
    text = document.text[:at]
    decoder = document.decoder()
    events = decoder.feed(text) + decoder.close(data.draw(st.sampled_from(REASONS)))
    told = "".join(event.text for event in events if isinstance(event, Text | Reasoning))
    rest = iter(text)
    assert all(character in rest for character in told), "text, in order, from the input"


@given(documents(min_calls=1, max_calls=2, max_envelopes=1), st.data())
def test_e4_a_broken_transport(document, data):
    """What was decoded is kept, the running call fails, ``stream_interrupted``, never clean."""
    cut = data.draw(st.sampled_from(list(cut_everywhere(document))))
    events = cut.events("error")
    finished = [Call(e.call.name, e.call.arguments) for e in events if isinstance(e, ToolCallFinished)]
    # A call whose last value still waits for its chain (N5) was not sealed yet when the transport broke.
    waits = cut.place == "envelope with calls" and bool(cut.sealed[-1].arguments)
    assert finished == (cut.sealed[:-1] if waits else cut.sealed)
    assert [error.code for error in errors_of(events)] == [ErrorCode.STREAM_INTERRUPTED]
    last = events[-1]
    assert isinstance(last, Ended)
    assert not last.clean


# -- the words, one by one ---------------------------------------------------------------------------------------------

HEAD = '<minimax:tool_call>\n<invoke name="f">\n'
VALUE = HEAD + '<parameter name="a">'
QHEAD = "<tool_call>\n<function=f>\n"

MESSAGES = [
    (M2, "<minimax:tool_call>", "in calls; expected '</minimax:tool_call>' or '<invoke '"),
    (M2, "<minimax:tool_call>\n", "in calls; expected '</minimax:tool_call>' or '<invoke '"),
    (M2, "<minimax:tool_call>\n<inv", "in calls; expected '</minimax:tool_call>' or '<invoke '"),
    (M2, "<minimax:tool_call>\n<invoke ", "in calls > call; expected '>' or name=\"…\""),
    (M2, '<minimax:tool_call>\n<invoke name="f', "in calls > call; expected '>' or name=\"…\""),
    (M2, HEAD, "in calls > call; expected '</invoke>' or '<parameter '"),
    (M2, HEAD + "<para", "in calls > call; expected '</invoke>' or '<parameter '"),
    (M2, HEAD + "<parameter name=", "in calls > call > argument; expected '>' or name=\"…\""),
    (M2, VALUE, "in calls > call > argument; expected '</parameter>' or text"),
    (M2, VALUE + "v", "in calls > call > argument; expected '</parameter>' or text"),
    (M2, VALUE + "v</para", "in calls > call > argument; expected '</parameter>' or text"),
    (M2, VALUE + "v</parameter>x", "in calls > call > argument; expected '</parameter>' or text"),
    (M2, VALUE + "v</parameter>", "in calls > call; expected '</invoke>' or '<parameter '"),
    (M2, VALUE + "v</parameter>\n", "in calls > call; expected '</invoke>' or '<parameter '"),
    (M2, VALUE + "v</parameter>\n</inv", "in calls > call; expected '</invoke>' or '<parameter '"),
    (M2, VALUE + "v</parameter>\n<parameter", "in calls > call; expected '</invoke>' or '<parameter '"),
    (QWEN, "<tool_call>", "in calls; expected '</tool_call>' or '<function='"),
    (QWEN, "<tool_call>\n<function=f", "in calls > call; expected '>' or a name"),
    (QWEN, QHEAD, "in calls > call; expected '</function>' or '<parameter='"),
    (QWEN, QHEAD + "<parameter=a>\nv\n", "in calls > call > argument; expected '</parameter>' or text"),
    (HERMES, '<tool_call>\n{"name": "f"', "in call; expected '</tool_call>' or a JSON object"),
]


@pytest.mark.parametrize("finish_reason", REASONS)
@pytest.mark.parametrize(("dialect", "text", "message"), MESSAGES)
def test_the_error_says_where_what_and_how_on(dialect, text, message, finish_reason):
    decoder = NativeDecoder(dialect.name, tools=SOUP_TOOLS)
    events = decoder.feed(text) + decoder.close(finish_reason)
    (error,) = errors_of(events)
    assert error.message == f"end of stream at {len(text)} {message}"


@pytest.mark.parametrize("dialect", [M2, QWEN, HERMES])
def test_the_error_in_reasoning(dialect):
    """What may come there is much, so only its beginning and its end are written out here."""
    decoder = NativeDecoder(dialect.name)
    (error,) = errors_of(decoder.feed("<think>hm") + decoder.close("length"))
    assert re.fullmatch(r"end of stream at 9 in reasoning; expected '.*'</think>'.* or text", error.message)
    assert "'<think>'" not in error.expected


def test_every_expectation_is_a_tag_of_the_grammar_or_a_kind_of_text():
    for name in ("minimax_m2", "hermes", "qwen3_coder"):
        for state in load(name).states:
            assert all(word.startswith("'") and word.endswith("'") for word in state.expected[: len(state.tags)])


@pytest.mark.parametrize("finish_reason", REASONS)
@pytest.mark.parametrize(
    ("text", "said", "fragment"),
    [
        ("a <", "a ", "<"),
        ("a\n<minimax:tool", "a", "\n<minimax:tool"),
        ("a\n<think", "a\n", "<think"),
        ("a <invoke nam", "a <invoke nam", ""),
        ("a [e~", "a ", "[e~"),
        ("a ]~b", "a ", "]~b"),
        ("see <minimax:tool_call>", "see ", "<minimax:tool_call>"),
        ("see <minimax:tool_call>\n<inv", "see ", "<minimax:tool_call>\n<inv"),
        ("see <minimax:tool_call> it", "see <minimax:tool_call> it", ""),
        ("a\n", "a\n", ""),
    ],
)
def test_a_tag_that_had_begun_in_text(text, said, fragment, finish_reason):
    """E1: with ``length`` it is an error and no text; otherwise text."""
    decoder = NativeDecoder()
    events = decoder.feed(text) + decoder.close(finish_reason)
    told = "".join(event.text for event in events if isinstance(event, Text))
    if fragment and finish_reason == "length":
        (error,) = errors_of(events)
        assert error.code is ErrorCode.UNCLOSED_TAG
        assert error.excerpt == fragment.lstrip("\n") or error.excerpt == fragment
        assert told.rstrip("\n") == said.rstrip("\n")
    else:
        assert errors_of(events) == []
        assert told == text


# -- E2 and N5 at the end ----------------------------------------------------------------------------------------------

WAITING = VALUE + "v</parameter>\n</invoke>"


@pytest.mark.parametrize("rest", ["", "\n", "\n<inv", "\n</minimax:tool_call", "\n</mini"])
@pytest.mark.parametrize("finish_reason", REASONS)
def test_e2_a_call_that_waits_for_its_chain(rest, finish_reason):
    """Sealed, with a deviation; with ``length`` not trusted, and the answer not clean."""
    decoder = NativeDecoder(tools=SOUP_TOOLS)
    events = decoder.feed(WAITING + rest) + decoder.close(finish_reason)
    (call,) = decoder.calls
    assert call.arguments == {"a": "v"}
    assert DeviationCode.UNCLOSED_ENVELOPE in [event.deviation.code for event in events if isinstance(event, Deviated)]
    assert call.trusted == (finish_reason != "length")
    last = events[-1]
    assert isinstance(last, Ended)
    assert last.clean == (finish_reason != "length")


@pytest.mark.parametrize("finish_reason", ["length", "error"])
def test_e3_a_file_cut_behind_a_quoted_call_is_never_sealed(finish_reason):
    """N5's last resort is a guess about an answer that ended, not about one that was cut (promise 5)."""
    quoted = f'{HEAD}<parameter name="x">v</parameter>\n</invoke>\n</minimax:tool_call>\n'
    text = f"{VALUE}How to call:\n{quoted}"
    decoder = NativeDecoder(tools=SOUP_TOOLS)
    events = decoder.feed(text) + decoder.close(finish_reason)
    assert decoder.calls == []
    (error,) = errors_of(events)
    assert error.code is (ErrorCode.UNCLOSED_PARAMETER if finish_reason == "length" else ErrorCode.STREAM_INTERRUPTED)


@pytest.mark.parametrize("finish_reason", REASONS)
def test_e2_a_call_that_waited_for_nothing_stays_trusted(finish_reason):
    """The next call had begun, so the first one's chain was right."""
    decoder = NativeDecoder(tools=SOUP_TOOLS)
    events = decoder.feed(WAITING + '\n<invoke name="g">') + decoder.close(finish_reason)
    (call,) = decoder.calls
    assert call.trusted
    (error,) = errors_of(events)
    assert error.code is ErrorCode.UNCLOSED_CALL


@pytest.mark.parametrize("finish_reason", REASONS)
def test_n13_calls_in_reasoning_at_the_end(finish_reason):
    """The stream ends without ``</think>``: they are sealed."""
    text = f"hm\n{WAITING}\n</minimax:tool_call>\n"
    decoder = NativeDecoder(tools=SOUP_TOOLS, start="reasoning")
    events = decoder.feed(text) + decoder.close(finish_reason)
    (call,) = decoder.calls
    assert call.arguments == {"a": "v"}
    assert DeviationCode.UNCLOSED_REASONING in [deviation.code for deviation in call.deviations]
    assert isinstance(events[-1], Ended)
