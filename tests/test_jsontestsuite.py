"""The JSON Parsing Test Suite, each file whole and in chunks.

``y_`` files are read to the value of the standard library, ``n_`` files are refused, and what the suite leaves open
(``i_``) is decided here, with the reason. The reader is strict (``repair=0``) and takes any root, as a JSON parser
does.

Files are bytes, and the reader takes text: they are decoded as everywhere in this library (rules S), UTF-8 always, with
U+FFFD for what is none.
"""

from __future__ import annotations

import json

import pytest

from streamparse.decoding.arguments import JsonDecoder
from streamparse.events import ErrorCode
from tests.chunks import join
from tests.conftest import shared

FOLDER = shared("conformance", "jsontestsuite", "test_parsing")
FILES = sorted(path.name for path in FOLDER.glob("*.json"))

SMALL = 300
"""Longer files (100,000 brackets) are cut into larger pieces."""

# Accepted by the suite, refused by a rule.
DUPLICATES = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}  # J3

SURROGATE = (ErrorCode.LONE_SURROGATE, "J2: a surrogate without its other half")
RANGE = (ErrorCode.INVALID_JSON, "T3: out of the range of a float, and infinity is not JSON")
NOT_UTF_8 = (ErrorCode.INVALID_JSON, "S: read as UTF-8, this is no JSON")
REPLACED = (None, "S: what is not UTF-8 comes as U+FFFD, which is a character like any other")

LEFT_OPEN = {
    "i_number_double_huge_neg_exp.json": (None, "too small for a float: 0.0, as in the standard library"),
    "i_number_huge_exp.json": RANGE,
    "i_number_neg_int_huge_exp.json": RANGE,
    "i_number_pos_double_huge_exp.json": RANGE,
    "i_number_real_neg_overflow.json": RANGE,
    "i_number_real_pos_overflow.json": RANGE,
    "i_number_real_underflow.json": (None, "too small for a float: 0.0, as in the standard library"),
    "i_number_too_big_neg_int.json": (None, "J1: integers are exact"),
    "i_number_too_big_pos_int.json": (None, "J1: integers are exact"),
    "i_number_very_big_negative_int.json": (None, "J1: integers are exact"),
    "i_object_key_lone_2nd_surrogate.json": SURROGATE,
    "i_string_1st_surrogate_but_2nd_missing.json": SURROGATE,
    "i_string_1st_valid_surrogate_2nd_invalid.json": SURROGATE,
    "i_string_UTF-16LE_with_BOM.json": NOT_UTF_8,
    "i_string_UTF-8_invalid_sequence.json": REPLACED,
    "i_string_UTF8_surrogate_U+D800.json": REPLACED,
    "i_string_incomplete_surrogate_and_escape_valid.json": SURROGATE,
    "i_string_incomplete_surrogate_pair.json": SURROGATE,
    "i_string_incomplete_surrogates_escape_valid.json": SURROGATE,
    "i_string_invalid_lonely_surrogate.json": SURROGATE,
    "i_string_invalid_surrogate.json": SURROGATE,
    "i_string_invalid_utf-8.json": REPLACED,
    "i_string_inverted_surrogates_U+1D11E.json": SURROGATE,
    "i_string_iso_latin_1.json": REPLACED,
    "i_string_lone_second_surrogate.json": SURROGATE,
    "i_string_lone_utf8_continuation_byte.json": REPLACED,
    "i_string_not_in_unicode_range.json": REPLACED,
    "i_string_overlong_sequence_2_bytes.json": REPLACED,
    "i_string_overlong_sequence_6_bytes.json": REPLACED,
    "i_string_overlong_sequence_6_bytes_null.json": REPLACED,
    "i_string_truncated-utf-8.json": REPLACED,
    "i_string_utf16BE_no_BOM.json": NOT_UTF_8,
    "i_string_utf16LE_no_BOM.json": NOT_UTF_8,
    "i_structure_500_nested_arrays.json": (ErrorCode.LIMIT_EXCEEDED, "J1: deeper than limits.depth, which is 128"),
    "i_structure_UTF-8_BOM_empty_object.json": (ErrorCode.INVALID_JSON, "S: who decodes the bytes strips the mark"),
}


def text_of(name: str) -> str:
    return (FOLDER / name).read_bytes().decode("utf-8", errors="replace")


def read(name: str) -> JsonDecoder:
    """The reader after the file. In chunks it says the same."""
    text = text_of(name)
    reader, events = run([text])
    sizes = (1, 2, 3, 7) if len(text) <= SMALL else (99, 5000)
    for size in sizes:
        other, others = run([text[at : at + size] for at in range(0, len(text), size)])
        assert join(others) == join(events)
        assert (other.state, other.error, repr(other.partial)) == (reader.state, reader.error, repr(reader.partial))
    return reader


def run(chunks):
    reader = JsonDecoder(repair=0, root="any")
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return reader, events + reader.close()


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("y_")])
def test_accepted(name):
    reader = read(name)
    if name in DUPLICATES:
        assert reader.error is not None
        assert reader.error.code is ErrorCode.DUPLICATE_KEY
    else:
        assert repr(reader.value) == repr(json.loads(text_of(name)))


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("n_")])
def test_refused(name):
    """Two files hold nothing but white space, if that: no error in itself, but no value either (C5)."""
    reader = read(name)
    if text_of(name).strip():
        assert reader.error is not None
    else:
        assert reader.state == "empty"


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("i_")])
def test_decided(name):
    code, reason = LEFT_OPEN[name]
    reader = read(name)
    assert (reader.error and reader.error.code) is code, reason
    if code is None:
        assert repr(reader.value) == repr(json.loads(text_of(name)))


def test_the_suite_is_whole():
    assert len(FILES) > 300
    assert set(LEFT_OPEN) | DUPLICATES <= set(FILES)
