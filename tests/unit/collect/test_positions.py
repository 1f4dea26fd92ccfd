"""Of which bundles a broker is asked for hash positions, and what becomes of its answers."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulator import Answer, ClusterSpec, Fault, NamespaceSpec, Simulator, SubscriptionSpec, TopicSpec
from lab.simulator import running_simulator as running
from pulsar_steward.collect.bundles import BundleSum
from pulsar_steward.collect.positions import worst
from pulsar_steward.policy.schema import CollectPolicy
from tests.unit.collect.test_reading import read_first

TOPIC = TopicSpec("t", partitions=40, subscriptions=(SubscriptionSpec("s", consumers=1),))
SPEC = ClusterSpec(namespaces=(NamespaceSpec("acme/orders", topics=(TOPIC,), owner=0),), tc_owner=0)


def positions(cluster: Simulator, **policy: Any) -> dict[str, list[int]]:
    """Positions that the bundles of the namespace carry, by range; the keywords are those of `CollectPolicy`."""
    rows = read_first(cluster, **policy)["bundles"]
    return {row["bundle"]: row["positions"] for row in rows if row["namespace"] == "acme/orders" and row["positions"]}


def calls(cluster: Simulator) -> list[str]:
    """The questions about bundles of the namespace, so far."""
    return [
        call.path for call in cluster.requests.all() if "acme/orders" in call.path and "topicHashPositions" in call.path
    ]


@pytest.mark.parametrize(
    ("policy", "bundles"),
    [
        ({}, 0),
        ({"positions_from_topics": 2}, 4),
        ({"positions_from_topics": 2, "positions_bundles": 1}, 1),
        ({"positions_from_topics": 2, "positions_bundles": 0}, 0),
        ({"positions_from_clients": 1}, 4),
    ],
)
def test_bundles_are_asked_for_as_the_policy_bounds_it(policy: dict[str, int], bundles: int) -> None:
    """Bundles are asked for hash positions only from the policy's size on, and only as many as it permits."""
    with running(SPEC) as cluster:
        found = positions(cluster, **policy)

        assert len(found) == len(calls(cluster)) == bundles
    for bundle, places in found.items():
        lower, upper = (int(end, 16) for end in bundle.split("_"))
        assert places == sorted(places)
        assert all(lower <= place <= upper for place in places)


@pytest.mark.parametrize(("effect", "asked"), [(Answer(500), 4), (Answer(412, "Failed to find ownership"), 4)])
def test_a_bundle_that_cannot_be_asked_for_is_left_out(effect: Answer, asked: int) -> None:
    """A bundle whose positions cannot be read has none, and its broker is still read."""
    with running(SPEC) as cluster:
        cluster.faults.add(Fault(effect, path="acme/orders/.*/topicHashPositions", times=None))
        found = read_first(cluster, positions_from_topics=2)

        assert found["brokers"][0]["read"]
        assert len(calls(cluster)) == asked
    assert [row["positions"] for row in found["bundles"] if row["namespace"] == "acme/orders"] == [None] * 4


def test_the_worst_first_by_what_they_have_most_of() -> None:
    """Bundles furthest above a limit come first. Bundles of coordinators or with a single topic are left out."""
    sums = {
        ("a/b", "1"): BundleSum(topics=150),
        ("a/b", "2"): BundleSum(topics=2, consumers=5000),
        ("a/b", "3"): BundleSum(topics=2, throughput_in=15e6, throughput_out=15e6),
        ("a/b", "4"): BundleSum(topics=99, producers=499, throughput_in=9e6),
        ("a/b", "5"): BundleSum(topics=1, consumers=9000),
        ("pulsar/system", "1"): BundleSum(topics=9000),
    }
    assert [bundle for _, bundle in worst(sums, CollectPolicy())] == ["2", "3", "1"]
