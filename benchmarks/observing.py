"""One look at a cluster as `steward checkup` takes it: collected and diagnosed on threads of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from pulsar_steward.checks.registry import CHECKS
from pulsar_steward.cli.snapshot import MAX_CONCURRENT_BROKERS, SHARDS
from pulsar_steward.collect.collecting import CollectParameters, collect
from pulsar_steward.collect.kafka.collecting import KafkaOrder, collect_kafka
from pulsar_steward.collect.reading import TaskDivision, WrittenByTasks
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.runtime.parallel import OnThreads
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from pathlib import Path

    from lab.target import PulsarTarget
    from pulsar_steward.collect.kafka.reader import KafkaReader
    from pulsar_steward.policy.schema import Policy


def settings_of(target: PulsarTarget, policy: Policy) -> AdminSettings:
    """Settings by which Steward reaches a cluster, with the token or the client certificate that it asks for."""
    token = SecretStr(target.token) if target.token else None
    files = getattr(target, "client_files", None)
    given: dict[str, Any] = {} if files is None else {name: str(file) for name, file in files._asdict().items()}
    return AdminSettings(urls=target.admin_urls, token=token, limits=policy.admin, **given)


def observe(
    target: PulsarTarget, policy: Policy, *, cluster: str, out: Path, taken_at: datetime, checks: Collection[str] = ()
) -> str:
    """Takes a snapshot, diagnoses it, and returns its URI.

    Args:
        target: The cluster.
        policy: Thresholds and limits.
        cluster: Its name in Steward's connections; snapshots of that name are its past.
        out: The folder of snapshots.
        taken_at: When it counts as taken, with its time zone.
        checks: Ids of those to run; all of them by default.
    """
    chosen = [check for check in CHECKS if not checks or check.check_id in checks]
    order = CollectParameters(cluster=cluster, taken_at=taken_at, policy=policy.collect)
    folder = SnapshotFolder(LocalFiles(), snapshot_uri(str(out), cluster, taken_at))
    collected_here(settings_of(target, policy), order, folder)
    diagnose(folder, policy, OnThreads(SHARDS), chosen)
    return folder.uri


def observe_kafka(reader: KafkaReader, policy: Policy, *, cluster: str, out: Path, taken_at: datetime) -> str:
    """The same of a Kafka cluster, with all checks."""
    folder = SnapshotFolder(LocalFiles(), snapshot_uri(str(out), cluster, taken_at))
    order = KafkaOrder(cluster, taken_at, "127.0.0.1:9092", policy.kafka, reader.metadata())
    collect_kafka(reader, order, folder)
    diagnose(folder, policy, OnThreads(SHARDS))
    return folder.uri


def collected_here(settings: AdminSettings, order: CollectParameters, folder: SnapshotFolder) -> None:
    """Takes a snapshot on threads of this process.

    Args:
        settings: How to reach the cluster.
        order: What is to be collected.
        folder: The snapshot's.
    """
    on_threads = OnThreads(SHARDS)
    reading = WrittenByTasks(settings, folder, on_threads, TaskDivision(SHARDS, MAX_CONCURRENT_BROKERS))
    collect(settings, order, folder, reading, on_threads)
