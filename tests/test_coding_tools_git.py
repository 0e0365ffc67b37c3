"""git_diff: real repositories, made without any configuration of the machine."""

from __future__ import annotations

import os
import subprocess

import pytest

from streamparse.agent.coding_tools import Rejected, Root, ToolError, git_diff
from streamparse.agent.coding_tools.bounds import PAGE_CHARACTERS


@pytest.fixture(name="git")
def git_fixture(tmp_path):
    """Runs git in ``project``."""
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    names = {f"GIT_{who}_{what}": f"{who}@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", **names}

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=project, env=environment, check=True, capture_output=True, timeout=30)

    return git


@pytest.fixture(name="project")
def project_fixture(tmp_path, git, monkeypatch):
    """A repository with one commit."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    git("init", "-q")
    (project / "a.txt").write_text("one\ntwo\nthree\n")
    (project / "sub").mkdir()
    (project / "sub" / "b.txt").write_text("b\n")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    return project


@pytest.fixture(name="root")
def root_fixture(project):
    with Root(project) as root:
        yield root


def test_no_changes(root):
    assert git_diff(root).text == "No changes"
    assert git_diff(root, "sub").text == "No changes in sub"


def test_staged_unstaged_and_untracked(root, project, git):
    (project / "a.txt").write_text("one\n2\nthree\n")
    git("add", "a.txt")
    (project / "sub" / "b.txt").write_text("b\nc\n")
    (project / "new ü.txt").write_text("neu\n")
    text = git_diff(root).text
    staged, unstaged, untracked = (
        text.index("Staged: 1 file"),
        text.index("Unstaged: 1 file"),
        text.index("Untracked: 1 file"),
    )
    assert staged < unstaged < untracked
    assert "  a.txt +1 -1" in text[staged:unstaged]
    assert "\n-two\n+2\n" in text[staged:unstaged]
    assert "  sub/b.txt +1 -0" in text[unstaged:untracked]
    assert "\n+c\n" in text[unstaged:untracked]
    assert text[untracked:] == "Untracked: 1 file\n  new ü.txt +1\n+neu"


def test_a_path_narrows(root, project):
    (project / "a.txt").write_text("x\n")
    (project / "sub" / "b.txt").write_text("y\n")
    (project / "sub" / "c.txt").write_text("z\n")
    text = git_diff(root, "sub").text
    assert "a.txt" not in text
    assert "+y" in text
    assert "+z" in text
    assert "c.txt" not in git_diff(root, "sub/b.txt").text


def test_a_deleted_file_may_be_named(root, project):
    (project / "sub" / "b.txt").unlink()
    (project / "sub").rmdir()
    assert "-b" in git_diff(root, "sub/b.txt").text


def test_a_path_is_no_pattern(root, project):
    (project / "*.txt").write_text("star\n")
    (project / "a.txt").write_text("x\n")
    text = git_diff(root, "*.txt").text
    assert "+star" in text
    assert "+x" not in text


def test_binary_files_are_named_only(root, project, git):
    (project / "a.bin").write_bytes(b"\0\1")
    git("add", "a.bin")
    (project / "b.bin").write_bytes(b"\0\1")
    text = git_diff(root).text
    assert "  a.bin (binary)" in text
    assert "  b.bin (binary)" in text
    assert "\0" not in text


def test_without_commits(tmp_path, git):
    git("init", "-q")
    (tmp_path / "project" / "a.txt").write_text("a\n")
    git("add", "a.txt")
    (tmp_path / "project" / "b.txt").write_text("b\n")
    with Root(tmp_path / "project") as root:
        text = git_diff(root).text
    assert text.startswith("Staged: 1 file\n  a.txt +1 -0")
    assert text.endswith("Untracked: 1 file\n  b.txt +1\n+b")


def test_outside_a_repository(tmp_path):
    with Root(tmp_path) as root, pytest.raises(ToolError, match="not inside a git repository") as caught:
        git_diff(root)
    assert str(tmp_path) not in str(caught.value)


def test_without_git(root, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="git is not installed"):
        git_diff(root)


def test_nothing_outside_the_root_is_shown(project):
    """The repository is larger than the root."""
    (project / "a.txt").write_text("outside\n")
    (project / "c.txt").write_text("outside\n")
    (project / "sub" / "b.txt").write_text("inside\n")
    with Root(project / "sub") as root:
        text = git_diff(root).text
        assert "+inside" in text
        assert "outside" not in text
        for path in ("..", "../a.txt", str(project)):
            with pytest.raises(Rejected, match="outside the project"):
                git_diff(root, path)


def test_links_are_named_only(root, project, tmp_path):
    (tmp_path / "secret").write_text("secret\n")
    (project / "link").symlink_to(tmp_path / "secret")
    (project / "inner").symlink_to("a.txt")
    text = git_diff(root).text
    assert "secret" not in text
    assert "  inner (a symbolic link)" in text


def test_missing_path(root):
    with pytest.raises(Rejected, match=r"does not exist.*Did you mean a\.txt"):
        git_diff(root, "aa.txt")


def test_output_is_bounded(root, project, git):
    (project / "a.txt").write_text("".join(f"line {number}\n" for number in range(100_000)))
    (project / "z.txt").write_text("z\n" * 100)
    text = git_diff(root).text
    assert len(text) < PAGE_CHARACTERS + 4000
    assert "  a.txt +100000 -3" in text
    assert "[The diff is cut here. Call git_diff with the path of one file]" in text
    assert "Untracked: 1 file" in text
    git("add", ".")
    for number in range(300):
        (project / f"{number}.txt").write_text("x\n")
    text = git_diff(root).text
    assert len(text) < PAGE_CHARACTERS + 4000
    assert "Untracked: 200 files and more" in text


def test_no_program_of_the_repository_is_run(root, project, git, tmp_path):
    """Whoever can write to the configuration could make git run anything."""
    witness = tmp_path / "witness"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {witness}\n")
    script.chmod(0o755)
    for key in ("diff.external", "core.fsmonitor", "core.pager", "diff.evil.command", "diff.evil.textconv"):
        git("config", key, str(script))
    (project / ".gitattributes").write_text("*.txt diff=evil\n")
    (project / "a.txt").write_text("changed\n")
    assert "+changed" in git_diff(root).text
    assert not witness.exists()


def test_a_folder_that_looks_like_a_repository_is_none(tmp_path, git):
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "project")], check=True, timeout=30)
    with Root(tmp_path / "project") as root, pytest.raises(ToolError):
        git_diff(root)


def test_warnings_are_not_part_of_the_diff(root, project, git):
    git("config", "core.autocrlf", "true")
    (project / "a.txt").write_text("lf\n")
    assert "warning" not in git_diff(root).text


def test_words_of_git_hold_no_path_of_the_host(root, project, tmp_path):
    (project / ".git" / "index").write_bytes(b"broken")
    (project / ".git" / "config").write_text("[core]\nrepositoryformatversion = 99\n")
    with pytest.raises(ToolError) as caught:
        git_diff(root)
    assert str(tmp_path) not in str(caught.value)
