"""Clusters that nothing is wrong with: whatever is found there is a mistake."""

from collections.abc import Callable

from lab.faults.fault import RealFault
from lab.faults.real.ground import Ground, fault_on_ground
from lab.faults.real.operator import AGE, EVICTION, HOLD, SIZE

TOPICS = 6


def well_kept(here: Ground) -> None:
    """Quotas with room above any backlog, retention with room above the quotas, a time to live above the age quota."""
    here.admin.set_retention(here.namespace, minutes=3 * 24 * 60, megabytes=20_000)
    here.admin.set_quota(here.namespace, SIZE, 10_000_000_000, HOLD)
    here.admin.set_quota(here.namespace, AGE, 2 * 24 * 3600, EVICTION)
    here.admin.set_policy(here.namespace, "messageTTL", 7 * 24 * 3600)


def published_to(here: Ground, topics: int, rate: int) -> None:
    """Topics with so many messages a second each, all of which are taken; returns once brokers show it."""
    well_kept(here)
    names = [here.topic(f"t{number}") for number in range(topics)]
    for topic in names:
        here.take(topic)
        here.flow(topic, rate)
    for topic in names:
        here.until(topic, lambda shown: shown["msgRateIn"] > 0, "it is published to")


def _busy(topics: int = TOPICS, partitions: int = 0) -> Callable[[Ground], None]:
    """Topics with two subscriptions each, produced to and consumed steadily."""

    def arrange(here: Ground) -> None:
        well_kept(here)
        names = [here.topic(f"t{number}") for number in range(topics)]
        for topic in names:
            if partitions:
                here.admin.create_partitions(topic, partitions)
            for subscription in ("orders", "audit"):
                here.take(topic, subscription=subscription)
            here.flow(topic, 50)
        for topic in names:
            part = f"{topic}-partition-0" if partitions else topic
            here.until(part, lambda shown: shown["msgRateOut"] > shown["msgRateIn"] > 0, "it is consumed")

    return arrange


def _well_kept(here: Ground) -> None:
    well_kept(here)
    topic = here.topic()
    here.shared(topic)
    here.producer(topic)
    here.until(topic, lambda shown: bool(shown["publishers"]), "it has a producer")


FAULTS = (
    RealFault(name="just-booted", about="Healthy: three brokers that started a moment ago.", own_lab=True),
    RealFault(name="idle", about="Healthy: three brokers that nobody uses.", alone=True),
    fault_on_ground(
        "busy", "Healthy: six topics with two subscriptions each, produced and consumed steadily.", _busy(), quick=True
    ),
    fault_on_ground(
        "busy-java",
        "Healthy: six topics with two subscriptions each, produced and consumed steadily.",
        _busy(),
        client="java",
        quick=True,
    ),
    fault_on_ground(
        "busy-partitions",
        "Healthy: two topics of five partitions with two subscriptions each, produced and consumed steadily.",
        _busy(2, 5),
        client="go",
    ),
    fault_on_ground(
        "well-kept",
        "Healthy: quotas, retention and a time to live that leave each other room.",
        _well_kept,
        batched=True,
    ),
)
