"""Planning at scale: ``python -m benchmarks.bench.planning coordinators|bundles``."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from benchmarks.bench.figures import Figures, Meter, told
from pulsar_steward.model.bundles import FULL_RANGE, TC_NAMESPACE, BundleRange, position_of, ranges_of, tc_topic
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.planners.scene import BrokerFact, Scene, TcBundle
from pulsar_steward.policy.schema import Policy

BROKERS = 100
COORDINATORS = 1000
BUNDLES = 2048
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def coordinators() -> Figures:
    """A thousand coordinators in two thousand bundles, all of them on a fifth of a hundred brokers."""
    edges = [f"0x{number * (FULL_RANGE + 1) // BUNDLES:08x}" for number in range(BUNDLES)] + [f"0x{FULL_RANGE:08x}"]
    ranges = ranges_of(edges)
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
    scene = Scene(
        cluster="bench",
        snapshot_id="bench-20260101T000000Z",
        taken_at=NOW,
        brokers=tuple(BrokerFact(broker=f"broker-{number:02d}:8080", read=True) for number in range(BROKERS)),
        tc_bundles=bundles,
        findings=(finding,),
        policy=Policy(),
    )
    meter = Meter()
    plan = make_plan(scene)
    steps = sum(len(batch.steps) for batch in plan.batches)
    return meter.figures(f"steps for {COORDINATORS:,} coordinators of {TC_NAMESPACE} on {BROKERS} brokers", steps)


if __name__ == "__main__":
    told({"coordinators": coordinators}[sys.argv[1]]())
