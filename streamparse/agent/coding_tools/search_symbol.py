"""``search_symbol``: where a function, class or variable is defined, by the syntax trees of ast-grep.

Files that do not hold the name are not parsed. In the others every identifier that is the name is looked up from: does
it stand where its language puts the name of a definition (``languages``)?
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

from streamparse.agent.coding_tools.bounds import HITS, SEARCH_SECONDS, SEARCHED_BYTES, SEARCHED_FILES
from streamparse.agent.coding_tools.confine import SKIPPED, Root
from streamparse.agent.coding_tools.definitions import Hit, definitions
from streamparse.agent.coding_tools.git import GitError, in_work_tree, listed
from streamparse.agent.coding_tools.languages import LANGUAGES
from streamparse.agent.coding_tools.nearest import with_nearest
from streamparse.agent.coding_tools.outcome import Outcome, Rejected, clipped, plural
from streamparse.agent.coding_tools.paths import Missing, shown
from streamparse.agent.coding_tools.text import SourceText, decode
from streamparse.errors import MissingExtraError

if TYPE_CHECKING:
    from ast_grep_py import SgNode

KINDS = ("any", "function", "class", "variable")

_NAME = re.compile(r"(?:[\w$@~#-]+(?:\.|::|#|/))*([~#@]?[^\W\d][\w$]*|\$[\w$]*)\Z")


def search_symbol(
    root: Root,
    name: str,
    kind: str = "any",
    path: str = ".",
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Where ``name`` is defined below ``path``: file and line, kind, the line itself. ``Class.method`` (or ``::``) asks
    for one inside the other. If nothing has just this name, names that contain it are listed, in any case.

    Raises ``MissingExtraError`` without ast-grep, ``Rejected`` for what is no name, no kind or no path.
    """
    parse = _parser()
    found = _NAME.match(name.strip()) if isinstance(name, str) else None
    if found is None:
        raise Rejected("name", f"name must be one identifier, or Class.method; found {clipped(repr(name), 100)}")
    if kind not in KINDS:
        raise Rejected("kind", f"kind must be one of {', '.join(KINDS)}; found {clipped(repr(kind), 100)}", KINDS)
    wanted, owner = found[1], re.split(r"\.|::|#|/", name.strip()[: found.start(1)])[:-1]
    search = _Search(root, parse, wanted, owner[-1] if owner else "", kind, clock)
    search.run(path)
    return Outcome(search.report(name.strip()))


def _parser() -> Callable[[str, str], SgNode]:
    try:
        from ast_grep_py import SgRoot
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "ast_grep_py":
            raise
        raise MissingExtraError(
            "search_symbol needs ast-grep-py, which is in the extra 'coding': "
            "pip install 'streamparse-toolcalls[coding]'; or do without it: run_command with grep -rn"
        ) from None
    return lambda text, language: SgRoot(text, language).root()


class _Search:
    """One search."""

    def __init__(
        self,
        root: Root,
        parse: Callable[[str, str], SgNode],
        wanted: str,
        owner: str,
        kind: str,
        clock: Callable[[], float],
    ) -> None:
        self._root, self._parse, self._clock = root, parse, clock
        self._wanted, self._owner, self._kind = wanted, owner, kind
        self._hits: list[Hit] = []
        self._near: list[Hit] = []
        self._more = 0
        self._files = 0
        self._unfinished = ""

    def run(self, path: str) -> None:
        """Look through the files, as long as there is time."""
        end = self._clock() + SEARCH_SECONDS
        needle = self._wanted.casefold().lstrip("~#@")
        for file in source_files(self._root, path):
            if self._files >= SEARCHED_FILES or self._clock() > end:
                self._unfinished = f"; the search stopped after {self._files:,} files: give a path to search less"
                return
            self._files += 1
            with suppress(Rejected):
                source = decode(self._root.read(file, SEARCHED_BYTES).data)
                if source is not None and needle in source.text.casefold():
                    self._look(file, source)

    def _look(self, file: str, source: SourceText) -> None:
        language = LANGUAGES[_ending(file)]
        try:
            tree = self._parse(source.flat, language)
        except UnicodeError:  # a lone surrogate in UTF-16
            return
        seen = set[tuple[Any, ...]]()
        for hit in definitions(tree, language, self._wanted, file, source):
            if self._kind not in ("any", hit.kind) or (self._owner and hit.inside != self._owner):
                continue
            again = (hit.name, hit.inside, hit.kind if hit.kind == "variable" else hit.line)
            if again in seen:  # a variable that is assigned again
                continue
            seen.add(again)
            hits = self._hits if hit.exact else self._near
            if len(hits) < HITS:
                hits.append(hit)
            elif hit.exact:
                self._more += 1

    def report(self, name: str) -> str:
        """What was found, in words."""
        kind = "definition" if self._kind == "any" else f"{self._kind} definition"
        searched = f"{plural(self._files, 'source file')} searched{self._unfinished}"
        hits = sorted(self._hits, key=lambda hit: hit.kind == "variable")  # stable: by path and line otherwise
        if hits:
            head = f"{plural(len(hits) + self._more, kind)} of {name} ({searched}):"
            more = [f"[{self._more:,} more: give a path or a kind to see them]"] if self._more else []
            return "\n".join([head, *map(str, hits), *more])
        head = f"No {kind} of {name} ({searched})"
        if not self._near:
            return f"{head}. Search for text with run_command (grep -rn)"
        return "\n".join([f"{head}. Names that contain it:", *map(str, self._near[:20])])


def source_files(root: Root, path: str = ".") -> Iterator[str]:
    """The files below ``path`` whose language is known; a file itself. In a git work tree without what git ignores,
    else without the usual directories of what is not source."""
    below = root.resolve(path)
    try:
        kind = root.kind(below)
    except Missing as error:
        raise with_nearest(root, error) from None
    if kind == "a file":
        if _ending(below) not in LANGUAGES:
            raise Rejected("path", f"{shown(below)}: its language is not known here. Known: {' '.join(LANGUAGES)}")
        return iter([below])
    files = _tracked(root, below)
    first = next(files, None)
    every = root.walk(below) if first is None else chain([first], files)
    return (file for file in every if _ending(file) in LANGUAGES)


def _tracked(root: Root, below: str) -> Iterator[str]:
    """What git tracks, or would. Nothing outside a work tree, or where git ignores the whole root."""
    with suppress(GitError):
        if not in_work_tree(root):
            return
        listing = ["ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", below]
        names, _ = listed(root, listing, SEARCHED_FILES * 10)
        yield from (name for name in sorted(set(names)) if SKIPPED.isdisjoint(name.split("/")[:-1]))


def _ending(path: str) -> str:
    base = path.rsplit("/", 1)[-1]
    return base[base.rfind(".") :].lower() if "." in base else ""
