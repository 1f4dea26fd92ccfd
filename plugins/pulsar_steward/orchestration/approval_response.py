"""Conversion of Airflow's record of an answer to the ledger's: strict, as only an unambiguous approval counts."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard

import msgspec

from pulsar_steward.apply.gate import CLOCKS_DIFFER
from pulsar_steward.changes import kind_of
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.guard.window_times import good_until
from pulsar_steward.ledger.rows import Answer, Decision, Origin, RecordedAnswer
from pulsar_steward.model.parts import is_about_several
from pulsar_steward.model.people import same_person
from pulsar_steward.model.plan import Plan, approval_digest
from pulsar_steward.model.units import counted
from pulsar_steward.outside_text import shown
from pulsar_steward.policy.never_asked import namespace_to_leave_alone, never_asked_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.model.risk import Risk
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.approval import ApprovalPolicy
    from pulsar_steward.policy.approval_terms import Terms
    from pulsar_steward.policy.guards import MaintenanceWindow

APPROVE = "Approve"
REJECT = "Reject"
SNOOZE = "Snooze"
NEVER = "Never for this namespace"
STEPS = "steps"
COMMENT = "comment"
LOSS = "messages_may_be_lost"
SNOOZE_DAYS = "snooze_days"
UNTIL_WORSE = "until_it_gets_worse"

SNOOZE_DAYS_BY_DEFAULT = 7

MAX_SNOOZE_DAYS = 90
"""Days for which a person may snooze; who wants never to be asked says so."""
LEFT_OUT = "namespaces_left_out"

MAX_COMMENT_CHARACTERS = 4000
"""Characters of a comment that the ledger stores."""

MAX_NAME_CHARACTERS = 200
"""Characters of a person's name that the ledger stores; nobody with a longer one can approve."""

MAX_QUOTED_CHARACTERS = 200
"""Characters of an invalid value that a reason quotes."""


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
        batch_id: The batch that it is about.
        run: The requesting run, ``dag/run/map index``.
        requested_by: Who started the run by hand; None: no person did, or none is known.
        origin: What triggered the run.
        first: The answer that a second person was asked to confirm; None: the first one is asked.
        never_asked: Kinds of batches that the policy leaves out for the batch's namespace already.
    """

    plan: Plan
    batch_id: str
    run: str
    requested_by: str | None = None
    origin: Origin = Origin.UNKNOWN
    first: RecordedAnswer | None = None
    never_asked: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """Answers that may be chosen; a never only where the batch is about one namespace that a policy can name."""
        batch = self.plan.batch(self.batch_id)
        if batch.is_rollback:  # a person asked for it, and no observation asks again
            return APPROVE, REJECT
        return (APPROVE, REJECT, SNOOZE, *([NEVER] if namespace_to_leave_alone(batch) else []))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps to approve; for a second person those that the first one left ticked."""
        steps = self.plan.batch(self.batch_id).steps
        if self.first is None:
            return steps
        approved = frozenset(self.first.step_ids)
        return tuple(step for step in steps if step.step_id in approved)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Namespaces that may be left out as a whole, in the order of the steps; none where all is about one."""
        if not is_about_several(self.plan.batch(self.batch_id)):
            return ()
        return tuple(dict.fromkeys(step.change.namespace for step in self.steps))

    @property
    def risk(self) -> Risk:
        """Risk of the batch."""
        return risk_of(self.plan, self.plan.batch(self.batch_id)).level

    def terms(self, policy: ApprovalPolicy) -> Terms:
        """Terms of its approval."""
        return policy.terms(self.plan.batch(self.batch_id).kind, self.risk)


def interpret(
    event: Mapping[str, Any],
    asked: ApprovalQuestion,
    policy: ApprovalPolicy,
    now: datetime,
    windows: Sequence[MaintenanceWindow] = (),
) -> Answer:
    """Interprets an answer. Never raises for the event's content: an answer that is not understood is malformed.

    Args:
        event: The event with which Airflow resumed the task.
        asked: The approval request.
        policy: Who may answer, and how long an approval is valid.
        now: Current time, for an answer without a time of its own.
        windows: Windows in which the batch may be carried out; an approval outside of them waits for the next one.
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
        reason = "nobody answered in time" if timeout else f"Airflow reports: {_quoted(event['error'])}"
        return _changed(blank, decision=Decision.NO_ANSWER, reason=reason)
    try:
        response = msgspec.convert(_plain(event), _Response)
    except msgspec.ValidationError as error:
        return _changed(blank, reason=f"the answer cannot be read: {_cut(str(error), MAX_QUOTED_CHARACTERS)}")
    if response.timedout or response.responded_by_user is None or not _is_somebody(response.responded_by_user):
        return _changed(blank, decision=Decision.NO_ANSWER, reason="nobody answered in time")
    if response.responded_at > now + CLOCKS_DIFFER:
        return _changed(blank, reason=f"the answer is dated {response.responded_at}, which is yet to come")
    user = response.responded_by_user
    name, user_id = (_kept(_cut(each, MAX_NAME_CHARACTERS)) for each in (user.name, user.id))
    given = _changed(blank, answered_by=name, answered_by_id=user_id, answered_at=response.responded_at)
    return _of_a_person(response, given, asked, policy, windows)


def _is_somebody(user: _Person) -> bool:
    return bool(user.name.strip() and user.id.strip())


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
    nameless = None if _is_named(response, given) else "the name of who answered cannot be kept as it is"
    fault = "; ".join(filter(None, (nameless, trouble)))
    if objection := _not_theirs_to_answer(given, asked, policy):
        return _changed(given, reason=objection)
    if (no := _no(response, given, asked, fault)) is not None:
        return no
    if response.chosen_options != [APPROVE]:
        return _changed(given, reason=f"the chosen options are {_quoted(response.chosen_options)}, none of those asked")
    if fault:
        return _changed(given, reason=fault)
    if objection := _not_theirs_to_approve(given, asked, policy):
        return _changed(given, reason=objection)
    return _approved(response, given, asked, policy, windows)


def _no(response: _Response, given: Answer, asked: ApprovalQuestion, fault: str) -> Answer | None:
    """Answer for each kind of no, which counts whatever else is in the answer; None: it is none."""
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
    """Answer for a snooze; one whose time cannot be told is malformed, so that it is asked again."""
    days = response.params_input.get(SNOOZE_DAYS, SNOOZE_DAYS_BY_DEFAULT)
    worse = response.params_input.get(UNTIL_WORSE, True)
    if type(days) is not int or not 1 <= days <= MAX_SNOOZE_DAYS:
        reason = f"it was snoozed for {_quoted(days)} days, not for a whole number from 1 to {MAX_SNOOZE_DAYS}"
        return _changed(given, reason=reason)
    if not isinstance(worse, bool):
        return _changed(given, reason=f"whether a snooze ends when it gets worse is yes or no, not {_quoted(worse)}")
    reason = f"a person snoozed it for {counted(days, 'day')}{', or until it gets worse' if worse else ''}"
    return _changed(
        given,
        decision=Decision.SNOOZED,
        reason=f"{reason}; {fault}" if fault else reason,
        silent_until=response.responded_at + timedelta(days=days),
        until_worse=worse,
    )


def _never(given: Answer, asked: ApprovalQuestion, fault: str) -> Answer:
    """Answer for a never; it changes nothing, and says what the policy would have to say."""
    batch = asked.plan.batch(asked.batch_id)
    namespace = namespace_to_leave_alone(batch)
    reason = f"a person wants never to be asked about {batch.kind} of {namespace}"
    return _changed(
        given,
        decision=Decision.NEVER,
        reason=f"{reason}; {fault}" if fault else reason,
        policy_entry=never_asked_entry(str(namespace), [*asked.never_asked, batch.kind]),
    )


def _is_named(response: _Response, given: Answer) -> bool:
    """True if the ledger stores the full name of who answered: who may answer is decided by name."""
    return response.responded_by_user is not None and response.responded_by_user.name == given.answered_by


def _comment(said: object) -> tuple[str, str | None]:
    """Comment as the ledger stores it, and what is wrong with it."""
    if not isinstance(said, str):
        return "", f"the comment is not a text but {_quoted(said)}"
    words = said.strip()
    if len(words) <= MAX_COMMENT_CHARACTERS:
        return _kept(words), None
    return (
        _kept(_cut(words, MAX_COMMENT_CHARACTERS)),
        f"the comment has {counted(len(words), 'character')}, of which {MAX_COMMENT_CHARACTERS:,} are kept",
    )


def _kept(words: str) -> str:
    """Text that every database accepts: NUL and halves of characters, which some refuse, are spelled out."""
    return "".join(shown(each) if each in _NEVER_KEPT else each for each in words)


_NEVER_KEPT = frozenset({"\0", *map(chr, range(0xD800, 0xE000))})


def _quoted(thing: object) -> str:
    """Short form of an invalid value, which may be of any size and depth."""
    if isinstance(thing, str):
        return _kept(_cut(thing, MAX_QUOTED_CHARACTERS))
    try:
        return _kept(_cut(reprlib.repr(thing), MAX_QUOTED_CHARACTERS))
    except (ValueError, RecursionError):  # a number of too many digits
        return f"of the type {type(thing).__name__}"


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _not_theirs_to_answer(given: Answer, asked: ApprovalQuestion, policy: ApprovalPolicy) -> str | None:
    """Objection to who answered: Airflow lets only assigned users answer, but its record is checked too."""
    if not asked.terms(policy).may_answer(given.person.user_id):
        what = f"of kind {asked.plan.batch(asked.batch_id).kind} and {asked.risk} risk"
        return f"{given.answered_by} may not answer for batches {what} (approval.assigned_users, approval.by_risk)"
    return None


def _not_theirs_to_approve(given: Answer, asked: ApprovalQuestion, policy: ApprovalPolicy) -> str | None:
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
    """Answer for an approval: the steps that it covers, and whether it has everything that is required."""
    batch = asked.plan.batch(given.batch_id)
    known = [step.step_id for step in asked.steps]
    ticked = _chosen(response, STEPS)
    if not _is_choice(ticked, known):
        return _changed(given, reason=f"the approved steps are {_quoted(ticked)}, not a list of steps of this batch")
    if not ticked:
        reason = "every step was unticked: nothing is approved, and nothing is changed"
        return _changed(given, decision=Decision.REJECTED, reason=reason)
    left_out = _chosen(response, LEFT_OUT) if asked.namespaces or LEFT_OUT in response.params_input else []
    if not _is_choice(left_out, asked.namespaces):
        reason = f"the namespaces to leave out are {_quoted(left_out)}, not a list of namespaces of this batch"
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
    valid, waits = asked.terms(policy).valid_minutes, policy.wait_for_window_minutes
    extent = "every step" if len(steps) == len(batch.steps) else f"{len(steps)} of {counted(len(batch.steps), 'step')}"
    if left_out:
        extent += f", and left out {_named(left_out)}"
    return _changed(
        given,
        decision=Decision.APPROVED,
        reason=f"a {'second ' if asked.first else ''}person approved {extent}",
        step_ids=steps,
        digest=approval_digest(asked.plan, given.batch_id, steps),
        expires_at=good_until(response.responded_at, valid, waits, windows),
    )


def _chosen(response: _Response, field: str) -> object:
    """Choices of a field, none where all were removed (null in Airflow's form); None: the form has no such field."""
    if field not in response.params_input:
        return None
    chosen = response.params_input[field]
    return [] if chosen is None else chosen


def _is_choice(chosen: object, known: Sequence[str]) -> TypeGuard[list[str]]:
    """True for a list of some of the known names, each of them once."""
    if not isinstance(chosen, list) or len(chosen) > len(known):
        return False
    if not all(isinstance(name, str) for name in chosen):
        return False
    names = frozenset(chosen)
    return len(names) == len(chosen) and names.issubset(known)


def _named(names: Sequence[str]) -> str:
    """The first names, and how many more there are: a group may have hundreds."""
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _changed(answer: Answer, **changes: Any) -> Answer:
    return msgspec.structs.replace(answer, **changes)
