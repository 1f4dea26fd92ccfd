"""What a person took back lately is not proposed again at once: it rests as long as what a person rejected."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.apply.applied import done_steps
from pulsar_steward.model.step import ChangeSetting

if TYPE_CHECKING:
    from collections.abc import Collection

    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Change
    from pulsar_steward.policy.approval import ApprovalPolicy

Subject = tuple[str, str]
"""What a change is about: a namespace's bundle, or a setting of a namespace or topic."""


class TakenBack(msgspec.Struct, frozen=True, kw_only=True):
    """What one plan took back.

    Attributes:
        plan_id: The plan that took it back.
        subjects: What its steps changed.
        rests_until: From this moment on it is proposed again, UTC.
    """

    plan_id: str
    subjects: frozenset[Subject]
    rests_until: datetime


def subject_of(change: Change) -> Subject:
    """What a change is about, whichever value or broker it leads to."""
    if isinstance(change, ChangeSetting):
        return change.holder, change.name.value
    return change.namespace, change.bundle


def taken_back_lately(
    ledger: LedgerReader, cluster: str, policy: ApprovalPolicy, now: datetime
) -> tuple[TakenBack, ...]:
    """What still rests, the newest first.

    Args:
        ledger: What was taken back.
        cluster: The cluster.
        policy: How long it rests.
        now: The present, UTC.
    """
    rest = timedelta(minutes=policy.ask_again_minutes)
    return tuple(
        TakenBack(
            plan_id=row.plan_id,
            subjects=frozenset(subject_of(step.change) for step in done_steps(ledger, row)),
            rests_until=row.at + rest,
        )
        for row in ledger.carried_out(cluster, ways_back=True)
        if now < row.at + rest
    )


def without_taken_back(plan: Plan, lately: Collection[TakenBack]) -> Plan:
    """The plan without the batches that change nothing but what was taken back lately; its notes name them.

    What somebody undid may be proposed again with another value, as backlogs move on: so values are not compared.
    """
    resting = {subject: each for each in reversed(tuple(lately)) for subject in each.subjects}
    kept, notes = [], list(plan.notes)
    for batch in plan.batches:
        found = [resting.get(subject_of(step.change)) for step in batch.steps]
        by = [each for each in found if each is not None]
        if len(by) < len(found):
            kept.append(batch)
            continue
        last = max(by, key=lambda each: each.rests_until)
        notes.append(
            f"{batch.title}: not proposed before {last.rests_until:%Y-%m-%d %H:%M} UTC, as the same was taken back"
            f" (plan {last.plan_id}; policy key approval.ask_again_minutes)"
        )
    return (
        msgspec.structs.replace(plan, batches=tuple(kept), notes=tuple(notes))
        if len(kept) < len(plan.batches)
        else plan
    )
