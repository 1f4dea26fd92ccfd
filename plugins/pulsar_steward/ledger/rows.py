"""Frozen records that the ledger's reader returns."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from pulsar_steward.decoding import convert, decode
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.people import Person
from pulsar_steward.model.step import Change

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

T = TypeVar("T")

BatchKey = tuple[str, str]
"""Ids of a batch's plan and of the batch."""


_DOCUMENTS = frozenset({"step_ids", "change", "before", "proof", "shown", "brokers"})
"""Columns that hold JSON, which becomes a field's value."""


def from_row(row: Mapping[Any, Any], kind: type[T], **more: Any) -> T:
    """Converts a database row to one of the types below; `more` are fields that no column holds.

    Raises:
        msgspec.ValidationError: If the row does not match the type.
    """
    # SQLAlchemy's column names are a subclass of str, which msgspec does not accept as keys.
    fields = {str(name): decode(value) if name in _DOCUMENTS else value for name, value in row.items()}
    return convert({**fields, **more}, kind)


class Decision(StrEnum):
    """Result of an approval request. Only `APPROVED` permits anything.

    `SNOOZED`: a person wants to be asked later; `NEVER`: nobody is to be asked this again for that namespace.
    """

    APPROVED = "approved"
    REJECTED = "rejected"
    SNOOZED = "snoozed"
    NEVER = "never"
    NO_ANSWER = "no answer"
    MALFORMED = "malformed"


NOES = (Decision.REJECTED, Decision.SNOOZED, Decision.NEVER)
"""Decisions that are a no: the same is not asked again for a while, and earlier approvals end."""


class Outcome(StrEnum):
    """Result of a step."""

    DONE = "done"
    REFUSED = "refused"
    DRIFTED = "drifted"
    FAILED = "failed"
    UNKNOWN = "unknown"


NOT_TRIED = "not tried: "
"""Begin of the reason of a step that is refused because an earlier one stopped the batch."""


class Origin(StrEnum):
    """Trigger of the run that requests an approval."""

    PERSON = "person"
    SCHEDULE = "schedule"
    UNKNOWN = "unknown"


class BatchName(msgspec.Struct, frozen=True, kw_only=True):
    """A batch by its ids, with its plan's cluster, its kind, its title and its number of steps."""

    cluster: str
    plan_id: str
    batch_id: str
    kind: str
    title: str
    steps: int

    @property
    def key(self) -> BatchKey:
        """Ids of its plan and of itself."""
        return self.plan_id, self.batch_id


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


class EndReason(StrEnum):
    """Reason for the end of a question."""

    CHANGED = "changed"
    NO_LONGER_PROPOSED = "no_longer_proposed"
    POLICY_LOOSENED = "policy_loosened"
    ASKED_ANEW = "asked_anew"
    WORSE = "worse"


class QuestionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is asked separately.

    Attributes:
        plan_id: The plan in which it is asked.
        batch_id: Its batch there.
        content_digest: `pulsar_steward.model.plan.content_digest` of the batch.
        goal: `pulsar_steward.model.plan.goal_of` the batch.
    """

    question_id: int
    cluster: str
    plan_id: str
    batch_id: str
    content_digest: str
    goal: str
    at: datetime


class QuestionEnd(msgspec.Struct, frozen=True, kw_only=True):
    """End of a question.

    Attributes:
        by_plan_id: The plan of the observation that ended it.
        by_batch_id: The batch of that plan that replaces it; None: no batch does.
        words: The reason in a sentence.
    """

    question_id: int
    plan_id: str
    batch_id: str
    at: datetime
    reason: EndReason
    by_plan_id: str
    by_batch_id: str | None
    words: str


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """An approval request for a batch.

    Attributes:
        run: The requesting run, ``dag/run/map index``.
        voice: Number of the approver: 1, or 2 for the second person.
        requested_by: User who started the run by hand; None: nobody did, or the user is not known.
        origin: Trigger of the run.
        ends_at: Time limit of the answer; no answer by then is a rejection.
        policy_digest: Digest of the policy in force for the request.
        asked_digest: `pulsar_steward.orchestration.shown.asked_digest` of the question as it was shown.
        closed: True if it was answered, or its task asked another question since.
    """

    request_id: int
    plan_id: str
    batch_id: str
    run: str
    at: datetime
    ends_at: datetime
    voice: int
    requested_by: str | None
    origin: Origin
    policy_digest: str
    asked_digest: str
    closed: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of a person (or of nobody) to the approval request for one batch in one run, as it is recorded.

    Attributes:
        run: The requesting run, ``dag/run/map index``.
        answered_by: The user's name as Airflow reports it, for display; None if nobody answered.
        answered_by_id: Airflow's id of that user, which distinguishes people; None if nobody answered.
        expires_at: The last moment at which it permits a change; None unless approved.
        step_ids: The steps that stayed ticked.
        digest: `pulsar_steward.model.plan.approval_digest` of these steps; None unless approved.
        reason: Reason for the decision, such as the malformed part.
        voice: Number of the approver: 1, or 2 for the second person.
        silent_until: The end of a snooze; None unless snoozed.
        until_worse: True if a snooze also ends when the problem gets worse; None unless snoozed.
        policy_entry: The policy entry that a `NEVER` proposes, as YAML; None for every other decision.
        asked_digest: Digest of the question in the answer; None: the answer contains none.
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
    voice: int = 1
    answered_by_id: str | None = None
    silent_until: datetime | None = None
    until_worse: bool | None = None
    policy_entry: str | None = None
    asked_digest: str | None = None

    @property
    def person(self) -> Person:
        """The person who answered; without an id, the name is used as id; empty if nobody answered."""
        name = self.answered_by or ""
        return Person(name if self.answered_by_id is None else self.answered_by_id, name)


class RecordedAnswer(Answer, frozen=True, kw_only=True):
    """An answer in the ledger."""

    answer_id: int


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """The rows that permit a run to carry out a batch; they must still be the latest ones when its calls are sent.

    Attributes:
        cluster: The plan's cluster, with name and identity.
        run: The run that requested the approval, got it, and acts.
        answer_ids: Ids of the approvals, the first person's first.
        expires_at: The last moment at which they permit a call.
    """

    cluster: NamedCluster
    plan_id: str
    batch_id: str
    run: str
    answer_ids: tuple[int, ...]
    expires_at: datetime

    @property
    def answer_id(self) -> int:
        """The last required approval; calls are recorded under it."""
        return self.answer_ids[-1]


class Noes(NamedTuple):
    """Changes and goals to which people said no, by digest, each with the words for it.

    Attributes:
        since_approval: Noes since the first approval. An earlier no to the same is replaced by the approval.
        since_request: Noes since the first request. They count against the goals that a batch has besides its own:
            such a no answered another question, and an approval of this one does not end it.
    """

    since_approval: dict[str, str]
    since_request: dict[str, str]


class ApprovedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an approved batch, which a person may still reject or silence elsewhere.

    Attributes:
        step_ids: All of its steps.
        contents: Digests of its changes and of its goal (`pulsar_steward.model.plan`), under each name of its
            cluster.
        further: Digests of the goals of its approved moves of parts, under each name too.
    """

    step_ids: tuple[str, ...]
    contents: frozenset[str]
    further: frozenset[str] = frozenset()

    def refused_by(self, noes: Noes) -> str | None:
        """Words of a no to this part, from the given noes; None: there is no such no."""
        for contents, found in ((self.contents, noes.since_approval), (self.further, noes.since_request)):
            for content in sorted(contents & found.keys()):
                return found[content]
        return None


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A call that Steward intends to make; committed before the call."""

    intent_id: int
    answer_id: int
    step_id: str
    attempt: int
    at: datetime
    change: Change
    before: dict[str, Any]


class StepOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a step, and the cluster's state; `intent_id` is None if no call was intended."""

    plan_id: str
    batch_id: str
    step_id: str
    intent_id: int | None
    run: str
    at: datetime
    outcome: Outcome
    reason: str
    proof: dict[str, Any]

    @property
    def was_not_tried(self) -> bool:
        """True if an earlier step had stopped the batch."""
        return self.outcome is Outcome.REFUSED and self.reason.startswith(NOT_TRIED)


def interrupted(intents: Iterable[Intent], outcomes: Iterable[StepOutcome]) -> tuple[Intent, ...]:
    """Calls that are under way or that a crash cut short: the latest call of each step without an outcome."""
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
    """The right to write to a cluster until it expires; `fence` rises with every new holder.

    Attributes:
        cluster: The name in Steward's connections under which it was taken; it holds the cluster under all names.
    """

    cluster: str
    holder: str
    fence: int
    expires_at: datetime
