"""Pause for changes that a person rolled back: they are not proposed again for as long as a rejected one."""

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
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.policy.approval import ApprovalPolicy


class RolledBack(msgspec.Struct, frozen=True, kw_only=True):
    """Subjects that one plan rolled back.

    Attributes:
        plan_id: The plan that rolled them back.
        subjects: Subjects of its steps.
        rests_until: Time from which on they may be proposed again, UTC.
    """

    plan_id: str
    subjects: frozenset[Subject]
    rests_until: datetime


def rolled_back_lately(
    ledger: LedgerReader, cluster: str, policy: ApprovalPolicy, now: datetime
) -> tuple[RolledBack, ...]:
    """Rollbacks whose pause is not over, the newest first.

    Args:
        ledger: The ledger with the rollbacks.
        cluster: The cluster.
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
        for row in ledger.carried_out(cluster, ways_back=True)
        if now < row.at + rest
    )


def without_rolled_back(plan: Plan, lately: Collection[RolledBack]) -> Plan:
    """The plan without batches in which every change was rolled back lately; its notes name them.

    The same change may be proposed with another value, as backlogs develop: so values are not compared.
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
