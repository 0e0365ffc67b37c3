"""Whether an answer uses what the tool returned (A8): a predicate over its text."""

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

_NUMBER: Final = re.compile(r"(?<![\w.])[-\u2212]?\d{1,15}(?:,\d{3})*(?:\.\d{1,15})?(?![\d])")
_DEPTH: Final = 20


def default_predicate(case: RecoveryCase) -> Predicate:
    """Looks for what ``case.answer`` names, or for the result's values that the model can only have from the tool.

    An answer that has none of them, and a number that nobody gave it, contradicts the result; without one, it ignores
    the result. Raises ``UsageError`` if the result says nothing that the request does not say.
    """
    known = _known(case)
    wanted = case.answer.contains or tuple(each for each in _scalars(case.result) if not _stands_in(each, known))
    if not wanted:
        raise UsageError(f"case {case.name!r}: its result holds nothing new, so answer.contains has to say what counts")

    def judge(text: str) -> TurnClass:
        if any(_stands_in(each, text) for each in case.answer.contradicts):
            return TurnClass.CONTRADICTS
        if all(_stands_in(each, text) for each in wanted):
            return TurnClass.USED
        invented = _numbers(text) - _numbers(known) - _numbers(" ".join(_scalars(case.result)))
        due = any(_numbers(each) - _numbers(text) for each in wanted)
        return TurnClass.CONTRADICTS if invented and due else TurnClass.IGNORED

    return judge


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
    """Whether the word stands there; a number whatever way it is written (``17``, ``17.0``, ``1,017``)."""
    if (number := _NUMBER.fullmatch(word)) is not None:
        return _decimal(number[0]) in _numbers(text)
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def _numbers(text: str) -> set[Decimal]:
    return {_decimal(match) for match in _NUMBER.findall(text)}


def _decimal(word: str) -> Decimal:
    return Decimal(word.replace(",", "").replace("\u2212", "-"))
