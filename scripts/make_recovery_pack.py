"""Write the bundled recovery cases: realistic tools, a right call of each, and what is made wrong with it.

python -m scripts.make_recovery_pack            writes them
python -m scripts.make_recovery_pack --check    says whether they are what this script writes
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from streamparse.agent.recovery import AnswerRule, RecoveryCase, Refusal, case_text, generate

FOLDER = Path(__file__).resolve().parent.parent / "streamparse" / "agent" / "recovery" / "pack"


def tool(name: str, description: str, properties: dict[str, Any], required: list[str], *, read: bool) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    definition: dict[str, Any] = {"name": name, "description": description, "parameters": schema}
    return {**definition, "annotations": {"readOnlyHint": True}} if read else definition


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def one_of(description: str, *values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values), "description": description}


def whole(description: str, low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high, "description": description}


WEATHER = tool(
    "get_weather",
    "Look up the weather of one place now. You must call this when the user asks for a temperature.",
    {"location": text("City and country."), "unit": one_of("Of the temperature.", "celsius", "fahrenheit")},
    ["location", "unit"],
    read=True,
)
TIME = tool("get_time", "Tell the local time of a place.", {"location": text("City.")}, ["location"], read=True)
FORECAST = tool(
    "get_forecast",
    "Look up the forecast of one place. You must call this when the user asks for the weather of coming days.",
    {
        "location": text("City and country."),
        "days": whole("How many days from today.", 1, 10),
        "unit": one_of("Of the temperatures.", "celsius", "fahrenheit"),
        "hourly": {"type": "boolean", "description": "Each hour, not each day."},
    },
    ["location", "days", "unit"],
    read=True,
)
SEARCH = tool(
    "web_search",
    "Search the web. You must call this for facts that may have changed.",
    {
        "query": text("What to look for."),
        "max_results": whole("How many results.", 1, 20),
        "language": one_of("Of the pages.", "en", "de", "fr", "ja"),
    },
    ["query", "max_results"],
    read=True,
)
FETCH = tool("fetch_page", "Read one page.", {"url": text("Its address.")}, ["url"], read=True)
EVENT = tool(
    "create_event",
    "Put an event into the user's calendar. You must call this when the user asks for an appointment.",
    {
        "title": text("A few words."),
        "start": text("Date and time, such as 2026-03-14T09:30."),
        "minutes": whole("How long it takes.", 5, 480),
        "attendees": {"type": "array", "items": text("A mail address."), "description": "Who is invited."},
    },
    ["title", "start", "minutes"],
    read=False,
)
LIST_EVENTS = tool("list_events", "List the events of a day.", {"date": text("2026-03-14.")}, ["date"], read=True)
PAYMENT = tool(
    "transfer_money",
    "Send money from the user's account. You must call this only when the user names amount and recipient.",
    {
        "recipient": text("An account."),
        "amount": {"type": "number", "exclusiveMinimum": 0, "maximum": 10000, "description": "In the currency."},
        "currency": one_of("ISO code.", "EUR", "CHF", "USD"),
        "reference": text("What it is for."),
    },
    ["recipient", "amount", "currency", "reference"],
    read=False,
)
BALANCE = tool("get_balance", "Read the balance of the account.", {"currency": text("Its code.")}, [], read=True)
SQL = tool(
    "run_query",
    "Run one SQL query that reads. You must call this when the user asks for numbers out of the shop.",
    {
        "database": one_of("Which one.", "shop", "warehouse"),
        "query": text("One SELECT."),
        "row_limit": whole("Rows at most.", 1, 1000),
    },
    ["database", "query", "row_limit"],
    read=True,
)
TABLES = tool("list_tables", "List the tables of a database.", {"database": text("Its name.")}, ["database"], read=True)
READ_FILE = tool(
    "read_file",
    "Read lines of a file of the project. You must call this before you change a file.",
    {
        "path": text("Relative to the project."),
        "start_line": whole("The first line, from 1.", 1, 100000),
        "end_line": whole("The last line.", 1, 100000),
    },
    ["path", "start_line", "end_line"],
    read=True,
)
WRITE_FILE = tool(
    "write_file",
    "Write a file of the project. You must call this when the user asks for a new file.",
    {"path": text("Relative to the project."), "content": text("All of it.")},
    ["path", "content"],
    read=False,
)
EDIT_FILE = tool(
    "edit_file",
    "Replace a fragment of a file. You must call this when the user asks for a change in a file.",
    {
        "path": text("Relative to the project."),
        "old_text": text("The fragment as it stands there."),
        "new_text": text("What takes its place."),
    },
    ["path", "old_text", "new_text"],
    read=False,
)
RUN = tool("run_command", "Run a command in the project.", {"command": text("The command.")}, ["command"], read=False)
ISSUE = tool(
    "create_issue",
    "File an issue. You must call this when the user reports a fault.",
    {
        "project": text("Its key, such as WEB."),
        "title": text("One line."),
        "priority": one_of("How urgent.", "low", "normal", "high"),
        "labels": {"type": "array", "items": text("A label."), "description": "Any number."},
    },
    ["project", "title", "priority", "labels"],
    read=False,
)
FIND_ISSUE = tool("find_issues", "Find issues.", {"words": text("What to look for.")}, ["words"], read=True)
ROUTE = tool(
    "find_route",
    "Find a way from one place to another. You must call this when the user asks how to get somewhere.",
    {
        "origin": text("Where it begins."),
        "destination": text("Where it ends."),
        "mode": one_of("How to travel.", "walk", "bicycle", "train", "car"),
    },
    ["origin", "destination", "mode"],
    read=True,
)
TRIGGER = tool(
    "schedule_job",
    "Let a job run at a time, or again and again. You must call this when the user wants something done later.",
    {
        "job": text("The name of the job."),
        "trigger": {
            "description": "When it runs.",
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": "at"}, "time": text("Such as 2026-03-14T09:30.")},
                    "required": ["kind", "time"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"kind": {"const": "every"}, "minutes": whole("Between two runs.", 1, 1440)},
                    "required": ["kind", "minutes"],
                    "additionalProperties": False,
                },
            ],
        },
    },
    ["job", "trigger"],
    read=False,
)
LIST_JOBS = tool("list_jobs", "List the jobs.", {"state": text("running, waiting or all.")}, [], read=True)


class Subject(NamedTuple):
    """A tool, what the user asks, the right call, what the tool returns, and what is made wrong."""

    tool: dict[str, Any]
    other: dict[str, Any]
    user: str
    right: dict[str, Any]
    result: Any
    contains: tuple[str, ...]
    kinds: tuple[str, ...]
    wrong: Mapping[tuple[str | int, ...], Any] = {}
    refusal: Refusal | None = None
    contradicts: tuple[str, ...] = ()


SUBJECTS = [
    Subject(
        FORECAST,
        TIME,
        "How will the weather in Oslo, Norway be on the next 3 days? Celsius, please, and each day, not hourly.",
        {"location": "Oslo, Norway", "days": 3, "unit": "celsius", "hourly": False},
        {"highest": 14, "lowest": 6},
        ("14", "6"),
        ("enum", "type", "range", "array_for_string", "two_errors"),
        {("unit",): "kelvin", ("days",): 30},
        contradicts=tuple(
            f"{which} {joint} {value}"
            for which, value in (("highest", 6), ("lowest", 14))
            for joint in ("is", "will be", "of", "at")
        ),
    ),
    Subject(
        SEARCH,
        FETCH,
        "Search the web for 'tallest wooden building', 5 results, pages in English.",
        {"query": "tallest wooden building", "max_results": 5, "language": "en"},
        {"results": [{"title": "Ascent", "metres": 86.6}]},
        ("Ascent",),
        ("type", "range", "missing", "extra", "unclosed_json"),
        {("max_results",): 50},
        contradicts=("Mjøstårnet",),
    ),
    Subject(
        EVENT,
        LIST_EVENTS,
        "Put 'Dentist' into my calendar for 2026-03-14T09:30, 45 minutes, and invite ada@example.com.",
        {"title": "Dentist", "start": "2026-03-14T09:30", "minutes": 45, "attendees": ["ada@example.com"]},
        {"event_id": "EV-2207"},
        ("EV-2207",),
        ("type", "missing", "range", "extra", "truncated_envelope"),
        {("minutes",): 900},
    ),
    Subject(
        PAYMENT,
        BALANCE,
        "Send 49.5 EUR to CH93-0076 with the reference 'invoice 118'.",
        {"recipient": "CH93-0076", "amount": 49.5, "currency": "EUR", "reference": "invoice 118"},
        {"confirmation": "TX-9310"},
        ("TX-9310",),
        ("enum", "type", "range", "two_errors", "unclosed_json"),
        {("currency",): "Euro", ("amount",): 49500},
    ),
    Subject(
        SQL,
        TABLES,
        "How many orders are in the database shop? Use SELECT COUNT(*) FROM orders, and a row limit of 10.",
        {"database": "shop", "query": "SELECT COUNT(*) FROM orders", "row_limit": 10},
        {"rows": [[1842]]},
        ("1842",),
        ("enum", "array_for_string", "two_errors", "unclosed_json"),
        {("database",): "orders"},
    ),
    Subject(
        READ_FILE,
        RUN,
        "Show me the lines 10 to 20 of src/app.py.",
        {"path": "src/app.py", "start_line": 10, "end_line": 20},
        {"text": "def main(port):"},
        ("def main(port)",),
        ("missing", "range", "array_for_string", "refused"),
        {("start_line",): 0, ("path",): "app.py"},
        Refusal(("path",), ("src/app.py", "src/cli.py"), "there is no such file"),
        ("def main()",),
    ),
    Subject(
        WRITE_FILE,
        RUN,
        "Write the file notes/plan.md. Its content is: Monday the parser, Tuesday the tests, Friday the release.",
        {"path": "notes/plan.md", "content": "Monday the parser, Tuesday the tests, Friday the release."},
        {"written": 57},
        ("57",),
        ("truncated_parameter", "truncated_envelope", "array_for_string"),
    ),
    Subject(
        EDIT_FILE,
        READ_FILE,
        "In src/config.py, replace 'TIMEOUT = 30' by 'TIMEOUT = 120'.",
        {"path": "src/config.py", "old_text": "TIMEOUT = 30", "new_text": "TIMEOUT = 120"},
        {"changed_line": 17},
        ("17",),
        ("missing", "extra", "truncated_parameter", "refused"),
        {("old_text",): "TIMEOUT=30"},
        Refusal(("old_text",), ("TIMEOUT = 30",), "the fragment does not stand in the file"),
    ),
    Subject(
        ISSUE,
        FIND_ISSUE,
        "File an issue in the project WEB: title 'Login button does nothing', priority high, labels login and ui.",
        {"project": "WEB", "title": "Login button does nothing", "priority": "high", "labels": ["login", "ui"]},
        {"key": "WEB-771"},
        ("WEB-771",),
        ("enum", "type", "two_errors"),
        {("priority",): "urgent"},
    ),
    Subject(
        ROUTE,
        WEATHER,
        "How do I get from Basel to Luzern by train?",
        {"origin": "Basel", "destination": "Luzern", "mode": "train"},
        {"minutes": 61, "changes": 2},
        ("61", "2"),
        ("enum", "extra", "truncated_parameter", "refused"),
        {("mode",): "rail", ("destination",): "Lucern"},
        Refusal(("destination",), ("Luzern", "Lugano"), "no station has this name"),
    ),
    Subject(
        TRIGGER,
        LIST_JOBS,
        "Let the job 'backup' run every 30 minutes.",
        {"job": "backup", "trigger": {"kind": "every", "minutes": 30}},
        {"job_id": "J-15"},
        ("J-15",),
        ("union", "range", "truncated_envelope"),
        {("trigger", "kind"): "each", ("trigger", "minutes"): 3000},
    ),
    Subject(
        TRIGGER,
        LIST_JOBS,
        "Let the job 'report' run at 2026-03-14T09:30.",
        {"job": "report", "trigger": {"kind": "at", "time": "2026-03-14T09:30"}},
        {"job_id": "J-16"},
        ("J-16",),
        ("union", "missing"),
        {("trigger", "kind"): "once"},
    ),
]
"""In the order in which they are numbered."""


def stock() -> RecoveryCase:
    """A3: asked for in celsius, called in kelvin."""
    [case] = generate(
        WEATHER,
        [TIME],
        arguments={"location": "Bern, Switzerland", "unit": "celsius"},
        user="How warm is it in Bern, Switzerland? Please tell me in celsius.",
        result={"temperature": 17.5},
        answer=AnswerRule(("17.5",)),
        wrong={("unit",): "kelvin"},
        kinds=("enum",),
    )
    return msgspec.structs.replace(case, name="stock", title=title(case))


def title(case: RecoveryCase) -> str:
    return f"{case.kind.replace('_', ' ')}: {case.tool}, {', '.join(str(fix.path[-1]) for fix in case.fixes)}"


def pack() -> dict[str, str]:
    """The files, by name."""
    files = {"stock.json": case_text(stock())}
    for number, subject in enumerate(SUBJECTS, 1):
        cases = generate(
            subject.tool,
            [subject.other],
            arguments=subject.right,
            user=subject.user,
            result=subject.result,
            answer=AnswerRule(subject.contains, subject.contradicts),
            wrong=subject.wrong,
            refusal=subject.refusal,
            kinds=subject.kinds,
            name=f"{number:02}_{subject.tool['name']}",
        )
        found = tuple(case.kind for case in cases)
        assert found == subject.kinds, f"{subject.tool['name']}: no place for {set(subject.kinds) - set(found)}"
        for case in cases:
            files[f"{case.name}.json"] = case_text(msgspec.structs.replace(case, title=title(case)))
    return files


def main() -> int:
    files = pack()
    if sys.argv[1:] == ["--check"]:
        found = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.json")}
        wrong = sorted(name for name in {*files, *found} if files.get(name) != found.get(name))
        print("".join(f"{name}: run python -m scripts.make_recovery_pack\n" for name in wrong), end="", file=sys.stderr)
        return 1 if wrong else 0
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for name, content in files.items():
        (FOLDER / name).write_text(content, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
