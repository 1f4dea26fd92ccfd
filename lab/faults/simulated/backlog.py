"""Clocks, quotas and backlogs."""

import time

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import DAY_S, GIB, HOUR_S, cluster, held, retained, strained
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec


def _stuck(backlog_bytes: int = 2 * GIB) -> NamespaceSpec:
    reader = SubscriptionSpec("archive", kind="Failover", consumers=2, backlog=0, rate_out=0.0)
    topic = TopicSpec("events", subscriptions=(reader,), backlog_bytes=backlog_bytes, storage_bytes=2 * GIB)
    return NamespaceSpec("shop/audit", topics=(topic,), policies=held(GIB))


def _growing(messages: int) -> ClusterSpec:
    """A reader that acknowledges half of what comes in."""
    reader = SubscriptionSpec("reports", consumers=3, backlog=messages, unacked=900, rate_out=1_000.0)
    topic = TopicSpec("clicks", producers=4, subscriptions=(reader,), message_bytes=200, rate_in=2_000.0)
    return cluster(NamespaceSpec("shop/web", topics=(topic,), policies=held(4 * GIB)))


def _history(days: int) -> NamespaceSpec:
    """Twenty partitions of 100 GiB each, all of it consumed, under a retention of so many days."""
    reader = SubscriptionSpec("reports", consumers=2, backlog=25, rate_out=100.0)
    topic = TopicSpec("sales", 20, producers=2, subscriptions=(reader,), storage_bytes=100 * GIB, rate_in=100.0)
    return NamespaceSpec("shop/history", topics=(topic,), policies=retained(days * DAY_S // 60))


def _new(backlog: int) -> ClusterSpec:
    """An audit that was begun an hour ago, on a topic that stores two days of consumed messages."""
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - HOUR_S))
    audit = SubscriptionSpec("audit", consumers=1, backlog=backlog, rate_out=6.0, made=made)
    app = SubscriptionSpec("app", consumers=2, backlog=20, rate_out=5.0)
    topic = TopicSpec(
        "payments",
        producers=2,
        subscriptions=(app, audit),
        message_bytes=10_000,
        storage_bytes=10 * GIB,
        stored_ago_s=DAY_S,
        rate_in=5.0,
    )
    return cluster(NamespaceSpec("shop/pay", topics=(topic,), policies=held(4 * GIB) | retained(10_080)))


FAULTS = (
    SimulatedFault(
        name="clock-ahead",
        about="The clock of one of three brokers is a minute and a half ahead.",
        expected=(Expected("clock-skew"),),
        specs=(cluster(broker_1=strained(clock_ahead_s=90.0)),),
        why="all brokers of the lab read the clock of one machine",
        quick=True,
    ),
    SimulatedFault(
        name="quota-that-counts-a-consumed-backlog",
        about="A topic's producers are shut out by its quota, while its only subscription has consumed everything.",
        expected=(Expected("quota-stuck", "^persistent://shop/audit/events$"),),
        allowed={
            "backlog-near-quota": "by the broker's own figure the topic is over its quota",
            "producer-hold-restart-risk": "by the same figure producers cannot come back",
        },
        specs=(cluster(_stuck()),),
        why="apache/pulsar#15609 comes by chance after weeks",
    ),
    SimulatedFault(
        name="retained-far-too-long",
        about="2 TiB that are consumed, kept for 30 days in a namespace without any quota.",
        expected=(Expected("retention-too-long", "^shop/history$"),),
        specs=(cluster(_history(days=30)),),
        why="terabytes do not fit on the lab's disk",
        quick=True,
    ),
    SimulatedFault(
        name="retained-for-a-week",
        about="The same 2 TiB, kept for a week: usual, and no trouble.",
        specs=(cluster(_history(days=7)),),
        why="terabytes do not fit on the lab's disk",
        twin_of=("retained-far-too-long",),
    ),
    SimulatedFault(
        name="growing-backlog",
        about="A subscription falls behind, by a million messages in ten minutes; the quota is full in two hours.",
        expected=(Expected("backlog-growing", "persistent://shop/web/clicks"),),
        specs=tuple(_growing(millions * 1_000_000) for millions in (1, 2, 3, 4)),
        observations=4,
        why="millions of messages take longer to write than the lab may run",
    ),
    SimulatedFault(
        name="a-new-subscription-begins-in-what-was-kept",
        about="A subscription made an hour ago has all that is retained before it, which is over the quota.",
        expected=(Expected("backlog-near-quota", "shop/pay/payments", "audit .*began in what was kept"),),
        allowed={"producer-hold-restart-risk": "over its quota, the topic lets no producer in"},
        specs=(_new(900_000),),
        why="gigabytes take longer to write than the lab may run",
    ),
    SimulatedFault(
        name="a-new-subscription-begins-at-the-end",
        about="Healthy: the same subscription has begun with what came since.",
        specs=(_new(25),),
        why="gigabytes take longer to write than the lab may run",
        twin_of=("a-new-subscription-begins-in-what-was-kept",),
    ),
    SimulatedFault(
        name="clock-a-little-ahead",
        about="Healthy: the clock of one of three brokers is half a second ahead.",
        specs=(cluster(broker_1=strained(clock_ahead_s=0.5)),),
        why="all brokers of the lab read the clock of one machine",
        twin_of=("clock-ahead",),
    ),
    SimulatedFault(
        name="quota-that-counts-nothing",
        about="Healthy: a topic under a quota that holds producers, of which everything is consumed.",
        specs=(cluster(_stuck(backlog_bytes=0)),),
        why="apache/pulsar#15609 comes by chance after weeks",
        twin_of=("quota-that-counts-a-consumed-backlog",),
    ),
    SimulatedFault(
        name="shrinking-backlog",
        about="Healthy: a subscription catches up, by a million messages in ten minutes.",
        specs=tuple(_growing(millions * 1_000_000) for millions in (7, 6, 5, 4)),
        observations=4,
        why="millions of messages take longer to write than the lab may run",
        twin_of=("growing-backlog",),
    ),
)
