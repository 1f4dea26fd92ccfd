"""A cluster in which everything was read and nothing is wrong, for tests to add trouble to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.checks.conftest import judge_rows

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Check, Judgement
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import Rows

TAKEN_AT = datetime(2026, 1, 2, tzinfo=UTC)
BROKERS = ("a:8080", "b:8080", "c:8080")
IN_MEMORY = "org.apache.pulsar.broker.delayed.InMemoryDelayedDeliveryTrackerFactory"


@dataclass(frozen=True)
class Cluster:
    """A snapshot of a cluster.

    Attributes:
        rows: Its tables.
    """

    rows: Rows

    def judged(self, check: Check, policy: Policy | None = None) -> Judgement:
        """A check's judgement of it."""
        return judge_rows(check, self.rows, policy)


def healthy() -> Rows:
    """Three brokers that told everything, and hold nothing."""
    return {
        "snapshot": [
            {
                "cluster": "lab",
                "taken_at": TAKEN_AT,
                "unread_brokers": [],
                "unread_namespaces": [],
                "coordinators": 0,
            }
        ],
        "brokers": [
            {"broker": broker, "read": True, "bundles": 10, "topics": 100, "cpu_percent": 10.0} for broker in BROKERS
        ],
        "topics": [{"topic": "persistent://t/n/any", "broker": "a:8080", "subscriptions": 1}],
        "metrics": [
            sample
            for broker in BROKERS
            for sample in (
                {"source": broker, "source_kind": "broker", "series": "pulsar_subscription_delayed", "value": 0.0},
                {
                    "source": broker,
                    "source_kind": "broker",
                    "series": "jvm_memory_bytes_max",
                    "labels_json": '{"area":"heap"}',
                    "value": 4e9,
                },
                {"source": broker, "source_kind": "broker", "series": "jvm_memory_direct_bytes_max", "value": 2.4e9},
            )
        ],
        "configuration": [
            {"broker": broker, "key": key, "value": value}
            for broker in BROKERS
            for key, value in (
                ("delayedDeliveryTrackerFactoryClassName", IN_MEMORY),
                ("delayedDeliveryMaxDelayInMillis", "0"),
                ("delayedDeliveryMaxNumBuckets", "-1"),
                ("loadBalancerBrokerMaxTopics", "50000"),
                ("metadataStoreSessionTimeoutMillis", "30000"),
                ("ttlDurationDefaultInSeconds", "0"),
            )
        ],
    }


def cluster(*, settings: Any = None, instead: Any = None, **tables: list[dict[str, Any]]) -> Cluster:
    """A snapshot of the healthy cluster; rows that are given come on top, tables in `instead` replace its own.

    A setting in `settings` is every broker's; None takes it away.
    """
    rows = healthy()
    for name, more in tables.items():
        rows[name] = [*rows.get(name, []), *more]
    for key, value in (settings or {}).items():
        told = [row for row in rows["configuration"] if row["key"] != key]
        given = [] if value is None else [{"broker": each, "key": key, "value": value} for each in BROKERS]
        rows["configuration"] = told + given
    return Cluster(rows | (instead or {}))


def delayed(topic: str, messages: float, subscription: str = "s", source: str = "a:8080") -> dict[str, Any]:
    """The sample of a subscription's delayed messages."""
    labels = {"topic": topic, "subscription": subscription}
    told = {"series": "pulsar_subscription_delayed", "value": float(messages)}
    return {"source": source, "source_kind": "broker"} | labels | told
