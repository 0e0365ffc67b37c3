"""Lark is the oracle of the state table; what cannot be streamed is refused; a dialect is a file and nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from lark import Lark, Token

from streamparse import (
    Deviated,
    DeviationCode,
    Ended,
    ErrorCode,
    Failed,
    GrammarError,
    NativeDecoder,
    ToolCallFailed,
    ToolCallFinished,
    UnknownDialectError,
    UsageError,
)
from streamparse.decoding.grammar import compile_grammar, dialects, grammar_directory, load
from streamparse.decoding.native import decode
from streamparse.decoding.table import OPAQUE_WORDS, State, Table

from .chunks import check_chunking
from .documents import OPTIONS, Call, said_by

BRACKETS = r"""
// A dialect that no model speaks. Everything about it stands here.
start: _answer*
resumed: reasoning_resumed _answer*
_answer: TEXT | reasoning | calls | turn | END_OF_TURN
reasoning: "((" _thought* "))"
reasoning_resumed: "(("? _thought* "))"
_thought: REASONING | calls
calls: "[[calls]]" call* "[[/calls]]"
call: "[[call " NAME* "]]" argument* "[[/call]]"
argument: "[[arg " KEY* "]]" VALUE* "[[/arg]]"
turn: "@@" ROLE* "\n"
END_OF_TURN: "##"
BEFORE_CALLS: /\n{0,1}/
AFTER_CALLS: /([ \t]*\n){0,2}/
AFTER_REASONING: /([ \t]*\n){0,2}/
FOREIGN_XML: "<invoke "
%declare TEXT REASONING NAME KEY VALUE ROLE
%ignore /\s+/
"""

FLAT = r"""
// As small as a dialect can be: calls with one piece of text each.
start: (TEXT | call)*
call: "{{" NAME_ATTRIBUTES* "|" argument? "}}"
argument: "!" KEY* "=" VALUE* ";"
%declare TEXT NAME_ATTRIBUTES KEY VALUE
"""

SOURCES = {
    **{name: (grammar_directory() / f"{name}.lark").read_text(encoding="utf-8") for name in dialects()},
    "brackets": BRACKETS,
    "flat": FLAT,
}
STARTS = [
    (name, start) for name, source in SOURCES.items() for start in ("start", "resumed") if f"\n{start}:" in source
]

by_start = pytest.mark.parametrize(("name", "start"), STARTS, ids=[f"{name}, {start}" for name, start in STARTS])


@cache
def table_of(name: str) -> Table:
    """The library's table."""
    return compile_grammar(SOURCES[name], name)


@cache
def lark_of(name: str, start: str) -> Lark:
    """Lark's own parser of the same file."""
    return Lark(SOURCES[name], parser="lalr", start=start, maybe_placeholders=False)


# -- Lark's accepts() is the table's expected --------------------------------------------------------------------------


def step(table: Table, state: State, terminal: str) -> State:
    """The state behind a terminal."""
    if terminal == state.opaque:
        return table.states[state.opaque_target]
    (target,) = {tag.target for tag in state.tags if tag.terminal == terminal}
    return table.states[target]


@by_start
def test_every_state_expects_what_lark_accepts(name, start):
    """Each state on the shortest way to it, and on some longer ones."""
    table = table_of(name)
    generator = random.Random(7)
    for index, way in ways(table, start).items():
        for detour in (0, 0, 3, 10, 30):
            parser = lark_of(name, start).parse_interactive("", start=start)
            state = table.states[table.starts[start]]
            for terminal in way:
                parser.feed_token(Token(terminal, "x"))
                state = step(table, state, terminal)
            assert state.index == index
            for _ in range(detour + 1):
                accepted = parser.accepts()
                assert state.expected_terminals == accepted
                choices = sorted(accepted - {"$END"})
                if not choices:
                    break
                terminal = generator.choice(choices)
                parser.feed_token(Token(terminal, "x"))
                state = step(table, state, terminal)


@by_start
@given(data=st.data())
def test_any_walk_expects_what_lark_accepts(name, start, data):
    table = table_of(name)
    parser = lark_of(name, start).parse_interactive("", start=start)
    state = table.states[table.starts[start]]
    for _ in range(data.draw(st.integers(0, 25))):
        terminal = data.draw(st.sampled_from(sorted(parser.accepts() - {"$END"})))
        parser.feed_token(Token(terminal, "x"))
        state = step(table, state, terminal)
        assert state.expected_terminals == parser.accepts()
    assert state.may_end == ("$END" in parser.accepts())


def ways(table: Table, start: str) -> dict[int, tuple[str, ...]]:
    """The terminals that lead to each state that a start symbol can lead to, fewest first."""
    found: dict[int, tuple[str, ...]] = {table.starts[start]: ()}
    for index in iter_growing(found):
        state = table.states[index]
        exits = [(tag.terminal, tag.target) for tag in state.tags]
        for terminal, target in [*exits, *([(state.opaque, state.opaque_target)] if state.opaque else [])]:
            found.setdefault(target, (*found[index], terminal))
    return found


def iter_growing(found: dict[int, tuple[str, ...]]) -> Iterator[int]:
    """The keys of a dictionary that grows meanwhile, in order."""
    done = 0
    while done < len(found):
        yield list(found)[done]
        done += 1


@pytest.mark.parametrize("name", SOURCES)
def test_the_table_is_whole(name):
    """Every state can be reached, none is there twice, and what is expected is said in the tags' own words."""
    table = table_of(name)
    assert set().union(*(ways(table, start) for start in table.starts)) == {state.index for state in table.states}
    shapes = {
        (s.open, s.opaque, s.opaque_target == s.index, s.may_end, frozenset((t.terminal, t.target) for t in s.tags))
        for s in table.states
    }
    assert len(shapes) == len(table.states)
    assert len(table.states) < 25
    for state in table.states:
        assert [word for word in state.expected if word.startswith("'")] == [f"'{tag.text}'" for tag in state.tags]
        if state.opaque:
            assert state.expected[-1] == OPAQUE_WORDS[state.opaque]


# -- documents from the grammar ----------------------------------------------------------------------------------------

EXPLICIT = {
    "TEXT": st.sampled_from(["hello\n", "a < b\n", "x\n"]),  # a line, so that an opener behind it counts (N3)
    "REASONING": st.sampled_from(["hm\n", "if a < b\n", "y"]),
    "NAME": st.just("f"),
    "KEY": st.just("k"),
    "NAME_ATTRIBUTES": st.just('name="f" '),
    "KEY_ATTRIBUTES": st.just("name='k' "),
    "VALUE": st.sampled_from(["v", "{", "1 < 2", "é\n"]),
    "PAYLOAD": st.sampled_from(['{"name": "f"}', " "]),
    "ROLE": st.just("ai"),
}

BY_CONTENT = {
    ErrorCode.MISSING_NAME,  # N4: NAME* may be empty
    ErrorCode.MALFORMED_ENVELOPE,  # N10: call* may be empty
    ErrorCode.CALL_IN_REASONING,  # N13
    ErrorCode.DUPLICATE_ARGUMENT,  # N14
    ErrorCode.TRAILING_TEXT,  # J3: PAYLOAD* may be two
    ErrorCode.INVALID_JSON,  # J1: white space that the grammar ignores is more than JSON has
}
"""What a document of the grammar may still get wrong: its content, not its form."""


@cache
def documents_of(name: str, start: str) -> st.SearchStrategy[str]:
    """Documents of a grammar."""
    declared = SOURCES[name].partition("%declare ")[2].partition("\n")[0].split()
    explicit = {terminal: EXPLICIT[terminal] for terminal in declared}
    return from_lark(lark_of(name, start), start=start, explicit=explicit)


@by_start
@given(data=st.data())
def test_documents_of_the_grammar_decode_without_an_error_of_form(name, start, data, tmp_path_factory):
    text = data.draw(documents_of(name, start))
    dialect = name if name in dialects() else str(dialect_file(tmp_path_factory, name))
    role = "]~b]" if name == "minimax_m2" else "@@" if name == "brackets" else "<|im_start|>"
    events = decode(text, dialect, start="reasoning" if start == "resumed" else "text", bare_invoke="call")
    errors = {event.error.code for event in events if isinstance(event, Failed | ToolCallFailed)}
    # A role marker behind output ends the answer (N2). </mm:think> counts at the start of a line only (N3).
    assert errors <= BY_CONTENT or role in text or "</mm:think>" in text
    assert isinstance(events[-1], Ended)


_FILES: dict[str, str] = {}


def dialect_file(factory: pytest.TempPathFactory, name: str) -> str:
    """The path of one of the test's own grammars."""
    if name not in _FILES:
        file = factory.mktemp("dialects") / f"{name}.lark"
        file.write_text(SOURCES[name], encoding="utf-8")
        _FILES[name] = str(file)
    return _FILES[name]


# -- a dialect is only a file ------------------------------------------------------------------------------------------

TOOLS = [{"name": "f", "parameters": {"properties": {"k": {"type": "string"}, "n": {"type": "integer"}}}}]


@pytest.fixture(scope="module")
def brackets(tmp_path_factory) -> str:
    return dialect_file(tmp_path_factory, "brackets")


def check(dialect, text, **options):
    """The joined events of a text in every chunking."""

    def run(chunks):
        decoder = NativeDecoder(dialect, tools=TOOLS, **options)
        return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close("stop")

    return check_chunking(run, text)


def answer(value: str, rest: str = "") -> str:
    return f"[[calls]]\n[[call f]]\n[[arg k]]{value}[[/arg]]\n{rest}[[/call]]\n[[/calls]]"


def test_a_dialect_that_is_a_file_decodes_end_to_end(brackets):
    text = f"hm\n))\n\nSee [[call f]] and ((this)).\n{answer('a]]b', '[[arg n]]3[[/arg]]' + chr(10))}\n\nDone.##"
    events = check(brackets, text, start="reasoning")
    assert said_by(events) == [
        ("reasoning", "hm\n"),
        ("text", "See [[call f]] and ((this))."),
        Call("f", {"k": "a]]b", "n": 3}),
        ("text", "Done."),
    ]
    assert events[-1].clean


@pytest.mark.parametrize(
    "value",
    [
        "[[/arg]] x",
        "[[/arg]]\n[[other]]",
        "a [[/call]] b",
        "[[arg x]]quoted[[/arg]]",
        answer("[[arg x]]quoted[[/arg]]"),
        "[[/arg]]\n[[/call]]\nstray [[arg x]]v[[/arg]]",
        "((", "))", "##", "[[", "[[/arg]", "[[/arg",
    ],
)  # fmt: skip
def test_n5_chain_and_nesting_come_out_of_the_table(brackets, value):
    assert said_by(check(brackets, answer(value + "."))) == [Call("f", {"k": value + "."})]


def test_n5_a_value_ends_where_the_chain_is_right(brackets):
    events = check(brackets, answer("one[[/arg]]\n[[/call]]\n[[call f]]\n[[arg k]]two"))
    assert said_by(events) == [Call("f", {"k": "one"}), Call("f", {"k": "two"})]


def test_n7_a_lost_closing_tag_fails_the_call(brackets):
    events = check(brackets, answer("v\n[[arg n]]3"))
    (failed,) = [event for event in events if isinstance(event, ToolCallFailed)]
    assert failed.error.code is ErrorCode.AMBIGUOUS_DELIMITER


@pytest.mark.parametrize(
    ("text", "called"),
    [
        (answer("v"), True),
        ("x\n" + answer("v"), True),
        ("x " + answer("v"), True),
        ("x [[calls]]   [[call f]][[/call]][[/calls]]", True),
        ("x `[[calls]]` is how", False),
        ("x [[calls]] y [[call f]][[/call]][[/calls]]", False),
        ("x [[calls]]", False),
        ("x [[call f]][[/call]]", False),
    ],
)
def test_n3_openers_come_out_of_the_table(brackets, text, called):
    events = check(brackets, text)
    assert any(isinstance(event, ToolCallFinished) for event in events) == called
    if not called:
        assert said_by(events) == [("text", text)]


def test_foreign_formats_are_the_file_s_own(brackets):
    events = check(brackets, 'x <invoke name="f"> y')
    assert said_by(events) == [("text", 'x <invoke name="f"> y')]
    (deviated,) = [event.deviation for event in events if isinstance(event, Deviated)]
    assert (deviated.code, deviated.detail) == (DeviationCode.FOREIGN_FORMAT, "xml")


@pytest.mark.parametrize("name", ["brackets", "flat"])
@given(data=st.data())
def test_soup_of_another_dialect_in_any_chunking(name, data, tmp_path_factory):
    """The promises hold for every dialect, not for those that come with the library."""
    table = table_of(name)
    tags = sorted({tag.text for state in table.states for tag in (*state.tags, *state.mentions)})
    crumbs = [
        *tags,
        *tags,
        *(tag[:-1] for tag in tags),
        "f",
        "k",
        "n",
        "3",
        " ",
        "\n",
        "x",
        "name=f",
        '"',
        "`",
        "[",
        "{",
    ]
    text = "".join(data.draw(st.lists(st.sampled_from(crumbs), max_size=12)))
    options = data.draw(OPTIONS)
    if "resumed" in table.starts:
        options["start"] = data.draw(st.sampled_from(["text", "reasoning"]))
    check(dialect_file(tmp_path_factory, name), text, **options)


def test_errors_speak_the_file_s_own_tags(brackets):
    events = decode("[[calls]][[call f]][[arg k]]v", brackets, tools=TOOLS)
    (failed,) = [event for event in events if isinstance(event, ToolCallFailed)]
    assert failed.error.message == "end of stream at 29 in calls > call > argument; expected '[[/arg]]' or text"


def test_a_dialect_that_begins_with_a_tag():
    """Not every answer begins with text."""
    table = compile_grammar('start: call+\ncall: "<c" NAME* ">" "</c"\n%declare NAME\n', "strict")
    state = table.states[table.starts["start"]]
    assert (state.expected, state.may_end) == (("'<c'",), False)


def test_a_dialect_without_envelopes_and_attributes(tmp_path_factory):
    flat = dialect_file(tmp_path_factory, "flat")
    events = check(flat, "a\n{{name='f'|!k=v;}}b {{x}} {{name=f|}}")
    assert said_by(events) == [("text", "a\n"), Call("f", {"k": "v"}), ("text", "b {{x}} {{name=f|}}")]
    with pytest.raises(UsageError, match="no reasoning to start in"):
        NativeDecoder(flat, start="reasoning")


def test_a_dialect_that_no_file_has():
    with pytest.raises(UnknownDialectError, match=r"no dialect 'nope'; known are .*minimax_m2.*path of a \.lark file"):
        load("nope")
    with pytest.raises(UnknownDialectError, match=r"no dialect '/nowhere/x\.lark'"):
        load("/nowhere/x.lark")


# -- what cannot be streamed is refused --------------------------------------------------------------------------------

HEAD = "start: (TEXT | call)*\n"
TAIL = "\n%declare TEXT NAME KEY VALUE REASONING\n"

REFUSED = {
    "unbounded nesting": (
        HEAD + 'call: "<c" NAME* ">" (argument | call)* "</c"\nargument: "<p" KEY* ">" VALUE* "</p"',
        r"unbounded nesting.*'call'",
    ),
    "unbounded nesting through another rule": (
        HEAD + 'call: "<c" NAME* ">" argument* "</c"\nargument: "<p" KEY* ">" (VALUE | call)* "</p"',
        r"unbounded nesting.*'(call|argument)'",
    ),
    "unbounded nesting through a helper": (
        HEAD + 'call: "<c" NAME* ">" _item* "</c"\n_item: argument | "(" _item ")"\nargument: "<p" VALUE* "</p"',
        r"unbounded nesting.*'_item'",
    ),
    "a list that grows at its left": (
        "start: _list\n_list: _list call | call\n" + 'call: "<c" NAME* ">" "</c"',
        r"unbounded nesting.*'_list'",
    ),
    "two opaque terminals in one place": (
        'start: (TEXT | REASONING | call)*\ncall: "<c" NAME* ">" "</c"',
        "two kinds of opaque text in one place.*(TEXT.*REASONING|REASONING.*TEXT)",
    ),
    "two opaque terminals one behind the other": (
        HEAD + 'call: "<c" NAME* KEY* ">" "</c"',
        "two kinds of opaque text in one place.*(NAME.*KEY|KEY.*NAME)",
    ),
    "a tag that begins another": (
        HEAD + 'call: "<c" NAME* ">" argument* "</c"\nargument: "</" KEY* ">" VALUE* "</p"',
        "tag '</'.*begins tag '</c'.*in the same place",
    ),
    "one tag under two names": (
        'start: (TEXT | call | reasoning)*\nA: "<c"\nB: "<c"\ncall: A NAME* ">" "</c"\nreasoning: B REASONING* "</r"',
        "'<c'",
    ),
    "a shift/reduce conflict": (
        'start: _answer*\n_answer: TEXT | call+\ncall: "<c" NAME* ">" "</c"',
        "(?i)ambiguous|conflict|collision",
    ),
    "a reduce/reduce conflict": (
        'start: (TEXT | call_a | call_b)*\ncall_a: "<c" NAME* "</c"\ncall_b: "<c" NAME* "</c"',
        "(?i)ambiguous|conflict|collision",
    ),
    "a regular expression as a tag": (
        HEAD + 'call: /<c+/ NAME* ">" "</c"',
        "regular expression.*literal string",
    ),
    "a case-insensitive tag": (HEAD + 'call: "<c"i NAME* ">" "</c"', "(?i)literal|case"),
    "opaque text without a star": (HEAD + 'call: "<c" NAME ">" "</c"', r"fragments.*write NAME\*"),
    "optional opaque text": (HEAD + 'call: "<c" NAME? ">" "</c"', r"fragments.*write NAME\*"),
    "an unknown declared terminal": (
        "%declare TITLE\n" + HEAD + 'call: "<c" TITLE* ">" "</c"',
        "unknown terminal TITLE; known are .*KEY.*VALUE",
    ),
    "an unknown rule": (
        'start: (TEXT | tool)*\ntool: "<c" NAME* ">" "</c"',
        "unknown rule 'tool'; known are .*call.*helpers",
    ),
    "a margin of another form": (
        HEAD + 'call: "<c" NAME* ">" "</c"\nAFTER_CALL: / */',
        r"AFTER_CALL must be .*not / \*/",
    ),
    "a margin without a bound": (
        HEAD + 'call: "<c" NAME* ">" "</c"\nAFTER_CALL: /\\n*/',
        "AFTER_CALL must be ",
    ),
    "a margin that is a string": (HEAD + 'call: "<c" NAME* ">" "</c"\nAFTER_CALL: "x"', "AFTER_CALL must be "),
    "a margin of a rule that is not there": (
        HEAD + 'call: "<c" NAME* ">" "</c"\nAFTER_CALLS: /\\n{0,1}/',
        "AFTER_CALLS",
    ),
    "a margin of text that is not there": (
        HEAD + 'call: "<c" NAME* ">" "</c"\nHEAD_VALUES: /\\n{0,1}/',
        "HEAD_VALUES",
    ),
    "ignored text that is not white space": (
        HEAD + 'call: "<c" NAME* ">" "</c"\n%ignore /#.*/',
        "%ignore may only be",
    ),
    "no start": ('begin: "<c" NAME* ">" "</c"', "no rule 'start'"),
    "broken syntax": (HEAD + 'call: "<c" NAME* ">" ("</c"', "broken"),
    "an undefined rule": (HEAD + 'call: "<c" NAME* ">" _other "</c"', "_other"),
    "an undefined terminal": (HEAD + 'call: "<c" NAME* OTHER ">" "</c"', "OTHER"),
    "a rule that can never be closed": (
        HEAD + 'call: "<c" NAME* ">" VALUE*',
        "never be closed|ambiguous|onflict|ollision|two kinds",
    ),
    "a call whose end never comes": (
        'start: TEXT* call\ncall: "<c" NAME* _loop\n_loop: ">" _loop',
        "never be closed|unbounded nesting",
    ),
    "one tag for two rules": (
        'start: (TEXT | calls)*\ncalls: "<c" call* "</c"\ncall: "<x" NAME* ">" "</c"',
        "tag '</c' belongs to rules",
    ),
    "an empty tag": (HEAD + 'call: "" NAME* ">" "</c"', "(?i)empty|zero|length"),
    "a tag that is white space, where white space is ignored": (
        'start: calls*\ncalls: "<c" " " "</c"\n%ignore /\\s+/',
        "(?i)white space",
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", REFUSED)
def test_what_cannot_be_streamed_is_refused(title):
    source, message = REFUSED[title]
    declared = "" if title == "no start" else TAIL
    with pytest.raises(GrammarError, match=message if message != "broken" else "(?i)unexpected|expected|line"):
        compile_grammar(source + declared, "mine")


@pytest.mark.parametrize("title", REFUSED)
def test_the_message_names_the_grammar(title):
    with pytest.raises(GrammarError, match=r"^grammar 'mine'"):
        compile_grammar(REFUSED[title][0] + TAIL, "mine")


@given(st.data())
def test_a_broken_file_never_raises_anything_but_a_grammar_error(data):
    """Lines lost, doubled, or moved; characters lost."""
    source = SOURCES[data.draw(st.sampled_from(sorted(SOURCES)))]
    lines = source.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["delete", "double", "cut", "swap"])):
            case "delete":
                lines[at] = "\n"
            case "double":
                lines.insert(at, lines[at])
            case "cut":
                keep = data.draw(st.integers(0, len(lines[at])))
                lines[at] = lines[at][:keep] + lines[at][keep + 1 :]
            case "swap":
                other = data.draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
    with suppress(GrammarError):
        assert compile_grammar("".join(lines), "broken").states
