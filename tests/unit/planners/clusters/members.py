"""Snapshots of members of a logical cluster, made by hand: three brokers of eight processors each."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.unit.report_checkup.snapshots import meta, written

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BROKERS = 3
BYTES = 1000.0
"""Bytes in, and as many out, of each topic in a second."""
BOOKIE = {"source": "bookie:8000", "source_kind": "bookie", "series": "bookie_ledger_dir__data_usage", "value": 17.0}
"""A row of the table `metrics`: how full the fullest disk of a bookie is, in percent."""


class Held(NamedTuple):
    """A namespace of a member: topics with two subscriptions each, and the clusters that its policies name."""

    topics: int
    stored_bytes: int
    replication: tuple[str, ...] | None
    allowed: tuple[str, ...] = ()
    brokers: tuple[str, ...] | None = None


def write_member(
    shelf: Path, cluster: str, held: Mapping[str, Held], *, taken_at: datetime = NOW, **changed: Any
) -> str:
    """Writes a diagnosed snapshot of a member below a folder of snapshots, and returns its place."""
    stamp = f"{taken_at:%Y%m%dT%H%M%SZ}"
    about = {"cluster": cluster, "pulsar_cluster": cluster, "metadata_id": cluster, "taken_at": taken_at}
    about |= {"snapshot_id": f"{cluster}-{stamp}"} | changed.pop("about", {})
    version = changed.pop("version", "4.0.7")
    settings = {"loadBalancerBrokerMaxTopics": "60"} | changed.pop("settings", {})
    names = [f"{cluster}-{number}:8080" for number in range(BROKERS)]
    usual = {"read": True, "leader": False, "topics": 1, "cpu_percent": 20.0, "processors": 8.0, "read_milliseconds": 3}
    return written(
        shelf / f"cluster={cluster}" / f"taken_at={stamp}",
        snapshot=meta(**about),
        **{
            "brokers": [usual | {"broker": name, "pulsar_version": version} for name in names],
            "configuration": [{"broker": name, "key": it, "value": settings[it]} for name in names for it in settings],
            "namespaces": [_namespace(name, each) for name, each in held.items()],
            "topics": [topic for name, each in held.items() for topic in _topics(name, each)],
            "bundles": [],
            "transaction_coordinators": [],
        }
        | changed,
    )


def write_kafka(
    shelf: Path,
    cluster: str,
    topics: Mapping[str, int],
    groups: Mapping[str, list[str] | None] | None = None,
    *,
    taken_at: datetime = NOW,
    settings: Mapping[str, str] | None = None,
    **about: Any,
) -> str:
    """Writes a diagnosed snapshot of a Kafka cluster: three brokers, topics with so many partitions of two replicas.

    Args:
        shelf: A folder of snapshots.
        cluster: Its name.
        topics: Partitions by topic.
        groups: Topics that a consumer group has offsets of, by group.
        taken_at: When it was taken.
        settings: Of all brokers; None: those of KRaft.
        about: Other columns of the snapshot's row.
    """
    stamp = f"{taken_at:%Y%m%dT%H%M%SZ}"
    usual: dict[str, Any] = {"cluster": cluster, "pulsar_cluster": f"id-{cluster}", "taken_at": taken_at}
    usual |= {"snapshot_id": f"{cluster}-{stamp}", "system": "kafka", "metadata_id": None, "coordinators": 0}
    numbers = range(1, BROKERS + 1)
    told = {"min.insync.replicas": "1"} if settings is None else settings
    return written(
        shelf / f"cluster={cluster}" / f"taken_at={stamp}",
        snapshot=meta(**usual | about),
        brokers=[],
        bundles=[],
        namespaces=[],
        topics=[],
        transaction_coordinators=[],
        configuration=[{"broker": f"broker {n}", "key": key, "value": told[key]} for n in numbers for key in told],
        kafka_brokers=[{"id": n, "broker": f"broker {n}", "listed": True} for n in numbers],
        kafka_partitions=[
            {"topic": topic, "partition": number, "leader": 1, "replicas": [1, 2], "in_sync": [1, 2]}
            for topic, partitions in topics.items()
            for number in range(partitions)
        ],
        kafka_groups=[{"group_id": name, "state": "stable", "topics": held} for name, held in (groups or {}).items()],
    )


def _namespace(name: str, held: Held) -> dict[str, Any]:
    policies = {"allowed_clusters": list(held.allowed)}
    if held.replication is not None:
        policies["replication_clusters"] = list(held.replication)
    row = {"namespace": name, "bundles": 1, "boundaries": [], "policies_json": json.dumps(policies)}
    return row | {"allowed_brokers": held.brokers}


def _topics(namespace: str, held: Held) -> list[dict[str, Any]]:
    usual = {"subscriptions": 2, "throughput_in_bytes": BYTES, "throughput_out_bytes": BYTES, "namespace": namespace}
    return [
        usual
        | {"topic": f"persistent://{namespace}/t-partition-{number}", "storage_bytes": held.stored_bytes // held.topics}
        for number in range(held.topics)
    ]
