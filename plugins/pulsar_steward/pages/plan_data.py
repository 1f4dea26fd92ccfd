"""A plan, its batches and steps, with their outcomes, as data for pages and their API."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.ledger.history import whole_story
from pulsar_steward.ledger.questions import WaitingQuestion
from pulsar_steward.ledger.rows import Decision, Outcome
from pulsar_steward.ledger.verify import IntegrityReport, verify_ledger
from pulsar_steward.model.finding import Finding
from pulsar_steward.model.risk import Risk, Worth
from pulsar_steward.model.step import GuardResult, Touched
from pulsar_steward.outside_text import shown
from pulsar_steward.pages.placement import PredictedPlacement
from pulsar_steward.report.details import DetailSection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulsar_steward.ledger.chain import Head
    from pulsar_steward.ledger.history import Filter
    from pulsar_steward.ledger.rows import Intent, StepOutcome
    from pulsar_steward.model.step import Step
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.policy.recorded import Pace


class Remaining(msgspec.Struct, frozen=True, kw_only=True):
    """Remaining steps and time of a batch.

    Attributes:
        steps: Approved steps that have not ended.
        ends_at: Time at which they will have ended, if they take as long as the earlier ones.
        at_least: True: no step has ended yet, so that only the pace is known.
    """

    steps: int
    ends_at: datetime
    at_least: bool


def remaining(
    left: Sequence[Step], intents: Sequence[Intent], last: Mapping[str, StepOutcome], pace: Pace, now: datetime
) -> Remaining:
    """Forecast for a batch under way, by the steps left, its calls, oldest first, and last outcomes by step."""
    by_pace = now + pace.least([step.touched.clients for step in left])
    # If the approval was requested again, earlier calls do not count.
    began = min((call.at for call in intents if call.answer_id == intents[-1].answer_id), default=now)
    ended = [outcome.at for outcome in last.values() if outcome.at >= began]
    if not ended or not intents:
        return Remaining(steps=len(left), ends_at=by_pace, at_least=True)
    each = (max(ended) - began) / len(ended)
    return Remaining(steps=len(left), ends_at=max(max(ended) + each * len(left), by_pace), at_least=False)


class AnswerView(msgspec.Struct, frozen=True, kw_only=True):
    """An answer: its person, its decision, and its validity.

    Attributes:
        answer_id: Its number in the ledger, needed to take back a silence.
        silent_until: The end of a snooze; None: it is not a snooze.
        until_worse: True if the snooze also ends when the problem gets worse.
        policy_entry: The policy entry that the answer never proposes, as YAML; empty: none.
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
    """A broker's share of the quantity that the batch evens out: now, and after all steps."""

    broker: str
    before: int
    after: int


class StepResult(StrEnum):
    """Result of a step in a word, in the order in which a bar tells them."""

    DONE = "done"
    UNDER_WAY = "under way"
    TO_COME = "to come"
    DRIFTED = "drifted"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_RUN = "not run"
    REJECTED = "not run (rejected)"
    LEFT_OUT = "left out"


WRONG = frozenset({StepResult.DRIFTED, StepResult.REFUSED, StepResult.FAILED, StepResult.UNKNOWN})
"""Results that a person has to look at."""


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """A step with its outcome.

    Attributes:
        result: The outcome, or why there is none; None: nobody has answered.
        subject: The bundle, or the setting and its namespace or topic.
        before: The present owner or value.
        after: The new owner, value or halves.
        warning: Warning for its approver; None: none.
        deletes_messages: True if brokers may delete messages because of it, which cannot be restored.
        averts: Data that brokers may delete unread if it is not done; None: none is known.
        matches: Namespaces and brokers that an isolation policy matched when it was planned.
        call: The exact call.
        outcome: None: it has not ended.
        under_way_since: Time of a call without an outcome so far.
        found: The replaced live values, from the ledger; None: there was no call.
    """

    step_id: str
    result: StepResult | None
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
    matches: tuple[str, ...]
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

    @property
    def is_wrong(self) -> bool:
        """True if a person has to look at it."""
        return self.result in WRONG

    @property
    def is_done(self) -> bool:
        """True if it had its effect."""
        return self.result is StepResult.DONE


class BatchView(msgspec.Struct, frozen=True, kw_only=True):
    """A batch with its question, answers, steps and proof.

    Attributes:
        title: The change, with what it deletes at once.
        card: The decision in a few lines.
        details: Everything else about the decision, by heading.
        results: Number of steps by result, in the order of `StepResult`; empty: nobody has answered.
        stopped_at: The first step that went wrong; None: none did.
        undoable: Number of done steps that a rollback undoes.
        window_opens_at: Opening of the maintenance window that the approved batch waits for; None: it waits for none.
        worth: Its worth in figures.
        risk: Level of its risk.
        ended: Number of approved steps that have ended.
        remaining: Remaining steps and time; None: it is not under way.
        proved: Result of the proof; None: there is none yet.
        over: Reason why its question has ended, with the plan that replaces it; None: it is still open.
        why_unasked: Reason why nobody was asked yet, with the remedy; None: somebody was, or nobody has to be.
        can_go_back: True if at least one finished step can be undone by a call.
        why_back_waits: Reason why a run that takes it back would wait, with the remedy; None: none is known.
    """

    batch_id: str
    kind: str
    title: str
    state: BatchState
    card: tuple[str, ...]
    details: tuple[DetailSection, ...]
    results: dict[str, int]
    stopped_at: StepView | None
    undoable: int
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
    why_back_waits: str | None = None
    window_opens_at: datetime | None = None
    worth: Worth
    risk: Risk
    over: str | None = None
    replaced_by: str | None = None
    why_unasked: str | None = None


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded plan with its outcomes.

    Attributes:
        placement: Brokers now, and after the remaining moves; None: no moves remain, or nothing is known.
    """

    plan_id: str
    cluster: str
    snapshot_id: str
    taken_at: datetime
    recorded_at: datetime
    digest: str
    policy_digest: str
    planned_for: str
    superseded_by: str | None
    superseded_at: datetime | None
    batches: tuple[BatchView, ...]
    placement: PredictedPlacement | None
    notes: tuple[str, ...]


MAX_EVENTS = 20_000
"""Maximum number of events in a file; `steward ledger export` has all rows."""

COLUMNS = ("sequence", "at", "what", "cluster", "plan_id", "batch_id", "step_id", "kind", "person", "run", "words")

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters of a formula in spreadsheets, full-width ones included; spaces before them do not help."""


def story_csv(sources: Sources, chosen: Filter) -> Iterator[str]:
    """Lines of a file with the matching events, newest first."""
    events = whole_story(sources.engine, chosen, MAX_EVENTS)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for event in events:
        row = {**msgspec.structs.asdict(event), "at": event.at.isoformat(), "what": event.what.value}
        writer.writerow([cell_of(row[name]) for name in COLUMNS])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def cell_of(value: object) -> str:
    """A value as a cell; an apostrophe is put before text that a spreadsheet would read as a formula."""
    text = "" if value is None else shown(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


class Verification:
    """Comparison of the ledger's rows with its chain: one at a time; the last result is cached."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._lock = Lock()
        self._last: IntegrityReport | None = None

    def report(self) -> IntegrityReport:
        """Compares every row with its link in the chain, and every link with the link before it."""
        with self._lock:
            self._last = verify_ledger(self._sources.engine, noted=self._sources.noted())
            return self._last

    def known(self, head: Head) -> IntegrityReport | None:
        """The last comparison, if it reached this end of the chain."""
        last = self._last
        return last if last is not None and last.head == head else None
