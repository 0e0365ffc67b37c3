"""git_diff: real repositories, made without any configuration of the machine."""

from __future__ import annotations

import contextlib
import os
import subprocess

import pytest

from streamparse.agent.coding_tools import Rejected, Root, ToolError, git_diff
from streamparse.agent.coding_tools import git as git_module
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


# No program that the repository names is run


@pytest.fixture(name="evil")
def evil_fixture(tmp_path, monkeypatch):
    """A program that leaves a witness each time it runs, in ``evil.ran``."""
    monkeypatch.setenv("PATH", os.environ["PATH"])

    class Evil(str):
        __slots__ = ()
        witness = tmp_path / "witness"

        @property
        def ran(self) -> bool:
            return self.witness.exists()

        def forget(self) -> None:
            self.witness.unlink(missing_ok=True)

    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\necho >{Evil.witness}\nexit 1\n")
    script.chmod(0o755)
    return Evil(script)


def looks_changed(path) -> None:
    """Another time, the same content: git has to read it."""
    os.utime(path, ns=(1, 1))


def unguarded(project, *arguments: str) -> None:
    """Git as it is: shows that the trap of a test works."""
    words = ["git", *arguments]
    subprocess.run(words, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=30)


def test_no_program_of_the_repository_is_run(root, project, git, evil):
    """Whoever can write to the configuration could make git run anything."""
    keys = (
        "diff.external core.pager pager.diff diff.evil.command diff.evil.textconv core.editor core.askPass gpg.program"
    )
    for key in (*keys.split(), "core.fsmonitor", "credential.helper", "core.sshCommand", "merge.evil.driver"):
        git("config", key, evil)
    for alias in ("diff", "ls-files", "rev-parse", "config"):
        git("config", f"alias.{alias}", f"!{evil}")
    (project / ".gitattributes").write_text("*.txt diff=evil merge=evil\n")
    (project / "a.txt").write_text("changed\n")
    unguarded(project, "diff")
    assert evil.ran
    evil.forget()
    assert "+changed" in git_diff(root).text
    assert not evil.ran


@pytest.mark.parametrize("name", ["evil", "Evil.Name", "é'\"x\\y"])
@pytest.mark.parametrize("kind", ["clean", "process"])
@pytest.mark.parametrize("attributes", [".gitattributes", ".git/info/attributes", "elsewhere"])
def test_no_filter_is_run(root, project, git, evil, tmp_path, name, kind, attributes):
    git("config", f"filter.{name}.{kind}", evil)
    git("config", f"filter.{name}.required", "true")
    where = tmp_path / "elsewhere" if attributes == "elsewhere" else project / attributes
    git("config", "core.attributesFile", str(tmp_path / "elsewhere"))
    where.write_text(f"*.txt filter={name}\n", encoding="utf-8")
    looks_changed(project / "a.txt")
    (project / "sub" / "b.txt").write_text("changed\n")
    (project / "untracked.txt").write_text("new\n")
    unguarded(project, "diff")
    assert evil.ran
    evil.forget()
    text = git_diff(root).text
    assert "+changed" in text
    assert "+new" in text
    assert "a.txt" not in text
    assert not evil.ran


def test_no_filter_of_an_included_file_is_run(root, project, git, evil, tmp_path):
    """Nor one that the user has set up, since the repository says when it runs."""
    (tmp_path / "included").write_text(f'[filter "EVIL"]\n\tclean = {evil}\n')
    (tmp_path / "home" / ".gitconfig").write_text(f'[filter "mine"]\n\tprocess = {evil}\n')
    git("config", "include.path", str(tmp_path / "included"))
    (project / ".gitattributes").write_text("a.txt filter=EVIL\nsub/b.txt filter=mine\n")
    for name in ("a.txt", "sub/b.txt"):
        (project / name).write_text("changed\n")
        unguarded(project, "diff", "--", name)
        assert evil.ran
        evil.forget()
    assert git_diff(root).text.count("+changed") == 2
    assert not evil.ran


@pytest.mark.parametrize(
    "config",
    [
        '[filter "a=b"]\n\tclean = {}\n',
        '[filter "{}"]\n\tclean = x\n' * 101,
        f'[filter "{{}}{"x" * 1000}"]\n\tclean = x\n' * 60,
    ],
)
def test_filters_that_cannot_be_turned_off_are_refused(root, project, evil, config):
    parts = config.split("{}")
    words = "".join(f"{part}{number}" for number, part in enumerate(parts[:-1])) + parts[-1]
    with open(project / ".git" / "config", "a", encoding="utf-8") as file:
        file.write(words)
    with pytest.raises(ToolError, match="filters that cannot be turned off"):
        git_diff(root)


@pytest.mark.parametrize("guard", ["core.hooksPath=/dev/null", "diff.autoRefreshIndex=false"])
@pytest.mark.parametrize("place", ["hooks", "elsewhere"])
def test_no_hook_is_run(root, project, git, evil, tmp_path, place, guard, monkeypatch):
    others = [setting for setting in git_module._SETTINGS if setting != guard]
    monkeypatch.setattr(git_module, "_SETTINGS", others)  # each of the two is enough
    folder = project / ".git" / "hooks" if place == "hooks" else tmp_path / "elsewhere"
    if place != "hooks":
        folder.mkdir()
        git("config", "core.hooksPath", str(folder))
    for hook in ("post-index-change", "post-checkout", "reference-transaction", "fsmonitor-watchman"):
        (folder / hook).symlink_to(evil)
    looks_changed(project / "a.txt")
    unguarded(project, "diff")
    assert evil.ran
    evil.forget()
    os.utime(project / "a.txt", (5, 5))
    assert git_diff(root).text == "No changes"
    assert not evil.ran


@pytest.mark.parametrize("guard", ["GIT_NO_LAZY_FETCH", "GIT_ALLOW_PROTOCOL"])
def test_a_partial_clone_fetches_nothing(root, project, git, evil, guard, monkeypatch):
    """Git would ask the remote for an object that is not there: by a program that the configuration names."""
    monkeypatch.delitem(git_module._ENVIRONMENT, guard)  # each of the two is enough
    blob = subprocess.check_output(["git", "rev-parse", ":a.txt"], cwd=project, text=True, timeout=30).strip()
    (project / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    git("config", "core.repositoryFormatVersion", "1")
    git("config", "extensions.partialClone", "origin")
    git("config", "remote.origin.promisor", "true")
    git("config", "protocol.allow", "always")
    git("config", "core.sshCommand", evil)
    git("config", "remote.origin.uploadpack", evil)
    (project / "a.txt").write_text("changed\n")
    for url in (f"ext::{evil}", "ssh://example.invalid/x", str(project)):
        git("config", "remote.origin.url", url)
        unguarded(project, "diff")
        assert evil.ran, url
        evil.forget()
        with pytest.raises(ToolError):
            git_diff(root)
        assert not evil.ran, url


def test_nothing_is_run_in_a_submodule(root, project, git, evil):
    """Its configuration is its own, and git would run itself in it."""
    inner = project / "inner"
    git("init", "-q", "inner")
    (inner / "c.txt").write_text("c\n")
    for words in (["add", "."], ["commit", "-q", "-m", "inner"]):
        git("-C", "inner", *words)
    git("-c", "advice.addEmbeddedRepo=false", "add", "inner")
    git("config", "-f", ".gitmodules", "submodule.inner.path", "inner")
    git("config", "-f", ".gitmodules", "submodule.inner.url", "./inner")
    git("config", "-f", ".gitmodules", "submodule.inner.ignore", "none")
    git("add", ".gitmodules")
    git("commit", "-q", "-m", "with a submodule")
    git("-C", "inner", "config", "filter.evil.clean", evil)
    (inner / ".gitattributes").write_text("*.txt filter=evil\n")
    for key in ("core.fsmonitor", "diff.external"):
        git("-C", "inner", "config", key, evil)
    for key, value in {
        "diff.submodule": "diff",
        "diff.ignoreSubmodules": "none",
        "submodule.inner.active": "true",
        "submodule.recurse": "true",
        "status.submoduleSummary": "true",
    }.items():
        git("config", key, value)
    evil.forget()
    looks_changed(inner / "c.txt")
    unguarded(project, "diff")  # looks whether it is dirty
    assert evil.ran
    evil.forget()
    assert git_diff(root).text == "No changes"
    assert not evil.ran
    (inner / "c.txt").write_text("more\n")
    git("-C", "inner", "-c", "core.fsmonitor=false", "commit", "-q", "-a", "-m", "more")
    evil.forget()
    unguarded(project, "diff")  # shows the lines of both commits
    assert evil.ran
    evil.forget()
    text = git_diff(root).text
    assert "+Subproject commit" in text
    assert not evil.ran


@pytest.mark.parametrize("path", ["", ".", "bin", ".:{project}/bin", "{project}"])
def test_git_is_not_looked_for_in_the_project(root, project, evil, path, monkeypatch):
    (project / "bin").mkdir()
    for name in ("git", "bin/git"):
        (project / name).symlink_to(evil)
    monkeypatch.setenv("PATH", f"{path.format(project=project)}:{os.environ['PATH']}" if path else "")
    with contextlib.suppress(ToolError):  # where the system keeps its git elsewhere
        assert git_diff(root).text.startswith("Untracked: 2 files")
    assert not evil.ran


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
