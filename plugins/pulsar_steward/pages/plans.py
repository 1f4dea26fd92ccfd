"""A plan for people: each step before and after, the answers, the outcomes, and the way back."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.errors import LedgerTampered, NotInLedger, SnapshotError
from pulsar_steward.guards.window_times import next_opening
from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.ledger.history import PlanLine, plan_lines
from pulsar_steward.ledger.past import MoveTimes, move_times
from pulsar_steward.ledger.questions import ASKING_DAG, ROLLBACK_DAG, ROLLBACK_IS_PAUSED, waiting_questions, why_unasked
from pulsar_steward.ledger.rows import Decision, Outcome, interrupted
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.model.isolation import Reach, policies_in_words
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.risk import worth_of
from pulsar_steward.model.step import (
    AddPartitions,
    ChangeSetting,
    DeleteSubscription,
    RaiseCoordinators,
    SetIsolation,
    SplitBundle,
    Step,
    UnloadBundle,
)
from pulsar_steward.pages.placement import predicted_placement
from pulsar_steward.pages.plan_data import AnswerView, BatchView, BrokerShare, PlanView, StepResult, StepView, remaining
from pulsar_steward.pages.sources import NotKnown
from pulsar_steward.policy.recorded import Pace, RecordedPolicy
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.decision import decision_of
from pulsar_steward.report.details import averted, details
from pulsar_steward.report.what_changed import former_of
from pulsar_steward.report.worth import levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.ledger.batch_record import BatchRecord
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.rows import Intent, StepOutcome
    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.pages.placement import PredictedPlacement
    from pulsar_steward.pages.sources import Sources

LISTED = 25
"""Number of a cluster's newest plans that a page lists."""

OPEN = frozenset({BatchState.WAITING, BatchState.NOT_ASKED})
"""States of batches that somebody may still answer."""

AHEAD = frozenset({BatchState.WAITING, BatchState.APPROVED, BatchState.CHANGING, BatchState.NOT_ASKED})
"""States of batches with steps still to come."""


def plan_view(sources: Sources, plan_id: str) -> PlanView:
    """A recorded plan.

    Raises:
        NotKnown: If there is no such plan.
        LedgerError: If the ledger cannot be read, or the plan was tampered with.
    """
    ledger = sources.ledger
    try:
        plan, row = ledger.plan(plan_id), ledger.plan_row(plan_id)
    except NotInLedger as error:
        raise NotKnown(str(error)) from error
    records = ledger.batches(plan)
    try:
        policy = ledger.policy(plan.policy_digest)  # under which it was planned
    except (NotInLedger, LedgerTampered):  # only the forecast is missing then
        policy = RecordedPolicy()
    is_asked = all(each.requests for each in records.values() if each.question is not None)
    why = None if is_asked else why_unasked(sources.is_paused(ASKING_DAG))
    done = any(record.outcomes for record in records.values())
    now, in_full = sources.now(), policy.in_full
    is_open = any(record.state(now) in OPEN for record in records.values())
    known = _Known(
        policy=policy,
        in_full=in_full,
        moved=move_times(ledger.past(plan.named_cluster), now, in_full) if is_open and in_full else None,
        why_unasked=why,
        why_back_waits=ROLLBACK_IS_PAUSED if done and sources.is_paused(ROLLBACK_DAG) else None,
        now=now,
    )
    batches = tuple(_batch(ledger, plan, batch, records[batch.batch_id], known) for batch in plan.batches)
    return PlanView(
        plan_id=plan_id,
        cluster=plan.cluster,
        snapshot_id=plan.snapshot_id,
        taken_at=plan.taken_at,
        recorded_at=row.created_at,
        digest=plan.digest,
        policy_digest=plan.policy_digest,
        planned_for=str(plan.pulsar_cluster),
        superseded_by=row.superseded_by,
        superseded_at=row.superseded_at,
        batches=batches,
        placement=_placement(sources, plan, batches),
        notes=plan.notes,
    )


def _placement(sources: Sources, plan: Plan, batches: Sequence[BatchView]) -> PredictedPlacement | None:
    """Present placement, and the predicted placement after the moves to come."""
    left = {
        (view.batch_id, step.step_id)
        for view in batches
        if view.state in AHEAD
        for step in view.steps
        if step.outcome is None and (step.approved or not view.approved)
    }
    changes = [step.change for batch in plan.batches for step in batch.steps if (batch.batch_id, step.step_id) in left]
    try:
        snapshot = sources.newest(plan.cluster)
        moves = [change for change in changes if isinstance(change, UnloadBundle)]
        return None if snapshot is None else predicted_placement(sources, snapshot, moves)
    except SnapshotError:  # the ledger's content is shown anyway
        return None


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """What holds of all batches of the plan."""

    policy: RecordedPolicy
    in_full: Policy | None
    moved: MoveTimes | None
    why_unasked: str | None
    why_back_waits: str | None
    now: datetime


def _batch(ledger: LedgerReader, plan: Plan, batch: Batch, record: BatchRecord, known: _Known) -> BatchView:
    intents, approval = ledger.intents(plan.plan_id, batch.batch_id), record.approved
    approved = approval.step_ids if approval else ()
    last = {outcome.step_id: outcome for outcome in record.outcomes}
    waiting, proof = waiting_questions([record], known.now), record.proofs[-1] if record.proofs else None
    state = record.state(known.now)
    steps = tuple(
        _step(step, step.step_id in approved, last.get(step.step_id), intents, record, state) for step in batch.steps
    )
    results = Counter(step.result for step in steps)
    left = [step for step in batch.steps if step.step_id in approved and step.step_id not in last]
    pace, is_open = Pace.of(known.policy), state in OPEN
    former = former_of(ledger, plan, batch)
    card = decision_of(plan, batch, known.in_full, former=former, now=known.now)
    asked_at = known.now if is_open else None
    waits = state is BatchState.APPROVED and not batch.is_rollback
    opens = next_opening(known.policy.windows, known.now) if waits else None
    can_go_back = not batch.is_rollback and any(s.outcome is Outcome.DONE and s.undoable for s in steps)
    return BatchView(
        batch_id=batch.batch_id,
        kind=batch.kind,
        title=card.headline,
        state=state,
        card=card.lines if is_open else card.lines_answered if state in AHEAD else card.lines_over,
        details=details(plan, batch, known.in_full, former=former, now=asked_at, moved=known.moved),
        results={result.value: results[result] for result in StepResult if results[result]},
        stopped_at=next((step for step in steps if step.is_wrong), None),
        undoable=sum(step.is_done and step.undoable for step in steps),
        findings=batch.findings,
        question=waiting[-1] if waiting else None,
        answers=tuple(
            AnswerView(
                decision=answer.decision,
                by=answer.answered_by,
                at=answer.answered_at,
                until=answer.expires_at,
                steps=len(answer.step_ids),
                comment=answer.comment,
                reason=answer.reason,
                answer_id=answer.answer_id,
                silent_until=answer.silent_until,
                until_worse=bool(answer.until_worse),
                policy_entry=answer.policy_entry or "",
            )
            for answer in record.answers
        ),
        steps=steps,
        unit=batch.unit,
        levels=tuple(BrokerShare(broker=broker, before=before, after=after) for broker, before, after in levels(batch)),
        clients=sum(step.touched.clients for step in batch.steps),
        coordinators=sum(step.touched.coordinators for step in batch.steps),
        approved=len(approved),
        ended=len(set(approved) & set(last)),
        remaining=remaining(left, intents, last, pace, known.now) if state is BatchState.CHANGING else None,
        proved=proof.proved if proof else None,
        proof=proof.reason if proof else "",
        can_go_back=can_go_back,
        why_back_waits=known.why_back_waits if can_go_back else None,
        window_opens_at=opens if opens is not None and record.approval(opens) is not None else None,
        worth=worth_of(batch),
        risk=risk_of(plan, batch).level,
        over=record.end.words if record.end else None,
        replaced_by=record.end.by_plan_id if record.end else None,
        why_unasked=known.why_unasked if state is BatchState.NOT_ASKED else None,
    )


def _step(
    step: Step,
    approved: bool,
    outcome: StepOutcome | None,
    intents: Sequence[Intent],
    record: BatchRecord,
    state: BatchState,
) -> StepView:
    kind, calls = kind_of(step.change), [each for each in intents if each.step_id == step.step_id]
    open_calls = [each for each in interrupted(intents, record.outcomes) if each.step_id == step.step_id]
    subject, before, after = _sides(step)
    warning = kind.warning(step)
    return StepView(
        step_id=step.step_id,
        result=StepResult.UNDER_WAY if open_calls else _result(outcome, record, state, approved=approved),
        subject=subject,
        words=kind.describe(),
        before=before,
        after=after,
        why=step.why,
        effect=step.effect,
        touched=step.touched,
        guards=step.guards,
        vetoes=tuple(each for each in step.guards if not each.passed),
        warning=warning.headline_after(step.guards) if warning else None,
        deletes_messages=kind.loses_messages,
        averts=averted(step.averts) if isinstance(step.averts, Loss) else None,
        matches=(*step.reach.namespaces, *step.reach.brokers) if isinstance(step.reach, Reach) else (),
        undo_note=step.undo_note,
        undoable=step.undo is not None,
        needs=step.after,
        call=str(kind.call()),
        approved=approved,
        outcome=outcome.outcome if outcome else None,
        reason=outcome.reason if outcome else "",
        ended_at=outcome.at if outcome else None,
        under_way_since=open_calls[0].at if open_calls else None,
        attempts=len(calls),
        found=calls[0].before if calls else None,
        undoes=step.undoes,
    )


def _result(
    outcome: StepOutcome | None, record: BatchRecord, state: BatchState, *, approved: bool
) -> StepResult | None:
    """Result of a step without an open call."""
    if outcome is not None:
        return StepResult.NOT_RUN if outcome.was_not_tried else StepResult(outcome.outcome.value)
    if approved:
        return StepResult.TO_COME if state in AHEAD else StepResult.NOT_RUN
    if record.approved:
        return StepResult.LEFT_OUT
    if record.answers and record.answers[-1].decision is Decision.REJECTED:
        return StepResult.REJECTED
    return StepResult.NOT_RUN if record.answers and state not in AHEAD else None


def _sides(step: Step) -> tuple[str, str, str]:  # noqa: PLR0911 - one for each kind of change
    """Subject of a step, and its sides before and after."""
    match step.change:
        case UnloadBundle() as move:
            return f"{move.namespace}/{move.bundle}", move.source, move.target
        case SplitBundle() as split:
            return f"{split.namespace}/{split.bundle}", split.bundle, " + ".join(split.halves)
        case ChangeSetting() as setting:
            before, after = (setting.in_words(each) for each in (setting.before, setting.after))
            return f"{setting.name.value} of {setting.holder}", before, after
        case RaiseCoordinators() as raised:
            return kind_of(raised).subject[1], f"{raised.before:,}", f"{raised.after:,}"
        case AddPartitions() as raised:
            topic, number = kind_of(raised).subject
            return f"{number} of {topic}", f"{raised.before:,}", f"{raised.after:,}"
        case SetIsolation() as isolation:
            before, after = policies_in_words(isolation.before, isolation.after)
            return f"isolation policy {isolation.policy}", before, after
        case DeleteSubscription() as deletion:
            return f"subscription {deletion.subscription} of {deletion.topic}", "there", "deleted"


def newest_plans(sources: Sources, cluster: str) -> tuple[PlanLine, ...]:
    """A cluster's newest plans, the newest first."""
    with one_moment(sources.engine) as connection:
        return plan_lines(connection, cluster, sources.now(), LISTED)


def plan_of_run(sources: Sources, run: str) -> tuple[str, str]:
    """Plan and batch of a question, by its run: ``dag/run/map index``.

    Raises:
        NotKnown: If the ledger has no request of this run.
    """
    asked = sources.ledger.questions.last_of_run(run)
    if asked is None:
        raise NotKnown(f"the ledger holds no question of {run}: it asks about no batch, or has not asked yet")
    return asked.plan_id, asked.batch_id
