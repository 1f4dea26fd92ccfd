"""Statistics that are older than what the broker owns."""

from __future__ import annotations

from pulsar_steward.collect.bundles import as_owned_now, owned_by_namespace
from pulsar_steward.model.bundles import position_of
from pulsar_steward.pulsar.statistics import BundleStatistics, TopicStatistics

WHOLE, LOWER, UPPER = "0x00000000_0xffffffff", "0x00000000_0x80000000", "0x80000000_0xffffffff"
TOPICS = {
    f"persistent://acme/orders/t-{number}": TopicStatistics(
        subscriptions={}, publishers=[], replication={}, producer_count=number
    )
    for number in range(20)
}
STATISTICS = BundleStatistics("acme/orders", WHOLE, TOPICS)


def test_a_bundle_that_is_still_owned_is_as_it_was() -> None:
    """A bundle that the broker still owns with the same range keeps its statistics as they are."""
    owned = owned_by_namespace([f"acme/orders/{WHOLE}"])

    assert list(as_owned_now(STATISTICS, owned)) == [(WHOLE, TOPICS)]


def test_a_bundle_that_was_split_hands_its_topics_to_the_halves() -> None:
    """The topics of a split bundle are assigned to the halves by their hash positions."""
    owned = owned_by_namespace([f"acme/orders/{LOWER}", f"acme/orders/{UPPER}"])

    found = dict(as_owned_now(STATISTICS, owned))

    lower = {topic: figures for topic, figures in TOPICS.items() if position_of(topic) < 0x80000000}
    upper = {topic: figures for topic, figures in TOPICS.items() if topic not in lower}
    assert 0 < len(lower) < len(TOPICS)
    assert found == {LOWER: lower, UPPER: upper}


def test_a_bundle_that_went_elsewhere_takes_its_topics_along() -> None:
    """Topics outside the bundles that the broker owns now are left out."""
    lower_only = owned_by_namespace([f"acme/orders/{LOWER}", f"other/orders/{WHOLE}"])

    ((bundle, topics),) = as_owned_now(STATISTICS, lower_only)

    assert bundle == LOWER
    assert set(topics) == {topic for topic in TOPICS if position_of(topic) < 0x80000000}
    assert list(as_owned_now(STATISTICS, {})) == []


def test_heartbeat_namespaces_of_three_parts_are_read() -> None:
    """A heartbeat namespace of three parts, `pulsar/<cluster>/<broker>`, is read from the name of its bundle."""
    assert list(owned_by_namespace([f"pulsar/local/127.0.0.1:8080/{WHOLE}"])) == ["pulsar/local/127.0.0.1:8080"]
