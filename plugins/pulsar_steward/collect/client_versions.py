"""Clients of a broker by namespace and version, with hosts and an example where the version is suspicious."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pulsar_steward.collect.rows import Rows
from pulsar_steward.model.client_versions import NONE, is_suspicious
from pulsar_steward.model.tables import CLIENT_VERSIONS
from pulsar_steward.model.topics import is_own_topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pulsar_steward.admin.statistics import TopicStatistics
    from pulsar_steward.collect.arrow import TableBatch
    from pulsar_steward.collect.clients import ClientFigures

MAX_HOSTS = 1000
"""Most hosts that are told apart for one version in a namespace of a broker."""

MAX_VERSIONS = 100
"""Most versions that are told apart in a namespace of a broker: clients may say anything. Further ones count as one."""

MAX_VERSION_LENGTH = 100
NAMED_HOSTS = 5
OTHER = "(others)"


class _OfVersion:
    """Clients of one version in a namespace."""

    __slots__ = ("consumers", "example", "hosts", "producers", "suspicious")

    def __init__(self, version: str) -> None:
        self.producers = self.consumers = 0
        self.suspicious = is_suspicious(version)
        self.hosts: Counter[str] = Counter()
        self.example: tuple[str, str] | None = None

    def name(self, address: str, client: str, topic: str) -> None:
        """Counts the host of a client, and keeps the client as an example if it is the first by name."""
        host = address.removeprefix("/").rpartition(":")[0]
        if host in self.hosts or len(self.hosts) < MAX_HOSTS:
            self.hosts[host] += 1
        if self.example is None or (topic, client) < self.example:
            self.example = topic, client


class ClientVersions:
    """Rows of the table `client_versions` of one broker.

    Args:
        broker: ``host:webport``.
    """

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._namespaces: dict[str, dict[str, _OfVersion]] = {}

    def add(self, namespace: str, topics: Mapping[str, TopicStatistics], clients: ClientFigures) -> None:
        """Adds clients of topics, by their full names; those of a namespace's own topics are the brokers' own."""
        versions = self._namespaces.setdefault(namespace, {})
        for version, count in clients.producer_versions.items():
            self._of(versions, version).producers += count
        for version, count in clients.consumer_versions.items():
            self._of(versions, version).consumers += count
        told = (*clients.producer_versions, *clients.consumer_versions)
        if suspicious := {each for each in told if self._of(versions, each).suspicious}:
            self._name(versions, suspicious, topics)

    def rows(self) -> Iterator[TableBatch]:
        """Yields the rows."""
        rows = Rows(CLIENT_VERSIONS)
        for namespace, versions in sorted(self._namespaces.items()):
            for version, seen in sorted(versions.items()):
                hosts = sorted(seen.hosts.items(), key=lambda item: (-item[1], item[0]))[:NAMED_HOSTS]
                topic, client = seen.example or (None, None)
                row = (
                    self._broker,
                    namespace,
                    version,
                    seen.producers,
                    seen.consumers,
                    len(seen.hosts) if seen.suspicious else None,
                    [host for host, _ in hosts],
                    topic,
                    client,
                )
                rows.add(*([value] for value in row))
        yield from rows.rest()

    def _name(
        self, versions: dict[str, _OfVersion], suspicious: set[str], topics: Mapping[str, TopicStatistics]
    ) -> None:
        """Counts hosts of clients of suspicious versions, and keeps an example of each."""
        for name, topic in topics.items():
            if is_own_topic(name):
                continue
            for producer in topic.publishers:
                if (version := producer.client_version or NONE) in suspicious:
                    self._of(versions, version).name(producer.address or "", producer.producer_name or "", name)
            for subscription in topic.subscriptions.values():
                for consumer in subscription.consumers:
                    if consumer.client_version in suspicious:
                        self._of(versions, consumer.client_version).name(consumer.address, consumer.consumer_name, name)

    @staticmethod
    def _of(versions: dict[str, _OfVersion], told: str) -> _OfVersion:
        version = told[:MAX_VERSION_LENGTH]
        if version not in versions:
            if len(versions) >= MAX_VERSIONS:
                version = OTHER
            versions.setdefault(version, _OfVersion(version))
        return versions[version]
