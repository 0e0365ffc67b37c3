"""Who decides whether a command runs: a function of the embedding program."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

from streamparse.agent.coding_tools.outcome import ToolError, clipped
from streamparse.errors import UsageError


class Decision(StrEnum):
    """What a policy says of a command."""

    ALLOW = "allow"
    ASK = "ask"  # the user decides
    DENY = "deny"


Policy: TypeAlias = Callable[[str], str] | str
"""A command -> ``allow``, ``ask`` or ``deny``; or one of these words for every command."""

Ask: TypeAlias = Callable[[str], bool]
"""A command -> whether the user lets it run."""


class DeniedError(ToolError):
    """The command was not run: the policy, or the user, said no."""


def check_policy(policy: Policy) -> None:
    """Raises ``UsageError`` for a word that is no decision."""
    if isinstance(policy, str) and policy not in list(Decision):
        raise UsageError(f"policy must be a function, 'allow', 'ask' or 'deny', not {policy!r}")


def permit(command: str, policy: Policy, ask: Ask | None) -> None:
    """Return if the command may run. Raises ``DeniedError`` if not, ``UsageError`` for an answer that is none."""
    answer = policy if isinstance(policy, str) else policy(command)
    check_policy(answer)
    if answer == Decision.ALLOW or (answer == Decision.ASK and ask is not None and ask(command) is True):
        return
    if answer == Decision.DENY:
        why = "the policy of this project does not allow it"
    else:
        why = "nobody is there to approve it" if ask is None else "the user did not approve it"
    raise DeniedError(
        f"The command was not run: {why}. Do not try it again in another form. Command: {clipped(command, 200)}"
    )
