"""Decision on a new plan: the same approval is not requested twice, and newer plans supersede older ones."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import NotInLedger
from pulsar_steward.ledger.rows import Decision, PlanRow, RecordedAnswer
from pulsar_steward.model.units import counted, time_in_words
from pulsar_steward.policy.looser import loosened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.policy.approval import ApprovalPolicy
    from pulsar_steward.policy.schema import Policy


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """State of an earlier plan.

    Attributes:
        row: The plan's row.
        waiting: True if somebody may still answer one of its batches.
        answerable: True if an approval of it could still be carried out: not under a policy that is looser by now, and
            not of a plan that does not record its Pulsar cluster.
        rejected_at: When a person last rejected one of its batches; None: nobody did.
    """

    row: PlanRow
    waiting: bool
    answerable: bool = True
    rejected_at: datetime | None


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Decision about a new plan.

    Attributes:
        ask: True if approval is to be requested.
        supersede: Ids of the plans that it supersedes.
        record: True if it is recorded in the ledger at all.
        reason: The reason, as text.
    """

    ask: bool
    record: bool
    supersede: tuple[str, ...] = ()
    reason: str


class View(StrEnum):
    """Completeness of the snapshot behind a plan: only a complete one proves that something is absent."""

    COMPLETE = "complete"
    PARTIAL = "partial"


def decide(plan: Plan, view: View, standing: Sequence[Standing], policy: ApprovalPolicy, now: datetime) -> Publication:
    """Decides what to do with a new plan.

    Args:
        plan: The new plan.
        view: Completeness of its snapshot.
        standing: The cluster's earlier plans, newest first, superseded ones included.
        policy: How long a rejection is respected.
        now: Current time, UTC.
    """
    if view is View.PARTIAL and not plan.batches:
        reason = "; ".join(("a partial snapshot changes nothing", *plan.notes))
        return Publication(ask=False, record=False, reason=reason)
    valid = [each.row.plan_id for each in standing if each.row.superseded_by is None]
    older = tuple(plan_id for plan_id in valid if plan_id != plan.plan_id)
    if not plan.batches:
        reason = "; ".join(plan.notes) or "nothing to remedy"
        return Publication(ask=False, record=True, supersede=older, reason=reason)
    equal = (each for each in standing if each.row.proposal_digest == plan.proposal_digest)
    # A request whose answer would be refused is useless: it is made again.
    same = [each for each in equal if each.answerable or not each.waiting]
    # Another request that is still open no longer describes the cluster: it has to go, so this one supersedes it.
    outdated = any(each.waiting for each in standing if each not in same)
    for each in same:
        if each.waiting:
            return Publication(ask=False, record=False, reason=f"plan {each.row.plan_id} asks the same and still waits")
        if not outdated and each.rejected_at and now < each.rejected_at + timedelta(minutes=policy.ask_again_minutes):
            reason = f"the same was rejected at {time_in_words(each.rejected_at)} (plan {each.row.plan_id})"
            return Publication(ask=False, record=False, reason=reason)
    reason = f"{counted(len(plan.batches), 'batch', 'batches')} to be answered"
    return Publication(ask=True, record=True, supersede=older, reason=reason)


def standing_plans(ledger: LedgerReader, cluster: str, policy: Policy, now: datetime) -> tuple[Standing, ...]:
    """State of the cluster's proposals, newest first; superseded ones are included, as a rejection still counts.

    Rollbacks are left out: a person requested them by hand, and no observation supersedes them.
    """
    return tuple(_standing(ledger, row, policy, now) for row in ledger.plans(cluster, ways_back=False))


def _standing(ledger: LedgerReader, row: PlanRow, policy: Policy, now: datetime) -> Standing:
    plan, asked = ledger.plan(row.plan_id), ledger.asked_at(row.plan_id)
    patience = timedelta(minutes=policy.approval.response_timeout_minutes)
    waiting, rejected = False, []
    for batch in plan.batches:
        answers = ledger.answers(row.plan_id, batch.batch_id)
        since = asked.get(batch.batch_id, row.created_at)
        unanswered = not any(answer.answered_at >= since for answer in answers)
        waiting = waiting or (unanswered and now < since + patience) or _being_applied(ledger, answers, now)
        rejected += [answer.answered_at for answer in answers if answer.decision is Decision.REJECTED]
    waiting = waiting and row.superseded_by is None
    answerable = waiting and plan.planned_for is not None and _not_looser(ledger, plan, policy)
    return Standing(row=row, waiting=waiting, answerable=answerable, rejected_at=max(rejected, default=None))


def _not_looser(ledger: LedgerReader, plan: Plan, policy: Policy) -> bool:
    try:
        return not loosened(policy, ledger.policy(plan.policy_digest))
    except NotInLedger:
        return False


def _being_applied(ledger: LedgerReader, answers: Sequence[RecordedAnswer], now: datetime) -> bool:
    """True if a batch is approved, the approval is valid, and its steps have no outcome yet."""
    for answer in answers:
        if answer.decision is Decision.APPROVED and answer.expires_at and now < answer.expires_at:
            known = {outcome.step_id for outcome in ledger.outcomes(answer.plan_id, answer.batch_id)}
            if not known.issuperset(answer.step_ids):
                return True
    return False
