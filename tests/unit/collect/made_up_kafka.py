"""A made-up Kafka cluster that answers like its reader, and a diagnosed snapshot of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from pulsar_steward.collect.kafka.collecting import KEPT, MIN_IN_SYNC, KafkaOrder, collect_kafka
from pulsar_steward.collect.kafka.reader import OutOfTime
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.policy.schema import KafkaPolicy, Policy
from pulsar_steward.runtime.parallel import on_this_thread
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import NOW

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pulsar_steward.collect.kafka.reader import KafkaPartition, KafkaReader
    from pulsar_steward.snapshots.read import Snapshot


class Cluster:
    """A cluster of two brokers that answers like `KafkaReader`; a third one is down.

    Args:
        groups: Committed offsets by group and partition, or why they cannot be read.
        requests: How many lists of groups' offsets there is time for.
        start: Offset of the oldest message that is kept.
        mute: Partitions that tell no offset of a time, and such as tell none at all.
        mum: Why topics do not tell their settings; empty: they do.
    """

    END = 1_000

    def __init__(
        self,
        groups: dict[str, dict[KafkaPartition, int] | str],
        requests: int = 100,
        *,
        start: int = 0,
        mute: tuple[Sequence[KafkaPartition], Sequence[KafkaPartition]] = ((), ()),
        mum: str = "",
    ) -> None:
        self._groups, self._left = groups, requests
        self._start, self._ageless, self._mute = start, {*mute[0], *mute[1]}, mute[1]
        self._mum = mum
        self.requests = 0
        self.asked: list[tuple[str, int]] = []

    def metadata(self) -> Any:
        """Of a topic `orders`, whose last partition has no leader."""
        parts = {
            number: SimpleNamespace(
                id=number, leader=number % 2 + 1, replicas=[number % 2 + 1, 3], isrs=[number % 2 + 1]
            )
            for number in range(4)
        } | {4: SimpleNamespace(id=4, leader=-1, replicas=[3], isrs=[3])}
        return SimpleNamespace(
            cluster_id="abc",
            brokers={n: SimpleNamespace(id=n, host="kafka", port=9092 + n) for n in (1, 2)},
            topics={
                "orders": SimpleNamespace(error=None, partitions=parts),
                "whole": SimpleNamespace(
                    error=None, partitions={0: SimpleNamespace(id=0, leader=1, replicas=[1, 2], isrs=[2, 1])}
                ),
            },
        )

    def racks(self) -> dict[int, str | None]:
        """Of those that are listed."""
        return {1: "a", 2: None}

    def settings(self, brokers: Sequence[int], names: frozenset[str]) -> dict[int, dict[str, str] | str]:
        """Of the first broker alone."""
        assert names == KEPT
        return {1: {"min.insync.replicas": "1"}, 2: "it is away"} if brokers == [1, 2] else {}

    def topic_settings(self, topics: Sequence[str], names: frozenset[str]) -> dict[str, dict[str, str] | str]:
        """Of topics with a replica that is missing or out of sync, and of no others."""
        assert names == {MIN_IN_SYNC}
        return {each: self._mum or {MIN_IN_SYNC: "2"} for each in topics}

    def groups(self) -> tuple[dict[str, str], list[str]]:
        """All of them."""
        return dict.fromkeys(self._groups, "stable"), []

    def committed(self, groups: Sequence[str]) -> dict[str, dict[KafkaPartition, int] | str]:
        """While there is time."""
        if self._left == 0:
            raise OutOfTime("the time was over")
        self._left -= 1
        return {each: self._groups[each] for each in groups}

    def ends(self, partitions: Sequence[KafkaPartition]) -> dict[KafkaPartition, int]:
        """The same for all partitions."""
        self.asked.append(("end", len(partitions)))
        return {each: self.END for each in partitions if each not in self._mute}

    def starts(self, partitions: Sequence[KafkaPartition]) -> dict[KafkaPartition, int]:
        """The same for all partitions."""
        return dict.fromkeys(partitions, self._start)

    def first_since(self, partitions: Sequence[KafkaPartition], milliseconds: int) -> dict[KafkaPartition, int]:
        """A message was written each minute until now, the last one with the offset before the end."""
        age = NOW.timestamp() - milliseconds / 1000
        self.asked.append((f"{age:.0f}", len(partitions)))
        since = max(self.END - round(age / 60), self._start)
        return {each: -1 if since == self.END else since for each in partitions if each not in self._ageless}


def taken(cluster: Cluster, folder: Path, limits: KafkaPolicy | None = None) -> Snapshot:
    """The snapshot of a cluster, diagnosed."""
    place = SnapshotFolder(LocalFiles(), snapshot_uri(str(folder), "k", NOW))
    order = KafkaOrder("k", NOW, "kafka:9093", limits or KafkaPolicy(), cluster.metadata())
    collect_kafka(cast("KafkaReader", cluster), order, place)
    diagnose(place, Policy(), on_this_thread)
    return open_snapshot(place.uri)
