"""From what Airflow recorded of an answer to what the ledger keeps: strictly, as only a plain yes is a yes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from pulsar_steward.apply.gate import CLOCKS_DIFFER
from pulsar_steward.ledger.rows import Answer, Decision, Origin, RecordedAnswer
from pulsar_steward.model.people import same_person
from pulsar_steward.model.plan import Plan, approval_digest
from pulsar_steward.model.step import ChangeSetting, Step

if TYPE_CHECKING:
    from pulsar_steward.model.step import Change
    from pulsar_steward.policy.approval import ApprovalPolicy

APPROVE = "Approve"
REJECT = "Reject"
STEPS = "steps"
COMMENT = "comment"
LOSS = "messages_may_be_lost"


class _Person(msgspec.Struct, frozen=True):
    id: str
    name: str


class _Response(msgspec.Struct, frozen=True, kw_only=True):
    """The event with which Airflow resumes a task that waited for a person."""

    chosen_options: list[str]
    responded_at: Annotated[datetime, msgspec.Meta(tz=True)]
    responded_by_user: _Person | None
    params_input: dict[str, Any] = {}
    timedout: bool = False


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a person was asked.

    Attributes:
        plan: The plan, from the ledger.
        batch_id: The batch that was asked about.
        run: The asking run, ``dag/run/map index``.
        requested_by: Who started the run by hand; None: no person did, or none is known.
        origin: What made the run.
        first: The answer that a second person was asked to confirm; None: the first one is asked.
    """

    plan: Plan
    batch_id: str
    run: str
    requested_by: str | None = None
    origin: Origin = Origin.UNKNOWN
    first: RecordedAnswer | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that were put up for approval; of a second person those that the first one left ticked."""
        steps = self.plan.batch(self.batch_id).steps
        return steps if self.first is None else tuple(step for step in steps if step.step_id in self.first.step_ids)


def interpret(event: Mapping[str, Any], asked: Question, policy: ApprovalPolicy, now: datetime) -> Answer:
    """What an answer comes to. Never raises for what is in the event: what is not understood is malformed.

    Args:
        event: What Airflow resumed the task with.
        asked: What was asked.
        policy: Who may answer, and how long an approval is valid.
        now: The present, for an answer without a time of its own.
    """
    blank = Answer(
        plan_id=asked.plan.plan_id,
        batch_id=asked.batch_id,
        run=asked.run,
        voice=1 if asked.first is None else 2,
        decision=Decision.MALFORMED,
        answered_by=None,
        answered_at=now,
        reason="",
    )
    if not isinstance(event, Mapping):
        return _changed(blank, reason="the answer cannot be read: it is no mapping")
    if "error" in event:
        timeout = event.get("error_type") == "timeout"
        reason = "nobody answered in time" if timeout else f"Airflow reports: {event['error']}"
        return _changed(blank, decision=Decision.NO_ANSWER, reason=reason)
    try:
        response = msgspec.convert(_plain(event), _Response)
    except msgspec.ValidationError as error:
        return _changed(blank, reason=f"the answer cannot be read: {error}")
    if response.timedout or response.responded_by_user is None or not _is_somebody(response.responded_by_user):
        return _changed(blank, decision=Decision.NO_ANSWER, reason="nobody answered in time")
    if response.responded_at > now + CLOCKS_DIFFER:
        return _changed(blank, reason=f"the answer is dated {response.responded_at}, which is yet to come")
    user = response.responded_by_user
    given = _changed(blank, answered_by=user.name, answered_by_id=user.id, answered_at=response.responded_at)
    return _of_a_person(response, given, asked, policy)


def _is_somebody(user: _Person) -> bool:
    return bool(user.name.strip() and user.id.strip())


def _plain(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event with its time as text: Airflow may give a subclass of `datetime`, which msgspec takes for none."""
    at = event.get("responded_at")
    return {**event, "responded_at": at.isoformat()} if isinstance(at, datetime) else dict(event)


def _of_a_person(response: _Response, given: Answer, asked: Question, policy: ApprovalPolicy) -> Answer:
    comment = response.params_input.get(COMMENT) or ""
    if not isinstance(comment, str):
        return _changed(given, reason="the comment is not a text")
    given = _changed(given, comment=comment.strip())
    if objection := _not_theirs_to_answer(given, asked, policy):
        return _changed(given, reason=objection)
    if response.chosen_options == [REJECT]:
        return _changed(given, decision=Decision.REJECTED, reason="a person rejected it")
    if response.chosen_options != [APPROVE]:
        return _changed(given, reason=f"the chosen options are {response.chosen_options}, not one of those asked")
    if objection := _not_theirs_to_approve(given, asked, policy):
        return _changed(given, reason=objection)
    return _approved(response, given, asked, policy)


def _not_theirs_to_answer(given: Answer, asked: Question, policy: ApprovalPolicy) -> str | None:
    """Airflow lets only assigned users answer; who its database says it was is checked all the same."""
    kind = asked.plan.batch(asked.batch_id).kind
    users = policy.users_for(kind)
    if users and given.person.user_id not in users:
        return f"{given.answered_by} may not answer for batches of kind {kind} (approval.assigned_users)"
    return None


def _not_theirs_to_approve(given: Answer, asked: Question, policy: ApprovalPolicy) -> str | None:
    if asked.first is not None and same_person(given.person, asked.first.person):
        return f"{given.answered_by} gave the first approval: the second has to be another person's"
    if policy.requester_may_approve:
        return None
    if asked.requested_by is None and asked.origin is not Origin.SCHEDULE:
        return "who started the run is not known, and they may not approve (approval.requester_may_approve)"
    if asked.requested_by is not None and given.person.may_be(asked.requested_by):
        return f"{given.answered_by} started the run, and may not approve it (approval.requester_may_approve)"
    return None


def _approved(response: _Response, given: Answer, asked: Question, policy: ApprovalPolicy) -> Answer:
    """What a yes comes to: which steps it is for, and whether it says all that it has to."""
    batch = asked.plan.batch(given.batch_id)
    known = [step.step_id for step in asked.steps]
    ticked = response.params_input.get(STEPS)
    if not isinstance(ticked, list) or any(step not in known or ticked.count(step) > 1 for step in ticked):
        return _changed(given, reason=f"the approved steps are {ticked!r}, not a list of steps of this batch")
    if not ticked:
        return _changed(given, decision=Decision.REJECTED, reason="every step was unticked")
    steps = tuple(step for step in known if step in ticked)
    takers = [step for step in steps if takes_messages(batch.step(step).change)]
    if takers and response.params_input.get(LOSS) is not True:
        reason = f"that messages may be lost was not confirmed, and {', '.join(takers)} may take some away"
        return _changed(given, decision=Decision.REJECTED, reason=reason)
    extent = "every step" if len(steps) == len(batch.steps) else f"{len(steps)} of {len(batch.steps)} steps"
    return _changed(
        given,
        decision=Decision.APPROVED,
        reason=f"a {'second ' if asked.first else ''}person approved {extent}",
        step_ids=steps,
        digest=approval_digest(asked.plan, given.batch_id, steps),
        expires_at=response.responded_at + timedelta(minutes=policy.valid_minutes),
    )


def takes_messages(change: Change) -> bool:
    """Whether a change needs a confirmation of its own, as messages are lost by it, consumed or not."""
    return isinstance(change, ChangeSetting) and change.loses_messages


def _changed(answer: Answer, **changes: Any) -> Answer:
    return msgspec.structs.replace(answer, **changes)
