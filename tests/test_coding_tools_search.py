"""search_symbol: definitions, and nothing but definitions, in each language."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from streamparse import MissingExtraError
from streamparse.agent.coding_tools import Rejected, Root, search_symbol
from streamparse.agent.coding_tools.bounds import HITS
from streamparse.agent.coding_tools.languages import LANGUAGES

PYTHON = """\
LIMIT: int = 1
first, second = 1, 2


class Reader:
    size = 2

    def feed(self, data):
        self.open = data
        self.open = LIMIT
        local = data
        local = feed(local)
        return (found := local)


async def feed(text):
    return LIMIT


type Alias = int
"""
TYPESCRIPT = """\
export const limit: number = 1, double = (x: number) => x * 2;
const { key, other: [inner] } = source;
function feed(data) { return limit; }
export abstract class Reader { #size = 2; feed() { return data; } abstract stop(): void; handler = () => limit }
interface Shape { area(): number; side: number }
type Alias = string;
enum Color { Red }
namespace Tools { }
module.exports.helper = function () {};
const table = { run: function () {}, data: 1 };
"""
GO = """\
package main

const Limit = 1

var first, second int

type Reader struct {
\tSize int
}
type Shape interface{ Area() int }

func feed(data int) int {
\tlocal, err := data, 1
\treturn Limit
}

func (r *Reader) Feed() { feed(r.Size) }
"""
RUST = """\
const LIMIT: i32 = 1;
static COUNT: i32 = 1;
struct Reader { size: i32 }
enum Color { Red }
trait Shape { fn area(&self) -> i32; }
impl Reader { fn feed(&self, data: i32) { let (mut local, b) = (LIMIT, data); } }
mod tools {}
macro_rules! helper { () => {} }
type Alias = i32;
"""
JAVA = """\
class Reader {
  static final int LIMIT = 1;
  Reader() {}
  int feed(int data) { int local = LIMIT; return local; }
  enum Color { RED }
  interface Shape { int area(); }
  record Point(int x) {}
}
"""
C = """\
#define LIMIT 1
#define TWICE(x) ((x) * 2)
struct reader { int size; };
enum color { RED };
typedef struct { int q; } Alias;
int *feed(int data);
int *feed(int data) { int local = LIMIT; struct reader used; return &local; }
static const char *name = "a";
int table[LIMIT] = {0};
int (*callback)(int);
"""
CPP = """\
namespace tools {
class Reader : public Base { public: Reader(); ~Reader(); int feed(int data); int size; };
int Reader::feed(int data) { auto local = data; return local; }
template <class T> T twice(T value) { return value; }
using Alias = int;
enum class Color { Red };
}
"""

# language, name -> line and word of each definition
FOUND = [
    ("a.py", PYTHON, {
        "LIMIT": ["1 variable"], "second": ["2 variable"], "Reader": ["5 class"], "size": ["6 variable in Reader"],
        "feed": ["8 function in Reader", "16 function"], "open": ["9 variable in feed"],
        "local": ["11 variable in feed"], "found": ["13 variable in feed"], "data": [], "Alias": ["20 type"],
    }),
    ("a.ts", TYPESCRIPT, {
        "limit": ["1 variable"], "double": ["1 function"], "key": ["2 variable"], "inner": ["2 variable"], "other": [],
        "feed": ["3 function", "4 method in Reader"], "Reader": ["4 class"], "#size": ["4 field in Reader"],
        "stop": ["4 method in Reader"], "handler": ["4 function in Reader"], "Shape": ["5 interface"],
        "area": ["5 method in Shape"], "side": ["5 property in Shape"], "Alias": ["6 type"], "Color": ["7 enum"],
        "Tools": ["8 namespace"], "helper": ["9 function"], "run": ["10 function"], "data": [], "source": [],
    }),
    ("a.go", GO, {
        "Limit": ["3 constant"], "second": ["5 variable"], "Reader": ["7 struct"], "Size": ["8 field in Reader"],
        "Shape": ["10 interface"], "Area": ["10 method in Shape"], "feed": ["12 function"],
        "err": ["13 variable in feed"], "Feed": ["17 method in Reader"], "data": [],
    }),
    ("a.rs", RUST, {
        "LIMIT": ["1 constant"], "COUNT": ["2 static"], "Reader": ["3 struct"], "size": ["3 field in Reader"],
        "Color": ["4 enum"], "Red": ["4 variant in Color"], "Shape": ["5 trait"], "area": ["5 function in Shape"],
        "feed": ["6 function in Reader"], "local": ["6 variable in feed"], "tools": ["7 module"], "helper": ["8 macro"],
        "Alias": ["9 type"], "data": [],
    }),
    ("a.java", JAVA, {
        "LIMIT": ["2 variable in Reader"], "Reader": ["1 class", "3 constructor in Reader"],
        "feed": ["4 method in Reader"], "local": ["4 variable in feed"], "Color": ["5 enum in Reader"],
        "RED": ["5 constant in Color"], "Shape": ["6 interface in Reader"], "area": ["6 method in Shape"],
        "Point": ["7 record in Reader"], "data": [],
    }),
    ("a.c", C, {
        "LIMIT": ["1 macro"], "TWICE": ["2 macro"], "reader": ["3 struct"], "size": ["3 field in reader"],
        "color": ["4 enum"], "RED": ["4 constant in color"], "Alias": ["5 type"],
        "feed": ["6 declaration", "7 function"],
        "local": ["7 variable in feed"], "name": ["8 variable"], "table": ["9 variable"], "callback": ["10 variable"],
        "data": [],
    }),
    ("a.cpp", CPP, {
        "tools": ["1 namespace"], "Reader": ["2 class in tools", "2 declaration in Reader"],
        "~Reader": ["2 declaration in Reader"], "feed": ["2 declaration in Reader", "3 function in Reader"],
        "size": ["2 field in Reader"], "local": ["3 variable in Reader::feed"], "twice": ["4 function in tools"],
        "Alias": ["5 type in tools"], "Color": ["6 enum in tools"], "data": [],
    }),
]  # fmt: skip
CASES = [(file, text, name, places) for file, text, names in FOUND for name, places in names.items()]


@pytest.fixture(name="root")
def root_fixture(tmp_path):
    with Root(tmp_path) as root:
        yield root


def found(text: str) -> list[str]:
    """The hits of a result: file, line, what, in what."""
    hits = re.findall(r"^([^:\n]+):(\d+): ([a-z]+(?: in [^:]+(?:::\w+)?)?): ", text, re.MULTILINE)
    return [f"{file}:{line} {what}" for file, line, what in hits]


@pytest.mark.parametrize(
    ("file", "text", "name", "places"), CASES, ids=[f"{file}-{name}" for file, _, name, _ in CASES]
)
def test_definitions_are_found(root, tmp_path, file, text, name, places):
    (tmp_path / file).write_text(text, encoding="utf-8")
    result = search_symbol(root, name).text
    if not places:
        assert result.startswith(f"No definition of {name} (1 source file searched)")
        return
    assert sorted(found(result)) == sorted(f"{file}:{place}" for place in places), result


@pytest.mark.parametrize("file", ["a.js", "a.jsx", "a.tsx", "a.mjs", "a.h", "a.hpp", "a.pyi"])
def test_every_ending_has_a_language(root, tmp_path, file):
    text = {"p": "def feed(): ...\n", "h": "int feed(void);\n"}.get(file.split(".")[1][0], "function feed() {}\n")
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert f"{file}:1: " in search_symbol(root, "feed").text
    assert f".{file.split('.')[1]}" in LANGUAGES


def test_a_hit_shows_its_line(root, tmp_path):
    (tmp_path / "a.py").write_text(PYTHON)
    text = search_symbol(root, "feed", "function").text
    assert text == (
        "2 function definitions of feed (1 source file searched):\n"
        "a.py:8: function in Reader: def feed(self, data):\n"
        "a.py:16: function: async def feed(text):"
    )


def test_kind_path_and_owner_narrow(root, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(PYTHON)
    (tmp_path / "b.py").write_text("feed = 1\n")
    assert found(search_symbol(root, "feed").text) == [
        "src/a.py:8 function in Reader", "src/a.py:16 function", "b.py:1 variable",
    ]  # fmt: skip
    assert found(search_symbol(root, "feed", "variable").text) == ["b.py:1 variable"]
    assert found(search_symbol(root, "feed", path="b.py").text) == ["b.py:1 variable"]
    for name in ("Reader.feed", "Reader::feed", "a.Reader.feed"):
        assert found(search_symbol(root, name).text) == ["src/a.py:8 function in Reader"]


def test_names_that_contain_it_are_offered(root, tmp_path):
    (tmp_path / "a.py").write_text("def parse_header(): pass\nclass HeaderError: pass\n")
    text = search_symbol(root, "header").text
    assert text.startswith("No definition of header (1 source file searched). Names that contain it:")
    assert found(text) == ["a.py:1 function", "a.py:2 class"]
    assert "grep" in search_symbol(root, "footer").text


def test_results_are_bounded(root, tmp_path):
    (tmp_path / "a.py").write_text("".join(f"def feed(): {'x' * 400}\n\n" for _ in range(500)))
    text = search_symbol(root, "feed").text
    assert len(found(text)) == HITS
    assert f"[{500 - HITS} more" in text
    assert len(text) < HITS * 300


def test_time_is_bounded(root, tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.py").write_text("def feed(): pass\n")
    ticks = iter([0.0, 1.0, 2.0, 99.0])
    text = search_symbol(root, "feed", clock=lambda: next(ticks)).text
    assert len(found(text)) == 2
    assert "the search stopped after 2 files" in text


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        (("",), "name"),
        (("two words",), "name"),
        (("f(",), "name"),
        (("f", "method"), "kind"),
        (("f", "any", "nothing"), "path"),
        (("f", "any", "../x"), "path"),
        (("f", "any", "a.txt"), "path"),
    ],
)
def test_arguments_that_cannot_be(root, tmp_path, arguments, argument):
    (tmp_path / "a.txt").write_text("f = 1")
    with pytest.raises(Rejected) as caught:
        search_symbol(root, *arguments)
    assert caught.value.path == (argument,)


def test_other_directories_are_left_out(root, tmp_path):
    for folder in ("node_modules/x", ".venv/lib", ".git", "__pycache__"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text("feed = 1\n")
    (tmp_path / "b.py").write_text("feed = 1\n")
    (tmp_path / "out").symlink_to("..")
    assert found(search_symbol(root, "feed").text) == ["b.py:1 variable"]


def test_what_git_ignores_is_left_out(root, tmp_path):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", str(tmp_path)], env=environment, check=True, timeout=30)
    (tmp_path / ".gitignore").write_text("build/\n")
    for folder in ("build", "node_modules", "src"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ä.py").write_text("feed = 1\n")
    assert found(search_symbol(root, "feed").text) == ["src/ä.py:1 variable"]
    # the root itself may be what git ignores
    with Root(tmp_path / "build") as inner:
        assert found(search_symbol(inner, "feed").text) == ["ä.py:1 variable"]


def test_broken_and_strange_files_do_no_harm(root, tmp_path):
    (tmp_path / "broken.py").write_text("def feed(:\n  ((((\nclass feed\n")
    (tmp_path / "binary.py").write_bytes(b"feed\0\1\2")
    (tmp_path / "latin.py").write_bytes(b"# caf\xe9\ndef feed(): pass\n")
    (tmp_path / "deep.py").write_text("feed = " + "(" * 20_000 + ")" * 20_000)
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "mac.py").write_bytes(b"x = 1\rdef feed(): pass\r")
    (tmp_path / "wide.py").write_bytes("\ufeffx = '\U0001f600'\r\ndef feed(): pass\r\n".encode("utf-16-le"))
    os.mkfifo(tmp_path / "pipe.py")
    hits = found(search_symbol(root, "feed").text)
    assert {"latin.py:2 function", "mac.py:2 function", "wide.py:2 function"} <= set(hits)


def test_without_the_extra(root, monkeypatch):
    monkeypatch.setitem(sys.modules, "ast_grep_py", None)
    with pytest.raises(MissingExtraError, match=r"extra 'coding'.*streamparse-toolcalls\[coding\].*grep"):
        search_symbol(root, "feed")
