"""One broker → Arrow batches: itself, the bundles it owns, and the topics and subscriptions that are loaded on it."""

from __future__ import annotations

import logging
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pulsar_steward.admin.reader import Reader
from pulsar_steward.admin.statistics import bundles_in
from pulsar_steward.collect.arrow import BROKER_TABLES
from pulsar_steward.collect.configuration import kept
from pulsar_steward.collect.metrics import Metrics, read_metrics
from pulsar_steward.collect.ownership import as_owned_now, owned_by_namespace
from pulsar_steward.collect.positions import tc_positions, worst_positions
from pulsar_steward.collect.recent import Recent
from pulsar_steward.collect.rows import Rows
from pulsar_steward.collect.sums import BundleSum
from pulsar_steward.collect.topics import TopicRows
from pulsar_steward.errors import AdminError, StatusError
from pulsar_steward.model.tables import BROKERS, BUNDLES, CONFIGURATION
from pulsar_steward.policy.schema import CollectPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.collect.positions import Positions

log = logging.getLogger(__name__)

T = TypeVar("T")


class BrokerTask(msgspec.Struct, frozen=True):
    """A broker to be read.

    Attributes:
        broker: ``host:webport``.
        pulsar_cluster: The cluster's own name.
        leader: Whether it leads the load manager.
    """

    broker: str
    pulsar_cluster: str
    leader: bool


class Scope(msgspec.Struct, frozen=True):
    """How much is read of every broker.

    Attributes:
        taken_at: When the snapshot is taken, with its time zone.
        policy: How much is looked at.
    """

    taken_at: datetime
    policy: CollectPolicy


def read_broker(settings: AdminSettings, task: BrokerTask, scope: Scope) -> Iterator[pa.RecordBatch]:
    """Asks one broker everything, and yields batches of `answer_schema(BROKER_TABLES)`.

    All or nothing: a broker whose answers end in the middle, or cannot be read, yields nothing but the row that says
    so. Until then its batches are held, which take less than the document that they are made of.
    """
    reading = _Reading(settings, task, scope)
    try:
        batches = list(reading.batches())
    except AdminError as error:
        yield from reading.itself(str(error))
    else:
        yield from batches
        yield from reading.itself(None)


class _Reading:
    """One broker while it is read."""

    def __init__(self, settings: AdminSettings, task: BrokerTask, scope: Scope) -> None:
        self._settings = settings
        self._task = task
        self._scope = scope
        self._began = time.monotonic()
        self._topics = TopicRows(
            task.broker, Recent(scope.taken_at, scope.policy.recent_minutes), scope.policy.clients_per_subscription
        )
        self._load: dict[str, Any] = {}
        self._skew: int | None = None
        self._metrics = Metrics(None)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its topics, subscriptions and bundles."""
        with Reader(self._settings, broker=self._task.broker) as reader:
            # Statistics first: what is asked later is younger, and says which of them still hold.
            document = reader.topic_statistics()
            owned = owned_by_namespace(reader.owned_bundles(self._task.pulsar_cluster, self._task.broker))
            self._load = _load_report(reader)
            positions = tc_positions(reader, owned)
            self._skew = _or_none(reader.clock_skew_milliseconds)
            configuration = _or_none(reader.runtime_configuration) or {}
            self._metrics = read_metrics(reader.metrics, "broker", self._scope.policy.metrics_megabytes)
        self._topics.sums.update(
            {(namespace, bundle): BundleSum() for namespace, ranges in owned.items() for bundle in ranges}
        )
        for statistics in bundles_in(document, self._task.broker):
            for bundle, topics in as_owned_now(statistics, owned):
                self._topics.add(statistics.namespace, bundle, topics)
            yield from self._topics.full_batches()
        yield from self._topics.rest()
        with Reader(self._settings, broker=self._task.broker) as reader:
            positions |= worst_positions(reader, self._topics.sums, self._scope.policy)
        yield from self._bundles(positions)
        yield from self._configuration(configuration)
        yield from self._metrics.batches(self._task.broker, "broker", BROKER_TABLES)

    def itself(self, failure: str | None) -> Iterator[pa.RecordBatch]:
        """The row of the broker, with what it said of its resources."""
        read = failure is None
        sums = list(self._topics.sums.values()) if read else []
        total = BundleSum.of(sums)
        known = (len(sums), total.topics, total.producers, total.consumers) if read else (None,) * 4
        use = [_percent(self._load.get(resource)) if read else None for resource in ("cpu", "memory", "directMemory")]
        rates = total.rates if read else (None,) * 4
        told = (self._metrics.whole, self._skew) if read else (None, None)
        took = int((time.monotonic() - self._began) * 1000)
        row = (self._task.broker, read, failure, self._task.leader, *known, *use, *rates, *told, took)
        rows = Rows(BROKERS, BROKER_TABLES)
        rows.add(*([value] for value in row))
        yield from rows.rest()

    def _configuration(self, configuration: dict[str, str]) -> Iterator[pa.RecordBatch]:
        rows = Rows(CONFIGURATION, BROKER_TABLES)
        settings = kept(configuration)
        rows.add([self._task.broker] * len(settings), list(settings), list(settings.values()))
        yield from rows.rest()

    def _bundles(self, positions: Positions) -> Iterator[pa.RecordBatch]:
        rows = Rows(BUNDLES, BROKER_TABLES)
        for (namespace, bundle), total in self._topics.sums.items():
            known = positions.get((namespace, bundle))
            clients = (total.topics, total.producers, total.consumers)
            row = (namespace, bundle, self._task.broker, True, *clients, *total.rates, total.backlog, known)
            rows.add(*([value] for value in row))
            yield from rows.full_batches()
        yield from rows.rest()


def _or_none(ask: Callable[[], T]) -> T | None:
    """What is of use, but not needed: where it cannot be read, it is left out."""
    try:
        return ask()
    except AdminError as error:
        log.warning("left out: %s", error)
        return None


def _load_report(reader: Reader) -> dict[str, Any]:
    """The broker's resources; a load manager that keeps no report leaves them unknown."""
    try:
        return reader.load_report()
    except StatusError:
        return {}


def _percent(resource: Any) -> float | None:
    """Use of its limit; None where it is not reported or the broker does not know the limit (it says -1000)."""
    match resource:
        case {"usage": int() | float() as usage, "limit": int() | float() as limit} if limit > 0:
            return 100.0 * usage / limit
    return None
