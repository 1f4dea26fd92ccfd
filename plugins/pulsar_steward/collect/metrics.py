"""Prometheus endpoints as Arrow batches of the table `metrics`: of brokers, and of servers named in the policy."""

from __future__ import annotations

import logging
import re
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import urlsplit

import msgspec

from pulsar_steward.collect.rows import UNFIT, Rows
from pulsar_steward.errors import AdminError
from pulsar_steward.model.broker_defaults import SERIES as OF_LOAD_MANAGER
from pulsar_steward.model.measures import (
    AGE,
    AGE_LIMIT,
    BOOKIE_READ_CACHE,
    BOOKIE_READS_REFUSED,
    BOOKIE_STATUS,
    BOOKIE_WRITE_CACHE,
    BOOKIE_WRITES_REFUSED,
    DELAYED_BUCKET_OPERATIONS,
    DELAYED_BUCKETS,
    DELAYED_INDEX,
    DELAYED_SERIES,
    DISPATCHING_LIMITED,
    PUBLISHING_LIMITED,
    SIZE_LIMIT,
    WRITES_OVER_A_SECOND,
    WRITES_UNDER_A_SECOND,
    ZOOKEEPER_VERSION,
)
from pulsar_steward.model.tables import METRICS
from pulsar_steward.model.units import MIB
from pulsar_steward.pulsar.metrics import Exposition, Sample, endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from pulsar_steward.collect.arrow import TableBatch
    from pulsar_steward.pulsar.settings import AdminSettings
    from pulsar_steward.pulsar.transport import Transport

log = logging.getLogger(__name__)


class Metrics(msgspec.Struct, frozen=True):
    """Samples of one endpoint.

    Attributes:
        whole: True: completely read; False: cut off because of its size; None: unreadable.
        samples: The samples to store.
    """

    whole: bool | None
    samples: list[Sample] = []

    def rows(self, source: str, kind: Kind) -> Iterator[TableBatch]:
        """Converts the samples to rows of `metrics`."""
        count, rows = len(self.samples), Rows(METRICS)
        rows.add(
            [source] * count,
            [kind] * count,
            [sample.series for sample in self.samples],
            [sample.topic for sample in self.samples],
            [sample.labels.get("subscription") for sample in self.samples],
            [msgspec.json.encode(sample.labels, order="sorted").decode() for sample in self.samples],
            [sample.value for sample in self.samples],
        )
        yield from rows.rest()


def read_metrics(ask: Callable[[], Generator[bytes]], kind: Kind, most_megabytes: int) -> Metrics:
    """Reads an endpoint; one not read to its end gives no samples, as half of it would look like lower figures.

    Args:
        ask: Returns the body in pieces.
        kind: Kind of server.
        most_megabytes: Maximum size to read, in megabytes.
    """
    try:
        with closing(ask()) as pieces:
            exposition = Exposition(pieces, most_megabytes * MIB)
            samples = list(exposition.samples(SERIES[kind], ENDINGS[kind]))
    except (AdminError, *UNFIT) as error:
        log.warning("no metrics: %s", error)
        return Metrics(None)
    return Metrics(not exposition.cut, samples)


def read_endpoint(settings: AdminSettings, named: str, most_megabytes: int) -> Iterator[TableBatch]:
    """Reads the metrics of a bookie or ZooKeeper, or the version of a ZooKeeper server, and yields rows of `metrics`.

    Args:
        settings: Time limits; the token is not sent.
        named: ``kind=url``, as in the policy's `collect.metrics_urls`; ``zookeeper_admin`` is ZooKeeper's admin server.
        most_megabytes: Maximum size to read, in megabytes.
    """
    kind, _, url = named.partition("=")
    parts = urlsplit(url)
    path = parts.path or "/metrics"
    with endpoint(settings, f"{parts.scheme}://{parts.netloc}") as transport:
        if kind == "zookeeper_admin":
            yield from Metrics(True, list(_version_of_zookeeper(transport, parts.path))).rows(parts.netloc, "zookeeper")
            return
        who = cast("Kind", kind)
        metrics = read_metrics(lambda: transport.pieces(path), who, most_megabytes)
        if who == "bookie" and metrics.whole:
            metrics.samples.extend(_settings_of_bookie(transport, path.rstrip("/").removesuffix("/metrics")))
        yield from metrics.rows(parts.netloc, who)


def _settings_of_bookie(transport: Transport, prefix: str) -> Iterator[Sample]:
    """Settings of a bookie as samples; none where it does not tell them, as it has no HTTP server of its own.

    BookKeeper's HTTP server (`httpServerEnabled`) serves metrics as well, at the same address, and tells the settings
    of the configuration file. Without it, the metrics have a server that knows nothing else.
    """
    told = _document(transport, f"{prefix}/api/v1/config/server_config", "settings of a bookie")
    for name in BOOKIE_SETTINGS:
        value = str(told.get(name, ""))
        if value.isascii() and value.isdecimal() and len(value) <= MAX_DIGITS:
            yield Sample(name, {}, float(value))


def _version_of_zookeeper(transport: Transport, path: str) -> Iterator[Sample]:
    """The version of a ZooKeeper server as a sample; its metrics are numbers, so its admin server alone tells it."""
    what = "the version of a ZooKeeper server"
    told = _document(transport, path.rstrip("/") or "/commands/srvr", what, logging.WARNING)
    version = re.match(r"\d{1,3}\.\d{1,3}\.\d{1,3}", str(told.get("version", "")), re.ASCII)
    if version:
        yield Sample(ZOOKEEPER_VERSION, {"version": version[0]}, 1.0)


def _document(transport: Transport, path: str, what: str, level: int = logging.INFO) -> dict[str, Any]:
    """A JSON document of a server; empty, with a line in the log, where it does not serve one."""
    try:
        return transport.get_here(path).decoded(dict[str, Any])
    except (AdminError, *UNFIT) as error:
        log.log(level, "not told: %s: %s", what, error)
        return {}


# A series is added with the check that needs it, and removed with it:
# `tests/architecture/test_collected_is_used.py` compares the two, and docs/reading.md lists them.
#
# Each has its resting value, or None if every sample is stored. If a series rests at 0 (or at -1: "no limit"), only
# samples with another value are stored, and the first one of each source, to prove that the series is exported at
# all. So a million healthy topics make no rows. For topics, only figures missing in ``broker-stats/topics`` are
# stored.
#
# Names of brokers' series come from real 4.0.7 brokers, and ZooKeeper's from a real 3.9.3 server. Names of bookies'
# come from Pulsar's metrics reference, and those of auto recovery from a real bookie of 4.0.7. A series that a
# server does not export has no rows.


Kind = Literal["broker", "bookie", "zookeeper", "autorecovery"]

LATER_NAMES = ("jvm_memory_max_bytes", "jvm_memory_used_bytes")
"""Names in later versions of Prometheus's Java library of ``jvm_memory_bytes_max`` and ``..._used``."""

_OF_PROCESS = (
    "jvm_gc_collection_seconds_count",
    "jvm_gc_collection_seconds_sum",
    "jvm_memory_bytes_max",
    "jvm_memory_bytes_used",
    "jvm_memory_pool_collection_max_bytes",
    "jvm_memory_pool_collection_used_bytes",
    "log4j2_appender_total",
    "process_cpu_seconds_total",
    "process_start_time_seconds",
    *LATER_NAMES,
)

_DIRECT_MEMORY = ("jvm_memory_direct_bytes_max", "jvm_memory_direct_bytes_used")

_OF_BROKER = (
    "jvm_info",
    "jvm_threads_deadlocked",
    "jvm_threads_state",
    "process_max_fds",
    "process_open_fds",
    "pulsar_active_connections",
    "pulsar_batch_metadata_store_queue_wait_time_ms_count",
    "pulsar_batch_metadata_store_queue_wait_time_ms_sum",
    "pulsar_broker_lookup_failures_total",
    "pulsar_broker_lookup_pending_requests",
    "pulsar_broker_throttled_connections",
    "pulsar_broker_topic_load_pending_requests",
    "pulsar_connection_create_fail_count",
    "pulsar_connection_create_success_count",
    "pulsar_metadata_store_ops_latency_ms_bucket",
    "pulsar_metadata_store_ops_latency_ms_count",
    "pulsar_metadata_store_ops_latency_ms_sum",
    "pulsar_txn_active_count",
    "pulsar_txn_created_count",  # name in 2.10 of the `..._total` of 4.0
    "pulsar_txn_created_total",
    "pulsar_txn_timeout_count",
    "pulsar_txn_timeout_total",
)

_OF_NAMESPACE = (
    "pulsar_ml_AddEntryLatencyBuckets",
    "pulsar_ml_AddEntryLatencyBuckets_OVERFLOW",
    "pulsar_ml_LedgerAddEntryLatencyBuckets",
    "pulsar_ml_LedgerAddEntryLatencyBuckets_OVERFLOW",
    "pulsar_ml_LedgerSwitchLatencyBuckets",
    "pulsar_ml_LedgerSwitchLatencyBuckets_OVERFLOW",
    "pulsar_ml_MarkDeleteRate",
)

_OF_TOPIC: dict[str, float | None] = {
    DELAYED_BUCKET_OPERATIONS: 0,
    DELAYED_BUCKETS: 0,
    DELAYED_INDEX: 0,
    AGE: -1,
    SIZE_LIMIT: -1,
    AGE_LIMIT: -1,
    DELAYED_SERIES: 0,
    PUBLISHING_LIMITED: 0,
    **dict.fromkeys(DISPATCHING_LIMITED, 0.0),
    "pulsar_txn_tb_active_total": 0,
    WRITES_UNDER_A_SECOND: 0,
    WRITES_OVER_A_SECOND: 0,
}

BOOKIE_SETTINGS = (BOOKIE_READ_CACHE, BOOKIE_WRITE_CACHE, BOOKIE_WRITES_REFUSED, BOOKIE_READS_REFUSED)
"""Settings of bookies that are stored like series: numbers, as the document may hold secrets."""

MAX_DIGITS = 15
"""Maximum length of such a number, which a double holds exactly."""

_OF_BOOKIE = (
    *BOOKIE_SETTINGS,
    BOOKIE_STATUS,
    "bookie_journal_JOURNAL_ADD_ENTRY",
    "bookie_ledger_writable_dirs",
    "bookie_rejected_write_requests",
    "bookie_throttled_write_requests",
    "bookkeeper_server_thread_executor_queue",
)

_OF_AUTO_RECOVERY = (
    "replication_auditor_NUM_LEDGERS_HAVING_LESS_THAN_AQ_REPLICAS_OF_AN_ENTRY",
    "replication_auditor_NUM_LEDGERS_HAVING_LESS_THAN_WQ_REPLICAS_OF_AN_ENTRY",
    "replication_auditor_NUM_LEDGERS_HAVING_NO_REPLICA_OF_AN_ENTRY",
    "replication_auditor_NUM_UNDERREPLICATED_LEDGERS_ELAPSED_RECOVERY_GRACE_PERIOD",
    "replication_auditor_NUM_UNDER_REPLICATED_LEDGERS_count",
    "replication_auditor_NUM_UNDER_REPLICATED_LEDGERS_sum",
    "replication_replication_worker_exceptions_BKNoSuchLedgerExistsOnMetadataServerException",
    "replication_replication_worker_rereplicate_count",
)
"""Series of the auditor and the replication workers, within a bookie or in a process of their own."""

_OF_ZOOKEEPER = (
    "fsynctime_count",
    "fsynctime_sum",
    "outstanding_requests",
    "readlatency_count",
    "readlatency_sum",
    "updatelatency_count",
    "updatelatency_sum",
    "znode_count",
    ZOOKEEPER_VERSION,
)

SERIES: dict[Kind, dict[str, float | None]] = {
    "broker": {
        **dict.fromkeys((*_OF_PROCESS, *_DIRECT_MEMORY, *_OF_BROKER, *OF_LOAD_MANAGER)),
        **dict.fromkeys(_OF_NAMESPACE, 0.0),
        **_OF_TOPIC,
    },
    "bookie": dict.fromkeys((*_OF_PROCESS, *_DIRECT_MEMORY, *_OF_BOOKIE, *_OF_AUTO_RECOVERY)),
    "zookeeper": dict.fromkeys((*_OF_PROCESS, *_OF_ZOOKEEPER)),
    "autorecovery": dict.fromkeys((*_OF_PROCESS, *_DIRECT_MEMORY, *_OF_AUTO_RECOVERY)),
}
"""Series with their resting values, by kind of server."""

ENDINGS: dict[Kind, tuple[str, ...]] = {
    "broker": ("_thread_executor_queue",),
    "bookie": ("_usage",),
    "zookeeper": (),
    "autorecovery": (),
}
"""Suffixes of series whose names contain a thread's name, or a directory's path. All of their samples are stored.

``pulsar_managedLedger_client_thread_<thread>_thread_executor_queue`` is exported by brokers with
`bookkeeperClientExposeStatsToPrometheus` on. ``bookie_ledger_dir_<path>_usage`` is exported by bookies.
"""
