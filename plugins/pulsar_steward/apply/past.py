"""What the ledger tells the guards right before a change: what was done in the cluster before it, and by whom."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.step import ChangeSetting

if TYPE_CHECKING:
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.schema import Policy

HOUR = timedelta(hours=1)


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """What the guards of one step need to know of the past; `guard.view` says what each means.

    Attributes:
        now: The present, UTC.
    """

    now: datetime
    seen_at: datetime
    planned_for: ClusterIdentity | None
    moved_at: datetime | None = None
    circling: tuple[str, ...] = ()
    unproved: str | None = None
    changes_in_the_last_hour: int = 0
    place_in_run: int = 1


def past_of(
    ledger: LedgerReader, plan: Plan, batch_id: str, step: Step, policy: Policy, now: datetime, place_in_run: int
) -> Past:
    """What happened before a step.

    Args:
        ledger: What was done.
        plan: The step's plan.
        batch_id: Its batch, whose own changes need no proof yet.
        step: The step.
        policy: How far back guards look.
        now: The present, UTC.
        place_in_run: Which change of its run it is, from 1.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    circle = timedelta(minutes=policy.guards.circle_minutes)
    unproved = ledger.unproved_since(plan.cluster, plan.taken_at, besides=(plan.plan_id, batch_id))
    return Past(
        now=now,
        seen_at=plan.taken_at,
        planned_for=plan.planned_for,
        moved_at=_moved_at(ledger, plan, batch_id, step, policy, now),
        circling=ledger.moved_in_circles(plan.cluster, now - circle).get(step.change.namespace, ()),
        unproved=unproved.words if unproved else None,
        changes_in_the_last_hour=len(ledger.changes_since(plan.cluster, now - HOUR)),
        place_in_run=place_in_run,
    )


def _moved_at(
    ledger: LedgerReader, plan: Plan, batch_id: str, step: Step, policy: Policy, now: datetime
) -> datetime | None:
    """When the bundle was last moved; this very step's own earlier tries, which did not do it, are none."""
    if isinstance(step.change, ChangeSetting):
        return None
    moves = ledger.moves_since(plan.cluster, now - timedelta(minutes=policy.tc_skew.cooldown_minutes))
    moved_at = moves.get(f"{step.change.namespace}/{step.change.bundle}")
    tried = ledger.intents(plan.plan_id, batch_id)
    own = {intent.at for intent in tried if intent.step_id == step.step_id}
    return None if moved_at in own else moved_at
