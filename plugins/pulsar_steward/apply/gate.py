"""The gate: every change needs its permit, and only an untampered ledger opens it.

Airflow's skipping of tasks is not a gate (docs/decisions/0003-the-gate.md): the task that changes the cluster asks for
the permit here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes.risk import risk_of
from pulsar_steward.errors import ConfigurationError, NotInLedger, PolicyError, Refused
from pulsar_steward.guards.window_times import good_until, windows_for
from pulsar_steward.ledger.batch_record import last_words
from pulsar_steward.ledger.past import looked_back
from pulsar_steward.ledger.rows import ApprovedPart, Decision, Grant, Origin, RecordedAnswer
from pulsar_steward.ledger.verify import VerifiedChain
from pulsar_steward.model.people import Person, same_person
from pulsar_steward.model.plan import Plan, approval_digest, further_digests, no_digests, parts_of
from pulsar_steward.model.step import Step
from pulsar_steward.policy.files import own_policy
from pulsar_steward.policy.looser import loosened
from pulsar_steward.policy.never_asked import never_asked_about
from pulsar_steward.policy.recorded import RecordedPolicy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime

    from pulsar_steward.ledger.chain import Head
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.rows import Request
    from pulsar_steward.model.cluster import NamedCluster
    from pulsar_steward.model.plan import Batch
    from pulsar_steward.policy.approval import ApprovalPolicy, ApprovalValues
    from pulsar_steward.policy.schema import Policy

CLOCKS_DIFFER = timedelta(minutes=5)
"""Accepted difference between Airflow's clock, which dates answers, and Steward's.

An answer from the future would expire too late. An answer from before its question cannot be an answer to it.
"""


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """Permission to carry out steps of a batch, with its answers; later rows of the ledger can end it.

    Attributes:
        plan: The recorded plan, with a verified digest.
        batch_id: The approved batch.
        steps: The approved steps that may be carried out, in the plan's order.
        left_out: Reasons why other approved steps may not, by step id: a person or the policy excluded them since.
        parts: Parts of the batch; a person may still reject or silence each one elsewhere.
        grant: The rows that give the permission.
        walked: The ledger's chain as it was verified for the permit.
    """

    plan: Plan
    batch_id: str
    steps: tuple[Step, ...]
    left_out: dict[str, str] = {}
    parts: tuple[ApprovedPart, ...]
    grant: Grant
    walked: VerifiedChain

    def part_of(self, step: Step) -> ApprovedPart:
        """The part of the batch that contains a step."""
        return next(part for part in self.parts if step.step_id in part.step_ids)


def answers_of(ledger: LedgerReader, plan_id: str, batch_id: str, run: str) -> tuple[RecordedAnswer, ...]:
    """The last answers of the people who were asked about a batch in a run; the first person's comes first."""
    return last_words([answer for answer in ledger.answers(plan_id, batch_id) if answer.run == run])


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
        run: The acting run, ``dag/run/map index``.
        now: Current time, UTC.
        policy: The policy in force.
        noted: Ends of the ledger's chain that were recorded outside of the ledger.

    Raises:
        Refused: If anything differs from the approval; contains the reason.
        LedgerError: If the ledger cannot be read, or was tampered with; then nothing may be changed.
    """
    walked = ledger.require_untampered(plan_id, noted=noted, since=now - looked_back(policy))
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
    _require_asked_first(answers, requests)
    known = require_policies(ledger, plan, requests, policy)
    if looser := "; ".join(looser_than_others(ledger, plan.named_cluster, policy)):
        raise Refused(looser)
    _require_people(plan, answers, requests, policy.approval)
    for answer in answers[1:]:
        wider, steps = {step.step_id for step in steps}, _approved_steps(plan, answer)
        if not wider.issuperset(step.step_id for step in steps):
            raise Refused("the second approval covers steps that the first does not")
    batch = plan.batch(batch_id)
    risk = risk_of(plan, batch).level
    terms = [each.terms(batch.answered_as, risk) for each in known]
    valid, most = min(each.valid_minutes for each in terms), terms[0].most_minutes
    waits = min(each.wait_for_window_minutes for each in known)
    windows = windows_for(batch, policy)
    grant = Grant(
        cluster=plan.named_cluster,
        plan_id=plan_id,
        batch_id=batch_id,
        run=run,
        answer_ids=tuple(answer.answer_id for answer in answers),
        expires_at=min(
            min(answer.expires_at or now, good_until(answer.answered_at, valid, waits, windows, most))
            for answer in answers
        ),
    )
    ledger.require_standing(grant, now)
    approved = _approved_parts(batch, {step.step_id for step in steps})
    parts = _parts(ledger, plan, batch, approved)
    left_out = _left_out(ledger, grant, approved, parts, policy)
    standing = tuple(step for step in steps if step.step_id not in left_out)
    if not standing:
        raise Refused(left_out[steps[0].step_id])
    return Permit(
        plan=plan,
        batch_id=batch_id,
        steps=standing,
        left_out={step.step_id: left_out[step.step_id] for step in steps if step not in standing},
        parts=parts,
        grant=grant,
        walked=walked,
    )


def _approved_parts(batch: Batch, step_ids: Collection[str]) -> tuple[Batch, ...]:
    """Parts of a batch with their approved steps only. If its moves are unticked, the approval does not cover moves."""
    return tuple(
        msgspec.structs.replace(part, steps=tuple(step for step in part.steps if step.step_id in step_ids))
        for part in parts_of(batch)
    )


def _parts(ledger: LedgerReader, plan: Plan, batch: Batch, approved: Sequence[Batch]) -> tuple[ApprovedPart, ...]:
    """Parts of a batch, each with its content, and the further goals of its approved steps, under every name."""
    rows = ledger.known(plan.named_cluster).rows
    names = {(plan.cluster, plan.pulsar_cluster), *((row.cluster, row.named.identity) for row in rows)}
    plans = [msgspec.structs.replace(plan, cluster=name, pulsar_cluster=identity) for name, identity in names]
    return tuple(
        ApprovedPart(
            step_ids=tuple(step.step_id for step in part.steps),
            contents=frozenset(digest for each in plans for digest in no_digests(each, part)),
            further=frozenset(digest for each in plans for digest in further_digests(each, asked)),
        )
        for part, asked in zip(parts_of(batch), approved, strict=True)
    )


def _left_out(
    ledger: LedgerReader, grant: Grant, approved: Sequence[Batch], parts: Sequence[ApprovedPart], policy: Policy
) -> dict[str, str]:
    """Steps of excluded parts, with the reason; a part that has begun goes on.

    A part is excluded if a person rejected or silenced it after the approval, or silenced its moves after the request,
    or if the policy in force says never to ask about what is approved of it.
    """
    begun = {intent.step_id for intent in ledger.intents(grant.plan_id, grant.batch_id)}
    noes = ledger.noes_since(grant)
    why = (
        (part, _never_asked(asked, policy) or part.refused_by(noes))
        for part, asked in zip(parts, approved, strict=True)
        if begun.isdisjoint(part.step_ids)
    )
    return {step_id: reason for part, reason in why if reason for step_id in part.step_ids}


def _never_asked(part: Batch, policy: Policy) -> str | None:
    what = never_asked_about(part, policy)
    return f"the policy in force says never to ask about {what} (approval.never_ask)" if what else None


def require_policies(
    ledger: LedgerReader, plan: Plan, requests: Sequence[Request], policy: Policy
) -> tuple[ApprovalValues, ...]:
    """Checks that the policy in force is not looser than the policies of the plan and of its requests.

    Returns:
        The approval sections of the recorded policies and of the policy in force.

    Raises:
        Refused: If it is looser, with every such key; or if a policy of the plan or a request is not recorded.
    """
    then = {"planned": plan.policy_digest}
    then |= {f"asked at {request.at:%Y-%m-%d %H:%M:%S} UTC": request.policy_digest for request in requests}
    known = []
    for when, digest in then.items():
        try:
            recorded = ledger.policy(digest)
        except NotInLedger as error:
            raise Refused(
                f"the ledger lacks the policy under which this was {when} ({error}): observe again"
            ) from error
        if looser := loosened(policy, recorded):
            raise Refused(
                f"the policy in force is looser than the one under which this was {when}: {'; '.join(looser)}. Put the"
                " former values back, or observe and ask under these"
            )
        known.append(recorded.approval)
    return (*known, policy.approval.values)


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


def _require_asked_first(answers: Sequence[RecordedAnswer], requests: Sequence[Request]) -> None:
    """Checks that no answer is dated before the last request to its person."""
    asked_at = {request.voice: request.at for request in requests}
    for answer in answers:
        asked = asked_at.get(answer.voice)
        if asked is not None and answer.answered_at < asked - CLOCKS_DIFFER:
            raise Refused(
                f"the approval is dated {answer.answered_at:%Y-%m-%d %H:%M:%S} UTC, and was asked for at"
                f" {asked:%Y-%m-%d %H:%M:%S} UTC: set the clocks right, and ask again"
            )


def _require_people(
    plan: Plan, answers: Sequence[RecordedAnswer], requests: Sequence[Request], policy: ApprovalPolicy
) -> None:
    """Checks that the policy in force lets these people approve the batch."""
    batch = plan.batch(answers[0].batch_id)
    risk = risk_of(plan, batch).level
    terms = policy.terms(batch.answered_as, risk)
    what = f"of kind {batch.kinds_in_words} and {risk} risk"
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
    """Checks that no approver started the run by hand; an unknown starter might be any of them."""
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
        raise Refused("the approval's digest is not that of the plan: other steps were approved than would be done")
    return tuple(step for step in batch.steps if step.step_id in answer.step_ids)


def looser_than_others(ledger: LedgerReader, cluster: NamedCluster, policy: Policy) -> Iterator[str]:
    """Reasons why a cluster must not be changed under a name: its other names' stricter policies.

    Args:
        ledger: Knows the names that lead to the cluster.
        cluster: The cluster, under the name to check.
        policy: The policy in force for that name.
    """
    for name in sorted(ledger.known(cluster).names - {cluster.name}):
        both = f"{cluster.name} and {name} are names of one Pulsar cluster"
        try:
            other = own_policy(name)
        except (PolicyError, ConfigurationError) as error:
            yield f"{both}, and the policy of {name} cannot be compared: {error}"
            continue
        if other is not None and (looser := loosened(policy, RecordedPolicy.of(other))):
            yield (
                f"{both}, and the policy in force for {cluster.name} is looser than the one of {name}:"
                f" {'; '.join(looser)}. Give both the same policy, or keep one name"
            )
