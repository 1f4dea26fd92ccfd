"""Planning at scale: ``python -m benchmarks.bench.planning coordinators|bundles``."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from benchmarks.bench.figures import Figures, Meter, told
from pulsar_steward.facts.load_manager import LoadManager
from pulsar_steward.model.bundles import FULL_RANGE, TC_NAMESPACE, BundleRange, position_of, ranges_of, tc_topic
from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.planners.bundles.facts import BundleFacts, Load, NamespaceToSplit, SplitCandidate, TopicFact
from pulsar_steward.planners.planning_facts import BrokerFact, PlanningFacts, TcBundle
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

BROKERS = 100
COORDINATORS = 1000
BUNDLES = 2048
CROWDED_BUNDLES = 10_000
BUNDLES_A_NAMESPACE = 16
CROWD = 320
"""Topics of a bundle that is to be split."""

NOW = datetime(2026, 1, 1, tzinfo=UTC)
IDENTITY = ClusterIdentity(name="bench", metadata_id=None)


def coordinators() -> Figures:
    """A thousand coordinators in two thousand bundles, all of them on a fifth of a hundred brokers."""
    ranges = _ranges(BUNDLES)
    held: dict[BundleRange, list[int]] = {}
    positions = {number: position_of(tc_topic(number)) for number in range(COORDINATORS)}
    for number, position in positions.items():
        held.setdefault(next(each for each in ranges if position in each), []).append(number)
    bundles = tuple(
        TcBundle(
            bundle=str(bundle),
            owner=f"broker-{place % (BROKERS // 5):02d}:8080",
            coordinators=tuple(numbers),
            positions=tuple(sorted(positions[number] for number in numbers)),
        )
        for place, (bundle, numbers) in enumerate(sorted(held.items(), key=lambda item: item[0].lower))
    )
    finding = Finding(
        check_id="tc-skew", severity=Severity.WARNING, subject="bench", evidence="made up", figures={"spread": 50}
    )
    scene = _cluster_with((finding,), Policy(), tc_bundles=bundles)
    return _planned(scene, f"steps for {COORDINATORS:,} coordinators of {TC_NAMESPACE} on {BROKERS} brokers")


def bundles() -> Figures:
    """Ten thousand bundles of 320 topics, each to be cut so that none has more than 200."""
    ranges = _ranges(BUNDLES_A_NAMESPACE)
    crowds = tuple(_crowd(f"tenant/ns-{number:04d}", ranges) for number in range(CROWDED_BUNDLES // len(ranges)))
    policy = Policy.model_validate({"bundle_topic_skew": {"warning_topics_per_bundle": 200}})
    findings = tuple(
        Finding(
            check_id="bundle-topic-skew", severity=Severity.WARNING, subject=crowd.namespace, evidence="", figures={}
        )
        for crowd in crowds
    )
    scene = _cluster_with(findings, policy, bundles=BundleFacts(crowds=crowds, splits_keep_clients=True))
    return _planned(scene, f"steps for {CROWDED_BUNDLES:,} bundles of {len(crowds):,} namespaces")


def _cluster_with(findings: tuple[Finding, ...], policy: Policy, **facts: Any) -> PlanningFacts:
    """A hundred brokers, with what was found there and what planners want to know of it."""
    return PlanningFacts(
        cluster="bench",
        pulsar_cluster=IDENTITY,
        snapshot_id="bench-20260101T000000Z",
        taken_at=NOW,
        brokers=tuple(BrokerFact(broker=f"broker-{number:02d}:8080", read=True) for number in range(BROKERS)),
        versions=("4.0.7",),
        load_manager=LoadManager(name="ModularLoadManagerImpl"),
        findings=findings,
        policy=policy,
        **facts,
    )


def _planned(scene: PlanningFacts, what: str) -> Figures:
    """Figures of one plan, by its steps."""
    meter = Meter()
    plan = make_plan(scene)
    figures = meter.figures(what, sum(len(batch.steps) for batch in plan.batches))
    if not figures.count:
        raise SystemExit(f"nothing was planned, so that nothing was measured: {'; '.join(plan.notes)}")
    return figures


def _crowd(namespace: str, ranges: Sequence[BundleRange]) -> NamespaceToSplit:
    suspects = []
    for place, bundle in enumerate(ranges):
        width = (bundle.upper - bundle.lower) // CROWD
        positions = tuple(bundle.lower + number * width for number in range(CROWD))
        suspects.append(
            SplitCandidate(
                bundle=str(bundle),
                owner=f"broker-{place % BROKERS:02d}:8080",
                load=Load(topics=CROWD),
                positions=positions,
                topics=tuple(TopicFact(position, f"persistent://{namespace}/{position}") for position in positions),
            )
        )
    return NamespaceToSplit(
        namespace=namespace, bundles=len(ranges), topics=CROWD * len(ranges), suspects=tuple(suspects)
    )


def _ranges(count: int) -> list[BundleRange]:
    edges = [f"0x{number * (FULL_RANGE + 1) // count:08x}" for number in range(count)] + [f"0x{FULL_RANGE:08x}"]
    return list(ranges_of(edges))


if __name__ == "__main__":
    told({"coordinators": coordinators, "bundles": bundles}[sys.argv[1]]())
