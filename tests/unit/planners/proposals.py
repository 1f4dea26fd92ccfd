"""What tests of planners read of a proposal: what it changes, what undoes that, and why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.model.step import ChangeSetting, Step

if TYPE_CHECKING:
    from pulsar_steward.model.setting import Setting, SettingName
    from pulsar_steward.planners.base import Proposal

KNOWN: dict[str, Any] = {"quotas_are_checked": True, "clocks_differ_milliseconds": 0}
"""What brokers tell where they stand in the way of no quota."""


def steps(proposal: Proposal) -> list[Step]:
    """All steps, in order; each was passed by its guards."""
    found = [step for batch in proposal.batches for step in batch.steps]
    assert all(step.guards and all(result.passed for result in step.guards) for step in found)
    return found


def only_step(proposal: Proposal) -> Step:
    (batch,) = proposal.batches
    assert len(batch.steps) == 1
    return steps(proposal)[0]


def settings_in(proposal: Proposal) -> list[ChangeSetting]:
    return [step.change for step in steps(proposal) if isinstance(step.change, ChangeSetting)]


def changes(proposal: Proposal) -> list[tuple[SettingName, Setting | None]]:
    """Settings that are changed with their new values, in order."""
    return [(change.name, change.after) for change in settings_in(proposal)]


def undone(step: Step) -> Setting | None:
    """The value that the undo of a step sets."""
    assert isinstance(step.undo, ChangeSetting)
    return step.undo.after


def refusal(proposal: Proposal) -> str:
    """The notes of a proposal without a batch."""
    assert proposal.batches == ()
    return " ".join(proposal.notes)
