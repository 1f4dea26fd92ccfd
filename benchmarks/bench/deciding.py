"""One question about 200 namespaces, or one for each: ``python -m benchmarks.bench.deciding together|apart``.

Measured is all that Steward does between the planners' batches and the ledger's answers: grouping, the texts and ticks,
and the interpretation of an approval of every step.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from benchmarks.bench.figures import Figures, Meter, told
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.plan import Batch, Plan
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, GuardResult, Step, Touched
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.grouping import grouped
from pulsar_steward.orchestration.publish import SnapshotView
from pulsar_steward.orchestration.question_form import APPROVE, LEFT_OUT, LOSS, QUESTION, STEPS
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.approval import body, labels

NAMESPACES = 200
SETTINGS: tuple[tuple[SettingName, Setting], ...] = (
    (SettingName.RETENTION, Retention(minutes=1440, megabytes=10_240)),
    (SettingName.SIZE_QUOTA, BacklogQuota(limit_bytes=1 << 30, policy=QuotaPolicy.HOLD)),
    (SettingName.TTL, TimeToLive(seconds=86_400)),
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
GUARDS = tuple(GuardResult(guard=f"guard_{number}", passed=True, reason="made up") for number in range(15))


def decided(by: str) -> Figures:
    """Figures of all questions that a policy of this size makes of three settings in each namespace."""
    policy = Policy.model_validate({"approval": {"decide_by": by, "most_steps": NAMESPACES * len(SETTINGS)}})
    made = _planned(policy)
    meter = Meter()
    plan = grouped(made, SnapshotView.COMPLETE, (), (), (), policy)
    characters = 0
    for batch in plan.batches:
        asked = ApprovalQuestion(plan=plan, batch_id=batch.batch_id, run="bench/bench/0", asked_digest=plan.digest)
        characters += len(body(plan, batch, policy)) + sum(map(len, labels(batch).values()))
        form = {QUESTION: plan.digest, STEPS: [step.step_id for step in batch.steps], LEFT_OUT: [], LOSS: True}
        event = {
            "chosen_options": [APPROVE],
            "params_input": form,
            "responded_at": NOW,
            "responded_by_user": {"id": "1", "name": "bench"},
        }
        answer = interpret(event, asked, policy.approval, NOW)
        if answer.decision is not Decision.APPROVED:
            raise SystemExit(f"not approved: {answer.reason}")
    return meter.figures(f"characters of {len(plan.batches):,} questions", characters)


def _planned(policy: Policy) -> Plan:
    return Plan(
        cluster="bench",
        snapshot_id="bench-20260101T000000Z",
        taken_at=NOW,
        pulsar_cluster=ClusterIdentity(name="bench", metadata_id=None),
        policy_digest=policy.digest,
        batches=tuple(_batch(number) for number in range(1, NAMESPACES + 1)),
    )


def _batch(number: int) -> Batch:
    namespace = f"tenant/ns-{number:04d}"
    return Batch(
        batch_id=f"b{number}",
        kind="retention",
        title=namespace,
        findings=(),
        steps=tuple(
            _step(ChangeSetting(namespace=namespace, name=name, before=None, after=after), f"b{number}.s{place:02d}")
            for place, (name, after) in enumerate(SETTINGS, start=1)
        ),
    )


def _step(change: ChangeSetting, step_id: str) -> Step:
    return Step(
        step_id=step_id,
        change=change,
        why="made up",
        effect="made up",
        touched=Touched(producers=0, consumers=0, topics=10, coordinators=0),
        guards=GUARDS,
        undo=change.inverse,
        undo_note="Remove it again.",
    )


if __name__ == "__main__":
    told(decided({"together": "kind", "apart": "namespace"}[sys.argv[1]]))
