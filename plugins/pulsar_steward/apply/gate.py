"""The gate: the changes that the ledger permits now. Everything that acts goes through it, and nothing else opens it.

Airflow's skipping is not a gate (docs/decisions/0003-the-gate.md): the acting step asks here, and here only the ledger
counts, and only as long as it is what was written.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes.risk import risk_of
from pulsar_steward.errors import NotInLedger, Refused
from pulsar_steward.guard.window_times import good_until, windows_for
from pulsar_steward.ledger.rows import Decision, Grant, Origin, RecordedAnswer
from pulsar_steward.ledger.tables import (
    ANSWER_USES,
    ANSWERS,
    CONFIRMATIONS,
    HALTS,
    INTENTS,
    OUTCOMES,
    PLANS,
    POLICIES,
    QUESTION_ENDS,
    QUESTIONS,
    REQUESTS,
    SUPERSESSIONS,
)
from pulsar_steward.ledger.verify import VerifiedChain
from pulsar_steward.model.people import Person, same_person
from pulsar_steward.model.plan import Plan, approval_digest
from pulsar_steward.model.step import Step
from pulsar_steward.policy.approval_terms import terms_of
from pulsar_steward.policy.looser import loosened

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from pulsar_steward.ledger.chain import Head
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.rows import Request
    from pulsar_steward.policy.approval import ApprovalPolicy
    from pulsar_steward.policy.schema import Policy

CLOCKS_DIFFER = timedelta(minutes=5)
"""Accepted difference of an answer's time, which is Airflow's, from Steward's: a later one would never expire."""

_RESTED_ON = (
    *(PLANS, SUPERSESSIONS, QUESTIONS, QUESTION_ENDS, CONFIRMATIONS),
    *(REQUESTS, ANSWERS, ANSWER_USES, INTENTS, OUTCOMES, HALTS, POLICIES),
)
"""Tables whose rows a permit rests on, what was done under it so far (the pace goes by that), and who said stop."""


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """Permission to change a batch's steps, with its answers; valid only as long as `require_valid` does not object.

    Attributes:
        plan: The recorded plan, its digest verified.
        batch_id: The batch that was answered.
        steps: The approved steps, in the plan's order.
        grant: The rows that permit it.
        walked: The ledger's chain as it was verified for the permit.
    """

    plan: Plan
    batch_id: str
    steps: tuple[Step, ...]
    grant: Grant
    walked: VerifiedChain


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
    ledger: LedgerReader,
    plan_id: str,
    batch_id: str,
    run: str,
    now: datetime,
    policy: Policy,
    *,
    noted: Collection[Head] = (),
) -> Permit:
    """Permit of a run for a batch.

    Args:
        ledger: The ledger with plan, requests and answers.
        plan_id: The plan.
        batch_id: Its batch.
        run: The run that acts, ``dag/run/map index``.
        now: Current time, UTC.
        policy: The policy in force.
        noted: Ends of the ledger's chain that were recorded outside of the ledger.

    Raises:
        Refused: If anything is not exactly as it was approved, with the reason.
        LedgerError: If the ledger cannot be read, or was tampered with: nothing may be changed then.
    """
    walked = ledger.require_untampered(plan_id, noted=noted)
    plan = ledger.plan(plan_id)
    if over := ledger.questions.over(plan_id, batch_id):
        raise Refused(over)
    answers = answers_of(ledger, plan_id, batch_id, run)
    if not answers:
        raise Refused(f"the ledger holds no answer to batch {batch_id} of plan {plan_id} in run {run}")
    for answer in answers:
        _require_approval(answer, now)
    steps = _approved_steps(plan, answers[0])
    requests = ledger.requests(plan_id, batch_id, run)
    known = require_policies(ledger, plan, requests, policy)
    _require_people(plan, answers, requests, policy.approval)
    for answer in answers[1:]:
        wider, steps = {step.step_id for step in steps}, _approved_steps(plan, answer)
        if not wider.issuperset(step.step_id for step in steps):
            raise Refused("the second approval covers steps that the first does not")
    batch = plan.batch(batch_id)
    risk = risk_of(plan, batch).level
    terms = [terms_of(each["approval"], batch.kind, risk) for each in known]
    valid, windows = min(each.valid_minutes for each in terms), windows_for(batch, policy)
    waits = min(each["approval"].get("wait_for_window_minutes", 0) for each in known)
    grant = Grant(
        cluster=plan.cluster,
        plan_id=plan_id,
        batch_id=batch_id,
        run=run,
        answer_ids=tuple(answer.answer_id for answer in answers),
        expires_at=min(
            min(answer.expires_at or now, good_until(answer.answered_at, valid, waits, windows)) for answer in answers
        ),
    )
    permit = Permit(plan=plan, batch_id=batch_id, steps=steps, grant=grant, walked=walked)
    ledger.require_standing(grant, now)
    return permit


def require_valid(ledger: LedgerReader, permit: Permit, now: datetime) -> None:
    """Checks a permit again, as time goes on between two changes.

    Raises:
        Refused: If an approval expired or was used by another run, the question ended, or a newer plan took its place.
        LedgerTampered: If what it rests on is not what was written.
    """
    ledger.require_still_untampered(permit.walked, _RESTED_ON)
    ledger.require_standing(permit.grant, now)


def require_policies(
    ledger: LedgerReader, plan: Plan, requests: Sequence[Request], policy: Policy
) -> tuple[dict[str, dict[str, int]], ...]:
    """Refuses to act under a policy that is looser than those under which was planned and asked.

    Returns:
        The values of these two by section, and those of the one in force for approvals.

    Raises:
        Refused: With every key that is looser; or if it is not recorded under which policy was planned or asked.
    """
    then = {"planned": plan.policy_digest}
    for request in requests:
        if request.policy_digest is None:
            raise Refused("it is not recorded under which policy was asked: an earlier Steward did; observe again")
        then[f"asked at {request.at:%Y-%m-%d %H:%M:%S} UTC"] = request.policy_digest
    known = []
    for when, digest in then.items():
        try:
            values = ledger.policy(digest)
        except NotInLedger as error:
            raise Refused(
                f"the policy under which was {when} is not recorded ({error}): an earlier Steward did; observe again"
            ) from error
        if looser := loosened(policy, values):
            raise Refused(
                f"the policy in force is looser than the one under which was {when}: {'; '.join(looser)}. Put the"
                " former values back, or observe and ask under these"
            )
        known.append(values)
    return (*known, {"approval": policy.approval.model_dump(mode="json")})


def _require_approval(answer: RecordedAnswer, now: datetime) -> None:
    if answer.decision is not Decision.APPROVED:
        raise Refused(f"{answer.decision}: {answer.reason}")
    if not answer.person.name.strip() or not answer.person.user_id.strip():
        raise Refused("the recorded approval carries no person's name")
    if not answer.step_ids:
        raise Refused("the approval covers no step: every one was unticked")
    if answer.expires_at is None:
        raise Refused("the recorded approval does not say until when it is good")
    if answer.answered_at > now + CLOCKS_DIFFER:
        at = f"{answer.answered_at:%Y-%m-%d %H:%M:%S} UTC"
        raise Refused(f"the approval is dated {at}, which is yet to come: set the clocks right, and ask again")


def _require_people(
    plan: Plan, answers: Sequence[RecordedAnswer], requests: Sequence[Request], policy: ApprovalPolicy
) -> None:
    """Checks that these people may approve such a batch, by the policy as it is now."""
    batch = plan.batch(answers[0].batch_id)
    risk = risk_of(plan, batch).level
    terms, what = policy.terms(batch.kind, risk), f"of kind {batch.kind} and {risk} risk"
    if len(answers) < terms.people:
        keys = "approval.two_people_for, approval.by_risk"
        raise Refused(f"a batch {what} needs the approval of a second person ({keys})")
    people = [answer.person for answer in answers]
    if any(same_person(first, second) for number, first in enumerate(people) for second in people[number + 1 :]):
        raise Refused(f"both approvals are by {people[0].name}: the second has to be another person's")
    for person in people:
        if not terms.may_answer(person.user_id):
            raise Refused(f"{person.name} may not approve batches {what} (approval.assigned_users, approval.by_risk)")
    if not terms.requester_may_approve:
        _require_not_requested_by(people, requests)


def _require_not_requested_by(people: Sequence[Person], requests: Sequence[Request]) -> None:
    """Checks that no approver started the run by hand; a starter who is not known may be anybody."""
    for request in requests:
        if request.requested_by is None and request.origin is not Origin.SCHEDULE:
            raise Refused(
                "who started the run is not known, and they may not approve (approval.requester_may_approve): start"
                " pulsar_remediate by name, or let pulsar_observe start it"
            )
        for person in people:
            if request.requested_by is not None and person.may_be(request.requested_by):
                raise Refused(f"{person.name} started the run, and may not approve it (approval.requester_may_approve)")
    if not requests:
        raise Refused("who started the run is not recorded, and they may not approve (approval.requester_may_approve)")


def _approved_steps(plan: Plan, answer: RecordedAnswer) -> tuple[Step, ...]:
    try:
        expected = approval_digest(plan, answer.batch_id, answer.step_ids)
        batch = plan.batch(answer.batch_id)
    except KeyError as error:
        raise NotInLedger(f"plan {plan.plan_id} holds no {error}, which the approval names") from error
    if answer.digest != expected:
        raise Refused("the approval's digest is not that of the plan: what was approved is not what would be done")
    return tuple(step for step in batch.steps if step.step_id in answer.step_ids)
