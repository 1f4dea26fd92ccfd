"""Brokers as Arrow batches: each broker, the bundles it owns, and the topics and subscriptions loaded on it."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pulsar_steward.collect.arrow import interleave
from pulsar_steward.collect.bundles import BundleSum, as_owned_now, owned_by_namespace, tc_positions, worst_positions
from pulsar_steward.collect.metrics import Metrics, read_metrics
from pulsar_steward.collect.pending import PendingBrokers, Recent
from pulsar_steward.collect.rows import UNFIT, HeldRows, Rows
from pulsar_steward.collect.topics import TopicRows
from pulsar_steward.errors import AdminError, StatusError
from pulsar_steward.model.broker_defaults import BEFORE_5, OF_UPGRADES, is_extensible
from pulsar_steward.model.broker_defaults import KEYS as DEFAULTS_KEYS
from pulsar_steward.model.broker_defaults import SETTINGS as OF_LOAD_MANAGER
from pulsar_steward.model.pulsar_versions import VERSION
from pulsar_steward.model.setting import SHARED
from pulsar_steward.model.tables import BROKERS, BUNDLES, CONFIGURATION
from pulsar_steward.policy.schema import CollectPolicy
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.statistics import bundles_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pulsar_steward.collect.arrow import TableBatch, Task
    from pulsar_steward.collect.bundles import Owned, Positions
    from pulsar_steward.pulsar.body import Body
    from pulsar_steward.pulsar.settings import AdminSettings


log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Answers:
    """Responses of one broker.

    Attributes:
        owned: The bundles that it owns.
        load: Its load report; empty if it has none.
        positions: Hash positions of the topics in the coordinators' bundles that it owns.
        version: Its Pulsar version; None: not reported.
        clock_skew_milliseconds: Lead of its clock; None: not reported.
        configuration: Its runtime configuration; empty if it could not be read.
        metrics: Its Prometheus series.
    """

    owned: Owned
    load: dict[str, Any]
    positions: Positions
    version: str | None
    clock_skew_milliseconds: int | None
    configuration: dict[str, str]
    metrics: Metrics


def asked(settings: AdminSettings, broker: str, pulsar_cluster: str, policy: CollectPolicy) -> tuple[Body, Answers]:
    """Reads a broker; returns its topic statistics as received, and its other responses.

    Args:
        settings: Admin API settings of the cluster.
        broker: ``host:webport``.
        pulsar_cluster: The cluster's own name.
        policy: Limits of collecting.

    Raises:
        AdminError: If a required response cannot be read.
    """
    with Reader(settings, broker=broker) as reader:
        # Statistics first: the bundles read afterwards are newer, and show which statistics still apply.
        document = reader.topic_statistics()
        owned = owned_by_namespace(reader.owned_bundles(pulsar_cluster, broker))
        configuration = _or_none(reader.runtime_configuration) or {}
        version, ahead = _or_none(reader.version_and_clock) or ("", None)
        return document, Answers(
            owned=owned,
            load=_load_report(reader, configuration),
            positions=tc_positions(reader, owned),
            version=version if VERSION.fullmatch(version) else None,
            clock_skew_milliseconds=ahead,
            configuration=configuration,
            metrics=read_metrics(reader.metrics, "broker", policy.metrics_megabytes),
        )


def _or_none(ask: Callable[[], T]) -> T | None:
    """Reads an optional response; None, and a warning, if it cannot be read."""
    try:
        return ask()
    except (AdminError, *UNFIT) as error:
        log.warning("left out: %s", error)
        return None


def _load_report(reader: Reader, configuration: dict[str, str]) -> dict[str, Any]:
    """Load report of the broker; empty if it has none: `ExtensibleLoadManagerImpl` responds 500."""
    if is_extensible(configuration):
        return {}
    try:
        return reader.load_report()
    except StatusError:
        return {}


# A setting is added with the check that needs it, and removed with it:
# `tests/architecture/test_collected_is_used.py` compares the two, and docs/reading.md lists them.
#
# A broker reports all of its settings, including passwords (``brokerClientTlsKeyStorePassword``,
# ``managedLedgerPassword``, tokens in ``brokerClientAuthenticationParameters``). So this lists the settings to
# store, not the settings to omit, and no pattern stands for a whole family.


KEPT = frozenset(
    {
        *DEFAULTS_KEYS,
        *OF_LOAD_MANAGER,
        *SHARED,
        *BEFORE_5,
        *OF_UPGRADES,
        "acknowledgmentAtBatchIndexLevelEnabled",
        "backlogQuotaCheckEnabled",
        "backlogQuotaCheckIntervalInSeconds",
        "bookkeeperClientNumWorkerThreads",
        "delayedDeliveryMaxIndexesPerBucketSnapshotSegment",
        "delayedDeliveryMaxNumBuckets",
        "delayedDeliveryMaxTimeStepPerBucketSnapshotSegmentSeconds",
        "delayedDeliveryMinIndexCountPerBucket",
        "delayedDeliveryTrackerFactoryClassName",
        "dispatchThrottlingRateInByte",
        "dispatchThrottlingRateInMsg",
        "dispatchThrottlingRatePerSubscriptionInByte",
        "dispatchThrottlingRatePerSubscriptionInMsg",
        "dispatchThrottlingRatePerTopicInByte",
        "dispatchThrottlingRatePerTopicInMsg",
        "entryFilterNames",
        "exposePreciseBacklogInPrometheus",
        "isDelayedDeliveryDeliverAtTimeStrict",
        "loadBalancerBrokerMaxTopics",
        "loadBalancerNamespaceBundleMaxBandwidthMbytes",
        "loadBalancerNamespaceBundleMaxMsgRate",
        "loadBalancerNamespaceBundleMaxSessions",
        "managedLedgerCacheEvictionTimeThresholdMillis",
        "managedLedgerCacheSizeMB",
        "managedLedgerMaxLedgerRolloverTimeMinutes",
        "managedLedgerOffloadDriver",
        "managedLedgerMaxBatchDeletedIndexToPersist",
        "managedLedgerMaxReadsInFlightSizeInMB",
        "managedLedgerMaxUnackedRangesToPersist",
        "managedLedgerMaxUnackedRangesToPersistInMetadataStore",
        "managedLedgerPersistIndividualAckAsLongArray",
        "managedLedgerStatsPeriodSeconds",
        "maxConcurrentTopicLoadRequest",
        "maxConsumersPerSubscription",
        "maxConsumersPerTopic",
        "maxNumPartitionsPerPartitionedTopic",
        "maxProducersPerTopic",
        "maxPublishRatePerTopicInBytes",
        "maxPublishRatePerTopicInMessages",
        "maxSubscriptionsPerTopic",
        "maxTopicsPerNamespace",
        "maxMessagePublishBufferSizeInMB",
        "maxMessageSize",
        "maxUnackedMessagesPerConsumer",
        "maxUnackedMessagesPerSubscription",
        "metadataStoreSessionTimeoutMillis",
        "numIOThreads",
        "numOrderedExecutorThreads",
        "preciseTimeBasedBacklogQuotaCheck",
        "topicLoadTimeoutSeconds",
        "transactionCoordinatorScalableTopicsEnabled",
    }
)
"""Settings that are stored, by their names in ``broker.conf``."""

SWITCHES = frozenset({"authenticateOriginalAuthData", "authenticationEnabled"})
"""Settings of authentication that are stored: true or false, and nothing else that they could hold."""


def kept(configuration: Mapping[str, str]) -> dict[str, str]:
    """Settings of a broker's runtime configuration that may be stored, by name."""
    found = {key: configuration[key] for key in sorted(KEPT & configuration.keys())}
    return {key: value for key, value in found.items() if key not in SWITCHES or value in {"true", "false"}}


Sums = dict[tuple[str, str], BundleSum]
"""Sum of each bundle, by namespace and range."""

_RATES = ("message_rate_in", "message_rate_out", "throughput_in_bytes", "throughput_out_bytes")


class BrokerTask(msgspec.Struct, frozen=True):
    """One broker to read.

    Attributes:
        broker: ``host:webport``.
        pulsar_cluster: The cluster's own name.
        leader: True if it leads the load manager.
    """

    broker: str
    pulsar_cluster: str
    leader: bool


class ReadScope(msgspec.Struct, frozen=True):
    """Extent of reading, the same for every broker.

    Attributes:
        taken_at: Snapshot time, with its time zone.
        policy: Limits of collecting.
    """

    taken_at: datetime
    policy: CollectPolicy


def read_brokers(
    settings: AdminSettings,
    tasks: Iterable[BrokerTask],
    scope: ReadScope,
    at_once: int = 1,
    waiting: PendingBrokers | None = None,
) -> Iterator[TableBatch]:
    """Reads brokers completely, and yields rows of `BROKER_TABLES`.

    All or nothing: a broker yields only its failure row if its responses end early, cannot be read, or do not fit a
    table. Its rows are held back until all are read. While a broker is slow or never responds, others are read.

    Args:
        settings: Admin API settings of the cluster.
        tasks: The brokers.
        scope: Extent of reading.
        at_once: Maximum number of brokers read at the same time; as many documents are in memory.
        waiting: Keeps track of the brokers whose responses are pending.
    """
    waiting = waiting or PendingBrokers()
    yield from interleave((_read(settings, task, scope, waiting) for task in tasks), at_once)


def _read(settings: AdminSettings, task: BrokerTask, scope: ReadScope, waiting: PendingBrokers) -> Task[TableBatch]:
    """Reads one broker: converts its responses to rows, makes the requests that depend on them, returns all rows."""
    began = time.monotonic()
    rows = _TopicRows(task, scope)

    def ask() -> tuple[Body, Answers]:
        with waiting.on(task.broker):
            return asked(settings, task.broker, task.pulsar_cluster, scope.policy)

    def ask_positions() -> Positions:
        with waiting.on(task.broker), Reader(settings, broker=task.broker) as reader:
            return worst_positions(reader, rows.sums, scope.policy)

    try:
        document, answers = yield ask
        rows.add(document, answers.owned)
        del document  # it may be large, and the next requests take time
        positions = answers.positions | (yield ask_positions)
        # Made here, before any row is yielded: until then the broker may still turn out to be unreadable.
        others = [
            *_bundles(task, rows, positions),
            *rows.client_versions(),
            *_configuration(task, answers),
            *answers.metrics.rows(task.broker, "broker"),
            *_itself(task, answers, BundleSum.of(rows.sums.values()), len(rows.sums), began),
        ]
    except AdminError as error:
        failure = str(error)
    except UNFIT as error:
        failure = f"{task.broker}: what it answers is not what a broker answers: {type(error).__name__}: {error}"
    else:
        waiting.has_answered()
        return chain(rows.taken(), others)
    waiting.has_answered()
    rows.let_go()
    return _row(task, {"read": False, "failure": failure}, began)


class _TopicRows:
    """Rows of one broker's topics, subscriptions and clients, held back until it was read completely."""

    def __init__(self, task: BrokerTask, scope: ReadScope) -> None:
        recent = Recent(scope.taken_at, scope.policy.recent_minutes)
        self._broker = task.broker
        self._topics = TopicRows(task.broker, recent, scope.policy.clients_per_subscription)
        self._held = HeldRows()

    @property
    def sums(self) -> Sums:
        """Sum of each bundle that the broker owns."""
        return self._topics.sums

    def add(self, document: Body, owned: Owned) -> None:
        """Converts a broker's topic statistics to rows.

        Raises:
            BrokenAnswer: If they cannot be read to their end.
        """
        self.sums.update({(namespace, bundle): BundleSum() for namespace, ranges in owned.items() for bundle in ranges})
        for statistics in bundles_in(document, self._broker):
            for bundle, topics in as_owned_now(statistics, owned):
                self._topics.add(statistics.namespace, bundle, topics)
            self._held.add(self._topics.full())
        self._held.add(self._topics.rest())

    def client_versions(self) -> Iterator[TableBatch]:
        """Yields the rows of `client_versions`, once all topics were added."""
        return self._topics.versions.rows()

    def taken(self) -> Iterator[TableBatch]:
        """Yields the rows and removes them."""
        return self._held.taken()

    def let_go(self) -> None:
        """Discards the rows."""
        self._held.let_go()


def _bundles(task: BrokerTask, read: _TopicRows, positions: Positions) -> Iterator[TableBatch]:
    rows = Rows(BUNDLES)
    for (namespace, bundle), total in read.sums.items():
        clients = (total.topics, total.producers, total.consumers)
        known = positions.get((namespace, bundle))
        row = (namespace, bundle, task.broker, True, *clients, *total.rates, total.backlog, known)
        rows.add(*([value] for value in row))
        yield from rows.full()
    yield from rows.rest()


def _configuration(task: BrokerTask, answers: Answers) -> Iterator[TableBatch]:
    rows = Rows(CONFIGURATION)
    settings = kept(answers.configuration)
    rows.add([task.broker] * len(settings), list(settings), list(settings.values()))
    yield from rows.rest()


def _itself(task: BrokerTask, answers: Answers, total: BundleSum, bundles: int, began: float) -> Iterator[TableBatch]:
    """Row of a broker that was read, with its load report."""
    values = {
        "read": True,
        "pulsar_version": answers.version,
        "bundles": bundles,
        "topics": total.topics,
        "producers": total.producers,
        "consumers": total.consumers,
        "cpu_percent": _resource(answers, "cpu"),
        "processors": _processors(answers.load.get("cpu") if answers.load else None),
        "memory_percent": _resource(answers, "memory"),
        "direct_memory_percent": _resource(answers, "directMemory"),
        **dict(zip(_RATES, total.rates, strict=True)),
        "metrics_read": answers.metrics.whole,
        "clock_skew_milliseconds": answers.clock_skew_milliseconds,
    }
    return _row(task, values, began)


def _row(task: BrokerTask, values: Mapping[str, object], began: float) -> Iterator[TableBatch]:
    took = int((time.monotonic() - began) * 1000)
    row = {"broker": task.broker, "leader": task.leader, **values, "read_milliseconds": took}
    rows = Rows(BROKERS)
    rows.add(*([row.get(name)] for name in BROKERS.names))
    return rows.rest()


def _resource(answers: Answers, name: str) -> float | None:
    """Usage of a resource by the load report, or by the same figure in the metrics if there is no report."""
    if answers.load:
        return _percent(answers.load.get(name))
    series = f"pulsar_lb_{name}_usage"
    return next((each.value for each in answers.metrics.samples if each.series == series), None)


def _processors(cpu: Any) -> float | None:
    """Number of processors of a broker, from the limit in its load report: 100 for each."""
    match cpu:
        case {"limit": int() | float() as limit} if limit > 0:
            return limit / 100
    return None


def _percent(resource: Any) -> float | None:
    """Usage in percent of a resource's limit; None if not reported or the broker does not know the limit (-1000)."""
    match resource:
        case {"usage": int() | float() as usage, "limit": int() | float() as limit} if limit > 0:
            return 100.0 * usage / limit
    return None
