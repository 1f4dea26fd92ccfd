"""One observation of one Kafka cluster, as a snapshot like those of Pulsar clusters."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pulsar_steward.collect.kafka.groups import ReadGroups
from pulsar_steward.collect.kafka.partitions import ReadMetadata, broker_name, rows_of_settings
from pulsar_steward.collect.kafka.reader import OutOfTime
from pulsar_steward.model.system import System
from pulsar_steward.model.tables import (
    BROKERS,
    COLLECTED,
    CONFIGURATION,
    KAFKA_BROKERS,
    KAFKA_GROUPS,
    KAFKA_LAGS,
    KAFKA_PARTITIONS,
    KAFKA_TOPICS,
    SNAPSHOT,
)
from pulsar_steward.model.units import counted, named
from pulsar_steward.snapshots.database import rows_of, schema_of
from pulsar_steward.snapshots.folder import stamp_of

if TYPE_CHECKING:
    from pulsar_steward.collect.kafka.reader import KafkaReader
    from pulsar_steward.policy.schema import KafkaPolicy
    from pulsar_steward.snapshots.folder import SnapshotFolder

log = logging.getLogger(__name__)

MIN_IN_SYNC = "min.insync.replicas"
"""Setting of brokers and topics: fewer in sync refuse producers that wait for all of them."""

KEPT = frozenset(
    {
        "auto.leader.rebalance.enable",
        "broker.session.timeout.ms",
        MIN_IN_SYNC,
        "zookeeper.connect",
    }
)
"""Settings of brokers that are kept; all others are forgotten, as one could hold a secret."""

DOWN = "it holds replicas, yet the cluster does not list it: it is down"


@dataclass(frozen=True)
class KafkaOrder:
    """What is collected.

    Attributes:
        cluster: The cluster's name in Steward.
        taken_at: Snapshot time, UTC.
        servers: Its addresses.
        limits: Limits of reading.
        metadata: `confluent_kafka.admin.ClusterMetadata`, as `KafkaReader.metadata` gave it.
    """

    cluster: str
    taken_at: datetime
    servers: str
    limits: KafkaPolicy
    metadata: Any


def collect_kafka(reader: KafkaReader, order: KafkaOrder, folder: SnapshotFolder) -> None:
    """Takes a snapshot. What cannot be read, or not within the time, makes it partial."""
    began = datetime.now(UTC)
    read = ReadMetadata(order.metadata)
    listed = [each.id for each in read.brokers if each.address is not None]
    log.info("%s, %s of topics", counted(len(listed), "broker"), counted(read.partitions.num_rows, "partition"))
    racks, told = _of_brokers(reader, listed)
    failures = {each: why for each, why in told.items() if isinstance(why, str)}
    unread = [f"topic {name}: {why}" for name, why in read.unread.items()]
    if failures and len(failures) == len(listed):  # as without the right to describe them
        unread.append(f"settings of all brokers: {next(iter(failures.values()))}")
        failures = {}
    of_topics = reader.topic_settings(sorted(read.incomplete), frozenset({MIN_IN_SYNC}))
    if untold := {name: why for name, why in of_topics.items() if isinstance(why, str)}:
        name, why = next(iter(untold.items()))
        unread.append(f"settings of {counted(len(untold), 'topic')}, such as {name}: {why}")
    groups = ReadGroups(reader, read.leaderless, order.limits, order.taken_at.timestamp())
    log.info("%s, %s", counted(groups.groups.num_rows, "consumer group"), counted(reader.requests, "request"))
    folder.begin()
    filled = {
        KAFKA_PARTITIONS: read.partitions,
        KAFKA_GROUPS: groups.groups,
        KAFKA_LAGS: groups.lags,
        KAFKA_TOPICS: rows_of(
            KAFKA_TOPICS,
            [
                {"topic": name, "min_in_sync": int(found[MIN_IN_SYNC])}
                for name, found in of_topics.items()
                if not isinstance(found, str) and found.get(MIN_IN_SYNC, "").isdecimal()
            ],
        ),
        KAFKA_BROKERS: rows_of(
            KAFKA_BROKERS,
            [
                {
                    "id": each.id,
                    "broker": each.name,
                    "address": each.address,
                    "rack": racks.get(each.id),
                    "listed": each.address is not None,
                }
                for each in read.brokers
            ],
        ),
        BROKERS: rows_of(
            BROKERS,
            [
                {
                    "broker": each.name,
                    "read": each.address is not None and each.id not in failures,
                    "failure": failures.get(each.id) or (DOWN if each.address is None else None),
                    "leader": False,
                    "topics": each.leads,
                    "read_milliseconds": 0,
                }
                for each in read.brokers
            ],
        ),
        CONFIGURATION: rows_of(CONFIGURATION, rows_of_settings(told)),
        SNAPSHOT: rows_of(
            SNAPSHOT,
            [
                {
                    "snapshot_id": f"{order.cluster}-{stamp_of(order.taken_at)}",
                    "cluster": order.cluster,
                    "pulsar_cluster": order.metadata.cluster_id,
                    "taken_at": order.taken_at,
                    "pulsar_version": "",
                    "load_manager": "",
                    "unread_brokers": [broker_name(each) for each in sorted(failures)],
                    "unread_namespaces": [*unread, *groups.unread],
                    "coordinators": 0,
                    "read_from": began,
                    "read_until": datetime.now(UTC),
                    "system": System.KAFKA.value,
                    "servers": order.servers,
                }
            ],
        ),
    }
    for table in (*COLLECTED, *(each for each in filled if each not in COLLECTED)):
        folder.write(table, filled.get(table, schema_of(table).empty_table()))
    folder.finish()
    if unread or groups.unread or failures:
        log.warning("not read, so the snapshot is partial: %s", named([*unread, *groups.unread, *failures.values()]))


def _of_brokers(
    reader: KafkaReader, listed: list[int]
) -> tuple[dict[int, str | None], dict[int, dict[str, str] | str]]:
    """Racks, and settings or the reasons why there are none, by the id of listed brokers."""
    try:
        return reader.racks(), reader.settings(listed, KEPT)
    except OutOfTime as over:
        return {}, dict.fromkeys(listed, str(over))
