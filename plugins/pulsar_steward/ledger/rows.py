"""What the ledger gives back: frozen rows in the field's words."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pulsar_steward.model.people import Person
from pulsar_steward.model.step import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


def from_row(row: Mapping[Any, Any], kind: type[T], **decoded: Any) -> T:
    """A database row as one of the kinds below, with these columns decoded beforehand.

    Raises:
        msgspec.ValidationError: If the row holds something else.
    """
    # SQLAlchemy's column names are a subclass of str, which msgspec takes for no key.
    return msgspec.convert({**{str(name): value for name, value in row.items()}, **decoded}, kind)


class Decision(StrEnum):
    """What a question came to. Only `APPROVED` permits anything."""

    APPROVED = "approved"
    REJECTED = "rejected"
    NO_ANSWER = "no answer"
    MALFORMED = "malformed"


class Outcome(StrEnum):
    """What a step came to."""

    DONE = "done"
    REFUSED = "refused"
    DRIFTED = "drifted"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Origin(StrEnum):
    """What made the run that asks."""

    PERSON = "person"
    SCHEDULE = "schedule"
    UNKNOWN = "unknown"


class PlanRow(msgspec.Struct, frozen=True, kw_only=True):
    """A plan as listed; `superseded_by` names the newer plan that took its place."""

    plan_id: str
    cluster: str
    snapshot_id: str
    created_at: datetime
    digest: str
    proposal_digest: str
    superseded_by: str | None
    superseded_at: datetime | None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """That a person was asked about a batch.

    Attributes:
        run: The asking run, ``dag/run/map index``.
        voice: Whose word it is: 1 (or None, in older rows), or 2 where a second person is asked.
        requested_by: Who started the run by hand; None: no person did, or none is known.
        origin: What made the run; None in rows of an earlier Steward: not known.
        policy_digest: Of the policy under which was asked; None in rows of an earlier Steward.
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
    """What a person (or nobody) answered to one batch in one run, as it is to be recorded.

    Attributes:
        run: The asking run, ``dag/run/map index``.
        answered_by: The user's name as Airflow reports it, to be shown; None where nobody answered.
        answered_by_id: Airflow's id of that user, by which people are told apart; None in rows of an earlier Steward.
        expires_at: The last moment at which a change may be made under it; None unless approved.
        step_ids: The steps that stayed ticked.
        digest: `pulsar_steward.model.plan.approval_digest` of these steps; None unless approved.
        reason: Why it is what it is, such as what was malformed.
        voice: Whose word it is: 1 (or None, in older rows), or 2 where a second person was asked.
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

    @property
    def person(self) -> Person:
        """Who answered; a row of an earlier Steward has their name only, and nobody is of no name."""
        name = self.answered_by or ""
        return Person(name if self.answered_by_id is None else self.answered_by_id, name)


class RecordedAnswer(Answer, frozen=True, kw_only=True):
    """An answer that the ledger holds."""

    answer_id: int


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """The rows by which a run may change a batch: they have to be the last word when its calls leave.

    Attributes:
        cluster: The plan's cluster.
        run: The run that was asked, answered to, and acts.
        answer_ids: Of the approvals, the first person's first.
        expires_at: The last moment at which a call may leave under them.
    """

    cluster: str
    plan_id: str
    batch_id: str
    run: str
    answer_ids: tuple[int, ...]
    expires_at: datetime

    @property
    def answer_id(self) -> int:
        """The answer that was last needed; calls are recorded under it."""
        return self.answer_ids[-1]


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was about to be made, committed before it was."""

    intent_id: int
    answer_id: int
    step_id: str
    attempt: int
    at: datetime
    change: Change
    before: dict[str, Any]


class StepOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a step came to, and what the cluster showed; `intent_id` is None where nothing was about to be called."""

    plan_id: str
    batch_id: str
    step_id: str
    intent_id: int | None
    run: str
    at: datetime
    outcome: Outcome
    reason: str
    proof: dict[str, Any]


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What the brokers showed when a batch was over."""

    plan_id: str
    batch_id: str
    run: str
    at: datetime
    proved: bool
    reason: str
    shown: dict[str, Any]


class Unproved(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that changed the cluster and is not proved; `reason` is None while its proof is yet to come."""

    plan_id: str
    batch_id: str
    reason: str | None

    @property
    def pending(self) -> bool:
        """Whether the proof may still come."""
        return self.reason is None

    @property
    def words(self) -> str:
        """What is the matter, in a sentence."""
        what = f"batch {self.batch_id} of plan {self.plan_id} changed the cluster"
        return (
            f"{what}, and its proof is not there yet"
            if self.reason is None
            else f"{what} and was not proved: {self.reason}"
        )


class CarriedOut(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of which at least one step is done, as listed; `at` is when the last one was."""

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
