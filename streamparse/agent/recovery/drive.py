"""The check, led with a model: ask, take what comes, until it is over. All that is decided is decided by the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import anyio

from streamparse.agent.models import Model
from streamparse.agent.recovery.case import RecoveryCase
from streamparse.agent.recovery.check import RecoveryCheck
from streamparse.agent.recovery.metrics import measure
from streamparse.agent.recovery.report import Conditions, Dialogue, Report, Unmeasured
from streamparse.agent.recovery.telling import text_in
from streamparse.agent.recovery.using import Predicate
from streamparse.errors import TransportError
from streamparse.events import Event
from streamparse.version import installed_version

MakeModel: TypeAlias = Callable[[RecoveryCase], Model]
"""The model for one dialogue: a script or a recording holds one; a live model may be the same for all."""


async def run_case(
    case: RecoveryCase,
    model: Model,
    *,
    name: str = "",
    limit: int | None = None,
    run: int = 1,
    predicate: Predicate | None = None,
    sampling: dict[str, Any] | None = None,
) -> Dialogue:
    """Lead one dialogue to its end. ``name`` is the model's in the request, ``sampling`` further fields of it.

    Raises ``TransportError`` when no answer came, or its connection broke: that says nothing of the model, and there is
    no dialogue to report. And what the model raises. Cancelling closes the connection.
    """
    check = RecoveryCheck(case, limit=limit, run=run, predicate=predicate)
    while not check.is_over:
        request = check.request(model.wire, model=name, **(sampling or {}))
        events: list[Event] = []
        async with model.stream(request, tools=case.tools, id_factory=check.ledger.make_id) as answer:
            async for some in answer:
                events += some
        if answer.error is not None:
            raise answer.error
        check.take(events)
    return check.report()


def run_case_sync(case: RecoveryCase, model: Model, **options: Any) -> Dialogue:
    """``run_case`` where nothing is asynchronous. Not from within an event loop."""

    async def main() -> Dialogue:
        return await run_case(case, model, **options)

    return anyio.run(main)


async def run_cases(
    cases: Sequence[RecoveryCase],
    make_model: MakeModel,
    conditions: Conditions,
    *,
    progress: Callable[[Dialogue | Unmeasured], None] | None = None,
) -> Report:
    """Lead a dialogue for each case, ``conditions.repeat`` times, one after the other.

    ``conditions`` says what the model is called, how it samples, and the limit, if not each case's own. ``progress`` is
    told of each dialogue. A run whose transport failed is ``unmeasured``, and the next one begins.
    """
    dialogues: list[Dialogue] = []
    unmeasured: list[Unmeasured] = []
    for case, run in ((case, run) for case in cases for run in range(1, conditions.repeat + 1)):
        done: Dialogue | Unmeasured
        try:
            done = await run_case(
                case,
                make_model(case),
                name=conditions.model,
                limit=conditions.limit,
                run=run,
                sampling=conditions.sampling,
            )
            dialogues.append(done)
        except TransportError as error:
            done = Unmeasured(case.name, run, text_in(f"{type(error).__name__}: {error}", 300))
            unmeasured.append(done)
        if progress is not None:
            progress(done)
    return report_of(conditions, dialogues, unmeasured)


def report_of(conditions: Conditions, dialogues: Iterable[Dialogue], unmeasured: Iterable[Unmeasured] = ()) -> Report:
    """The report on these dialogues."""
    dialogues, unmeasured = tuple(dialogues), tuple(unmeasured)
    metrics = measure(dialogues, len(unmeasured))
    return Report(conditions=conditions, dialogues=dialogues, unmeasured=unmeasured, metrics=metrics)


def library_version() -> str:
    """The version of this library, for the conditions."""
    return installed_version() or "unknown"
