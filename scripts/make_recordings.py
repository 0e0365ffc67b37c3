"""Make the recordings that ``streamparse demo`` plays: answers of a coding agent in the format of MiniMax M2.

    python -m scripts.make_recordings            write them into streamparse/demo
    python -m scripts.make_recordings --check    exit code 1 if the bundled ones are not what would be written

The texts are the project's own. The tags come from the renderer, the pieces are tokens (``commands.cutting``), their
times a mean with jitter and a few stalls from a seeded generator: the files are the same, byte for byte, every time.
What is expected stands in the header and is taken from what was rendered, never from decoding.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

from streamparse.commands.cutting import special_tags, tokens
from streamparse.decoding.encode import render_answer
from streamparse.decoding.grammar import load
from streamparse.transport.recording import Header, Piece, write

DIALECT = "minimax_m2"
FOLDER = Path(__file__).resolve().parent.parent / "streamparse" / "demo"

FIRST_TOKEN = 0.35  # seconds
STALLS = 0.008  # the share of tokens that come late
STALL = 0.25  # seconds, at most


def tool(name: str, description: str, required: Sequence[str], **properties: dict[str, Any]) -> dict[str, Any]:
    """A tool definition, OpenAI-style."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
BOOLEAN = {"type": "boolean"}
EDIT = {
    "type": "object",
    "properties": {"start_line": INTEGER, "end_line": INTEGER, "replacement": STRING},
    "required": ["start_line", "end_line", "replacement"],
}

READ_FILE = tool("read_file", "Read lines of a file.", ["path"], path=STRING, start_line=INTEGER, end_line=INTEGER)
SEARCH = tool(
    "search",
    "Search the files of the project.",
    ["pattern"],
    pattern=STRING,
    paths={"type": "array", "items": STRING},
    max_results=INTEGER,
    case_sensitive=BOOLEAN,
)
WRITE_FILE = tool("write_file", "Write a whole file.", ["path", "content"], path=STRING, content=STRING)
EDIT_FILE = tool(
    "edit_file",
    "Replace ranges of lines.",
    ["path", "edits"],
    path=STRING,
    edits={"type": "array", "items": EDIT},
    dry_run=BOOLEAN,
)
RUN_COMMAND = tool(
    "run_command",
    "Run a command.",
    ["command"],
    command=STRING,
    timeout={"type": "number"},
    env={"type": "object", "additionalProperties": STRING},
    stdin={"type": ["string", "null"]},
)


@dataclass(frozen=True)
class Turn:
    """One round of an answer: reasoning, text, an envelope with calls. Reasoning ends its own last line."""

    reasoning: str
    text: str
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@dataclass(frozen=True)
class Script:
    """One recording: what is said, and how fast. ``cut`` ends the stream behind this text of the last call."""

    name: str
    title: str
    look: str
    tools: list[dict[str, Any]]
    turns: list[Turn]
    rate: float  # tokens a second
    seed: int
    start: Literal["text", "reasoning"] = "reasoning"
    finish_reason: str = "tool_calls"
    cut: str = ""
    deviations: list[str] = field(default_factory=list)


def raw_text(script: Script) -> str:
    """The answer as the model writes it."""
    parts = [
        render_answer(
            reasoning=turn.reasoning,
            text=turn.text,
            calls=turn.calls,
            dialect=DIALECT,
            opened=number == 0 and script.start == "reasoning",
            tools=script.tools,
            check=False,  # the tests decode what is written here
        )
        for number, turn in enumerate(script.turns)
    ]
    text = "\n".join(parts)
    return text[: text.index(script.cut) + len(script.cut)] if script.cut else text


def expected(script: Script) -> dict[str, Any]:
    """What has to come out, in the form of ``streamparse.demo.expectation``."""
    calls = [{"name": name, "arguments": arguments} for turn in script.turns for name, arguments in turn.calls]
    failed = [{"name": calls.pop()["name"], "code": "unclosed_parameter"}] if script.cut else []
    return {
        "reasoning": "".join(turn.reasoning for turn in script.turns),
        "text": "".join(turn.text for turn in script.turns),
        "calls": calls,
        "failed": failed,
        "deviations": script.deviations,
        "clean": not failed,
    }


def timed(texts: Iterator[str], script: Script) -> Iterator[Piece]:
    """The pieces with the time of their coming."""
    random = Random(script.seed)  # only random(): its numbers are the same in every version of Python
    at = FIRST_TOKEN * (1 + random.random())
    for text in texts:
        yield Piece(round(at, 3), text)
        at += (0.4 + 1.2 * random.random()) / script.rate
        at += STALL * random.random() if random.random() < STALLS else 0.0


def recording(script: Script) -> str:
    """The text of one recording."""
    header = Header(
        title=script.title,
        look=script.look,
        dialect=DIALECT,
        start=script.start,
        finish_reason=script.finish_reason,
        tools=script.tools,
        expected=expected(script),
    )
    cut = tokens(raw_text(script), special_tags(load(DIALECT)))
    return write(header, timed(cut, script))


def recordings() -> dict[str, str]:
    """All recordings, by the names of their files."""
    return {f"{script.name}.jsonl": recording(script) for script in [*SCRIPTS, *AGENT]}


def main(arguments: Sequence[str]) -> int:
    """Write the recordings, or check the bundled ones."""
    if list(arguments) not in ([], ["--check"]):
        sys.stderr.write(f"usage: {Path(__file__).name} [--check]\n")
        return 2
    made = recordings()
    files = [file.relative_to(FOLDER).as_posix() for file in sorted(FOLDER.rglob("*.jsonl"))]
    bundled = {name: (FOLDER / name).read_text(encoding="utf-8") for name in files}
    if arguments:
        different = sorted(name for name in made | bundled if made.get(name) != bundled.get(name))
        sys.stdout.writelines(f"{name} is not what this script makes\n" for name in different)
        return 1 if different else 0
    for name in bundled.keys() - made.keys():
        (FOLDER / name).unlink()
    for name, text in made.items():
        (FOLDER / name).parent.mkdir(exist_ok=True)
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
    return 0


# The texts ----------------------------------------------------------------------------------------------------

PARALLEL = Script(
    name="1_parallel_calls",
    title="Interleaved reasoning, parallel calls",
    look="Two calls in one envelope, each started as soon as its name is certain; then the reasoning goes on.",
    tools=[READ_FILE, SEARCH, RUN_COMMAND],
    rate=75,
    seed=1,
    turns=[
        Turn(
            reasoning=(
                "Page two of the ticket list begins with the last ticket of page one. That smells like an "
                "offset that is computed from the page number, while the query orders by a column with equal "
                "values: created_at has a resolution of one second, and the importer writes hundreds of "
                "tickets a second.\n\n"
                "I need two things before I touch anything: where the list is paged, and what the tests pin "
                "down today. They do not depend on each other, so I can ask for both at once.\n"
            ),
            text="I'll look at how the list is paged, and where else the same helper is used.",
            calls=[
                ("read_file", {"path": "src/tickets/listing.py", "start_line": 1, "end_line": 80}),
                (
                    "search",
                    {
                        "pattern": r"paginate\(|LIMIT \? OFFSET \?",
                        "paths": ["src", "tests"],
                        "max_results": 40,
                        "case_sensitive": True,
                    },
                ),
            ],
        ),
        Turn(
            reasoning=(
                "\nWhile these are on their way: whatever the code looks like, a test should fail first. "
                "Twenty tickets with one and the same created_at, page size seven, and the union of the "
                "pages has to be all twenty, each once. Let me see whether the suite runs here at all.\n"
            ),
            text="Meanwhile, the tests as they are now:",
            calls=[("run_command", {"command": 'python -m pytest -q tests/test_listing.py -k "page and not slow"'})],
        ),
    ],
)

TEST_FILE = '''"""What the gateway makes of tool calls that arrive in pieces.

The models behind the gateway write their calls as text, and the gateway has to find them while it is still coming. An
answer with one call looks like this on the wire:

<minimax:tool_call>
<invoke name="get_weather">
<parameter name="city">Bern</parameter>
<parameter name="days">3</parameter>
</invoke>
</minimax:tool_call>

Values are raw. A value may hold line breaks, quotes, angle brackets, and whatever else the user asked for; this file,
for one, was written by a call of that very form, and it is full of tags. So the end of a value is never just the next
</parameter> in the text: it counts only where something follows that may follow.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Iterator

import pytest

from gateway.stream import Call, Delta, Problem, StreamReader

OPEN = "<minimax:tool_call>\\n"
CLOSE = "</minimax:tool_call>"
END = "</parameter>"


def call(name: str, **arguments: str) -> str:
    """One call without its envelope, as a model writes it."""
    lines = [f\'<invoke name="{name}">\']
    lines += [f\'<parameter name="{key}">{value}{END}\' for key, value in arguments.items()]
    return "\\n".join([*lines, "</invoke>"])


def envelope(*calls: str) -> str:
    """Several calls in one envelope."""
    return OPEN + "\\n".join(calls) + "\\n" + CLOSE


def read(text: str, cuts: Iterable[int] = ()) -> list[Call | Delta | Problem]:
    """All that comes out of a text that is cut at these places."""
    reader = StreamReader(tools=TOOLS)
    places = [0, *sorted(cuts), len(text)]
    found = []
    for start, end in itertools.pairwise(places):
        found += reader.feed(text[start:end])
    return found + reader.close()


def calls(found: Iterable[object]) -> list[tuple[str, dict[str, object]]]:
    """Only the calls that were sealed."""
    return [(item.name, item.arguments) for item in found if isinstance(item, Call)]


def every_cut(text: str) -> Iterator[list[int]]:
    """No cut, each single cut, and a cut behind every character."""
    yield []
    yield from ([place] for place in range(1, len(text)))
    yield list(range(1, len(text)))


TOOLS = {
    "get_weather": {"city": "string", "days": "integer"},
    "save_note": {"title": "string", "body": "string"},
    "set_flags": {"flags": "object", "dry_run": "boolean"},
    "now": {},
}


# One call ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("city", ["Bern", "São Paulo", "東京", "O\'Fallon", " leading", "trailing ", ""])
def test_a_string_stays_as_it_is(city: str) -> None:
    text = envelope(call("get_weather", city=city, days="3"))
    for cuts in every_cut(text):
        assert calls(read(text, cuts)) == [("get_weather", {"city": city, "days": 3})]


@pytest.mark.parametrize(("raw", "value"), [("0", 0), ("-7", -7), ("12345678901234567890", 12345678901234567890)])
def test_integers_are_exact(raw: str, value: int) -> None:
    [(_, arguments)] = calls(read(envelope(call("get_weather", city="Bern", days=raw))))
    assert arguments["days"] == value
    assert type(arguments["days"]) is int


def test_a_call_without_parameters_is_a_call() -> None:
    text = envelope("<invoke name=\\"now\\">\\n</invoke>")
    for cuts in every_cut(text):
        assert calls(read(text, cuts)) == [("now", {})]


def test_objects_are_json() -> None:
    flags = {"verbose": True, "retries": [1, 2, 5], "label": "a </parameter> in a string of the JSON"}
    text = envelope(call("set_flags", flags=json.dumps(flags), dry_run="false"))
    for cuts in every_cut(text):
        assert calls(read(text, cuts)) == [("set_flags", {"flags": flags, "dry_run": False})]


# Values that look like the format ---------------------------------------------------------------------------------

QUOTED = """To look up the weather, write

<minimax:tool_call>
<invoke name="get_weather">
<parameter name="city">Bern</parameter>
<parameter name="days">3</parameter>
</invoke>
</minimax:tool_call>

and wait for the answer."""

LOOKALIKES = {
    "a closing tag in a sentence": "Every value ends with </parameter> and nothing else.",
    "a closing tag at the end of a line": "The tag is </parameter>\\nand then the next one comes.",
    "two of them": "</parameter></parameter> is what a nervous model writes.",
    "the end of a call": "Close the call with </invoke>, and the envelope with </minimax:tool_call>.",
    "a pair": "<parameter name=\\"volume\\">11</parameter> goes into the amplifier section.",
    "a pair in configuration": "<server>\\n  <parameter name=\\"port\\">8080</parameter>\\n</server>",
    "another dialect": "<tool_call>{\\"name\\": \\"now\\", \\"arguments\\": {}}</tool_call>",
    "a whole call": QUOTED,
    "half a tag": "</param",
    "brackets": "if (a < b && c > d) { return a<b>(c); }",
    "a closing tag in a program": "END = \\"</parameter>\\"\\nassert text.endswith(END)",
}


@pytest.mark.parametrize("body", LOOKALIKES.values(), ids=LOOKALIKES)
def test_what_looks_like_the_format_is_data(body: str) -> None:
    text = envelope(call("save_note", title="On the format", body=body))
    for cuts in every_cut(text):
        assert calls(read(text, cuts)) == [("save_note", {"title": "On the format", "body": body})]


@pytest.mark.parametrize("body", LOOKALIKES.values(), ids=LOOKALIKES)
def test_and_harms_no_neighbour(body: str) -> None:
    before = call("get_weather", city="Bern", days="1")
    after = call("get_weather", city="Chur", days="2")
    found = calls(read(envelope(before, call("save_note", title="t", body=body), after)))
    assert [name for name, _ in found] == ["get_weather", "save_note", "get_weather"]
    assert [arguments.get("city") for _, arguments in found] == ["Bern", None, "Chur"]


# Chunks -----------------------------------------------------------------------------------------------------------


def test_chunks_make_no_difference() -> None:
    text = envelope(*(call("save_note", title=title, body=body) for title, body in LOOKALIKES.items()))
    whole = calls(read(text))
    assert len(whole) == len(LOOKALIKES)
    chance = random.Random(20)
    for _ in range(50):
        cuts = chance.sample(range(1, len(text)), k=chance.randint(1, 400))
        assert calls(read(text, cuts)) == whole


def test_nothing_waits_without_need() -> None:
    reader = StreamReader(tools=TOOLS)
    start = OPEN + "<invoke name=\\"save_note\\">\\n<parameter name=\\"body\\">"
    reader.feed(start)
    for character in "plain text has no reason to wait":
        assert [item.text for item in reader.feed(character)] == [character]


def test_a_deltas_sum_is_the_value() -> None:
    for body in LOOKALIKES.values():
        found = read(envelope(call("save_note", title="t", body=body)))
        deltas = [item.text for item in found if isinstance(item, Delta) and item.key == "body"]
        assert "".join(deltas) == body


# Several envelopes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("between", ["\\n", "\\n\\n", "\\nNow the other.\\n", "\\nNo `</parameter>` here.\\n"])
def test_an_answer_may_hold_several_envelopes(between: str) -> None:
    first = envelope(call("get_weather", city="Bern", days="1"))
    second = envelope(call("now"), call("save_note", title="t", body=QUOTED))
    for cuts in every_cut(first + between + second):
        names = [name for name, _ in calls(read(first + between + second, cuts))]
        assert names == ["get_weather", "now", "save_note"]


def test_an_envelope_in_a_sentence_is_text() -> None:
    text = "Calls stand between `<minimax:tool_call>` and `</minimax:tool_call>`, each in `<invoke ...>`."
    for cuts in every_cut(text):
        assert calls(read(text, cuts)) == []


@pytest.mark.parametrize("garbage", ["Let me see.", "{}", "<!-- a comment -->", "</parameter>"])
def test_garbage_between_calls_loses_none(garbage: str) -> None:
    one, other = call("get_weather", city="Bern", days="1"), call("get_weather", city="Chur", days="2")
    found = calls(read(envelope(one, garbage, other)))
    assert [arguments["city"] for _, arguments in found] == ["Bern", "Chur"]


# The end of the stream --------------------------------------------------------------------------------------------


def test_a_cut_call_is_never_a_call() -> None:
    text = envelope(call("save_note", title="On the format", body=QUOTED))
    sealed = text.rindex("</invoke>") + len("</invoke>")
    for end in range(len(text)):
        found = read(text[:end])
        if end < sealed:
            assert calls(found) == []
        if len(OPEN) <= end < sealed:
            [problem] = [item for item in found if isinstance(item, Problem)]
            assert problem.offset == end


def test_the_calls_before_the_cut_are_kept() -> None:
    first = call("get_weather", city="Bern", days="1")
    text = envelope(first, call("save_note", title="t", body="a long story, cut in the mid"))
    found = read(text[: text.index("cut in")])
    assert calls(found) == [("get_weather", {"city": "Bern", "days": 1})]
    [problem] = [item for item in found if isinstance(item, Problem)]
    assert problem.expected == ["</parameter>", "text"]
    assert problem.inside == ["calls", "call", "argument"]
'''

LARGE_FILE = Script(
    name="2_large_file",
    title="A large file that contains </parameter> and whole quoted calls",
    look="The file grows line by line. The tags in it are data: watch for the quoted call that does not end it.",
    tools=[READ_FILE, WRITE_FILE, RUN_COMMAND],
    rate=230,
    seed=2,
    deviations=["delimiter_in_value"],
    turns=[
        Turn(
            reasoning=(
                "The user wants a test suite for the gateway's stream reader. Its subject is the call format "
                "itself, so the file will quote calls. That is the interesting case anyway: a reader that "
                "stops at the first closing tag would cut this very file in two.\n"
            ),
            text=(
                "I'll write the suite in one file: single calls, values that look like the format (an opening "
                "`<minimax:tool_call>` in a sentence, too), chunking, and cut streams."
            ),
            calls=[("write_file", {"path": "tests/test_gateway_stream.py", "content": TEST_FILE})],
        )
    ],
)

MIGRATION = """-- Give every ticket a position that never repeats, and page by it.
BEGIN;

ALTER TABLE tickets ADD COLUMN position BIGINT;

WITH numbered AS (
    SELECT id, row_number() OVER (ORDER BY created_at, id) AS number
    FROM tickets
)
UPDATE tickets
SET position = numbered.number
FROM numbered
WHERE tickets.id = numbered.id;

ALTER TABLE tickets ALTER COLUMN position SET NOT NULL;
CREATE UNIQUE INDEX tickets_position ON tickets (position);

-- Old rows first; new ones take the next number from a sequence.
CREATE SEQUENCE tickets_position_seq OWNED BY tickets.position;
SELECT setval('tickets_position_seq', (SELECT max(position) FROM tickets));
ALTER TABLE tickets ALTER COLUMN position SET DEFAULT nextval('tickets_position_seq');

COMMIT;
"""

CUT = Script(
    name="3_cut_stream",
    title="A stream that is cut in the middle of a value",
    look="The first call is sealed and stays sealed. The second fails, with the place and what was expected there.",
    tools=[READ_FILE, WRITE_FILE, RUN_COMMAND],
    rate=75,
    seed=3,
    finish_reason="length",
    cut="CREATE SEQUENCE tickets_pos",
    turns=[
        Turn(
            reasoning=(
                "created_at is not unique, so an offset over it cannot be stable. A position column with a "
                "unique index gives the list a total order, and pages can continue after the last position "
                "that was seen.\n"
            ),
            text="The order needs a column of its own. I'll read the model once more and write the migration.",
            calls=[
                ("read_file", {"path": "src/tickets/models.py", "start_line": 12, "end_line": 57}),
                ("write_file", {"path": "migrations/0014_ticket_position.sql", "content": MIGRATION}),
            ],
        )
    ],
)

TYPED = Script(
    name="4_typed_arguments",
    title="Typed arguments: numbers, booleans, nested JSON",
    look="The edits are one JSON array. Each value in it has a path, and arrives typed, before the array is complete.",
    tools=[READ_FILE, EDIT_FILE, RUN_COMMAND],
    rate=85,
    seed=4,
    turns=[
        Turn(
            reasoning=(
                "Three places have to change together: the query, the cursor that goes to the client, and the "
                "handler that takes it back. One call with three edits, so that the file is never half "
                "changed. Line numbers are those of the file before the edits.\n"
            ),
            text="Three edits in one go, then the tests.",
            calls=[
                (
                    "edit_file",
                    {
                        "path": "src/tickets/listing.py",
                        "edits": [
                            {
                                "start_line": 18,
                                "end_line": 21,
                                "replacement": (
                                    "    rows = db.fetch(\n"
                                    '        "SELECT * FROM tickets WHERE position > ? ORDER BY position LIMIT ?",\n'
                                    "        after,\n        size + 1,\n    )\n"
                                ),
                            },
                            {
                                "start_line": 30,
                                "end_line": 30,
                                "replacement": '    cursor = str(rows[-1]["position"]) if len(rows) > size else None\n',
                            },
                            {
                                "start_line": 44,
                                "end_line": 46,
                                "replacement": (
                                    "    # A cursor is opaque to the client: “position” today, anything tomorrow.\n"
                                    '    after = int(request.query.get("cursor", "0"))\n'
                                ),
                            },
                        ],
                        "dry_run": False,
                    },
                ),
                (
                    "run_command",
                    {
                        "command": "python -m pytest -q tests",
                        "timeout": 90.5,
                        "env": {"TICKETS_DB": "sqlite:///:memory:", "PYTHONWARNINGS": "error"},
                        "stdin": None,
                    },
                ),
            ],
        )
    ],
)

SCRIPTS = [PARALLEL, LARGE_FILE, CUT, TYPED]

# The turns of an agent's conversation (streamparse.demo.agent). The files that it works on, and the test, are real.

REPLACE = tool(
    "edit_file",
    "Replace a piece of a file.",
    ["path", "old_text", "new_text"],
    path=STRING,
    old_text=STRING,
    new_text=STRING,
)
RUN = tool("run_command", "Run a command.", ["command"], command=STRING)


def agent_turn(name: str, seed: int, turn: Turn) -> Script:
    """One answer of the agent."""
    reason = "tool_calls" if turn.calls else "stop"
    return Script(name, name, "", [READ_FILE, REPLACE, RUN], [turn], rate=75, seed=seed, finish_reason=reason)


AGENT = [
    agent_turn(
        "agent_turns/1_read",
        11,
        Turn(
            reasoning=(
                "The last page of a list is missing. I have seen neither the code nor the test, and the two do not "
                "depend on each other: I can read both at once.\n"
            ),
            text="I'll read the code and its test.",
            calls=[("read_file", {"path": "pages.py"}), ("read_file", {"path": "test_pages.py"})],
        ),
    ),
    agent_turn(
        "agent_turns/2_edit",
        12,
        Turn(
            reasoning=(
                "page_count divides and rounds down, so what is left over gets no page. Rounding up without floats: "
                "minus the floor of the negative. An empty list then still has 0 pages, as the test wants.\n"
            ),
            text="`//` rounds down, so the items that are left over get no page.",
            calls=[
                (
                    "edit_file",
                    {
                        "path": "pages.py",
                        "old_text": "    return items // size\n",
                        "new_text": "    return -(-items // size)  # rounded up: what is left over needs a page, too\n",
                    },
                )
            ],
        ),
    ),
    agent_turn(
        "agent_turns/3_test",
        13,
        Turn(
            reasoning="Now the test has to pass.\n",
            text="",
            calls=[("run_command", {"command": "python3 -m unittest -q"})],
        ),
    ),
    agent_turn(
        "agent_turns/4_answer",
        14,
        Turn(
            reasoning="All pass.\n",
            text=(
                "The last page was missing because `page_count` rounded down. It rounds up now, and the tests pass, "
                "also those for a full last page and for an empty list."
            ),
        ),
    ),
]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
