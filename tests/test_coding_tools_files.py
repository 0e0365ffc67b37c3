"""read_file, edit_file, write_file: real files of every kind."""

from __future__ import annotations

import codecs
import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from streamparse.agent.coding_tools import Rejected, Root, ToolError, edit_file, read_file, write_file
from streamparse.agent.coding_tools.bounds import LINE_CHARACTERS, PAGE_CHARACTERS, PAGE_LINES
from streamparse.agent.coding_tools.edit_file import find_all
from streamparse.agent.coding_tools.text import SourceText, decode

FIXTURES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(name="root")
def root_fixture(tmp_path):
    (tmp_path / "project").mkdir()
    with Root(tmp_path / "project") as root:
        yield root


@pytest.fixture(name="put")
def put_fixture(tmp_path):
    """Put bytes into ``a.txt`` of the root; the path of it."""

    def put(data: bytes, name: str = "a.txt"):
        path = tmp_path / "project" / name
        path.write_bytes(data)
        return path

    return put


def text_of(data: bytes) -> SourceText:
    """The text of what must be text."""
    source = decode(data)
    assert source is not None
    return source


# Text and back

FORMS = [
    ("é\r\nb", "utf-8", b""),
    ("é\nb", "utf-8", codecs.BOM_UTF8),
    ("é\nb", "utf-16-le", codecs.BOM_UTF16_LE),
    ("é\r\nb", "utf-16-be", codecs.BOM_UTF16_BE),
    ("é\nb", "utf-32-le", codecs.BOM_UTF32_LE),
    ("caf\u00e9\n", "latin-1", b""),
    ("\u201cquoted\u201d \u20ac5\n", "cp1252", b""),
    ("plain text of some length\n", "utf-16-le", b""),
    ("# -*- coding: cp1251 -*-\nx = 'Привет'\n", "cp1251", b""),
    ("a\rb\r", "utf-8", b""),
    ("", "utf-8", b""),
]


@pytest.mark.parametrize(("text", "encoding", "mark"), FORMS)
def test_encodings_are_recognised(text, encoding, mark):
    data = mark + text.encode(encoding)
    source = decode(data)
    assert source is not None
    assert source.text == text
    assert source.mark == mark
    assert codecs.lookup(source.encoding) == codecs.lookup(encoding)
    assert source.encode(source.text) == data


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\x7fELF\x02\x01\x01\0\0", bytes(range(256)), b"\xff\xfea"]
)
def test_binary_is_no_text(data):
    assert decode(data) is None


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))
def test_decoding_loses_nothing(data):
    source = decode(data)
    if source is not None:
        assert source.encode(source.text) == data
        assert "".join(source.lines) == source.flat.replace("\n", "")


@given(st.text("ab\r\n\u2028\x0b", max_size=30), st.data())
def test_offsets_lead_from_flat_to_text(text, data):
    source = text_of(text.encode())
    place = data.draw(st.integers(0, len(source.flat)))
    at = source.offset(place)
    # what stands before and behind is the same, but for line ends
    end = "\r" if source.newline == "\r" else "\r\n"
    assert source.text[:at].replace(end, "\n") == source.flat[:place]
    assert source.text[at:].replace(end, "\n") == source.flat[place:]


# read_file


def test_reads_numbered_lines(root, put):
    put("eins\n\tzwei\n\n\u2028drei".encode())
    outcome = read_file(root, "a.txt")
    assert outcome.text == (
        "a.txt: lines 1-4 of 4, utf-8, no line end after the last line\n1\teins\n2\t\tzwei\n3\t\n4\t\u2028drei"
    )
    assert outcome.resource == "a.txt"
    assert outcome.before == outcome.after == root.version("a.txt")


def test_pages_are_inclusive_and_from_one(root, put):
    put(b"".join(b"l%d\n" % number for number in range(1, 11)))
    assert read_file(root, "a.txt", 3, 5).text == "a.txt: lines 3-5 of 10, utf-8\n3\tl3\n4\tl4\n5\tl5"
    assert read_file(root, "a.txt", 10).text.endswith("10 of 10, utf-8\n10\tl10")
    assert read_file(root, "a.txt", 9, 99).text.endswith("9\tl9\n10\tl10")


@pytest.mark.parametrize(
    ("start", "end", "argument", "words"),
    [
        (0, None, "start_line", "counts from 1"),
        (11, None, "start_line", "has 10 lines"),
        (3, 2, "end_line", "before start_line"),
    ],
)
def test_lines_that_cannot_be(root, put, start, end, argument, words):
    put(b"x\n" * 10)
    with pytest.raises(Rejected, match=words) as caught:
        read_file(root, "a.txt", start, end)
    assert caught.value.path == (argument,)


def test_long_files_go_on(root, put):
    put(b"x\n" * 2000)
    text = read_file(root, "a.txt").text
    assert text.startswith(f"a.txt: lines 1-{PAGE_LINES} of 2000")
    assert text.endswith(f"[Go on with start_line={PAGE_LINES + 1}]")
    assert "Go on" not in read_file(root, "a.txt", 1, 5).text


def test_output_is_bounded(root, put):
    put(b"x" * 1_000_000)
    text = read_file(root, "a.txt").text
    assert len(text) < LINE_CHARACTERS + 200
    assert "998,000 characters" in text
    put((b"y" * 1500 + b"\n") * 500)
    text = read_file(root, "a.txt").text
    assert len(text) < PAGE_CHARACTERS + 2000
    last = int(text.rsplit("start_line=", 1)[1][:-1])
    assert read_file(root, "a.txt", last).text.startswith(f"a.txt: lines {last}-")


def test_says_encoding_and_line_ends(root, put):
    for data, words in [
        (codecs.BOM_UTF8 + b"a\n", "utf-8 with BOM"),
        (codecs.BOM_UTF16_LE + "a\r\n".encode("utf-16-le"), "utf-16 with BOM, CRLF line ends"),
        (b"caf\xe9\n", "latin-1 (guessed: it is not utf-8)"),
        (b"a\r\nb\n", "utf-8, mixed LF and CRLF line ends"),
        (b"a\rb\r", "utf-8, CR line ends"),
    ]:
        put(data)
        assert read_file(root, "a.txt").text.splitlines()[0].endswith(words)


def test_empty_and_binary(root, put):
    put(b"")
    assert read_file(root, "a.txt").text == "a.txt is empty (0 lines, utf-8)"
    put(b"\0\1\2")
    with pytest.raises(Rejected, match=r"is binary \(3 bytes\)"):
        read_file(root, "a.txt")


def test_missing_names_the_nearest(root, put):
    write_file(root, "src/parser.py", "x\n")
    write_file(root, "src/other.py", "x\n")
    for path in ("src/parsr.py", "parser.py", "lib/parser.py", "scr/parser.py"):
        with pytest.raises(Rejected, match=r"Did you mean .*src") as caught:
            read_file(root, path)
        assert any(each.startswith("src") for each in caught.value.allowed)
    with pytest.raises(Rejected, match=r"does not exist: the project root has no 'qqq'$"):
        read_file(root, "qqq")


# write_file


def test_creates_and_replaces(root, tmp_path):
    created = write_file(root, "new/a.txt", "eins\nzwei")
    assert created.text == "Created new/a.txt: 2 lines, 9 bytes"
    assert (created.resource, created.before) == ("new/a.txt", None)
    replaced = write_file(root, "new/a.txt", "é\n")
    assert replaced.text == "Replaced new/a.txt: 1 line, 3 bytes"
    assert (replaced.before, replaced.after) == (created.after, root.version("new/a.txt"))
    again = write_file(root, "new/a.txt", "é\n")
    assert "nothing was written" in again.text
    assert again.before == again.after
    assert (tmp_path / "project" / "new" / "a.txt").read_bytes() == "é\n".encode()


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n"),
        (b"a\r\nb\r\n", "c\r\nd\n", b"c\r\nd\n"),  # somebody who writes CR means it
        (b"a\r\nb\n", "c\nd\n", b"c\nd\n"),
        (codecs.BOM_UTF8 + b"a\n", "é\n", codecs.BOM_UTF8 + "é\n".encode()),
        (codecs.BOM_UTF16_LE + "a\n".encode("utf-16-le"), "é\n", codecs.BOM_UTF16_LE + "é\n".encode("utf-16-le")),
        (b"caf\xe9\n", "th\u00e9\n", b"th\xe9\n"),
        (b"\0binary", "é", "é".encode()),
        (b"", "é\r\n", "é\r\n".encode()),
    ],
)
def test_replacing_keeps_the_form(root, put, before, content, after):
    path = put(before)
    write_file(root, "a.txt", content)
    assert path.read_bytes() == after


def test_what_cannot_be_encoded_is_not_written(root, put):
    path = put(b"caf\xe9\n")
    with pytest.raises(Rejected, match=r"latin-1.*cannot hold '中' \(U\+4E2D\)"):
        write_file(root, "a.txt", "中")
    with pytest.raises(Rejected, match="lone surrogate"):
        write_file(root, "b.txt", "\ud800")
    assert path.read_bytes() == b"caf\xe9\n"
    assert [each.name for each in path.parent.iterdir()] == ["a.txt"]


@FIXTURES
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80))
def test_what_was_written_is_read(root, text):
    """In numbered form; a lone control character may make it binary, which is said."""
    outcome = write_file(root, "p.txt", text)
    assert outcome.after == root.version("p.txt")
    assert root.read("p.txt").data.decode("utf-8").replace("\r\n", "\n") == text.replace("\r\n", "\n")
    source = decode(root.read("p.txt").data)
    if source is None:
        return
    lines = read_file(root, "p.txt").text.split("\n")[1:] if source.lines else []
    assert lines == [f"{number}\t{line}" for number, line in enumerate(source.lines, 1)]


# edit_file


def test_edits_exactly_the_fragment(root, put):
    path = put(b"one\ntwo\nthree\n")
    outcome = edit_file(root, "a.txt", "two\n", "2\nzwei\n")
    assert path.read_bytes() == b"one\n2\nzwei\nthree\n"
    assert (
        outcome.text
        == "Edited a.txt: replaced 1 occurrence at line 2 (+1 lines). Now:\n1\tone\n2\t2\n3\tzwei\n4\tthree"
    )
    assert (outcome.resource, outcome.after) == ("a.txt", root.version("a.txt"))
    assert outcome.before != outcome.after


@pytest.mark.parametrize(("text", "encoding", "mark"), FORMS[:-1])
def test_edits_keep_the_form(root, put, text, encoding, mark):
    source = text_of(mark + text.encode(encoding))
    path = put(mark + text.encode(encoding))
    old = source.lines[-1]
    edit_file(root, "a.txt", old, "neu\nx")
    there = text.rindex(old)
    expected = text[:there] + f"neu{source.newline}x" + text[there + len(old) :]
    assert path.read_bytes() == mark + expected.encode(encoding)


def test_lf_stands_for_crlf(root, put):
    path = put(b"one\r\ntwo\r\nthree")
    edit_file(root, "a.txt", "one\ntwo\n", "1\n2\n")
    assert path.read_bytes() == b"1\r\n2\r\nthree"
    edit_file(root, "a.txt", "2\r\nthree", "2\r\n3")
    assert path.read_bytes() == b"1\r\n2\r\n3"


def test_mixed_line_ends_stay_mixed(root, put):
    path = put(b"a\r\nb\nc\r\nd\n")
    edit_file(root, "a.txt", "b\nc", "B\nC")
    assert path.read_bytes() == b"a\r\nB\nC\r\nd\n"


def test_must_be_unique(root, put):
    path = put(b"x = 1\ny = 2\nx = 1\n")
    with pytest.raises(Rejected, match=r"occurs 2 times in a\.txt \(line 1, 3\).*occurrences=2"):
        edit_file(root, "a.txt", "x = 1", "x = 3")
    edit_file(root, "a.txt", "x = 1", "x = 3", occurrences=2)
    assert path.read_bytes() == b"x = 3\ny = 2\nx = 3\n"
    with pytest.raises(Rejected, match="Expected 3 times"):
        edit_file(root, "a.txt", "x = 3", "x = 4", occurrences=3)


def test_overlapping_places_are_not_unique(root, put):
    path = put(b"aaa")
    for count in (1, 2):
        with pytest.raises(Rejected, match="overlap"):
            edit_file(root, "a.txt", "aa", "b", occurrences=count)
    assert path.read_bytes() == b"aaa"


@pytest.mark.parametrize(
    ("data", "old", "words"),
    [
        ("def f():\n\treturn 1\n", "def f():\n    return 1\n", r"only white space.*:\n1\tdef f\(\):\n2\t\treturn 1"),
        ("a\nif x:  \n    y = 1\n", "if x:\n    y = 1", "only white space.*:\n2\tif x:"),
        ("say('it’s “so”')\n", "say('it's \"so\"')", "only typographic.*:\n1\tsay"),
        ("a - b\n", "a — b", "only typographic"),
        ("a\u00a0=\u00a01\n", "a = 1", "only (typographic|white space)"),
        ("    x = “1”\n", "  x  = \"1\"", "white space and typographic"),
        ("one\ntwo\n", "1\tone\n2\ttwo", "holds line numbers.*:\n1\tone\n2\ttwo"),
        ("class Foo:\n", "class foo:", "upper and lower case"),
        ("total = compute(a, b)\n", "total = computed(a, b)", "lines most like it.*:\n1\ttotal"),
        ("abc\n", "zzzzzzzz qqqqq", "Nothing like it is there"),
    ],
)  # fmt: skip
def test_near_misses_are_told(root, put, data, old, words):
    path = put(data.encode())
    with pytest.raises(Rejected) as caught:
        edit_file(root, "a.txt", old, "something else entirely")
    assert re.search(words, str(caught.value), re.DOTALL), str(caught.value)
    assert path.read_bytes() == data.encode()


@pytest.mark.parametrize(
    ("data", "old", "new"),
    [
        ("def parse(text):\n", "def read(text):", "def parse(text):"),  # the old text is gone, the new one is there
        ("a\nadded line\n", "a\n", "a\nadded line\n"),  # the old text is part of the new one
        ("self.run(x)\n", "run(x)", "self.run(x)"),
    ],
)
def test_tells_when_the_change_is_there(root, put, data, old, new):
    path = put(data.encode())
    outcome = edit_file(root, "a.txt", old, new)
    assert "nothing was changed, new_text is there already (line 1)" in outcome.text
    assert outcome.before == outcome.after == root.version("a.txt")
    assert path.read_bytes() == data.encode()


def test_a_short_new_text_is_no_sign_of_a_change(root, put):
    put(b"x = }\n")
    with pytest.raises(Rejected, match="does not occur"):
        edit_file(root, "a.txt", "return value", "}")


def test_edit_arguments_that_cannot_be(root, put):
    put(b"a\n")
    for arguments, argument in ((("", "b"), "old_text"), (("a", "a"), "new_text"), (("a", "b", 0), "occurrences")):
        with pytest.raises(Rejected) as caught:
            edit_file(root, "a.txt", *arguments)
        assert caught.value.path == (argument,)


def test_edit_that_the_encoding_cannot_hold(root, put):
    path = put(b"caf\xe9\n")
    with pytest.raises(Rejected, match="cannot hold"):
        edit_file(root, "a.txt", "caf", "中")
    assert path.read_bytes() == b"caf\xe9\n"


def test_a_huge_fragment_that_is_not_there_ends_soon(root, put):
    put(b"some line of code that looks like the other\n" * 50_000)
    with pytest.raises(Rejected, match="most like it"):
        edit_file(root, "a.txt", "some line of code that looks like an other\n" * 2000, "x")


LINES = st.text("ab \t\n\ré中", max_size=30)


@FIXTURES
@given(LINES, LINES, LINES, LINES, st.sampled_from([e for e in FORMS if e[1] != "cp1251"]))
def test_an_edit_changes_exactly_the_fragment(root, put, before, old, behind, new, form):
    """All bytes before and behind it stay; what stands between is the new text with line ends of the file."""
    _, encoding, mark = form
    text = before + old + behind
    try:
        data = mark + text.encode(encoding)
    except UnicodeEncodeError:
        assume(False)
    source = decode(data)
    assume(source is not None)
    assert source is not None
    assume(source.text == text)  # and not read as something else
    path = put(data)
    try:
        outcome = edit_file(root, "a.txt", old, new)
    except ToolError:
        assert path.read_bytes() == data
        return
    after = path.read_bytes()
    if "already" in outcome.text:
        assert after == data
        return
    result = after.removeprefix(mark).decode(source.encoding)
    # It was unique in the flat text, so there is one way to write it down.
    flat_new = new.replace("\r\n", "\n")
    places = [at for at in range(len(source.flat)) if source.flat.startswith(old.replace("\r\n", "\n"), at)]
    assert len(places) == 1
    start, end = source.offset(places[0]), source.offset(places[0] + len(old.replace("\r\n", "\n")))
    assert result.startswith(text[:start])
    assert result.endswith(text[end:])
    middle = result[start : len(result) - len(text[end:])]
    assert middle in {flat_new.replace("\n", newline) for newline in ("\n", "\r\n", "\r")}


def test_write_does_not_replace_what_somebody_else_has_made_meanwhile(root, put, monkeypatch):
    write = root.write

    def late(path, data, **options):
        put(b"by somebody else")
        return write(path, data, **options)

    monkeypatch.setattr(root, "write", late)
    with pytest.raises(ToolError, match="made by somebody else"):
        write_file(root, "a.txt", "mine\n")
    assert root.read("a.txt").data == b"by somebody else"


@pytest.mark.parametrize("length", [2, 1000, 1_000_000])
@pytest.mark.parametrize("new", ["b", "{old}b", "b{old}"])
def test_a_fragment_that_overlaps_itself_takes_no_time(root, put, length, new):
    """There are up to two million places, and each look at one costs as much as the fragment is long."""
    put(b"a" * 2_000_000)
    old = "a" * length
    assert len(find_all("a" * 2_000_000, old)) * length <= 3_000_000 + length
    with pytest.raises(Rejected, match="the places overlap"):
        edit_file(root, "a.txt", old, new.format(old=old))


@given(st.text("ab", max_size=30), st.text("ab", min_size=1, max_size=4))
def test_find_all_finds_every_place(text, fragment):
    assert find_all(text, fragment) == [at for at in range(len(text)) if text.startswith(fragment, at)]


def test_a_change_that_may_be_there_a_million_times_takes_no_time(root, put):
    put((b"a" * 400 + b"b") * 1000)
    with pytest.raises(Rejected, match="the places overlap"):
        edit_file(root, "a.txt", "aa", "a" * 400 + "b")
