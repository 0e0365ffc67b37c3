"""Documents for the properties: well-formed ones with what they mean, broken ones, and soup.

The renderer here is the tests' own: it shares no line with the library. A document is a list of *pieces*, each with the
place in which the stream stands behind it, so that a test knows for every character where a cut there falls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from streamparse import NativeDecoder
from streamparse.decoding.native import decode
from streamparse.events import Event, Reasoning, Text, ToolCallFinished

# -- dialects, as their models write them ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dialect:
    """The tags of a dialect, and the white space that its chat template puts around them."""

    name: str
    calls: tuple[str, str]
    call: tuple[str, str]  # before and after the name
    call_end: str
    argument: tuple[str, str]
    argument_end: str
    quote: str  # around a name
    margin: str  # on each side of a value, and of reasoning: belongs to the format
    turn: str
    end_of_turn: str
    kind: Literal["arguments", "json"] = "arguments"

    @property
    def tags(self) -> tuple[str, ...]:
        """Every tag, in full."""
        found = (*self.calls, self.call[0], self.call_end, self.argument[0], self.argument_end)
        return tuple(tag for tag in (*found, "<think>", "</think>", self.turn, self.end_of_turn) if tag)


M2 = Dialect(
    "minimax_m2",
    ("<minimax:tool_call>", "</minimax:tool_call>"),
    ('<invoke name="', '">'),
    "</invoke>",
    ('<parameter name="', '">'),
    "</parameter>",
    '"',
    "",
    "]~b]",
    "[e~[",
)
QWEN = Dialect(
    "qwen3_coder",
    ("<tool_call>", "</tool_call>"),
    ("<function=", ">"),
    "</function>",
    ("<parameter=", ">"),
    "</parameter>",
    "",
    "\n",
    "<|im_start|>",
    "<|im_end|>",
)
HERMES = Dialect(
    "hermes",
    ("<tool_call>", "</tool_call>"),
    ("", ""),
    "",
    ("", ""),
    "",
    "",
    "\n",
    "<|im_start|>",
    "<|im_end|>",
    "json",
)
DIALECTS = (M2, HERMES, QWEN)

# -- documents ---------------------------------------------------------------------------------------------------------

Start: TypeAlias = Literal["text", "reasoning"]
STARTS: SearchStrategy[Start] = st.sampled_from(("text", "reasoning"))

Place = Literal["text", "reasoning", "envelope", "envelope with calls", "name", "call", "key", "value", "payload"]


@dataclass(frozen=True)
class Piece:
    """A piece of a document. ``kind`` is ``tag``, ``space`` (of the format) or what the text is; ``place`` is where the
    stream stands behind it."""

    text: str
    kind: str
    place: Place


@dataclass(frozen=True)
class Call:
    """A call as it must come out."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, repr=False)
class Document:
    """An answer of a model. ``said`` is what it means: ``("text", …)``, ``("reasoning", …)`` and calls, in order."""

    dialect: Dialect
    start: Start
    tools: list[dict[str, Any]] | None
    pieces: tuple[Piece, ...]
    said: tuple[tuple[str, str] | Call, ...] = ()

    @property
    def text(self) -> str:
        """The whole answer."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def calls(self) -> list[Call]:
        """The calls of a well-formed document."""
        return [item for item in self.said if isinstance(item, Call)]

    @property
    def options(self) -> dict[str, Any]:
        """What a decoder needs to know beside the dialect."""
        return {"tools": self.tools, "start": self.start}

    def decoder(self, **options: Any) -> NativeDecoder:
        """A decoder for it."""
        return NativeDecoder(self.dialect.name, **{**self.options, **options})

    def decode(self, finish_reason: str | None = "stop", **options: Any) -> list[Event]:
        """Its events, fed whole."""
        return decode(self.text, self.dialect.name, finish_reason=finish_reason, **{**self.options, **options})

    def run(self, chunks: Iterable[str], finish_reason: str | None = "stop", **options: Any) -> list[Event]:
        """Its events, fed in chunks."""
        decoder = self.decoder(**options)
        events = [event for chunk in chunks for event in decoder.feed(chunk)]
        return events + decoder.close(finish_reason)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:  # enough to paste into a console
        return f"decode({self.text!r}, {self.dialect.name!r}, tools={self.tools!r}, start={self.start!r})"


def said_by(events: Iterable[Event]) -> list[tuple[str, str] | Call]:
    """Events, as far as a document says them: text and reasoning joined over everything but a sealed call."""
    said: list[tuple[str, str] | Call] = []
    for event in events:
        if isinstance(event, Text | Reasoning):
            kind = "text" if isinstance(event, Text) else "reasoning"
            before = said[-1] if said else None
            if isinstance(before, tuple) and before[0] == kind:
                said[-1] = (kind, before[1] + event.text)
            else:
                said.append((kind, event.text))
        elif isinstance(event, ToolCallFinished):
            said.append(Call(event.call.name, event.call.arguments))
    return said


# -- texts -------------------------------------------------------------------------------------------------------------

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\r")
"""Any character that UTF-8 has, but the carriage return: before a line feed that belongs to a margin, it does, too."""

# fmt: off
CRUMBS = [
    "<", "</", ">", "/", "`", '"', "'", "=", " ", "\n", "\n\n", "\t", "a", "é", "𝄞", "name=", "<x>", "</x>", "&lt;",
    "<inv", "</para", "<minimax:tool_", "</minimax:", "<thin", "</thi", "]~", "[e~", "]]>", "<![CDATA[", "{", "}",
    "```\n", "~~~", "\\", "\\n", "null", "true", "42", "<tool_ca", "</tool_ca", "<func", "<|im_", "，", "\u2028",
]
# fmt: on


def texts(*, max_size: int = 6) -> SearchStrategy[str]:
    """Text without a whole tag of any dialect: crumbs of tags, quotes, line breaks, any character."""
    pieces = st.sampled_from(CRUMBS) | st.text(CHARACTERS, max_size=4) | st.sampled_from(["word ", "Ωmega", "x\ny"])
    return st.lists(pieces, max_size=max_size).map("".join).filter(lambda text: _NO_TAG.search(text) is None)


_NO_TAG = re.compile(
    "|".join(re.escape(tag) for dialect in DIALECTS for tag in dialect.tags)
    + r"|<invoke |<parameter |</mm:think>|]~!b\[|invoke name="
)


def _lines(dialect: Dialect) -> list[str]:
    """Text that mentions tags without meaning them (N3, N11, N16)."""
    mentions = ["x <think> y", "a </think> b", "use ` <think>` here", "x `<think>`."]
    if dialect is M2:
        mentions += ["write `<minimax:tool_call>` to call.", "x <minimax:tool_call> y", "x </minimax:tool_call> y"]
        mentions += ['x <invoke name="f"> y', "x </parameter> y", "x </invoke> y"]
        mentions += ["x [TOOL_CALL] y", "x <tool_call>{} y"]
    elif dialect is QWEN:
        mentions += ["write `<tool_call>` to call.", "x <tool_call> y", "x </tool_call> y", "x </parameter> y"]
    else:
        mentions += ["write `<tool_call>` to call.", "x <tool_call> y", "x </tool_call> y"]
    return mentions


def prose(dialect: Dialect) -> SearchStrategy[str]:
    """Visible text: anything, and mentions of tags that do not count."""
    whole = st.lists(texts(max_size=4) | st.sampled_from(_lines(dialect)), max_size=3).map(" w ".join)
    return whole.filter(lambda text: bool(text.strip()) and not text.endswith((" ", "\n", "\t", "\r"))).map(_solid)


def _solid(text: str) -> str:
    """Text whose ends are no white space of any kind, so that margins do not reach into it."""
    return f"{'' if text[0].strip() else '.'}{text}{'' if text[-1].strip() else '.'}"


def thoughts(dialect: Dialect) -> SearchStrategy[str]:
    """Reasoning that does not end early."""
    mentions = ["the `</think>` tag", "x <think> y", "then <", "x </mm:think> y", "a </thin"]
    if dialect is M2:
        mentions += ["x <minimax:tool_call> y", "`<minimax:tool_call>`", "</invoke>"]
    parts = st.lists(texts(max_size=3) | st.sampled_from(mentions), max_size=3)
    return parts.map(" w ".join).map(lambda text: _solid(text or "h"))


# -- values ------------------------------------------------------------------------------------------------------------


def tagged(dialect: Dialect) -> SearchStrategy[str]:
    """Strings that hold tags and must come back whole by N5: every closing tag of a value in them is followed by other
    text, or closes a quoted pair."""
    if dialect.kind == "json":
        return st.lists(texts() | st.sampled_from(dialect.tags), max_size=4).map("".join)
    pair = f"{dialect.argument[0]}quoted{dialect.argument[1]}"
    end = dialect.argument_end
    call = f"{dialect.call[0]}f{dialect.call[1]}\n{pair}1{end}\n{dialect.call_end}\n"
    pieces = [
        f"{end}x",
        f"{end}\n  <hello></hello>",
        f"{end} .{end}.",
        f"{end}\n</other>",
        f"{pair}v{end}",
        f"\n{pair}\nv\n{end}\n",
        f"{pair}{end}",
        f"{pair}{pair}{end}{end}",
        call,
        f"{dialect.calls[0]}\n{call}{dialect.calls[1]}\n",
        f"{dialect.calls[0]}\n{call}{call}{dialect.calls[1]}",
        dialect.call_end,
        f"{dialect.call_end}\n",
        *dialect.calls,
        "<think>",
        "</think>",
        f"{dialect.call[0]}g{dialect.call[1]}",
        dialect.argument_end[:-1],
        dialect.argument[0][:-2],
        f"{dialect.end_of_turn}\n",
        dialect.turn,
    ]
    inner = st.lists(texts(max_size=3) | st.sampled_from(pieces), max_size=4).map("".join)
    # N5, last resort: a quoted call and then the marker that ends the turn end the value.
    resort = re.compile(re.escape(dialect.calls[1]) + r"\s*" + re.escape(dialect.end_of_turn))
    return inner.filter(lambda text: resort.search(text) is None).map(
        lambda text: text if _ends_solid(text, dialect) else text + "."
    )


def _ends_solid(text: str, dialect: Dialect) -> bool:
    """Whether the value's own closing tag cannot complete something that stands at the end of the text."""
    return not re.search(re.escape(dialect.argument_end) + r"\s*$|[<=\"'\s/][^>\n]*$", text) or not _NO_TAG.search(text)


SCALARS = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)


def nested(strings: SearchStrategy[str]) -> SearchStrategy[Any]:
    """JSON values of any shape."""
    return st.recursive(
        SCALARS | strings,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
        max_leaves=6,
    )


def _is_container(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


def _is_json(text: str) -> bool:
    try:
        json.loads(text.strip())
    except (ValueError, RecursionError):
        return text.strip().lower() in ("none", "null", "true", "false")
    return True


def wire(value: Any) -> str:
    """A value as the chat template writes it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Kind:
    """A schema, and the values that its text form stands for."""

    schema: dict[str, Any]
    values: Callable[[Dialect], SearchStrategy[Any]]


def _objects(dialect: Dialect) -> SearchStrategy[Any]:
    # N6: inside a JSON string of a parameter that can only be a container any tag is data, whatever follows it.
    strings = tagged(dialect) | st.lists(st.sampled_from([*dialect.tags, "\n", "x"]), max_size=6).map("".join)
    return st.dictionaries(strings, nested(strings), max_size=3)


def _arrays(dialect: Dialect) -> SearchStrategy[Any]:
    strings = tagged(dialect) | st.lists(st.sampled_from([*dialect.tags, "\n", "x"]), max_size=6).map("".join)
    return st.lists(nested(strings), max_size=3)


def _untyped(dialect: Dialect) -> SearchStrategy[Any]:
    plain = nested(texts(max_size=3))
    containers = st.lists(plain, max_size=2) | st.dictionaries(texts(max_size=2), plain, max_size=2)
    return tagged(dialect).filter(lambda text: not _is_container(text)) | containers


KINDS = (
    Kind({"type": "string"}, tagged),
    Kind({"type": "string"}, lambda dialect: texts()),
    Kind({"type": "integer"}, lambda dialect: st.integers(-(10**30), 10**30)),
    Kind({"type": "number"}, lambda dialect: st.floats(allow_nan=False, allow_infinity=False) | st.integers()),
    Kind({"type": "boolean"}, lambda dialect: st.booleans()),
    Kind({"type": "null"}, lambda dialect: st.none()),
    Kind({"type": "object"}, _objects),
    Kind({"type": "array"}, _arrays),
    Kind({"type": ["string", "null"]}, lambda dialect: st.none() | tagged(dialect).filter(lambda s: not _is_json(s))),
    Kind({"anyOf": [{"type": "integer"}, {"type": "string"}]}, lambda dialect: st.integers() | st.just("four")),
    Kind({"enum": ["a", "b"]}, lambda dialect: st.sampled_from(["a", "b"])),
    Kind({}, _untyped),
)

UNDECLARED = Kind({}, _untyped)  # T5

NAMES = st.sampled_from(["f", "get_weather", "a.b-c", "搜索", "str_replace_editor"])
KEYS = st.sampled_from(["a", "city", "file_text", "ключ", "x-y", "p1", "name", "path"])


@st.composite
def tool_sets(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, dict[str, Kind]]]:
    """Tool definitions, and the kinds of their parameters."""
    kinds: dict[str, dict[str, Kind]] = {}
    for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
        kinds[name] = draw(st.dictionaries(KEYS, st.sampled_from(KINDS), max_size=4))
    tools = [
        {
            "type": "function",
            "function": {
                "name": name,
                "parameters": {"type": "object", "properties": {key: kind.schema for key, kind in parameters.items()}},
            },
        }
        for name, parameters in kinds.items()
    ]
    return tools, kinds


# -- rendering ---------------------------------------------------------------------------------------------------------


class _Writer:
    """Collects the pieces of a document."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.pieces: list[Piece] = []
        self.said: list[tuple[str, str] | Call] = []

    def add(self, text: str, kind: str, place: Place) -> None:
        if text:
            self.pieces.append(Piece(text, kind, place))

    def say(self, kind: str, text: str) -> None:
        if not text:
            return
        before = self.said[-1] if self.said else None
        if isinstance(before, tuple) and before[0] == kind:
            text = before[1] + text
            self.said.pop()
        self.said.append((kind, text))

    def reasoning(self, text: str, opened: bool) -> None:
        dialect = self.dialect
        if not opened:
            self.add("<think>", "tag", "reasoning")
            if dialect.margin:
                self.add("\n", "space", "reasoning")
            else:
                text = "\n" + text
        body = text if dialect.margin else text + "\n"
        self.add(body, "reasoning", "reasoning")
        if dialect.margin:
            self.add("\n", "space", "reasoning")
        self.add("</think>", "tag", "text")
        self.add("\n\n", "space", "text")
        self.say("reasoning", body)

    def text(self, text: str) -> None:
        self.add(text, "text", "text")
        self.say("text", text)

    def envelope(self, calls: list[tuple[Call, dict[str, str]]], after_text: bool) -> None:
        if after_text:
            self.add("\n", "space", "text")
        if self.dialect.kind == "json":
            return self._json_calls(calls)
        opening, closing = self.dialect.calls
        self.add(opening, "tag", "envelope")
        self.add("\n", "space", "envelope")
        for call, raw in calls:
            self._call(call, raw)
        self.add(closing, "tag", "text")
        return None

    def _json_calls(self, calls: list[tuple[Call, dict[str, str]]]) -> None:
        for number, (call, _) in enumerate(calls):
            if number:
                self.add("\n", "space", "text")
            self.add(self.dialect.calls[0], "tag", "payload")
            payload = {"name": call.name, "arguments": call.arguments}
            self.add(f"\n{json.dumps(payload, ensure_ascii=False)}\n", "payload", "payload")
            self.add(self.dialect.calls[1], "tag", "text")
            self.said.append(call)

    def _call(self, call: Call, raw: dict[str, str]) -> None:
        dialect = self.dialect
        self._header(dialect.call, call.name, "name", "call")
        self.add("\n", "space", "call")
        for key, text in raw.items():
            self._header(dialect.argument, key, "key", "value")
            self.add(dialect.margin, "space", "value")
            self.add(text, "value", "value")
            self.add(dialect.margin, "space", "value")
            self.add(dialect.argument_end, "tag", "call")
            self.add("\n", "space", "call")
        self.add(dialect.call_end, "tag", "envelope with calls")
        self.add("\n", "space", "envelope with calls")
        self.said.append(call)

    def _header(self, around: tuple[str, str], name: str, inside: Place, behind: Place) -> None:
        """The tags of a header are ``<invoke `` and ``>``; what is between them is one text."""
        before, after = around
        tag = before[: before.index(" ") + 1] if " " in before else before
        self.add(tag, "tag", inside)
        self.add(before[len(tag) :] + name + after[:-1], inside, inside)
        self.add(after[-1:], "tag", behind)


def _meant(kind: Kind | None, value: Any, dialect: Dialect) -> Any:
    """What a parameter's text means where nothing is declared (T5)."""
    text = wire(value)
    if kind is None:
        return json.loads(text) if _is_container(text) else text
    return value


@st.composite
def documents(
    draw: st.DrawFn,
    dialect: Dialect | None = None,
    *,
    with_tools: bool | None = None,
    start: Start | None = None,
    min_calls: int = 0,
    max_calls: int = 3,
    max_envelopes: int = 2,
    end_of_turn: bool = True,
) -> Document:
    """Well-formed documents, with what they mean."""
    dialect = dialect or draw(st.sampled_from(DIALECTS))
    begins = draw(STARTS) if start is None else start
    tools, kinds = draw(tool_sets())
    typed = draw(st.booleans()) if with_tools is None else with_tools
    writer = _Writer(dialect)
    if begins == "reasoning" or draw(st.booleans()):
        writer.reasoning(draw(thoughts(dialect)), opened=begins == "reasoning")
    envelopes = draw(st.integers(1 if min_calls else 0, max_envelopes))
    after_text = False
    if draw(st.booleans()) or not envelopes:
        writer.text(draw(prose(dialect)))
        after_text = True
    for number in range(envelopes):
        count = draw(st.integers(max(min_calls, 1), max(max_calls, min_calls, 1)))
        calls = [draw(_calls(dialect, kinds, typed)) for _ in range(count)]
        if number and not after_text:
            writer.add("\n", "space", "text")
        writer.envelope(calls, after_text)
        after_text = False
        if draw(st.booleans()):
            writer.add("\n\n", "space", "text")
            writer.text(draw(prose(dialect)))
            after_text = True
    before = writer.pieces[-1].text  # "[e~" and "[e~[" would begin a marker too early
    marked = (before + dialect.end_of_turn).find(dialect.end_of_turn) == len(before)
    if end_of_turn and marked and draw(st.booleans()):
        writer.add(dialect.end_of_turn, "tag", "text")
        writer.add("\n", "space", "text")
    return Document(dialect, begins, tools if typed else None, tuple(writer.pieces), tuple(writer.said))


@st.composite
def _calls(
    draw: st.DrawFn, dialect: Dialect, kinds: dict[str, dict[str, Kind]], typed: bool
) -> tuple[Call, dict[str, str]]:
    name = draw(st.sampled_from(sorted(kinds)))
    chosen = [key for key in kinds[name] if draw(st.booleans())]
    parameters: dict[str, Kind] = {key: kinds[name][key] for key in chosen}
    if draw(st.integers(0, 4)) == 0:
        parameters["undeclared"] = UNDECLARED
    arguments: dict[str, Any] = {}
    raw: dict[str, str] = {}
    for key, kind in parameters.items():
        # Without tools every value is read by T5, and no schema says that its strings hide tags (N6).
        if dialect.kind == "arguments" and not typed:
            kind = draw(st.sampled_from([UNDECLARED, *(k for k in KINDS if k.values not in (_objects, _arrays))]))
        value = draw(kind.values(dialect))
        raw[key] = wire(value)
        declared = (typed and key in kinds[name]) or dialect.kind == "json"
        arguments[key] = _meant(kind if declared else None, value, dialect)
    return Call(name, arguments), raw


# -- broken documents --------------------------------------------------------------------------------------------------

# fmt: off
GARBAGE = [
    "x", "<", ">", '"', "'", "\n", "\n\n\n", " ", "</", "/>", "&", "<b>", "</b>", "oops", "{", "}", "]", "```\n", "=",
    "<think>", "</think>", "</mm:think>", "[e~[", "]~b]ai\n", "]~!b[", "<tool_call>", "</tool_call>", "\r\n",
    "<|im_end|>", "<invoke ", "</invoke>", "<parameter ", "</parameter>", "<minimax:tool_call>", "</minimax:tool_call>",
    '<invoke name="f">', '<parameter name="a">', '<parameter name="quoted">', "<function=f>", "<parameter=a>",
]
# fmt: on


@st.composite
def broken(draw: st.DrawFn, base: SearchStrategy[Document] | None = None) -> Document:
    """A document with markers cut, doubled, deleted, moved, and garbage between the pieces. ``said`` is empty."""
    document = draw(base if base is not None else documents())
    pieces = list(document.pieces)
    for _ in range(draw(st.integers(1, 3))):
        if not pieces:
            break
        at = draw(st.integers(0, len(pieces) - 1))
        piece = pieces[at]
        match draw(st.sampled_from(["cut", "cut", "double", "delete", "garbage", "garbage", "swap", "truncate"])):
            case "cut":
                keep = draw(st.integers(0, len(piece.text)))
                text = piece.text[:keep] if draw(st.booleans()) else piece.text[keep:]
                pieces[at] = replace(piece, text=text)
            case "double":
                pieces.insert(at, piece)
            case "delete":
                del pieces[at]
            case "garbage":
                text = "".join(draw(st.lists(st.sampled_from(GARBAGE), min_size=1, max_size=3)))
                pieces.insert(at, Piece(text, "garbage", piece.place))
            case "swap":
                other = draw(st.integers(0, len(pieces) - 1))
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case "truncate":
                del pieces[at + 1 :]
    return replace(document, pieces=tuple(pieces), said=())


def any_documents(dialect: Dialect | None = None) -> SearchStrategy[Document]:
    """Well-formed and broken ones."""
    return documents(dialect) | broken(documents(dialect)) | soups(dialect)


# -- soup --------------------------------------------------------------------------------------------------------------

SOUP_TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "b": {"type": "string"},
                    "o": {"type": "object"},
                    "l": {"type": "array"},
                    "n": {"type": "integer"},
                    "u": {"type": ["string", "integer", "null"]},
                    "z": {},
                },
            },
        },
    },
    {"type": "function", "function": {"name": "g", "parameters": {"type": "object", "properties": {}}}},
]

# fmt: off
_COMMON = [
    "<think>", "</think>", "\n", "\n", " ", "x", "y z", "`", "```\n", '"', "'", ">", "<", "</", "/>", "\r\n", "\r",
    "{", "}", "[", "]", ",", ":", '"k"', "1", "null", "\\", "é", "\t", "\\u00", "d83d", "//", "/*",
]
_SOUP = {
    M2.name: [
        "<minimax:tool_call>", "</minimax:tool_call>", "<invoke ", "</invoke>", "<parameter ", "</parameter>",
        '<invoke name="f">', '<invoke name="g">\n', '<parameter name="a">', '<parameter name="o">{"x": "',
        '<parameter name="l">[', '<parameter name="n">', "<parameter name=b>", '<parameter name="q">', "name=",
        "</parameter>\n</invoke>\n</minimax:tool_call>", "</parameter>\n</invoke>", "</parameter>\n", "[e~[",
        "]~b]ai\n", "]~b]", "]~!b[", "</mm:think>", "<tool_call>", "[TOOL_CALL]", "\ninvoke name=", "]<]minimax[>[",
        "<invo", "</para", "<minimax:", "<th", "[e", '<parameter name="u">', '<parameter name="z">', 'name="f" x="1"',
        '<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">', '<parameter name="b', "<tool_code>",
    ],
    QWEN.name: [
        "<tool_call>", "</tool_call>", "<function=", "</function>", "<parameter=", "</parameter>", "<function=f>",
        "<parameter=a>", '<parameter=o>{"x": "', "<parameter=n>", "<parameter=q>", "</parameter>\n</function>\n",
        "</parameter>\n</function>\n</tool_call>", "<|im_end|>", "<|im_start|>", "<func", "</para", "<tool_", "<|im",
        "<tool_call>\n<function=f>\n<parameter=a>\n", "<parameter=l>[", "<parameter=z>", "<parameter=u>",
    ],
    HERMES.name: [
        "<tool_call>", "</tool_call>", '{"name": "f", "arguments": {', '"a": "', '"}}', "}}", '<tool_call>\n{"name": "',
        'f", "arguments": {"a": "', '{"arguments": {"a": 1}, "name": "f"}', "<|im_end|>", "<|im_start|>", "<tool_c",
        "</tool_", "</tool_call>\n<tool_call>", '"name"', '"arguments"',
    ],
}
# fmt: on


def fragments(dialect: Dialect) -> list[str]:
    """The pieces of which soup is made."""
    return [*_COMMON, *_SOUP[dialect.name]]


@st.composite
def soups(draw: st.DrawFn, dialect: Dialect | None = None, *, max_size: int = 14) -> Document:
    """Tags, pieces of tags and text in any order."""
    dialect = dialect or draw(st.sampled_from(DIALECTS))
    parts = draw(st.lists(st.sampled_from(fragments(dialect)), max_size=max_size))
    tools = draw(st.sampled_from([None, SOUP_TOOLS]))
    start = draw(STARTS)
    return Document(dialect, start, tools, tuple(Piece(part, "soup", "text") for part in parts))


FINISH_REASONS = st.sampled_from([None, "stop", "length", "tool_calls", "error"])

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "close": st.sampled_from(["chain", "first"]),
        "whitespace": st.sampled_from(["verbatim", "strip"]),
        "bare_invoke": st.sampled_from(["text", "call"]),
        "repair": st.integers(0, 3),
    },
)
"""Options of a decoder that change what a text means."""


@st.composite
def chunkings(draw: st.DrawFn, text: str) -> list[str]:
    """A text in pieces of random sizes, empty ones too."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
