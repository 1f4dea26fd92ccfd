"""The gate: what the ledger says may be changed now. Everything that acts goes through it, and nothing else opens it.

Airflow's skipping is not a gate (docs/decisions/0003-the-gate.md): the acting step asks here, and here only the ledger
counts, and only as long as it is what was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import NotInLedger, Refused
from pulsar_steward.ledger.rows import Decision, RecordedAnswer
from pulsar_steward.ledger.tables import ANSWER_USES, ANSWERS, HALTS, INTENTS, OUTCOMES, PLANS, REQUESTS, SUPERSESSIONS
from pulsar_steward.ledger.verify import Walked
from pulsar_steward.model.plan import Plan, approval_digest
from pulsar_steward.model.step import Step

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.policy.approval import ApprovalPolicy

_RESTED_ON = (PLANS, SUPERSESSIONS, REQUESTS, ANSWERS, ANSWER_USES, INTENTS, OUTCOMES, HALTS)
"""Tables whose rows a permit rests on, what was done under it so far (the pace goes by that), and who said stop."""


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """What may be changed, by which answers; valid only as long as `require_valid` does not object.

    Attributes:
        plan: The recorded plan, its digest verified.
        batch_id: The batch that was answered.
        steps: The approved steps, in the plan's order.
        answers: The answers that permit it together, the first person's first.
        walked: How the ledger was found when it was asked for.
    """

    plan: Plan
    batch_id: str
    steps: tuple[Step, ...]
    answers: tuple[RecordedAnswer, ...]
    walked: Walked

    @property
    def answer(self) -> RecordedAnswer:
        """The answer that was last needed; calls are recorded under it."""
        return self.answers[-1]


def answers_of(ledger: LedgerReader, plan_id: str, batch_id: str, run: str) -> tuple[RecordedAnswer, ...]:
    """The last answer of each person that was asked about a batch in a run, the first person's first."""
    last = {answer.voice or 1: answer for answer in ledger.answers(plan_id, batch_id) if answer.run == run}
    return tuple(last[voice] for voice in sorted(last))


def answer_of(ledger: LedgerReader, plan_id: str, batch_id: str, run: str) -> RecordedAnswer | None:
    """The answer that decides in a run: the first that is no approval, else the last; None where there is none."""
    answers = answers_of(ledger, plan_id, batch_id, run)
    refusing = (answer for answer in answers if answer.decision is not Decision.APPROVED)
    return next(refusing, answers[-1] if answers else None)


def ask_for_permit(
    ledger: LedgerReader, plan_id: str, batch_id: str, run: str, now: datetime, policy: ApprovalPolicy
) -> Permit:
    """What a run may change of a batch.

    Raises:
        Refused: If anything is not exactly as it was approved, with the reason.
        LedgerError: If the ledger cannot be read, or was tampered with: nothing may be changed then.
    """
    walked = ledger.require_untampered(plan_id)
    plan = ledger.plan(plan_id)
    answers = answers_of(ledger, plan_id, batch_id, run)
    if not answers:
        raise Refused(f"the ledger holds no answer to batch {batch_id} of plan {plan_id} in run {run}")
    for answer in answers:
        _require_approval(answer)
    steps = _approved_steps(plan, answers[0])
    _require_people(ledger, plan, answers, policy)
    for answer in answers[1:]:
        wider, steps = {step.step_id for step in steps}, _approved_steps(plan, answer)
        if not wider.issuperset(step.step_id for step in steps):
            raise Refused("the second approval covers steps that the first does not")
    permit = Permit(plan=plan, batch_id=batch_id, steps=steps, answers=answers, walked=walked)
    _require_standing(ledger, permit, run, now)
    return permit


def require_valid(ledger: LedgerReader, permit: Permit, run: str, now: datetime) -> None:
    """Looks again, as time goes on between two changes.

    Raises:
        Refused: If an approval expired, was used by another run, or a newer plan took the plan's place.
        LedgerTampered: If what it rests on is not what was written.
    """
    ledger.require_still_untampered(permit.walked, _RESTED_ON)
    _require_standing(ledger, permit, run, now)


def _require_standing(ledger: LedgerReader, permit: Permit, run: str, now: datetime) -> None:
    """That neither time, nor a newer plan, nor another run, nor another answer ended the permit."""
    plan_id = permit.plan.plan_id
    row = ledger.plan_row(plan_id)
    if row.superseded_by is not None:
        raise Refused(
            f"superseded by the newer plan {row.superseded_by}: the cluster was seen otherwise since; answer that one"
        )
    for answer in permit.answers:
        if answer.expires_at is None or now > answer.expires_at:
            at = f"{answer.answered_at:%Y-%m-%d %H:%M:%S} UTC"
            raise Refused(f"the approval of {at} has expired: observe and ask again")
        user = ledger.answer_user(answer.answer_id)
        if user is not None and user != run:
            raise Refused(f"the approval was used already, by run {user}")
    present = answers_of(ledger, plan_id, permit.batch_id, run)
    if [answer.answer_id for answer in present] != [answer.answer_id for answer in permit.answers]:
        later = answer_of(ledger, plan_id, permit.batch_id, run)
        raise Refused(f"a later answer took the approval's place: {later.decision if later else 'none'}")


def _require_approval(answer: RecordedAnswer) -> None:
    if answer.decision is not Decision.APPROVED:
        raise Refused(f"{answer.decision}: {answer.reason}")
    if not (answer.answered_by or "").strip():
        raise Refused("the recorded approval carries no person's name")
    if not answer.step_ids:
        raise Refused("the approval covers no step: every one was unticked")


def _require_people(
    ledger: LedgerReader, plan: Plan, answers: tuple[RecordedAnswer, ...], policy: ApprovalPolicy
) -> None:
    """Whether these are the people who may approve such a batch, by the policy as it is now."""
    batch_id, run = answers[0].batch_id, answers[0].run
    kind = plan.batch(batch_id).kind
    if len(answers) < policy.voices_for(kind):
        raise Refused(f"a batch of kind {kind} needs the approval of a second person (approval.two_people_for)")
    names = [str(answer.answered_by) for answer in answers]
    if len(set(names)) < len(names):
        raise Refused(f"both approvals are by {names[0]}: the second has to be another person's")
    users = policy.users_for(kind)
    for name in names:
        if users and name not in users:
            raise Refused(f"{name} may not approve batches of kind {kind} (approval.assigned_users)")
    if policy.requester_may_approve:
        return
    asked, requester = ledger.requested_by(plan.plan_id, batch_id, run)
    if not asked:
        raise Refused("who started the run is not recorded, and they may not approve (approval.requester_may_approve)")
    if requester in names:
        raise Refused(f"{requester} started the run, and may not approve it (approval.requester_may_approve)")


def _approved_steps(plan: Plan, answer: RecordedAnswer) -> tuple[Step, ...]:
    try:
        expected = approval_digest(plan, answer.batch_id, answer.step_ids)
        batch = plan.batch(answer.batch_id)
    except KeyError as error:
        raise NotInLedger(f"plan {plan.plan_id} holds no {error}, which the approval names") from error
    if answer.digest != expected:
        raise Refused("the approval's digest is not that of the plan: what was approved is not what would be done")
    return tuple(step for step in batch.steps if step.step_id in answer.step_ids)
