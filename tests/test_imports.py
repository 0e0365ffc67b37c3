"""Data goes one way: each stage knows the one before it, and nothing after it.

The imports are read off the source with ``ast``, for every module there is. All of them count, also those inside a
function or under ``TYPE_CHECKING``: a late import changes when something is loaded, not who knows whom.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = "streamparse"

# A room is a module of the package, or a subpackage with all that is in it. Here: what no module in a room may import.
# The rooms stand in the order of the data; each may know the ones before it.
# The command line, what it shows, what it serves:
FRONT = ["cli", "commands", "demo", "diagram", "recovery_view", "server", "view"]
BANNED = {
    "errors": ["limits", "events", "decoding", "transport", "tools", "agent", *FRONT],
    "limits": ["events", "decoding", "transport", "tools", "agent", *FRONT],
    "events": ["decoding", "transport", "tools", "agent", *FRONT],
    # The machine runs on a table. It knows no grammar, no schema and no value.
    "decoding.scanner": [f"decoding.{name}" for name in ("grammar", "arguments", "values", "toolset", "native")],
    "decoding": ["transport", "tools", "agent", *FRONT],
    "transport": ["tools", "agent", *FRONT],
    "tools": ["transport", "agent", *FRONT],
    "agent": FRONT,
}

# All that transport may know of decoding. It hands payloads to a decoder, and cannot tell how one works inside. What an
# error looks like (C8) is written down once, in ``lenient``, for chunks and for the bodies of responses.
DECODERS = ["decoding.native", "decoding.chat", "decoding.messages", "decoding.encode", "decoding.lenient"]

# Who may import a package, of all rooms.
OWNERS = {
    "lark": ["decoding.grammar"],
    "jsonschema_rs": ["tools"],
    "httpx_sse": ["transport"],
    "httpx": ["transport", "agent", "commands.agent", "commands.record", "commands.recover", "demo"],
    "rich": ["view", "recovery_view"],
    "starlette": ["server"],
    "uvicorn": ["server"],
    "ast_grep_py": ["agent.coding_tools"],
    "rope": ["agent.coding_tools"],
    "opentelemetry": ["agent.spans"],
}

# Up to and including the events: no sockets, no clocks, no threads, no logging, no chance.
SANS_IO = ["errors", "limits", "events", "decoding"]
IO = "anyio asyncio concurrent datetime logging multiprocessing random select socket subprocess threading time".split()

# Rooms that the rules name and that are not built yet. Any other room without a module has been renamed.
COMING: set[str] = set()

CODING = ["ast_grep_py", "rope", "opentelemetry"]

# What `import streamparse` must not load: only some of its users need it.
HEAVY = ["lark", "httpx", "httpx_sse", "jsonschema_rs", "rich", "starlette", "uvicorn", *CODING]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for path in sorted((ROOT / PACKAGE).rglob("*.py"))}


def imports(module: str, *, loaded: bool = False) -> set[str]:
    """The full names of the modules that ``module`` imports; with ``loaded``, without those that only types need."""
    tree = ast.parse(FILES[module].read_text(encoding="utf-8"))
    return {name for node in statements(tree, loaded) for name in targets(node, module)}


def statements(node: ast.AST, loaded: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not (loaded and isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")):
            yield child
            yield from statements(child, loaded)


def targets(node: ast.AST, module: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            package = module.split(".") if FILES[module].name == "__init__.py" else module.split(".")[:-1]
            base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [base])])
        for alias in node.names:  # `from package import name`: the name may be a module
            name = f"{base}.{alias.name}"
            yield name if name in FILES else base


def within(name: str, rooms: list[str]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def members(rooms: list[str]) -> set[str]:
    return {module for module in FILES if within(module, [f"{PACKAGE}.{room}" for room in rooms])}


def offences(modules: set[str], banned: list[str]) -> list[str]:
    """Who imports a name in ``banned``, in words."""
    found = ((module, name) for module in sorted(modules) for name in sorted(imports(module)))
    return [f"{module} imports {name}" for module, name in found if within(name, banned)]


@pytest.mark.parametrize("room", BANNED)
def test_arrows_point_one_way(room):
    assert offences(members([room]), [f"{PACKAGE}.{other}" for other in BANNED[room]]) == []


def test_transport_knows_decoders_only():
    inside = members(["decoding"]) - members(DECODERS) - {f"{PACKAGE}.decoding"}
    assert offences(members(["transport"]), sorted(inside)) == []


@pytest.mark.parametrize("package", OWNERS)
def test_packages_have_owners(package):
    assert offences(set(FILES) - members(OWNERS[package]), [package]) == []


def test_decoding_is_sans_io():
    assert offences(members(SANS_IO), IO) == []


def test_scanner_never_reaches_lark():
    """Not by way of another module either: whoever has a table needs no grammar."""
    reached, todo = set(), sorted(members(["decoding.scanner"]))
    while todo:
        module = todo.pop()
        reached.add(module)
        todo += (imports(module, loaded=True) & set(FILES)) - reached
    assert not reached & members(["decoding.grammar"])


def test_no_cycles():
    graph = {module: (imports(module, loaded=True) & set(FILES)) - {module} for module in FILES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_rules_name_rooms_that_exist():
    named = {*BANNED, *SANS_IO, *DECODERS}.union(*BANNED.values(), *OWNERS.values())
    assert {room for room in named if not members([room])} <= COMING


def test_import_is_light():
    code = f"import json, sys, {PACKAGE}; print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_the_loop_is_light():
    """Its extras are loaded by who uses them: spans, a search, an extraction."""
    code = (
        "import json, sys, streamparse.agent.loop, streamparse.agent.coding_tools; "
        f"print(json.dumps([name for name in {CODING} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []
