"""The state table for readers: complete, deterministic, and free of what Mermaid could misread."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from streamparse.decoding.grammar import compile_grammar, dialects, load
from streamparse.diagram import as_mermaid, as_text
from tests.conftest import ROOT

SMALL = r"""
start: (TEXT | calls)*
calls: "[[" call* "]]"
call: "<" NAME* ">" VALUE* "</>"
AFTER_CALLS: /\n{0,1}/
FOREIGN_OTHER: "{tool\n"
%declare TEXT NAME VALUE
%ignore /\s+/
"""

TEXT = r"""dialect small: 4 states; white space between tags belongs to the format
  start="text" begins in state 0

state 0
  open      nothing
  opaque    TEXT -> 0
  may end   yes
  expected  '[[' or text
  tags      '[['  -> 1  opens calls
  mentions  '{tool\n'  FOREIGN_OTHER

state 1
  open      calls
  opaque    none: only tags may stand here
  may end   no
  expected  ']]' or '<'
  tags      ']]'  -> 0  closes calls, up to 1 line break after it
            '<'   -> 2  opens call

state 2
  open      calls > call
  opaque    NAME -> 2
  may end   no
  expected  '>' or a name
  tags      '>'  -> 3  ends the name

state 3
  open      calls > call
  opaque    VALUE -> 3
  may end   no
  expected  '</>' or text
  tags      '</>'  -> 1  closes call
  mentions  '<'   call
            '[['  calls
            ']]'  calls
"""

MERMAID = """\
stateDiagram-v2
    state "0 TEXT" as s0
    state "1 calls #gt; (tags only)" as s1
    state "2 calls #gt; call #gt; NAME" as s2
    state "3 calls #gt; call #gt; VALUE" as s3
    [*] --> s0 : text
    s0 --> s1 : #91;#91;
    s0 --> [*]
    s1 --> s0 : #93;#93;
    s1 --> s2 : #lt;
    s2 --> s3 : #gt;
    s3 --> s1 : #lt;/#gt;
"""


def test_a_small_table():
    table = compile_grammar(SMALL, "small")
    assert as_text(table) == TEXT
    assert as_mermaid(table) == MERMAID


@pytest.mark.parametrize("dialect", dialects())
def test_nothing_is_left_out(dialect):
    table = load(dialect)
    text = as_text(table)
    sections = text.split("\nstate ")[1:]
    assert [section.split("\n")[0] for section in sections] == [str(state.index) for state in table.states]
    for state, section in zip(table.states, sections, strict=True):
        found = re.findall(r"^\s+(?:tags +|mentions +|recovers +)?('.*?')  ", section, re.MULTILINE)
        literals = [*state.tags, *state.mentions, *(recovery.tag for recovery in state.recoveries)]
        assert found == [f"'{tag.text}'".replace("\n", "\\n") for tag in literals]
        for tag in state.tags:
            assert f"-> {tag.target} " in section
        for recovery in state.recoveries:
            assert f"leaves {', '.join(recovery.lost)} unclosed" in section


@pytest.mark.parametrize("dialect", dialects())
def test_every_tag_is_an_arrow(dialect):
    table = load(dialect)
    lines = as_mermaid(table).splitlines()
    arrows = {}
    for line in lines[1:]:
        assert re.fullmatch(r'    (state "[^"]+" as s\d+|(\[\*\]|s\d+) --> (\[\*\]|s\d+)( : [^:\n]+)?)', line)
        match = re.fullmatch(r"    s(\d+) --> s(\d+) : (.*)", line)
        if match:
            arrows[int(match[1]), int(match[2])] = match[3].split(" or ")
    for state, tag in table.all_tags():
        written = re.sub(r"[^\w ./()=-]", lambda match: entity(match[0]), tag.text.replace("\n", "\\n"))
        assert written.rstrip() in [label.rstrip() for label in arrows[state.index, tag.target]]
    ends = {int(line.split()[0][1:]) for line in lines if line.endswith("--> [*]")}
    assert ends == {state.index for state in table.states if state.may_end}


def entity(character: str) -> str:
    return {"<": "#lt;", ">": "#gt;", '"': "#quot;", "&": "#amp;"}.get(character, f"#{ord(character)};")


def command(*arguments: str, seed: str = "0") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "streamparse", *arguments],
        capture_output=True,
        timeout=30,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
    )
    assert done.stderr == b""
    return done.stdout.decode()


@pytest.mark.parametrize("dialect", dialects())
def test_the_command_is_deterministic(dialect):
    for seed in ("1", "2"):
        assert command("grammar", dialect, seed=seed) == as_text(load(dialect))
        assert command("grammar", dialect, "--mermaid", seed=seed) == as_mermaid(load(dialect))


def test_a_grammar_file_of_the_user(tmp_path):
    path = tmp_path / "small.lark"
    path.write_text(SMALL, encoding="utf-8")
    assert command("grammar", str(path)) == TEXT


def test_the_list_of_dialects():
    assert command("dialects").split() == dialects()
