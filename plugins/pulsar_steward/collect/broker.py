"""One broker → Arrow batches: itself, the bundles it owns, and the topics and subscriptions that are loaded on it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.admin.reader import Reader
from pulsar_steward.admin.statistics import bundles_in
from pulsar_steward.collect.arrow import BROKER_TABLES
from pulsar_steward.collect.ownership import as_owned_now, owned_by_namespace
from pulsar_steward.collect.rows import Rows
from pulsar_steward.collect.sums import BundleSum
from pulsar_steward.errors import AdminError, StatusError
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.tables import BROKERS, BUNDLES, SUBSCRIPTIONS, TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.admin.statistics import TopicStatistics
    from pulsar_steward.collect.ownership import Owned


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


def read_broker(settings: AdminSettings, task: BrokerTask) -> Iterator[pa.RecordBatch]:
    """Asks one broker everything, and yields batches of `answer_schema(BROKER_TABLES)`.

    All or nothing: a broker whose answers end in the middle, or cannot be read, yields nothing but the row that says
    so. Until then its batches are held, which take less than the document that they are made of.
    """
    reading = _Reading(settings, task)
    try:
        batches = list(reading.batches())
    except AdminError as error:
        yield from reading.itself(str(error))
    else:
        yield from batches
        yield from reading.itself(None)


class _Reading:
    """One broker while it is read."""

    def __init__(self, settings: AdminSettings, task: BrokerTask) -> None:
        self._settings = settings
        self._task = task
        self._began = time.monotonic()
        self._topics = Rows(TOPICS, BROKER_TABLES)
        self._subscriptions = Rows(SUBSCRIPTIONS, BROKER_TABLES)
        self._sums: dict[tuple[str, str], BundleSum] = {}
        self._load: dict[str, Any] = {}

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its topics, subscriptions and bundles."""
        with Reader(self._settings, broker=self._task.broker) as reader:
            # Statistics first: what is asked later is younger, and says which of them still hold.
            document = reader.topic_statistics()
            owned = owned_by_namespace(reader.owned_bundles(self._task.pulsar_cluster, self._task.broker))
            self._load = _load_report(reader)
            positions = _positions(reader, owned)
        self._sums = {(namespace, bundle): BundleSum() for namespace, ranges in owned.items() for bundle in ranges}
        for statistics in bundles_in(document, self._task.broker):
            for bundle, topics in as_owned_now(statistics, owned):
                self._add(statistics.namespace, bundle, topics)
            yield from self._topics.full_batches()
            yield from self._subscriptions.full_batches()
        yield from self._topics.rest()
        yield from self._subscriptions.rest()
        yield from self._bundles(positions)

    def itself(self, failure: str | None) -> Iterator[pa.RecordBatch]:
        """The row of the broker, with what it said of its resources."""
        read = failure is None
        sums = list(self._sums.values()) if read else []
        total = BundleSum.of(sums)
        known = (len(sums), total.topics, total.producers, total.consumers) if read else (None,) * 4
        use = [_percent(self._load.get(resource)) if read else None for resource in ("cpu", "memory", "directMemory")]
        rates = total.rates if read else (None,) * 4
        took = int((time.monotonic() - self._began) * 1000)
        row = (self._task.broker, read, failure, self._task.leader, *known, *use, *rates, took)
        rows = Rows(BROKERS, BROKER_TABLES)
        rows.add(*([value] for value in row))
        yield from rows.rest()

    def _add(self, namespace: str, bundle: str, topics: dict[str, TopicStatistics]) -> None:
        count, values = len(topics), topics.values()
        columns = (
            [topic.producer_count for topic in values],
            [topic.consumer_count for topic in values],
            [len(topic.subscriptions) for topic in values],
            [topic.msg_rate_in for topic in values],
            [topic.msg_rate_out for topic in values],
            [topic.msg_throughput_in for topic in values],
            [topic.msg_throughput_out for topic in values],
            [topic.storage_size for topic in values],
            [topic.backlog_size for topic in values],
        )
        self._topics.add(list(topics), [namespace] * count, [bundle] * count, [self._task.broker] * count, *columns)
        self._sums[namespace, bundle].add(count, *columns)
        self._add_subscriptions(namespace, topics)

    def _add_subscriptions(self, namespace: str, topics: dict[str, TopicStatistics]) -> None:
        names = [name for topic in topics.values() for name in topic.subscriptions]
        values = [value for topic in topics.values() for value in topic.subscriptions.values()]
        self._subscriptions.add(
            [name for name, topic in topics.items() for _ in topic.subscriptions],
            [namespace] * len(names),
            names,
            [value.type for value in values],
            [len(value.consumers) for value in values],
            [value.msg_backlog for value in values],
            [value.unacked_messages for value in values],
            [value.blocked_subscription_on_unacked_msgs for value in values],
            [value.total_non_contiguous_deleted_messages_range for value in values],
            [value.msg_rate_out for value in values],
        )

    def _bundles(self, positions: dict[str, list[int]]) -> Iterator[pa.RecordBatch]:
        rows = Rows(BUNDLES, BROKER_TABLES)
        for (namespace, bundle), total in self._sums.items():
            known = positions.get(bundle) if namespace == TC_NAMESPACE else None
            clients = (total.topics, total.producers, total.consumers)
            row = (namespace, bundle, self._task.broker, True, *clients, *total.rates, total.backlog, known)
            rows.add(*([value] for value in row))
            yield from rows.full_batches()
        yield from rows.rest()


def _load_report(reader: Reader) -> dict[str, Any]:
    """The broker's resources; a load manager that keeps no report leaves them unknown."""
    try:
        return reader.load_report()
    except StatusError:
        return {}


def _positions(reader: Reader, owned: Owned) -> dict[str, list[int]]:
    found = {bundle: reader.topic_positions(TC_NAMESPACE, bundle) for bundle in owned.get(TC_NAMESPACE, {})}
    return {bundle: sorted(positions.values()) for bundle, positions in found.items() if positions is not None}


def _percent(resource: Any) -> float | None:
    """Use of its limit; None where it is not reported or the broker does not know the limit (it says -1000)."""
    match resource:
        case {"usage": int() | float() as usage, "limit": int() | float() as limit} if limit > 0:
            return 100.0 * usage / limit
    return None
