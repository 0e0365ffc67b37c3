"""The package as users get it: its public names, its wheel, its lock, and what no file of the project may say."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path
from types import ModuleType

import pytest

import streamparse
from tests.conftest import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
GRAMMARS = sorted(path.name for path in (ROOT / "grammars").glob("*.lark"))

ONE_CALL = (
    "<minimax:tool_call>\n"
    '<invoke name="get_weather">\n<parameter name="city">Bern</parameter>\n</invoke>\n'
    "</minimax:tool_call>"
)


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


# Public names


def public_order(name: str) -> tuple[int, str]:
    """CONSTANTS, then Classes, then functions: the order that `ruff check --fix` (RUF022) keeps."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def test_all_is_sorted_and_resolves():
    names = list(streamparse.__all__)
    assert names == sorted(set(names), key=public_order)
    for name in names:
        assert getattr(streamparse, name) is not None


def test_all_is_complete():
    public = {
        name
        for name, value in vars(streamparse).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public - {"annotations", "TYPE_CHECKING", "Any", "import_module"} <= set(streamparse.__all__)


def test_typing_is_shipped():
    assert (ROOT / "streamparse" / "py.typed").read_bytes() == b""


def test_version_has_one_place():
    version = PROJECT["version"]
    assert importlib.metadata.version(PROJECT["name"]) == version
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert getattr(streamparse, "__version__", version) == version


# Distributions. What users install is built in two steps, as build front ends do it: the source distribution from the
# checkout, the wheel from that. So both are tested, and nothing in the wheel can come from outside the former.


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    dist = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", dist, cwd=ROOT)
    [archive] = dist.iterdir()
    with tarfile.open(archive) as tar:
        tar.extractall(dist, filter="data")
    return dist / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory) -> Path:
    dist = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", dist, cwd=sdist)
    [path] = dist.iterdir()
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The Python of a clean environment with the wheel. The dependencies are those of this environment."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    options = ["--no-index", "--no-deps", "--quiet", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, wheel, cwd=home)
    # A path file, not PYTHONPATH: it comes after what the clean environment has itself, and path files in the directory
    # that it names are not read. So the checkout, which is installed there by such a file, cannot be found.
    ours = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    (ours / "dependencies.pth").write_text(str(Path(pytest.__file__).parents[1]), encoding="utf-8")
    return python


def test_source_distribution_is_complete(sdist):
    names = "grammars tests streamparse/py.typed Makefile constraints.txt LICENSE README.md CHANGELOG.md".split()
    assert [name for name in names if not (sdist / name).exists()] == []


def test_wheel_carries_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert GRAMMARS
    assert {f"streamparse/grammars/{name}" for name in GRAMMARS} <= names
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "streamparse").rglob("*") if path.is_file()}
    assert {name for name in sources if "__pycache__" not in name} <= names
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"streamparse"}


def test_wheel_metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = message_from_bytes(archive.read(name))
    assert metadata["Name"] == "streamparse-toolcalls"
    assert metadata["Version"] == PROJECT["version"]
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert set(metadata.get_all("Provides-Extra", [])) == {"all", "cli", "coding", "otel", "serve"}
    required = {canonical(line) for line in metadata.get_all("Requires-Dist", []) if "extra" not in line}
    assert required == {"anyio", "httpx", "httpx-sse", "jsonschema-rs", "lark", "msgspec"}


def test_wheel_decodes(installed, tmp_path):
    code = f"""
import json, streamparse
events = streamparse.decode({ONE_CALL!r}, "minimax_m2")
calls = [event.call for event in events if isinstance(event, streamparse.ToolCallFinished)]
print(json.dumps([streamparse.__file__, [[call.name, call.arguments] for call in calls]]))
"""
    place, calls = json.loads(run(installed, "-c", code, cwd=tmp_path))
    assert Path(place).is_relative_to(installed.parents[1])
    assert calls == [["get_weather", {"city": "Bern"}]]


def test_wheel_has_the_command(installed, tmp_path):
    (tmp_path / "answer.txt").write_text(ONE_CALL, encoding="utf-8")
    command = installed.with_name("streamparse")
    lines = run(command, "decode", "answer.txt", "--format", "jsonl", cwd=tmp_path).splitlines()
    assert [json.loads(line)["type"] for line in lines][-2:] == ["tool_call_finished", "ended"]


# The lock

LOCK = (ROOT / "constraints.txt").read_text(encoding="utf-8")
ENTRIES = re.split(r"\n(?=[a-z])", re.sub(r"^ *#.*\n", "", LOCK, flags=re.MULTILINE).strip())
ENTRY = re.compile(r"[a-z0-9.-]+==[\w.]+( ; [\w .'<>=!]+)?( \\\n +--hash=sha256:[0-9a-f]{64})+")


def canonical(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_lock_pins_and_hashes():
    """An entry is one exact version, where it is needed, and the hashes of its files. No option, and no address."""
    assert [entry for entry in ENTRIES if not ENTRY.fullmatch(entry)] == []


def test_lock_is_complete():
    """Whatever pyproject.toml asks for is locked (`make lock` was not forgotten)."""
    groups = [*PROJECT["optional-dependencies"].values(), *PYPROJECT["dependency-groups"].values()]
    lists = [PROJECT["dependencies"], *groups]
    wanted = [item for items in lists for item in items if isinstance(item, str)]
    names = {canonical(requirement) for requirement in wanted} - {PROJECT["name"]}
    assert names <= {canonical(entry) for entry in ENTRIES}


# What no file may say: the host of a registry, a place of the machine that it was made on. (They are put together here,
# so that this file does not say them.)

HOSTS = [f"{name}.org" for name in ("pypi", "pythonhosted", "npmjs", "debian")]
PLACES = [f"/{place}/" for place in ("root", "work", "opt/pypi", "opt/wheels", "etc/xdg")]
UNWANTED = re.compile(rf"{'|'.join(map(re.escape, HOSTS))}|(?<![\w.])(?:{'|'.join(PLACES)})")
# The files that say how things are installed name no address and no temporary place at all.
ADDRESS = re.compile(r"\w+://|/tmp/")
FRAME = {"Makefile", "constraints.txt", "pyproject.toml", ".ci/run"}


def project_files() -> list[str]:
    """All files of the checkout that are in git, or would be."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: there is no list of the project's files")
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    return [name for name in listed if (ROOT / name).is_file()]


def test_no_registry_and_no_machine_is_named():
    wrong = []
    for name in project_files():
        text = (ROOT / name).read_bytes().decode("utf-8", errors="replace")
        patterns = [UNWANTED, ADDRESS] if name in FRAME else [UNWANTED]
        wrong += [f"{name}: {found[0]}" for pattern in patterns for found in pattern.finditer(text)]
    assert wrong == []
