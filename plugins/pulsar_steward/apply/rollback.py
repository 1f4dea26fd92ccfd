"""Rollback: a plan of inverse steps for one batch that was carried out, from the ledger and the live cluster.

The plan is recorded, approved, carried out and proved like any other plan.
"""

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.apply.live_cluster import LiveCluster
from pulsar_steward.changes import kind_of
from pulsar_steward.errors import AdminError, Refused
from pulsar_steward.guards.evaluate import evaluate
from pulsar_steward.guards.foreseen import foreseen, with_undo_judged
from pulsar_steward.model.plan import ROLLBACK, Batch, Placement, Plan, TakenBack, step_id
from pulsar_steward.model.step import SetIsolation, Step, UnloadBundle

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.apply.applied import Applied, DoneStep
    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.cluster import ClusterIdentity
    from pulsar_steward.policy.schema import Policy

ONLY_BATCH = "b1"


def rollback_plan(ledger: LedgerReader, reader: LiveReader, policy: Policy, applied: Applied, now: datetime) -> Plan:
    """The plan that rolls a batch back; its notes name the steps that cannot be rolled back.

    The last step is rolled back first. Values that somebody changed since are left alone.

    Args:
        ledger: The ledger, for the guards.
        reader: Reads the cluster.
        policy: Thresholds and limits.
        applied: The batch.
        now: Current time, UTC.

    Raises:
        Refused: If no step can be rolled back, with every reason.
    """
    draft = Plan(
        cluster=applied.cluster,
        snapshot_id=f"{applied.cluster}-{now:%Y%m%dT%H%M%SZ}",
        taken_at=now,
        pulsar_cluster=_same_cluster(reader, applied),
        policy_digest=policy.digest,
    )
    steps: dict[str, Step] = {}
    cluster = LiveCluster(reader, policy, ledger, draft, ONLY_BATCH)
    notes, waited = list(applied.doubts), False
    for done in reversed(applied.done):
        name = done.step.step_id
        try:
            step = _inverse(reader, applied, done, step_id(ONLY_BATCH, len(steps) + 1))
            cluster.begin()
            if not waited and (waited := cluster.wait_until_told(step, lambda: now, sleep)):
                step = _inverse(reader, applied, done, step.step_id)  # with the present number of clients
            facts = cluster.before(step, now, len(steps) + 1)
            steps[name] = _guarded(_in_order(step, done, steps, applied), facts, policy)
        except AdminError as error:
            notes.append(f"{name}: it stays, as the cluster cannot be read: {error}")
        except Refused as reason:
            notes.append(f"{name}: {reason}")
    if not steps:
        nothing = f"nothing of batch {applied.batch.batch_id} of plan {applied.plan_id} can be taken back"
        raise Refused("; ".join([nothing, *notes]))
    now_there, then_there = _placements(applied, steps.keys())
    batch = Batch(
        batch_id=ONLY_BATCH,
        kind=ROLLBACK,
        title=_title(applied),
        findings=(),
        steps=tuple(steps.values()),
        unit=applied.batch.unit,
        before=now_there,
        after=then_there,
        takes_back=TakenBack(kind=applied.batch.planned_as, findings=applied.batch.findings),
    )
    return msgspec.structs.replace(draft, batches=(batch,), notes=tuple(notes))


def _placements(applied: Applied, undone: Collection[str]) -> tuple[tuple[Placement, ...], tuple[Placement, ...]]:
    """Placement before and after the rollback: the batch's own, corrected for steps not done or not rolled back."""
    batch = applied.batch
    standing = {each.step.step_id for each in applied.done} - applied.rolled_back.keys()
    lacking = [step for step in batch.steps if step.step_id not in standing]
    staying = [step for step in batch.steps if step.step_id in standing and step.step_id not in undone]
    return _moved(batch.after, lacking, times=-1), _moved(batch.before, staying, times=1)


def _moved(places: Sequence[Placement], steps: Iterable[Step], *, times: int) -> tuple[Placement, ...]:
    """Placement with the moves of steps added (`times` 1) or removed (`times` -1)."""
    if not places:
        return ()
    counts = {place.broker: place.count for place in places}
    for step in steps:
        bundle = kind_of(step.change).disturbs
        if bundle is None or not bundle.moves:
            continue
        held = times * (step.touched.coordinators or step.touched.topics)
        for broker, more in ((bundle.owner_before, -held), (bundle.owner_after, held)):
            counts[broker] = max(counts.get(broker, 0) + more, 0)
    return tuple(Placement(broker, count) for broker, count in sorted(counts.items()))


def _same_cluster(reader: LiveReader, applied: Applied) -> ClusterIdentity:
    """Identity of the cluster that responds, if it is the one that was changed."""
    try:
        answers = reader.identity()
    except AdminError as error:
        raise Refused(f"nothing is taken back, as the cluster cannot be read: {error}") from error
    if not applied.pulsar_cluster.is_same(answers):
        raise Refused(f"Pulsar cluster {answers} answers, but the batch was carried out in {applied.pulsar_cluster}")
    return answers


def _title(applied: Applied) -> str:
    batch = applied.batch
    return f"Take back batch {batch.batch_id} of plan {applied.plan_id}, {applied.approval}: {batch.title}"


def _in_order(step: Step, done: DoneStep, steps: Mapping[str, Step], applied: Applied) -> Step:
    """The step, ordered after the rollbacks of the steps that depended on it.

    Raises:
        Refused: If a step that depended on it is not rolled back.
    """
    name = done.step.step_id
    # What was moved into a group need not leave it: only where it may be loaded next changes.
    group = isinstance(done.change, SetIsolation)
    later = [each.step.step_id for each in applied.done if name in each.step.after and not group]
    if stays := [each for each in later if each not in steps and each not in applied.rolled_back]:
        raise Refused(f"it stays, as steps that depend on it are not rolled back: {', '.join(stays)}")
    return msgspec.structs.replace(step, after=tuple(steps[each].step_id for each in reversed(later) if each in steps))


def _guarded(step: Step, facts: ClusterFacts, policy: Policy) -> Step:
    """The step with its loss and its guards' results; a step with an objection would stop the whole batch.

    Raises:
        Refused: If a guard objects.
    """
    step = foreseen(step, facts, policy)
    guards = evaluate(step, facts, policy)
    if vetoes := [f"{each.guard}: {each.reason}" for each in guards if not each.passed]:
        raise Refused(f"not proposed now, as the guards object: {'; '.join(vetoes)}")
    return with_undo_judged(msgspec.structs.replace(step, guards=guards), facts, policy)


def _inverse(reader: LiveReader, applied: Applied, done: DoneStep, name: str) -> Step:
    """The step that rolls a done step back.

    Raises:
        Refused: If it cannot be rolled back, with the reason.
        AdminError: If the cluster cannot be read.
    """
    step = done.step
    if isinstance(change := done.change, UnloadBundle) and not done.can_be_undone:
        raise Refused(f"{change.namespace}/{change.bundle} stays on {change.target}: taking a group back moves nothing")
    if by := applied.rolled_back.get(step.step_id):
        raise Refused(f"taken back already, by plan {by}")
    kind = kind_of(done.change)
    inverse = kind.inverse(kind.recorded(done.former), reader)
    return Step(
        step_id=name,
        change=inverse.change,
        why=f"{step.step_id} of plan {applied.plan_id} {inverse.made} at {done.at:%Y-%m-%d %H:%M:%S} UTC",
        effect=inverse.effect,
        touched=inverse.touched or step.touched,
        undo=inverse.undo,
        undo_note=inverse.undo_note,
        undoes=f"{applied.plan_id}/{step.step_id}",
    )
