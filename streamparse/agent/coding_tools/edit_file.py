"""``edit_file``: one exact fragment of a file, replaced. All other bytes stay as they are."""

from __future__ import annotations

from itertools import pairwise

from streamparse.agent.coding_tools.bounds import PAGE_CHARACTERS
from streamparse.agent.coding_tools.confine import Root
from streamparse.agent.coding_tools.misses import near_misses
from streamparse.agent.coding_tools.nearest import read_text
from streamparse.agent.coding_tools.outcome import Outcome, Rejected, plural, version_of
from streamparse.agent.coding_tools.paths import shown
from streamparse.agent.coding_tools.read_file import numbered
from streamparse.agent.coding_tools.text import SourceText
from streamparse.agent.coding_tools.write_file import unencodable

_LISTED = 10
"""Places of a fragment that an error lists."""

_TELLING = 12
"""Characters that are not blank from which on a text is unlikely to stand somewhere by chance."""

_APART = "Add text before and after it, so that it is unique"

_OVERLAPPING = 2_000_000
"""Characters of overlapping fragments that are looked at. A fragment that overlaps itself is refused in any case."""

_COMPARED = 1_000_000
"""Comparisons in the search for a change that is there already. Without them it is made, if the number is right."""

_AROUND = 2
"""Lines shown before and after an edit."""


def edit_file(root: Root, path: str, old_text: str, new_text: str, occurrences: int = 1) -> Outcome:
    """Replace ``old_text``, which must occur exactly ``occurrences`` times, with ``new_text``.

    Line ends do not matter for finding it (LF stands for CRLF), and the file keeps its own, with its encoding and
    byte order mark. If the change is there already, nothing is written and the result says so.
    Raises ``Rejected`` if the fragment is not there (with the near misses and their lines), or as often as it should.
    """
    contents, source = read_text(root, path)
    old, new = (text.replace("\r\n", "\n") for text in (old_text, new_text))
    name, version = shown(contents.path), contents.version
    _require(old, new, occurrences)
    places = find_all(source.flat, old)
    if _is_dense(places, len(old)):
        raise Rejected("old_text", f"old_text occurs in {name} very often, and the places overlap. {_APART}")
    if already := _already(source, old, new, places):
        text = f"{name}: nothing was changed, new_text is there already (line {source.line_at(already[0])})"
        if not places:
            text += ", and old_text does not occur. If you meant another place, read the file and give its exact text"
        return Outcome(text, contents.path, version, version)
    if not places:
        raise Rejected("old_text", f"old_text does not occur in {name}. {near_misses(source, old)}")
    _require_count(source, name, len(old), places, occurrences)
    try:
        text = replaced(source, places, len(old), new)
        data = source.encode(text)
    except UnicodeEncodeError as error:
        raise unencodable(source, error, "new_text") from None
    root.write(path, data, expected=contents.stamp)
    told = _report(name, source, SourceText(text), places, old, new)
    return Outcome(told, contents.path, version, version_of(data))


def find_all(text: str, fragment: str) -> list[int]:
    """Where the fragment occurs, overlaps included: ``aa`` occurs twice in ``aaa``, so it is not unique.

    Linear in the text, but for the overlaps, each of which costs a search of the whole fragment: after
    ``_OVERLAPPING`` characters of them it stops, and ``_is_dense`` is true of what it gives.
    """
    places, spent, at = list[int](), 0, text.find(fragment)
    while at >= 0:
        if places and at - places[-1] < len(fragment):
            spent += len(fragment)
        places.append(at)
        if spent > _OVERLAPPING:
            break
        at = text.find(fragment, at + 1)
    return places


def _is_dense(places: list[int], length: int) -> bool:
    """Whether there were too many overlaps to find all places."""
    return length * sum(second - first < length for first, second in pairwise(places)) > _OVERLAPPING


def replaced(source: SourceText, places: list[int], length: int, new: str) -> str:
    """The text with the fragment replaced at these places of ``flat``; its line ends are those of what was there, else
    those of the file."""
    text, pieces, done = source.text, list[str](), 0
    for place in places:
        start, end = source.offset(place), source.offset(place + length)
        there = text[start:end]
        newline = "\r\n" if "\r\n" in there else "\n" if "\n" in there else source.newline
        pieces += [text[done:start], new.replace("\n", newline)]
        done = end
    return "".join([*pieces, text[done:]])


def _require(old: str, new: str, occurrences: int) -> None:
    if not old:
        raise Rejected("old_text", "old_text is empty. Give the exact text to replace; for a whole file use write_file")
    if old == new:
        raise Rejected("new_text", "new_text equals old_text: nothing would change")
    if occurrences < 1:
        raise Rejected("occurrences", f"occurrences must be 1 or more; found {occurrences}", ("1 or more",))


def _already(source: SourceText, old: str, new: str, places: list[int]) -> list[int]:
    """Where the change has been made before: every ``old`` left is part of a ``new``, as after adding a line to it."""
    flat = source.flat
    if not places:
        return find_all(flat, new) if sum(not char.isspace() for char in new) >= _TELLING else []
    inner, found = find_all(new, old), list[int]()
    if len(inner) * len(places) > _COMPARED:
        return []
    for place in places:
        whole = next((place - at for at in inner if place >= at and flat.startswith(new, place - at)), None)
        if whole is None:
            return []
        found.append(whole)
    return found


def _require_count(source: SourceText, name: str, length: int, places: list[int], wanted: int) -> None:
    count = len(places)
    lines = ", ".join(str(source.line_at(place)) for place in places[:_LISTED])
    lines += f" and {count - _LISTED:,} more" if count > _LISTED else ""
    where = f"old_text occurs {plural(count, 'time')} in {name} (line {lines})"
    if any(second - first < length for first, second in pairwise(places)):
        raise Rejected("old_text", f"{where}, and the places overlap. {_APART}")
    if count != wanted:
        advice = f"Expected {plural(wanted, 'time')}. Add lines before or after it so that it is unique"
        raise Rejected("old_text", f"{where}. {advice}, or pass occurrences={count} to replace each of them")


def _report(name: str, before: SourceText, after: SourceText, places: list[int], old: str, new: str) -> str:
    """What was done, and the lines around the first place as they are now."""
    first = before.line_at(places[0])
    last = min(len(after.lines), first + new.count("\n") + _AROUND)
    head = f"Edited {name}: replaced {plural(len(places), 'occurrence')} at line {first}"
    if len(places) > 1:
        head = (
            f"{head} and below"
            if len(places) > _LISTED
            else f"{head}, " + ", ".join(str(before.line_at(place)) for place in places[1:])
        )
    changed = after.flat.count("\n") - before.flat.count("\n")
    head += f" ({changed:+d} lines)" if changed else ""
    now = numbered(after.lines, max(1, first - _AROUND), last, PAGE_CHARACTERS // 12)
    return "\n".join([f"{head}. Now:", *now]) if now else head
