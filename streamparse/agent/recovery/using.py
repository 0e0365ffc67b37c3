"""Whether an answer uses what the tool returned (A8): a predicate over its text.

It looks for values, and understands no sentence. What it takes into account, since people and models write so: a number
in any spelling, a decimal comma, a value that is denied (``not 17.5``), an answer that corrects itself (``No wait``);
and numbers that claim nothing: of a list, of a time, of a date. It does not see values that are swapped, or right
values with a wrong meaning: for those a case has ``answer.contradicts``, and a check its own ``predicate``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final, TypeAlias

from streamparse.agent.recovery.case import RecoveryCase
from streamparse.agent.recovery.classes import TurnClass
from streamparse.errors import UsageError

Predicate: TypeAlias = Callable[[str], TurnClass]
"""Takes the text of an answer, gives ``USED``, ``IGNORED`` or ``CONTRADICTS``."""

_NUMBER: Final = re.compile(r"(?<![\w.,])[-\u2212]?\d{1,15}(?:[.,]\d{1,15}){0,5}(?!\d)")
_GROUPED: Final = re.compile(r"(\d{1,3}(?:,\d{3})+)(\.\d+)?|(\d{1,3}(?:\.\d{3})+)(,\d+)?")
_NO_CLAIM: Final = re.compile(
    r"^\s*\d{1,3}[.)]\s"  # of a list
    r"|\b\d{1,2}:\d{2}(?::\d{2})?\b"  # a time
    r"|\b\d{4}-\d{2}-\d{2}\b",  # a date
    re.MULTILINE,
)
_DENIED: Final = re.compile(
    r"(?:\b(?:not|never|nicht|kein\w*|instead of|rather than)\b|n['\u2019]t\b)[^.!?;:,\n]{0,20}$", re.IGNORECASE
)
_CORRECTION: Final = re.compile(
    r"\b(?:no,? wait|wait,|correction|i mean|i meant|scratch that|let me correct|i was wrong)\b", re.IGNORECASE
)
_DEPTH: Final = 20


def default_predicate(case: RecoveryCase) -> Predicate:
    """Looks for what ``case.answer`` names, or for the result's values that the model can only have from the tool: for
    all of them.

    An answer that lacks one, and has a number that nobody gave it, contradicts the result; without such a number it
    ignores the result. Raises ``UsageError`` if the result says nothing that the request does not say.
    """
    known = _known(case)
    wanted = case.answer.contains or tuple(each for each in _scalars(case.result) if not _stands_in(each, known))
    if not wanted:
        raise UsageError(f"case {case.name!r}: its result holds nothing new, so answer.contains has to say what counts")
    given = _numbers(known) | _numbers(" ".join(_scalars(case.result)))

    def judge(text: str) -> TurnClass:
        if any(_stands_in(each, text) for each in case.answer.contradicts):
            return TurnClass.CONTRADICTS
        last = _CORRECTION.split(text)[-1]
        others = _invented(last, given)
        if all(_is_stated(each, text) for each in wanted):
            taken_back = last != text and others and not all(_is_stated(each, last) for each in wanted)
            return TurnClass.CONTRADICTS if taken_back else TurnClass.USED
        due = any(_numbers(each) and not _is_stated(each, text) for each in wanted)
        return TurnClass.CONTRADICTS if due and _invented(text, given) else TurnClass.IGNORED

    return judge


def without_last_word(text: str) -> str:
    """A text that was cut, without the word in which that happened: ``It is 1`` says no number."""
    return re.sub(r"\S+$", "", text)


def _known(case: RecoveryCase) -> str:
    """All that the model had without the tool."""
    given = (*_scalars(case.expected), *_scalars(case.prepared.arguments or {}))
    return " ".join([case.user, case.system, *given])


def _scalars(value: Any, depth: int = 0) -> Iterator[str]:
    """The words and numbers in a value; yes and no are too short to be looked for."""
    if isinstance(value, dict | list):
        for each in (value.values() if isinstance(value, dict) else value) if depth < _DEPTH else ():
            yield from _scalars(each, depth + 1)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _stands_in(word: str, text: str) -> bool:
    """Whether the word stands there; a number whatever way it is written (``17``, ``17.0``, ``17,0``, ``1,017``)."""
    return any(True for _ in _places(word, text))


def _is_stated(word: str, text: str) -> bool:
    """Whether it stands there once without being denied."""
    return any(_DENIED.search(text[max(at - 40, 0) : at]) is None for at in _places(word, text))


def _places(word: str, text: str) -> Iterator[int]:
    """Where the word begins."""
    if _NUMBER.fullmatch(word) is not None:
        wanted = Decimal(word.replace("\u2212", "-").replace(",", ""))
        yield from (match.start() for match in _NUMBER.finditer(text) if wanted in _readings(match[0]))
        return
    pattern = rf"(?<!\w){re.escape(word)}(?!\w)"
    yield from (match.start() for match in re.finditer(pattern, text, re.IGNORECASE))


def _invented(text: str, given: set[Decimal]) -> bool:
    """Whether the text claims a number that nobody gave the model."""
    claims = _NO_CLAIM.sub(" ", text)
    return any(not _readings(word) & given for word in _NUMBER.findall(claims))


def _numbers(text: str) -> set[Decimal]:
    return {number for word in _NUMBER.findall(text) for number in _readings(word)}


def _readings(word: str) -> set[Decimal]:
    """The numbers that a spelling can mean: ``1,017`` is a thousand and something, and one and a bit; ``1, 2, 3``
    without blanks is none."""
    sign = -1 if word[0] in "-\u2212" else 1
    bare = word.lstrip("-\u2212")
    found = {bare.replace(",", ".")} if bare.count(".") + bare.count(",") <= 1 else set()
    if (grouped := _GROUPED.fullmatch(bare)) is not None:
        whole, rest = grouped[1] or grouped[3], grouped[2] or grouped[4] or ""
        found.add(re.sub(r"[.,]", "", whole) + rest.replace(",", "."))
    return {sign * Decimal(each) for each in found}
