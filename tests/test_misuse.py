"""Wrong use raises from ``errors``, with a message that says what to do instead."""

from __future__ import annotations

import pytest

from streamparse import (
    ClosedError,
    GrammarError,
    NativeDecoder,
    ToolDefinitionError,
    UnknownDialectError,
    UsageError,
    decode,
)


def test_feed_and_close_after_close():
    decoder = NativeDecoder()
    decoder.close()
    with pytest.raises(ClosedError, match="make a new one"):
        decoder.feed("x")
    with pytest.raises(ClosedError, match="make a new one"):
        decoder.close()


@pytest.mark.parametrize("chunk", [b"bytes", None, 1, ["x"]])
def test_feed_takes_text(chunk):
    streaming = NativeDecoder()
    streaming.feed('<minimax:tool_call>\n<invoke name="f">\n<parameter name="s">x')
    said = NativeDecoder()
    said.feed("some text")
    for decoder in (NativeDecoder(), said, streaming):
        with pytest.raises(UsageError, match=f"not {type(chunk).__name__}"):
            decoder.feed(chunk)


def test_empty_chunks_are_nothing():
    decoder = NativeDecoder()
    decoder.feed('<minimax:tool_call>\n<invoke name="f">\n<parameter name="s">x')
    assert decoder.feed("") == []
    assert NativeDecoder().feed("") == []


def test_unknown_dialect_names_the_known():
    with pytest.raises(UnknownDialectError, match="hermes, minimax_m2, qwen3_coder"):
        NativeDecoder("minimax-m2")
    with pytest.raises(UnknownDialectError, match="no_such_file"):
        NativeDecoder("no_such_file.lark")


def test_a_broken_grammar_names_the_file_and_the_place(tmp_path):
    file = tmp_path / "mine.lark"
    file.write_text("start: (TEXT | calls)*\n%declare TEXT\n")
    with pytest.raises(GrammarError, match=r"mine.*calls"):
        NativeDecoder(str(file))


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([{"type": "function", "function": {"parameters": {}}}], r"tools\[0\].*name"),
        ([{"name": "f"}, {"name": ""}], r"tools\[1\].*name"),
        ([{"name": "f"}, {"name": "f"}], "'f'"),
        (["f"], r"tools\[0\]"),
    ],
)
def test_a_tool_that_cannot_be_used(tools, message):
    with pytest.raises(ToolDefinitionError, match=message):
        NativeDecoder(tools=tools)


@pytest.mark.parametrize("option", ["start", "close", "whitespace", "bare_invoke", "repair"])
def test_options_name_the_choices(option):
    with pytest.raises(UsageError, match=rf"{option}='sideways'.*use one of"):
        decode("", **{option: "sideways"})


def test_partial_of_a_call_that_has_not_begun():
    with pytest.raises(UsageError, match="no call 0: 0 calls have begun"):
        NativeDecoder().partial(0)
