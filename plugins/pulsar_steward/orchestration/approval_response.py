"""Conversion of a person's answer from Airflow's format to the ledger's; only an unambiguous approval counts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard

import msgspec

from pulsar_steward.apply.gate import CLOCKS_DIFFER
from pulsar_steward.changes import kind_of
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.decoding import convert
from pulsar_steward.guards.window_times import good_until
from pulsar_steward.ledger.rows import Answer, Decision, Origin, RecordedAnswer
from pulsar_steward.model.people import same_person
from pulsar_steward.model.plan import Plan, approval_digest, is_about_several
from pulsar_steward.model.units import counted
from pulsar_steward.orchestration.question_form import (
    APPROVE,
    COMMENT,
    LEFT_OUT,
    LOSS,
    MAX_COMMENT_CHARACTERS,
    MAX_QUOTED_CHARACTERS,
    MAX_SNOOZE_DAYS,
    NEVER,
    QUESTION,
    REJECT,
    SNOOZE,
    SNOOZE_DAYS,
    SNOOZE_DAYS_BY_DEFAULT,
    STEPS,
    UNTIL_WORSE,
    cut,
    kept,
    quoted,
)
from pulsar_steward.outside_text import visible
from pulsar_steward.policy.never_asked import namespace_to_leave_alone, never_asked_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.model.plan import Batch
    from pulsar_steward.model.risk import Risk
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.approval import ApprovalPolicy, Terms
    from pulsar_steward.policy.guards import MaintenanceWindow

MAX_NAME_CHARACTERS = 200
"""Characters of a person's name that the ledger stores; a person with a longer name cannot approve."""

MAX_NAMED = 20
"""Steps or namespaces that a reason names one by one."""


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


class ApprovalQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """An approval request.

    Attributes:
        plan: The plan, from the ledger.
        batch_id: The batch to approve.
        run: The requesting run, ``dag/run/map index``.
        requested_by: User who started the run by hand; None: nobody did, or the user is not known.
        origin: Trigger of the run.
        voice: Number of the approver: 1, or 2 for the second person.
        first: The first person's answer, which a second one is to confirm; None: the first person is asked, or took
            the answer back.
        never_asked: Kinds of batches that the policy already excludes for the batch's namespace.
        asked_digest: `pulsar_steward.orchestration.shown.asked_digest` of the question as it was shown; None: it was
            not shown, so no answer can be to it.
    """

    plan: Plan
    batch_id: str
    run: str
    requested_by: str | None = None
    origin: Origin = Origin.UNKNOWN
    voice: int = 1
    first: RecordedAnswer | None = None
    never_asked: tuple[str, ...] = ()
    asked_digest: str | None = None

    @property
    def batch(self) -> Batch:
        """The batch to approve."""
        return self.plan.batch(self.batch_id)

    @property
    def options(self) -> tuple[str, ...]:
        """Answers to choose from; "never" is one only if the batch is about one namespace that a policy can name."""
        if self.batch.is_rollback:  # a person asked for it, and no observation asks again
            return APPROVE, REJECT
        return (APPROVE, REJECT, SNOOZE, *([NEVER] if namespace_to_leave_alone(self.batch) else []))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps to approve; a second person is asked about the steps that the first one left ticked."""
        if self.first is None:
            return self.batch.steps
        approved = frozenset(self.first.step_ids)
        return tuple(step for step in self.batch.steps if step.step_id in approved)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Namespaces that may be left out as a whole, in the order of the steps; none if the batch is about one."""
        if not is_about_several(self.batch):
            return ()
        return tuple(dict.fromkeys(step.change.namespace for step in self.steps))

    @property
    def risk(self) -> Risk:
        """Risk of the batch."""
        return risk_of(self.plan, self.batch).level

    def terms(self, policy: ApprovalPolicy) -> Terms:
        """Terms of its approval."""
        return policy.terms(self.batch.answered_as, self.risk)


def interpret(
    event: Mapping[str, Any],
    asked: ApprovalQuestion,
    policy: ApprovalPolicy,
    now: datetime,
    windows: Sequence[MaintenanceWindow] = (),
) -> Answer:
    """Interprets an answer; one that cannot be understood is recorded as malformed, and nothing is raised for it.

    Args:
        event: The event with which Airflow resumed the task.
        asked: The approval request.
        policy: Who may answer, and how long an approval is valid.
        now: Current time, used if the answer has no time.
        windows: Windows in which the batch may be carried out; an approval outside of them waits for the next one.
    """
    blank = Answer(
        plan_id=asked.plan.plan_id,
        batch_id=asked.batch_id,
        run=asked.run,
        voice=asked.voice,
        decision=Decision.MALFORMED,
        answered_by=None,
        answered_at=now,
        reason="",
    )
    if not isinstance(event, Mapping):
        return _changed(blank, reason="the answer cannot be read: it is no mapping")
    if "error" in event:
        timeout = event.get("error_type") == "timeout"
        reason = "nobody answered in time" if timeout else f"Airflow reports: {quoted(event['error'])}"
        return _changed(blank, decision=Decision.NO_ANSWER, reason=reason)
    try:
        response = convert(_plain(event), _Response)
    except msgspec.ValidationError as error:
        return _changed(blank, reason=f"the answer cannot be read: {cut(str(error), MAX_QUOTED_CHARACTERS)}")
    user = response.responded_by_user
    if response.timedout or user is None or not (visible(user.name) and visible(user.id)):
        return _changed(blank, decision=Decision.NO_ANSWER, reason="nobody answered in time")
    if response.responded_at > now + CLOCKS_DIFFER:
        return _changed(blank, reason=f"the answer is dated {response.responded_at}, which is yet to come")
    name, user_id = (kept(cut(each, MAX_NAME_CHARACTERS)) for each in (user.name, user.id))
    given = _changed(blank, answered_by=name, answered_by_id=user_id, answered_at=response.responded_at)
    return _of_a_person(response, given, asked, policy, windows)


def _plain(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event with its time as text: Airflow may give a subclass of `datetime`, which msgspec does not accept."""
    at = event.get("responded_at")
    return {**event, "responded_at": at.isoformat()} if isinstance(at, datetime) else dict(event)


def _of_a_person(
    response: _Response,
    given: Answer,
    asked: ApprovalQuestion,
    policy: ApprovalPolicy,
    windows: Sequence[MaintenanceWindow],
) -> Answer:
    comment, trouble = _comment(response.params_input.get(COMMENT) or "")
    given = _changed(given, comment=comment)
    user = response.responded_by_user  # the policy permits people by name: the ledger has to store the full one
    is_named = user is not None and user.name == given.answered_by
    nameless = None if is_named else "the name of who answered cannot be kept as it is"
    fault = "; ".join(filter(None, (nameless, trouble)))
    if objection := _not_theirs_to_answer(given, asked, policy) or _not_to_this_question(response, asked):
        return _changed(given, reason=objection)
    given = _changed(given, asked_digest=asked.asked_digest)
    if (no := _no(response, given, asked, fault)) is not None:
        return no
    if response.chosen_options != [APPROVE]:
        return _changed(given, reason=f"the chosen options are {quoted(response.chosen_options)}, not those offered")
    if fault:
        return _changed(given, reason=fault)
    if objection := _not_theirs_to_approve(given, asked, policy):
        return _changed(given, reason=objection)
    return _approved(response, given, asked, policy, windows)


def _no(response: _Response, given: Answer, asked: ApprovalQuestion, fault: str) -> Answer | None:
    """Answer for a rejection, snooze or never, which counts whatever else the answer contains; None: it is none."""
    match response.chosen_options:
        case [choice] if choice == REJECT:
            reason = f"a person rejected it; {fault}" if fault else "a person rejected it"
            return _changed(given, decision=Decision.REJECTED, reason=reason)
        case [choice] if choice == SNOOZE and SNOOZE in asked.options:
            return _snoozed(response, given, fault)
        case [choice] if choice == NEVER and NEVER in asked.options:
            return _never(given, asked, fault)
        case _:
            return None


def _snoozed(response: _Response, given: Answer, fault: str) -> Answer:
    """Answer for a snooze; without a valid number of days it is malformed, and the question is asked again."""
    days = response.params_input.get(SNOOZE_DAYS)
    days = SNOOZE_DAYS_BY_DEFAULT if days is None else days
    worse = response.params_input.get(UNTIL_WORSE, True)
    if type(days) is not int or not 1 <= days <= MAX_SNOOZE_DAYS:
        reason = f"it was snoozed for {quoted(days)} days, not for a whole number from 1 to {MAX_SNOOZE_DAYS}"
        return _changed(given, reason=reason)
    if not isinstance(worse, bool):
        return _changed(given, reason=f"whether a snooze ends when it gets worse is yes or no, not {quoted(worse)}")
    reason = f"a person snoozed it for {counted(days, 'day')}{', or until it gets worse' if worse else ''}"
    return _changed(
        given,
        decision=Decision.SNOOZED,
        reason=f"{reason}; {fault}" if fault else reason,
        silent_until=response.responded_at + timedelta(days=days),
        until_worse=worse,
    )


def _never(given: Answer, asked: ApprovalQuestion, fault: str) -> Answer:
    """Answer for a never; it changes nothing, and contains the entry to add to the policy."""
    batch = asked.batch
    namespace = namespace_to_leave_alone(batch)
    reason = f"a person wants never to be asked about {batch.kind} of {namespace}"
    return _changed(
        given,
        decision=Decision.NEVER,
        reason=f"{reason}; {fault}" if fault else reason,
        policy_entry=never_asked_entry(str(namespace), [*asked.never_asked, batch.kind]),
    )


def _comment(said: object) -> tuple[str, str | None]:
    """Comment as the ledger stores it, and its fault, if any."""
    if not isinstance(said, str):
        return "", f"the comment is not a text but {quoted(said)}"
    words = said.strip()
    if len(words) <= MAX_COMMENT_CHARACTERS:
        return kept(words), None
    return (
        kept(cut(words, MAX_COMMENT_CHARACTERS)),
        f"the comment has {counted(len(words), 'character')}, of which {MAX_COMMENT_CHARACTERS:,} are kept",
    )


def _not_theirs_to_answer(given: Answer, asked: ApprovalQuestion, policy: ApprovalPolicy) -> str | None:
    """Objection to the person: Airflow lets only assigned users answer, but its record is checked too."""
    if not asked.terms(policy).may_answer(given.person.user_id):
        what = f"of kind {asked.batch.kinds_in_words} and {asked.risk} risk"
        return f"{given.answered_by} may not answer for batches {what} (approval.assigned_users, approval.by_risk)"
    return None


def _not_to_this_question(response: _Response, asked: ApprovalQuestion) -> str | None:
    """Objection to an answer, yes or no, that belongs to another text than the one that was shown."""
    if QUESTION not in response.params_input:
        return (
            f"the answer does not say which question it is for: its field {QUESTION!r} is missing, which Airflow's page"
            " sends by itself, and a program has to send as it was in the question"
        )
    if asked.asked_digest is None or response.params_input[QUESTION] != asked.asked_digest:
        carried = quoted(response.params_input[QUESTION])
        return f"the answer was given to another question (its field {QUESTION!r} is {carried}): load the page anew"
    return None


def _not_theirs_to_approve(given: Answer, asked: ApprovalQuestion, policy: ApprovalPolicy) -> str | None:
    if asked.voice > 1 and asked.first is None:
        return "the first person withdrew the approval"
    if asked.first is not None and same_person(given.person, asked.first.person):
        return f"{given.answered_by} gave the first approval: the second has to be another person's"
    if asked.terms(policy).requester_may_approve:
        return None
    if asked.requested_by is None and asked.origin is not Origin.SCHEDULE:
        return "who started the run is not known, and they may not approve (approval.requester_may_approve)"
    if asked.requested_by is not None and given.person.may_be(asked.requested_by):
        return f"{given.answered_by} started the run, and may not approve it (approval.requester_may_approve)"
    return None


def _approved(
    response: _Response,
    given: Answer,
    asked: ApprovalQuestion,
    policy: ApprovalPolicy,
    windows: Sequence[MaintenanceWindow],
) -> Answer:
    """Answer for an approval: the approved steps, or the reason why a required part is missing."""
    batch = asked.plan.batch(given.batch_id)
    known = [step.step_id for step in asked.steps]
    ticked = _chosen(response, STEPS)
    if not _is_choice(ticked, known):
        return _changed(given, reason=f"the approved steps are {quoted(ticked)}, not a list of steps of this batch")
    if not ticked:
        reason = "every step was unticked: nothing is approved, and nothing is changed"
        return _changed(given, decision=Decision.REJECTED, reason=reason)
    left_out = _chosen(response, LEFT_OUT) if asked.namespaces or LEFT_OUT in response.params_input else []
    if not _is_choice(left_out, asked.namespaces):
        reason = f"the namespaces to leave out are {quoted(left_out)}, not a list of namespaces of this batch"
        return _changed(given, reason=reason)
    chosen = frozenset(ticked)
    counting = [step for step in asked.steps if step.step_id in chosen and step.change.namespace not in left_out]
    if not counting:
        reason = "every step was unticked, or its namespace left out: nothing is approved, and nothing is changed"
        return _changed(given, decision=Decision.REJECTED, reason=reason)
    steps = tuple(step.step_id for step in counting)
    takers = [step.step_id for step in counting if kind_of(step.change).loses_messages]
    if takers and response.params_input.get(LOSS) is not True:
        reason = f"that messages may be lost was not confirmed, and {_named(takers)} may take some away"
        return _changed(given, decision=Decision.REJECTED, reason=reason)
    terms, waits = asked.terms(policy), policy.wait_for_window_minutes
    extent = "every step" if len(steps) == len(batch.steps) else f"{len(steps)} of {counted(len(batch.steps), 'step')}"
    if left_out:
        extent += f", and left out {_named(left_out)}"
    return _changed(
        given,
        decision=Decision.APPROVED,
        reason=f"a {'second ' if asked.first else ''}person approved {extent}",
        step_ids=steps,
        digest=approval_digest(asked.plan, given.batch_id, steps),
        expires_at=good_until(response.responded_at, terms.valid_minutes, waits, windows, terms.most_minutes),
    )


def _chosen(response: _Response, field: str) -> object:
    """Choices of a field; empty if all were removed (null in Airflow's form); None: the form has no such field."""
    if field not in response.params_input:
        return None
    chosen = response.params_input[field]
    return [] if chosen is None else chosen


def _is_choice(chosen: object, known: Sequence[str]) -> TypeGuard[list[str]]:
    """True for a list that contains only known names, each at most once."""
    if not isinstance(chosen, list) or len(chosen) > len(known):
        return False
    if not all(isinstance(name, str) for name in chosen):
        return False
    names = frozenset(chosen)
    return len(names) == len(chosen) and names.issubset(known)


def _named(names: Sequence[str]) -> str:
    """The first names and the number of the others, as a group may have hundreds."""
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _changed(answer: Answer, **changes: Any) -> Answer:
    return msgspec.structs.replace(answer, **changes)
