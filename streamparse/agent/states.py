"""The life of a call, as data: its states, and what may follow what.

::

    proposed ──▶ rejected        the arguments are wrong: the model's fault, nothing ran
             ──▶ not_executed    it never ran for another reason: cut, refused by a policy, in doubt
             ──▶ cancelled       nobody wants it any more; it had not begun
             ──▶ running ──▶ ok           also a write that was done already, with its receipt (B13)
                         ──▶ error        the tool says so
                         ──▶ rejected     the tool refused the arguments
                         ──▶ timeout      stopped, and known to be over
                         ──▶ cancelled    stopped, and known to have changed nothing
                         ──▶ in_doubt     it may have taken effect, or may still be running

Every state without an arrow out of it is an end. A call ends once, with the one result that it gets (B3).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class CallState(StrEnum):
    """Where a call is, see the module."""

    PROPOSED = "proposed"
    RUNNING = "running"
    OK = "ok"
    REJECTED = "rejected"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    NOT_EXECUTED = "not_executed"
    IN_DOUBT = "in_doubt"

    @property
    def is_end(self) -> bool:
        """Whether a call in this state has its result."""
        return self not in TRANSITIONS


TRANSITIONS: Final = {
    CallState.PROPOSED: (CallState.RUNNING, CallState.REJECTED, CallState.NOT_EXECUTED, CallState.CANCELLED),
    CallState.RUNNING: (
        CallState.OK,
        CallState.ERROR,
        CallState.REJECTED,
        CallState.TIMEOUT,
        CallState.CANCELLED,
        CallState.IN_DOUBT,
    ),
}
"""What each state may become. What is no key here is an end."""
