"""Parts of simulated faults: three brokers on hosts of their own, and topics that are busy and well.

Brokers are on 127.0.0.1, 127.0.0.2 and so on, so that a label can say which of them is in trouble.
"""

from dataclasses import replace
from typing import Any

from lab.simulator import ClusterSpec, LoadSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

GIB = 1024**3
HOUR_S, DAY_S = 3600, 86_400
IN_MEMORY = {
    "delayedDeliveryTrackerFactoryClassName": "org.apache.pulsar.broker.delayed.InMemoryDelayedDeliveryTrackerFactory"
}
EIGHT_GIB = LoadSpec(heap_mb=1024, heap_limit_mb=8192, direct_mb=1024, direct_limit_mb=8192)
"""A broker as in production: figures of delayed messages and throughput are nothing to it."""


def at(number: int) -> str:
    """The pattern of a broker's id, by its number from 0 on."""
    return rf"^127\.0\.0\.{number + 1}:"


def server(number: int) -> str:
    """The pattern of a bookie or ZooKeeper server, by its number among the fault's servers from 0 on."""
    return rf"^127\.0\.1\.{number + 1}:"


def loads(brokers: int, usual: LoadSpec, **others: LoadSpec) -> tuple[LoadSpec, ...]:
    """Load of each broker: ``others`` by ``broker_N``, all else as usual."""
    return tuple(others.get(f"broker_{number}", usual) for number in range(brokers))


def spread(bundles: int, brokers: int) -> tuple[int, ...]:
    """Bundles dealt out to brokers one by one."""
    return tuple(number % brokers for number in range(bundles))


def held(limit: int, policy: str = "producer_request_hold") -> dict[str, object]:
    """Policies of a namespace with a quota in size, in bytes."""
    quota = {"limit": limit, "limitSize": limit, "limitTime": -1, "policy": policy}
    return {"backlog_quota_map": {"destination_storage": quota}}


def retained(minutes: int, megabytes: int = -1) -> dict[str, object]:
    """Policies of a namespace with a retention; -1: for ever, of any size."""
    return {"retention_policies": {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}}


def busy_topic(name: str, partitions: int, *, rate: float = 20.0) -> TopicSpec:
    """A topic that is consumed as fast as it is produced to, with a handful of messages on their way."""
    reader = SubscriptionSpec("billing", consumers=2, backlog=25, unacked=20, rate_out=rate)
    return TopicSpec(
        name,
        partitions=partitions,
        producers=2,
        subscriptions=(reader,),
        message_bytes=500,
        storage_bytes=50_000_000,
        rate_in=rate,
    )


def cluster(*namespaces: NamespaceSpec, usual: LoadSpec = EIGHT_GIB, brokers: int = 3, **more: Any) -> ClusterSpec:
    """``shop/orders``, busy and well on all brokers, and namespaces besides; ``broker_N`` gives a broker's load."""
    others = {name: more.pop(name) for name in list(more) if name.startswith("broker_")}
    orders = NamespaceSpec("shop/orders", bundles=12, topics=(busy_topic("placed", 60),), owners=spread(12, brokers))
    return ClusterSpec(
        brokers=brokers,
        hosts="distinct",
        namespaces=(orders, *namespaces),
        loads=loads(brokers, usual, **others),
        **more,
    )


def strained(**changes: Any) -> LoadSpec:
    """The usual broker but for what is given."""
    return replace(EIGHT_GIB, **changes)
