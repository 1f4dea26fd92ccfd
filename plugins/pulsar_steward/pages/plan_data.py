"""A plan, its batches and steps, with everything that became of them, as data for pages and their API."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from pulsar_steward.ledger.rows import Decision, Outcome
from pulsar_steward.ledger.waiting import WaitingQuestion
from pulsar_steward.model.finding import Finding
from pulsar_steward.model.risk import Risk, RiskReason
from pulsar_steward.model.step import GuardResult, Touched
from pulsar_steward.model.worth import Worth
from pulsar_steward.pages.forecast import Remaining
from pulsar_steward.pages.placement import PredictedPlacement


class BatchState(StrEnum):
    """How a batch is, in a word."""

    WAITING = "waiting"
    APPROVED = "approved"
    CHANGING = "changing"
    DONE = "done"
    STOPPED = "stopped"
    REJECTED = "rejected"
    SNOOZED = "snoozed"
    NEVER = "never asked"
    UNANSWERED = "no answer"
    SUPERSEDED = "superseded"
    ENDED = "question ended"
    ASKED_ELSEWHERE = "asked elsewhere"
    NOT_ASKED = "not asked"


class AnswerView(msgspec.Struct, frozen=True, kw_only=True):
    """An answer: by whom, to what, and until when it counts.

    Attributes:
        answer_id: Its number in the ledger, by which a silence is taken back.
        silent_until: The end of a snooze; None: it is none.
        until_worse: True if a snooze ends as well when it gets worse.
        policy_entry: The policy entry that a never proposes, as YAML; empty: none.
    """

    decision: Decision
    by: str | None
    at: datetime
    until: datetime | None
    steps: int
    comment: str
    reason: str
    answer_id: int = 0
    silent_until: datetime | None = None
    until_worse: bool = False
    policy_entry: str = ""


class BrokerShare(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's share of what the batch evens out: now, and when all steps are done."""

    broker: str
    before: int
    after: int


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """A step with what became of it.

    Attributes:
        subject: The bundle, or the setting and whose it is.
        before: The present owner or value.
        after: The new owner, value or halves.
        warning: What its approver is warned of; None: nothing.
        deletes_messages: True if brokers may delete messages by it, which do not come back.
        averts: What brokers may delete unread if it is not done; None: nothing that is known.
        call: The exact call.
        outcome: None: it did not come to an end.
        under_way_since: Time of a call that has no outcome yet.
        found: The live values that were replaced, as the ledger keeps them; None: nothing was called.
    """

    step_id: str
    subject: str
    words: str
    before: str
    after: str
    why: str
    effect: str
    touched: Touched
    guards: tuple[GuardResult, ...]
    vetoes: tuple[GuardResult, ...]
    warning: str | None
    deletes_messages: bool
    averts: str | None
    undo_note: str
    undoable: bool
    needs: tuple[str, ...]
    call: str
    approved: bool
    outcome: Outcome | None
    reason: str
    ended_at: datetime | None
    under_way_since: datetime | None
    attempts: int
    found: dict[str, Any] | None
    undoes: str | None


class BatchView(msgspec.Struct, frozen=True, kw_only=True):
    """A batch with its question, answers, steps and proof.

    Attributes:
        window_opens_at: When the maintenance window opens that it waits for, approved; None: it waits for none.
        worth: What it mends, in figures.
        worth_words: The same in sentences.
        least_seconds: Shortest time that its steps take, by the pace alone.
        risk: Level of its risk, with every reason, the gravest first.
        ended: Number of approved steps that came to an end.
        remaining: What is left, and until when; None: it is not being carried out.
        proved: What the proof says; None: there is none yet.
        over: Why its question stands no more, with the plan that takes its place; None: it stands.
        can_go_back: True if a step is done that a call can undo.
    """

    batch_id: str
    kind: str
    title: str
    state: BatchState
    findings: tuple[Finding, ...]
    question: WaitingQuestion | None
    answers: tuple[AnswerView, ...]
    steps: tuple[StepView, ...]
    unit: str
    levels: tuple[BrokerShare, ...]
    clients: int
    coordinators: int
    approved: int
    ended: int
    remaining: Remaining | None
    proved: bool | None
    proof: str
    can_go_back: bool
    window_opens_at: datetime | None = None
    worth: Worth
    worth_words: tuple[str, ...]
    least_seconds: float
    risk: Risk
    risk_reasons: tuple[RiskReason, ...]
    over: str | None = None
    replaced_by: str | None = None


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded plan with everything that became of it.

    Attributes:
        placement: Brokers today, and when the moves that are left are done; None: none is left, or nothing is known.
    """

    plan_id: str
    cluster: str
    snapshot_id: str
    taken_at: datetime
    recorded_at: datetime
    digest: str
    policy_digest: str
    planned_for: str | None
    superseded_by: str | None
    superseded_at: datetime | None
    batches: tuple[BatchView, ...]
    placement: PredictedPlacement | None
    notes: tuple[str, ...]
