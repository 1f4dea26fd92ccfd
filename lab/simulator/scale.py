"""A large made-up cluster from a seed: as many partitions as one likes, of topics that differ in a thousand ways."""

from dataclasses import replace
from random import Random
from typing import Literal

from lab.simulator.spec import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

PARTITIONS_A_NAMESPACE = 500
PARTITIONS_A_TOPIC = 100
BUNDLES = 16
VARIANTS = 1000
CROWDED = 10_000
"""Consumers of one partition, of a few topics."""

ScaleFault = Literal["none", "piled-up-coordinators", "large-backlogs", "ack-holes", "no-metrics-of-topics"]

NO_TOPIC_METRICS = {"exposeTopicLevelMetricsInPrometheus": "false"}
"""As operators of so many topics set it: their brokers' metrics would be a hundred megabytes each."""


def large_cluster(
    partitions: int, brokers: int, seed: int, *, coordinators: int = 16, fault: ScaleFault = "none"
) -> ClusterSpec:
    """A cluster of about so many partitions, spread evenly; the same seed gives the same cluster.

    Args:
        partitions: Of all topics together; rounded up to whole namespaces.
        brokers: How many.
        seed: What everything is drawn from.
        coordinators: Transaction coordinators.
        fault: What is wrong with it.
    """
    draw = Random(seed)
    variants = [_topic(number, draw, fault) for number in range(VARIANTS)]
    count = max(-(-partitions // PARTITIONS_A_NAMESPACE), 1)
    namespaces = [_namespace(number, variants, draw, brokers) for number in range(count)]
    crowded = tuple(_crowded(number) for number in range(min(count // 100 + 1, 3)))
    first = namespaces[0]
    namespaces[0] = replace(first, topics=(*first.topics, *crowded))
    return ClusterSpec(
        brokers=brokers,
        coordinators=coordinators,
        system_bundles=max(16, coordinators),
        tc_owner=0 if fault == "piled-up-coordinators" else None,
        namespaces=tuple(namespaces),
        configuration=NO_TOPIC_METRICS,
        compress=False,
        steady=True,
    )


def _namespace(number: int, variants: list[TopicSpec], draw: Random, brokers: int) -> NamespaceSpec:
    topics = draw.sample(variants, PARTITIONS_A_NAMESPACE // PARTITIONS_A_TOPIC)
    retention = {"retentionTimeInMinutes": 1440, "retentionSizeInMB": 100_000}
    quota = {"destination_storage": {"limitSize": 20 << 30, "limitTime": -1, "policy": "producer_request_hold"}}
    policies: dict[str, object] = {"retention_policies": retention, "backlog_quota_map": quota}
    name = f"tenant-{number % 50:02d}/ns-{number:05d}"
    # Named one by one: to look for the emptiest broker of a thousand, a third of a million times, takes minutes.
    owners = tuple((number * BUNDLES + bundle) % brokers for bundle in range(BUNDLES))
    return NamespaceSpec(name, bundles=BUNDLES, topics=tuple(topics), policies=policies, owners=owners)


def _topic(number: int, draw: Random, fault: ScaleFault) -> TopicSpec:
    backlog = draw.choice((0, 0, 0, 10, 1000)) if fault != "large-backlogs" else draw.randint(10**6, 10**8)
    holes = draw.randint(0, 20_000) if fault == "ack-holes" else draw.choice((0, 0, 0, 3))
    rate = round(draw.uniform(0.1, 20), 1)
    subscriptions = tuple(
        SubscriptionSpec(
            f"sub-{each}",
            kind=draw.choice(("Shared", "Exclusive", "Failover")),
            consumers=1,
            backlog=backlog,
            ack_holes=holes if each == 0 else 0,
            rate_out=rate,
        )
        for each in range(draw.choice((1, 1, 2)))
    )
    return TopicSpec(
        f"topic-{number:04d}",
        partitions=PARTITIONS_A_TOPIC,
        producers=1,
        subscriptions=subscriptions,
        message_bytes=draw.choice((100, 500, 1000)),
        storage_bytes=draw.randint(1 << 20, 1 << 30),
        rate_in=rate,
    )


def _crowded(number: int) -> TopicSpec:
    everyone = SubscriptionSpec("everyone", consumers=CROWDED, rate_out=float(CROWDED))
    return TopicSpec(f"crowded-{number}", producers=2, subscriptions=(everyone,), rate_in=float(CROWDED))
