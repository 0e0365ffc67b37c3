"""What the docs show is what the code does."""

from __future__ import annotations

import re

import pytest

from streamparse import DeviationCode, ErrorCode, decode, dialects
from streamparse.decoding.grammar import load
from streamparse.decoding.table import MARKS, OPAQUE_WORDS, RULES
from streamparse.diagram import as_mermaid
from tests.conftest import ROOT

DIALECTS_PAGE = (ROOT / "docs" / "dialects.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("dialect", dialects())
def test_diagram_is_the_table(dialect):
    """docs/dialects.md holds what `python -m streamparse grammar NAME --mermaid` prints."""
    assert f"```mermaid\n{as_mermaid(load(dialect)).strip()}\n```" in DIALECTS_PAGE


def test_vocabulary_is_documented():
    for name in (*RULES, *OPAQUE_WORDS, *MARKS):
        assert f"`{name}`" in DIALECTS_PAGE, name


def test_readme_shows_a_real_message():
    """The form of an error message (E1); the offset depends on the answer."""
    text = '<minimax:tool_call>\n<invoke name="write_file">\n<parameter name="path">a'
    failed = decode(text)[-2]
    message = failed.error.message  # type: ignore[union-attr]
    assert re.sub(r"\d+", "214", message) in README


def test_every_code_is_explained():
    """Each code stands with its rule in the source that declares it."""
    source = (ROOT / "streamparse" / "events.py").read_text("utf-8")
    for code in (*ErrorCode, *DeviationCode):
        line = next(line for line in source.splitlines() if f'= "{code}"' in line)
        assert "#" in line or code == "limit_exceeded", line
