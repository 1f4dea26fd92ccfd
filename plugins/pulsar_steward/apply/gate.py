"""The gate: what the ledger says may be changed now. Everything that acts goes through it, and nothing else opens it.

Airflow's skipping is not a gate (docs/decisions/0003-the-gate.md): the acting step asks here, and here only the ledger
counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import NotInLedger, Refused
from pulsar_steward.ledger.rows import Decision, RecordedAnswer
from pulsar_steward.model.plan import Plan, approval_digest
from pulsar_steward.model.step import Step

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.ledger.read import LedgerReader


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """What may be changed, by which answer; valid only as long as `still_valid` does not object.

    Attributes:
        plan: The recorded plan, its digest verified.
        batch_id: The batch that was answered.
        steps: The approved steps, in the plan's order.
        answer: The answer that permits it.
    """

    plan: Plan
    batch_id: str
    steps: tuple[Step, ...]
    answer: RecordedAnswer


def answer_of(ledger: LedgerReader, plan_id: str, batch_id: str, run: str) -> RecordedAnswer | None:
    """The last answer that was given to a batch in a run, or None where none was recorded."""
    return next((answer for answer in reversed(ledger.answers(plan_id, batch_id)) if answer.run == run), None)


def ask_for_permit(ledger: LedgerReader, plan_id: str, batch_id: str, run: str, now: datetime) -> Permit:
    """What a run may change of a batch.

    Raises:
        Refused: If anything is not exactly as it was approved, with the reason.
        LedgerError: If the ledger cannot be read, or its plan was tampered with: nothing may be changed then.
    """
    plan = ledger.plan(plan_id)
    answer = answer_of(ledger, plan_id, batch_id, run)
    if answer is None:
        raise Refused(f"the ledger holds no answer to batch {batch_id} of plan {plan_id} in run {run}")
    if answer.decision is not Decision.APPROVED:
        raise Refused(f"{answer.decision}: {answer.reason}")
    if not (answer.answered_by or "").strip():
        raise Refused("the recorded approval carries no person's name")
    if not answer.step_ids:
        raise Refused("the approval covers no step: every one was unticked")
    permit = Permit(plan=plan, batch_id=batch_id, steps=_approved_steps(plan, answer), answer=answer)
    require_valid(ledger, permit, run, now)
    return permit


def require_valid(ledger: LedgerReader, permit: Permit, run: str, now: datetime) -> None:
    """Looks again, as time goes on between two changes.

    Raises:
        Refused: If the approval expired, was used by another run, or a newer plan took the plan's place.
    """
    answer = permit.answer
    if answer.expires_at is None or now > answer.expires_at:
        raise Refused(f"the approval of {answer.answered_at:%Y-%m-%d %H:%M:%S} UTC has expired: observe and ask again")
    row = ledger.plan_row(permit.plan.plan_id)
    if row.superseded_by is not None:
        raise Refused(
            f"superseded by the newer plan {row.superseded_by}: the cluster was seen otherwise since; answer that one"
        )
    user = ledger.answer_user(answer.answer_id)
    if user is not None and user != run:
        raise Refused(f"the approval was used already, by run {user}")
    later = answer_of(ledger, permit.plan.plan_id, permit.batch_id, run)
    if later is not None and later.answer_id != answer.answer_id:
        raise Refused(f"a later answer took the approval's place: {later.decision}")


def _approved_steps(plan: Plan, answer: RecordedAnswer) -> tuple[Step, ...]:
    try:
        expected = approval_digest(plan, answer.batch_id, answer.step_ids)
        batch = plan.batch(answer.batch_id)
    except KeyError as error:
        raise NotInLedger(f"plan {plan.plan_id} holds no {error}, which the approval names") from error
    if answer.digest != expected:
        raise Refused("the approval's digest is not that of the plan: what was approved is not what would be done")
    return tuple(step for step in batch.steps if step.step_id in answer.step_ids)
