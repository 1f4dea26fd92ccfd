"""Limits of clients and rates that are reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.clients.limits_reached import LIMIT_REACHED
from pulsar_steward.checks.placement.bundle_load import SPLIT_ALGORITHM_CHECK

if TYPE_CHECKING:
    from tests.checks.backlog.conftest import Scene
    from tests.golden import Golden


def publishing(cluster: str, messages: int, size: int = 0) -> dict[str, Any]:
    """A publish rate under a cluster's name."""
    return {
        "publishMaxMessageRate": {
            cluster: {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": size}
        }
    }


REACHED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], bool]] = {
    "producers": ({"max_producers_per_topic": 4}, {"producers": 4}, {}, True),
    "one producer less": ({"max_producers_per_topic": 4}, {"producers": 3}, {}, False),
    "no limit": ({"max_producers_per_topic": 0}, {"producers": 4}, {}, False),
    "subscriptions": ({"max_subscriptions_per_topic": 10}, {"subscriptions": 10}, {}, True),
    "messages": (publishing("lab", 100), {"message_rate_in": 95.0}, {}, True),
    "fewer messages": (publishing("lab", 100), {"message_rate_in": 94.0}, {}, False),
    "a limit of another cluster": (publishing("foo", 1), {"message_rate_in": 95.0}, {}, False),
    "bytes": (publishing("lab", 0, 10**7), {"throughput_in_bytes": 1e7}, {}, True),
    "a topic's own rate": ({}, {}, {"publishing_limited": 173}, True),
    "a subscription's rate": ({}, {}, {"dispatching_limited": 738}, True),
}


@pytest.mark.parametrize("case", REACHED.values(), ids=REACHED)
def test_a_limit_that_is_reached_is_found(scene: Scene, golden: Golden, case: Any) -> None:
    """By the numbers and rates of a topic beside its namespace's limits, or by what it says it held back."""
    policies, topic, told, found = case
    scene.rows["snapshot"][0]["pulsar_cluster"] = "lab"
    scene.namespace(**policies).topic(**{"producers": 0, **topic})
    scene.add("subscriptions", backlog_entries=1000).add("drilled", **told)
    findings = scene.judged(LIMIT_REACHED).findings
    assert bool(findings) is found
    if findings:
        golden(findings[0].evidence)


def test_the_brokers_own_limit_holds_where_a_namespace_sets_none(scene: Scene) -> None:
    """A namespace's limit goes before that of the brokers."""
    scene.configured(maxProducersPerTopic="2").namespace("acme/orders").topic(producers=2)
    scene.namespace("acme/more", max_producers_per_topic=3).topic("acme/more/t", producers=2)
    assert list(scene.found(LIMIT_REACHED)) == ["persistent://acme/orders/t"]


@pytest.mark.parametrize(
    ("algorithm", "topics", "found"),
    [
        ("range_equally_divide", 1000, True),
        ("range_equally_divide", 999, False),
        ("topic_count_equally_divide", 1000, False),
    ],
)
def test_splits_in_the_middle_are_told_of_large_clusters(
    scene: Scene, golden: Golden, algorithm: str, topics: int, found: bool
) -> None:
    """Only where the cluster has many topics."""
    scene.configured(defaultNamespaceBundleSplitAlgorithm=algorithm)
    scene.rows["bundles"] = [{"namespace": "acme/orders", "bundle": "0x00000000_0xffffffff", "topics": topics}]
    findings = scene.judged(SPLIT_ALGORITHM_CHECK).findings
    assert bool(findings) is found
    if findings:
        golden(findings[0].evidence)
