"""Plans as planners make them, small."""

from __future__ import annotations

from datetime import UTC, datetime

from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.plan import Batch, Placement, Plan
from pulsar_steward.model.step import GuardResult, SplitBundle, Step, Touched, UnloadBundle

BUNDLES = ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xffffffff")


def move(number: int) -> Step:
    """A step ``b1.s01`` and so on that moves one of three bundles."""
    change = UnloadBundle(namespace="pulsar/system", bundle=BUNDLES[number - 1], source="a:8080", target="b:8080")
    back = UnloadBundle(namespace="pulsar/system", bundle=BUNDLES[number - 1], source="b:8080", target="a:8080")
    return Step(
        step_id=f"b1.s{number:02}",
        change=change,
        why="a:8080 holds 10 of 16 coordinators",
        effect="b:8080 holds two more",
        touched=Touched(producers=3, consumers=4, topics=2, coordinators=2),
        guards=(GuardResult(guard="owner", passed=True, reason="a:8080 owns it"),),
        undo=back,
        undo_note="move it back",
    )


def split() -> Step:
    """A step that splits a bundle, which cannot be undone."""
    lower, upper = "0x00000000_0x20000000", "0x20000000_0x40000000"
    change = SplitBundle(
        namespace="t/n",
        bundle=BUNDLES[0],
        owner="a:8080",
        algorithm="topic_count_equally_divide",
        halves=(lower, upper),
    )
    return Step(
        step_id="b2.s01",
        change=change,
        why="it holds 2,000 of 2,100 topics",
        effect="two bundles of 1,000",
        touched=Touched(producers=0, consumers=0, topics=2000, coordinators=0),
        undo_note="cannot be undone",
    )


def plan(snapshot_id: str = "local-20260101T000000Z", cluster: str = "local") -> Plan:
    """A plan of two batches: three moves and a split."""
    finding = Finding(
        check_id="tc-skew",
        severity=Severity.WARNING,
        subject="local",
        evidence="10 of 16 coordinators on a:8080",
        figures={"coordinators": 16, "most": 10},
    )
    moves = Batch(
        batch_id="b1",
        kind="tc_balance",
        title="Move two bundles",
        findings=(finding,),
        steps=(move(1), move(2), move(3)),
        unit="coordinators",
        before=(Placement("a:8080", 10), Placement("b:8080", 6)),
        after=(Placement("a:8080", 8), Placement("b:8080", 8)),
    )
    halving = Batch(batch_id="b2", kind="bundle_split", title="Split a bundle", findings=(), steps=(split(),))
    return Plan(
        cluster=cluster,
        snapshot_id=snapshot_id,
        taken_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
        pulsar_cluster=ClusterIdentity(name=cluster, metadata_id="0123456789abcdef"),
        policy_digest="0" * 64,
        batches=(moves, halving),
        notes=("nothing was left out",),
    )
