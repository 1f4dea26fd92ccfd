"""Pause after a rollback: its changes are not proposed again for the same time as rejected ones."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.apply.applied import done_steps
from pulsar_steward.changes import kind_of
from pulsar_steward.changes.kind import Subject
from pulsar_steward.model.units import time_in_words

if TYPE_CHECKING:
    from collections.abc import Collection

    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.cluster import NamedCluster
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.policy.approval import ApprovalPolicy


class RolledBack(msgspec.Struct, frozen=True, kw_only=True):
    """Subjects that one plan rolled back.

    Attributes:
        plan_id: The plan that rolled them back.
        subjects: Subjects of its steps.
        rests_until: Time after which they may be proposed again, UTC.
    """

    plan_id: str
    subjects: frozenset[Subject]
    rests_until: datetime


def rolled_back_lately(
    ledger: LedgerReader, cluster: NamedCluster, policy: ApprovalPolicy, now: datetime
) -> tuple[RolledBack, ...]:
    """Rollbacks whose pause is not over, by name of the cluster and newest first.

    Args:
        ledger: The ledger with the rollbacks.
        cluster: The cluster; rollbacks under all of its names count.
        policy: Length of the pause.
        now: Current time, UTC.
    """
    rest = timedelta(minutes=policy.ask_again_minutes)
    return tuple(
        RolledBack(
            plan_id=row.plan_id,
            subjects=frozenset(kind_of(step.change).subject for step in done_steps(ledger, row)),
            rests_until=row.at + rest,
        )
        for name in sorted(ledger.known(cluster).names)
        for row in ledger.carried_out(name, ways_back=True)
        if now < row.at + rest
    )


def without_rolled_back(plan: Plan, lately: Collection[RolledBack]) -> Plan:
    """The plan without batches in which every change was rolled back lately; the plan's notes name these batches.

    Values are not compared: as backlogs develop, the same change may be proposed with another value.
    """
    resting = {subject: each for each in reversed(tuple(lately)) for subject in each.subjects}
    kept, notes = [], list(plan.notes)
    for batch in plan.batches:
        found = [resting.get(kind_of(step.change).subject) for step in batch.steps]
        by = [each for each in found if each is not None]
        if len(by) < len(found):
            kept.append(batch)
            continue
        last = max(by, key=lambda each: each.rests_until)
        notes.append(
            f"{batch.title}: not proposed before {time_in_words(last.rests_until)}, as the same was taken back"
            f" (plan {last.plan_id}; policy key approval.ask_again_minutes)"
        )
    return (
        msgspec.structs.replace(plan, batches=tuple(kept), notes=tuple(notes))
        if len(kept) < len(plan.batches)
        else plan
    )
