"""Frozen records that the ledger's reader returns."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pulsar_steward.model.people import Person
from pulsar_steward.model.step import Change

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

T = TypeVar("T")


def from_row(row: Mapping[Any, Any], kind: type[T], **decoded: Any) -> T:
    """Converts a database row to one of the types below; `decoded` replaces columns that need decoding.

    Raises:
        msgspec.ValidationError: If the row does not match the type.
    """
    # SQLAlchemy's column names are a subclass of str, which msgspec does not accept as keys.
    return msgspec.convert({**{str(name): value for name, value in row.items()}, **decoded}, kind)


class Decision(StrEnum):
    """Result of an approval request. Only `APPROVED` permits anything.

    `SNOOZED`: a person wants to be asked later; `NEVER`: nobody is to be asked this of that namespace.
    """

    APPROVED = "approved"
    REJECTED = "rejected"
    SNOOZED = "snoozed"
    NEVER = "never"
    NO_ANSWER = "no answer"
    MALFORMED = "malformed"


class Outcome(StrEnum):
    """Result of a step."""

    DONE = "done"
    REFUSED = "refused"
    DRIFTED = "drifted"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Origin(StrEnum):
    """Trigger of the run that requests an approval."""

    PERSON = "person"
    SCHEDULE = "schedule"
    UNKNOWN = "unknown"


class PlanRow(msgspec.Struct, frozen=True, kw_only=True):
    """A plan's row for a list; `superseded_by` is the newer plan that replaced it."""

    plan_id: str
    cluster: str
    snapshot_id: str
    created_at: datetime
    digest: str
    proposal_digest: str
    superseded_by: str | None
    superseded_at: datetime | None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """An approval request for a batch.

    Attributes:
        run: The requesting run, ``dag/run/map index``.
        voice: Number of the approver: 1 (or None, in older rows), or 2 where a second person is asked.
        requested_by: Who started the run by hand; None: no person did, or none is known.
        origin: What triggered the run; None in rows of an earlier Steward: not known.
        policy_digest: Digest of the policy in force for the request; None in rows of an earlier Steward.
    """

    request_id: int
    plan_id: str
    batch_id: str
    run: str
    at: datetime
    voice: int | None
    requested_by: str | None
    origin: Origin | None
    policy_digest: str | None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Response of a person (or nobody) to the approval request of one batch in one run, as it is to be recorded.

    Attributes:
        run: The requesting run, ``dag/run/map index``.
        answered_by: The user's name as Airflow reports it, for display; None if nobody answered.
        answered_by_id: Airflow's id of that user, by which people are told apart; None in rows of an earlier Steward.
        expires_at: The last moment at which a change may be made under it; None unless approved.
        step_ids: The steps that stayed ticked.
        digest: `pulsar_steward.model.plan.approval_digest` of these steps; None unless approved.
        reason: Reason for the decision, such as what was malformed.
        voice: Number of the approver: 1 (or None, in older rows), or 2 where a second person was asked.
        silent_until: The end of a snooze; None unless snoozed.
        until_worse: Whether a snooze ends as well when it gets worse; None unless snoozed.
        policy_entry: The policy entry that a `NEVER` proposes, as YAML; None for every other decision.
    """

    plan_id: str
    batch_id: str
    run: str
    decision: Decision
    answered_by: str | None
    answered_at: datetime
    reason: str
    comment: str = ""
    step_ids: tuple[str, ...] = ()
    digest: str | None = None
    expires_at: datetime | None = None
    voice: int | None = None
    answered_by_id: str | None = None
    silent_until: datetime | None = None
    until_worse: bool | None = None
    policy_entry: str | None = None

    @property
    def person(self) -> Person:
        """The person who answered; only a name in a row of an earlier Steward, an empty one if nobody answered."""
        name = self.answered_by or ""
        return Person(name if self.answered_by_id is None else self.answered_by_id, name)


class RecordedAnswer(Answer, frozen=True, kw_only=True):
    """An answer that is recorded in the ledger."""

    answer_id: int


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """The rows that permit a run to change a batch: they must still be the latest ones when its calls are sent.

    Attributes:
        cluster: The plan's cluster.
        run: The run that requested the approval, got it, and acts.
        answer_ids: Ids of the approvals, the first person's first.
        expires_at: The last moment at which a call may be sent under them.
    """

    cluster: str
    plan_id: str
    batch_id: str
    run: str
    answer_ids: tuple[int, ...]
    expires_at: datetime

    @property
    def answer_id(self) -> int:
        """The last approval that was needed; calls are recorded under it."""
        return self.answer_ids[-1]


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was about to be made, committed before it was made."""

    intent_id: int
    answer_id: int
    step_id: str
    attempt: int
    at: datetime
    change: Change
    before: dict[str, Any]


class StepOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a step, and the cluster's state; `intent_id` is None where no call was about to be made."""

    plan_id: str
    batch_id: str
    step_id: str
    intent_id: int | None
    run: str
    at: datetime
    outcome: Outcome
    reason: str
    proof: dict[str, Any]


def interrupted(intents: Iterable[Intent], outcomes: Iterable[StepOutcome]) -> tuple[Intent, ...]:
    """The calls that are under way, or that a crash cut short: of each step the latest, if it has no outcome."""
    finished = {outcome.intent_id for outcome in outcomes}
    latest = {intent.step_id: intent for intent in intents}
    return tuple(intent for intent in latest.values() if intent.intent_id not in finished)


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that a run would have made, as text."""

    plan_id: str
    run: str
    at: datetime
    text: str


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """State of the brokers after a batch, and whether it proves the change."""

    plan_id: str
    batch_id: str
    run: str
    at: datetime
    proved: bool
    reason: str
    shown: dict[str, Any]


class Unproved(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that changed the cluster and is not proved; `reason` is None while its proof is still pending."""

    plan_id: str
    batch_id: str
    reason: str | None

    @property
    def pending(self) -> bool:
        """True while the proof is still pending."""
        return self.reason is None

    @property
    def words(self) -> str:
        """Description of the problem, in a sentence."""
        what = f"batch {self.batch_id} of plan {self.plan_id} changed the cluster"
        return (
            f"{what}, and its proof is not there yet"
            if self.reason is None
            else f"{what} and was not proved: {self.reason}"
        )


class CarriedOut(msgspec.Struct, frozen=True, kw_only=True):
    """A batch with at least one step done, for a list; `at` is the time of the last one."""

    plan_id: str
    batch_id: str
    kind: str
    title: str
    at: datetime


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right to write to a cluster until it expires; `fence` rises with every new holder."""

    cluster: str
    holder: str
    fence: int
    expires_at: datetime
