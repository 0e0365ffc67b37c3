"""Nothing leaves the root: not by what a path says, not by links, not while somebody swaps directories for links."""

from __future__ import annotations

import gc
import os
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamparse import ClosedError, UsageError
from streamparse.agent.coding_tools import Rejected, Root, ToolError, confine
from streamparse.agent.coding_tools.paths import Missing

SECRET = b"secret of the outside"


@pytest.fixture(name="place")
def place_fixture(tmp_path):
    """A root with an outside beside it. Whatever a test does, the outside is as it was."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    (outside / "d").mkdir(parents=True)
    (outside / "secret.txt").write_bytes(SECRET)
    (outside / "d" / "secret.txt").write_bytes(SECRET)
    (inside / "d").mkdir(parents=True)
    (inside / "d" / "a.txt").write_bytes(b"a")
    before = snapshot(outside)
    yield inside
    assert snapshot(outside) == before


def snapshot(directory: Path):
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None for path in directory.rglob("*")
    }


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_reads_and_writes_inside(place):
    root = Root(place)
    assert root.read("d/a.txt").data == b"a"
    assert root.write("new/deep/b.txt", b"b") == ("new/deep/b.txt", True)
    assert root.write("d/../new/./deep//b.txt", b"c") == ("new/deep/b.txt", False)
    assert (place / "new" / "deep" / "b.txt").read_bytes() == b"c"
    assert [path.name for path in (place / "new" / "deep").iterdir()] == ["b.txt"]  # no temporary file is left


def test_absolute_path_inside_is_taken(place):
    assert Root(place).read(str(place / "d" / "a.txt")).path == "d/a.txt"


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "d/../../outside/secret.txt",
        "/etc/passwd",
        "..",
        "d/../..",
        "../inside2/x",
        "/",
        "//etc/passwd",
    ],
)
def test_outside_is_refused(place, path):
    root = Root(place)
    with pytest.raises(Rejected, match="outside the project"):
        root.read(path)
    with pytest.raises(Rejected, match="outside the project"):
        root.write(path, b"x")


def test_absolute_path_beside_the_root_is_refused(place):
    """``inside2`` starts like ``inside``."""
    (place.parent / "inside2").mkdir()
    with pytest.raises(Rejected, match="outside the project"):
        Root(place).read(f"{place}2/x")


@pytest.mark.parametrize("path", ["", "\0", "a\0b", "x" * 5000, "\ud800"])
def test_what_is_no_path_is_refused(place, path):
    for act in (Root(place).read, lambda path: Root(place).write(path, b"")):
        with pytest.raises(Rejected):
            act(path)


def test_links_that_lead_outside_are_refused(place):
    (place / "file").symlink_to(place.parent / "outside" / "secret.txt")
    (place / "folder").symlink_to(place.parent / "outside")
    (place / "relative").symlink_to("../outside")
    (place / "chain").symlink_to("folder")
    (place / "climb").symlink_to("d/../../outside/secret.txt")
    root = Root(place)
    for path in ("file", "folder/secret.txt", "relative/secret.txt", "chain/d/secret.txt", "climb"):
        with pytest.raises(Rejected, match="outside the project") as caught:
            root.read(path)
        assert str(place.parent) not in str(caught.value)  # no path of the host
        with pytest.raises(Rejected):
            root.write(path, b"x")
    with pytest.raises(Rejected):
        root.write("folder/new.txt", b"x")


def test_links_that_stay_inside_are_followed(place):
    (place / "link").symlink_to("d/a.txt")
    (place / "folder").symlink_to(place / "d")
    root = Root(place)
    assert root.read("folder/a.txt").path == "d/a.txt"
    assert root.write("link", b"new") == ("d/a.txt", False)
    assert (place / "link").is_symlink()
    assert (place / "d" / "a.txt").read_bytes() == b"new"


def test_dots_after_a_link_mean_the_parent_of_its_target(place):
    (place / "x" / "y").mkdir(parents=True)
    (place / "x" / "b.txt").write_bytes(b"b")
    (place / "link").symlink_to("x/y")
    assert Root(place).read("link/../b.txt").path == "x/b.txt"
    with pytest.raises(Rejected, match="outside the project"):
        Root(place).read("link/../../../b.txt")


def test_a_loop_of_links_is_refused(place):
    (place / "one").symlink_to("two")
    (place / "two").symlink_to("one")
    with pytest.raises(Rejected, match="too many"):
        Root(place).read("one")


def test_special_files_are_refused_without_blocking(place):
    os.mkfifo(place / "pipe")
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(place)  # the name of a socket is short
    server.bind("socket")
    os.chdir(here)
    root = Root(place)
    for path, word in (("pipe", "named pipe"), ("socket", "socket"), ("d", "directory")):
        with pytest.raises(Rejected, match=word):
            root.read(path)
        with pytest.raises(Rejected, match=word):
            root.write(path, b"x")
    server.close()


def test_a_file_is_no_directory(place):
    with pytest.raises(Rejected, match=r"d/a\.txt is not a directory"):
        Root(place).read("d/a.txt/b")


def test_hard_links_are_not_written_through(place):
    os.link(place.parent / "outside" / "secret.txt", place / "hard")
    Root(place).write("hard", b"changed")
    assert (place / "hard").read_bytes() == b"changed"  # the fixture looks at the outside


def test_what_belongs_to_git_is_not_written(place):
    (place / ".git" / "hooks").mkdir(parents=True)
    (place / "alias").symlink_to(".git")
    root = Root(place)
    for path in (".git/config", ".git/hooks/pre-commit", "alias/config", "sub/.git", ".GIT/config", "sub/.git/config"):
        with pytest.raises(Rejected):
            root.write(path, b"x")
    assert list((place / ".git" / "hooks").iterdir()) == []


def test_mode_is_kept_and_read_only_respected(place):
    script = place / "run.sh"
    script.write_bytes(b"#!/bin/sh\n")
    script.chmod(0o750)
    Root(place).write("run.sh", b"#!/bin/sh\ntrue\n")
    assert script.stat().st_mode & 0o777 == 0o750
    script.chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        Root(place).write("run.sh", b"x")


@pytest.mark.parametrize(
    "path",
    [
        "new/",
        "new/deep/",
        "new/deep/.",
        "new/.git/config",
        "new/deep/../../../x",
        "new/" + "x" * 300,
        "d/more/new/.git",
    ],
)
def test_what_is_rejected_leaves_no_directory_behind(place, path):
    before = sorted(place.rglob("*"))
    with pytest.raises(ToolError):
        Root(place).write(path, b"x")
    assert sorted(place.rglob("*")) == before


def test_a_directory_that_somebody_else_has_filled_stays(place):
    root = Root(place)
    with suppress(RuntimeError), root._place("new/deep/x", "path", create=True):
        (place / "new" / "other.txt").write_bytes(b"")
        raise RuntimeError
    assert [path.name for path in (place / "new").iterdir()] == ["other.txt"]


@pytest.mark.parametrize("path", [".git", ".git/config", ".GIT/hooks/pre-commit", "d/.git/config"])
@pytest.mark.parametrize("is_there", [True, False])
def test_what_belongs_to_git_is_said_to(place, path, is_there):
    folder = place / path.rsplit("/", 1)[0]
    if is_there:
        folder.mkdir(exist_ok=True, parents=True)
    with pytest.raises(Rejected, match="belongs to git") as caught:
        Root(place).write(path, b"x")
    assert not isinstance(caught.value, Missing)
    assert is_there or not folder.exists()


@pytest.mark.parametrize("ending", ["/", "/.", "//", "/./"])
def test_what_ends_like_a_directory_is_no_file(place, ending):
    for act in (Root(place).read, lambda path: Root(place).write(path, b"")):
        with pytest.raises(Rejected, match="names a directory"):
            act(f"d/a.txt{ending}")


def test_a_file_that_was_made_meanwhile_is_not_replaced(place):
    (place / "new.txt").write_bytes(b"by somebody else")
    with pytest.raises(ToolError, match="made by somebody else"):
        Root(place).write("new.txt", b"x", expected=confine.ABSENT)
    assert (place / "new.txt").read_bytes() == b"by somebody else"
    assert Root(place).write("newer.txt", b"x", expected=confine.ABSENT) == ("newer.txt", True)


def test_a_file_that_changed_meanwhile_is_not_replaced(place):
    root = Root(place)
    read = root.read("d/a.txt")
    (place / "d" / "a.txt").write_bytes(b"by somebody else")
    with pytest.raises(ToolError, match="changed by somebody else"):
        root.write("d/a.txt", b"x", expected=read.stamp)
    assert (place / "d" / "a.txt").read_bytes() == b"by somebody else"
    assert [path.name for path in (place / "d").iterdir()] == ["a.txt"]


def test_size_is_bounded_also_where_the_system_tells_none(place):
    (place / "big").write_bytes(b"x" * 100)
    with pytest.raises(Rejected, match="at most 99"):
        Root(place).read("big", 99)
    assert len(Root(place).read("big", 100).data) == 100


def test_the_root_must_be_a_directory(place):
    for path in (place / "d" / "a.txt", place / "nothing"):
        with pytest.raises(UsageError, match="must be a directory"):
            Root(path)


def test_a_root_that_was_replaced_runs_no_subprocess(place):
    root = Root(place)
    assert root.directory == os.path.realpath(place)
    place.rename(place.parent / "moved")
    place.mkdir()
    with pytest.raises(ToolError, match="replaced"):
        _ = root.directory
    assert root.read("d/a.txt").data == b"a"  # it holds on to what it opened


def test_a_closed_root_is_closed(place):
    """Its descriptor may be that of another directory by now."""
    root = Root(place)
    root.close()
    other = os.open(place.parent / "outside", os.O_RDONLY)
    try:
        for act in (root.read, lambda path: root.write(path, b"x")):
            with pytest.raises(ClosedError):
                act("secret.txt")
    finally:
        os.close(other)


def test_a_path_of_a_directory_is_no_file(place):
    with pytest.raises(Rejected, match="names a directory"):
        Root(place).write("new/", b"x")
    assert not (place / "new").exists()


def test_no_descriptor_is_lost(place):
    root = Root(place)
    (place / "loop").symlink_to("loop")
    gc.collect()  # the roots of other tests
    before = open_files()
    for path in ("d/a.txt", "nothing", "../x", "d", "loop", "d/a.txt/x", "d/../d/../d/a.txt"):
        for act in (root.read, root.kind, lambda path: root.write(path, b"a"), lambda path: list(root.walk(path))):
            with suppress(ToolError):
                act(path)
    assert open_files() <= before
    root.close()


def test_walk_finds_files_and_follows_nothing(place):
    (place / "node_modules").mkdir()
    (place / "node_modules" / "x.js").write_bytes(b"")
    (place / "link").symlink_to("d")
    (place / "out").symlink_to(place.parent / "outside")
    (place / "z.txt").write_bytes(b"")
    os.mkfifo(place / "pipe")
    assert sorted(Root(place).walk()) == ["d/a.txt", "z.txt"]


PARTS = st.sampled_from(
    ["..", ".", "d", "a.txt", "link", "out", "up", "new", "/", "~", "%2e%2e", "..\\", "\u2025", " "]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PARTS | st.text(max_size=4), max_size=8).map("/".join))
def test_no_path_escapes(place, path):
    """Whatever it is, it is refused, or it ends inside; and the outside stays as it is (the fixture)."""
    for name, target in (("out", "../outside"), ("link", "d"), ("up", "..")):
        if not (place / name).is_symlink():
            (place / name).symlink_to(target)
    root = Root(place)
    with suppress(ToolError):
        assert SECRET not in root.read(path).data
    try:
        resolved, _ = root.write(path, b"x")
    except ToolError:
        return
    finally:
        root.close()
    real = os.path.realpath(os.path.join(place, resolved))
    assert real.startswith(os.path.realpath(place) + os.sep)
    os.unlink(real)


# The races at their worst moment, without chance: between the look and the open.


def swap_directory(place: Path) -> None:
    """``swap`` was a directory, and is a link to the outside from now on."""
    (place / "swap").rename(place / "real")
    (place / "swap").symlink_to(place.parent / "outside")


@pytest.fixture(name="swap")
def swap_fixture(place):
    (place / "swap").mkdir()
    (place / "swap" / "secret.txt").write_bytes(b"of the inside")
    return place / "swap"


@pytest.mark.parametrize("name", ["secret.txt", "new.txt", "new/new.txt"])
def test_a_directory_that_turns_into_a_link_after_the_look(place, swap, monkeypatch, name):
    look = confine._link

    def link(directory, part):
        target = look(directory, part)
        if part == "swap" and not swap.is_symlink():
            swap_directory(place)
        return target

    monkeypatch.setattr(confine, "_link", link)
    with pytest.raises(ToolError):
        Root(place).read(f"swap/{name}") if name == "secret.txt" else Root(place).write(f"swap/{name}", b"x")
    assert swap.is_symlink()


def test_a_directory_that_turns_into_a_link_before_the_file_is_put_there(place, swap, monkeypatch):
    """The directory that was opened is the one that is written in, whatever its name is by now."""
    fsync = os.fsync

    def late(fd):
        fsync(fd)
        swap_directory(place)

    monkeypatch.setattr(os, "fsync", late)
    Root(place).write("swap/secret.txt", b"x")
    assert (place / "real" / "secret.txt").read_bytes() == b"x"


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_a_file_that_turns_into_something_else_after_the_look(place, swap, monkeypatch, kind):
    look = confine._require_file

    def require(spot, path, argument):
        look(spot, path, argument)
        (swap / "secret.txt").unlink()
        if kind == "link":
            (swap / "secret.txt").symlink_to(place.parent / "outside" / "secret.txt")
        elif kind == "pipe":
            os.mkfifo(swap / "secret.txt")
        else:
            (swap / "secret.txt").mkdir()

    monkeypatch.setattr(confine, "_require_file", require)
    with pytest.raises(ToolError):
        Root(place).read("swap/secret.txt")


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_target_that_turns_into_something_else_before_it_is_replaced(place, swap, monkeypatch, kind):
    fsync = os.fsync

    def late(fd):
        fsync(fd)
        (swap / "secret.txt").unlink()
        if kind == "link":
            (swap / "secret.txt").symlink_to(place.parent / "outside" / "secret.txt")
        else:
            os.mkfifo(swap / "secret.txt")

    monkeypatch.setattr(os, "fsync", late)
    with pytest.raises(ToolError):
        Root(place).write("swap/secret.txt", b"x")
    assert [path.name for path in swap.iterdir()] == ["secret.txt"]


# And by chance, with a thread that swaps.


def swapping(act) -> tuple[threading.Event, threading.Thread]:
    """A thread that does this again and again, until it is told to stop. What does not work, does not matter."""
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            with suppress(OSError):
                act()

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    return stop, thread


def hammer(root: Root, path: str) -> None:
    """Read and write while somebody swaps."""
    for turn in range(300):
        with suppress(ToolError):
            assert root.read(f"{path}/secret.txt").data != SECRET
            root.write(f"{path}/secret.txt", b"of the inside")
            root.write(f"{path}/new{turn % 5}.txt", b"x")


def test_races_with_a_directory_that_turns_into_a_link(place):
    """The path is walked while a directory on it is now a directory, now a link to the outside, now nothing."""
    real, link, name = place / "real", place / "link", place / "swap"
    name.mkdir()
    (name / "secret.txt").write_bytes(b"of the inside")
    link.symlink_to(place.parent / "outside")

    def swap():
        for old, new in ((name, real), (link, name), (name, link), (real, name)):
            os.rename(old, new)

    stop, thread = swapping(swap)
    try:
        hammer(Root(place), "swap")
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()  # that nothing outside was touched is seen by the fixture


def test_races_with_a_link_that_changes_its_target(place):
    """It always leads somewhere, half of the time outside."""
    (place / "real").mkdir()
    (place / "real" / "secret.txt").write_bytes(b"of the inside")
    (place / "swap").symlink_to("real")

    def swap():
        for target in ("../outside", "real"):
            (place / "other").symlink_to(target)
            os.replace(place / "other", place / "swap")

    stop, thread = swapping(swap)
    try:
        hammer(Root(place), "swap")
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()


def test_races_with_the_last_name(place):
    """The file itself turns into a link to the outside and back."""
    target, other = place / "file", place / "other"
    target.write_bytes(b"a")

    def swap():
        other.symlink_to(place.parent / "outside" / "secret.txt")
        os.replace(other, target)
        other.write_bytes(b"a")
        os.replace(other, target)

    stop, thread = swapping(swap)
    root = Root(place)
    try:
        for _ in range(300):
            with suppress(ToolError):
                assert root.read("file").data != SECRET
                root.write("file", b"b")
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()


def test_missing_says_how_far_it_came(place):
    with pytest.raises(Missing, match=r"d/b\.txt does not exist: d has no 'b\.txt'") as caught:
        Root(place).read("d/b.txt")
    assert caught.value.path == ("path",)
    assert Root(place).version("d/b.txt") is None
    assert Root(place).version("d/a.txt") is not None
