"""Consumer groups: their state, and how far they are behind, in messages and in time.

The age of the message that a group wants next is told by no request. But a broker tells the first offset of a time: if
the group wants an earlier one, it is behind by the time since then. So the steps of `AGES` are asked for, the least
first, and only for what is still behind. A message that was deleted has no age: the oldest one that is kept counts.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pulsar_steward.collect.kafka.reader import KafkaPartition, OutOfTime, chunks
from pulsar_steward.model.tables import KAFKA_GROUPS, KAFKA_LAGS
from pulsar_steward.model.units import DAY, HOUR, MINUTE, counted
from pulsar_steward.snapshots.database import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pulsar_steward.collect.kafka.reader import KafkaReader
    from pulsar_steward.policy.schema import KafkaPolicy

AGES = (MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 3 * DAY, 7 * DAY)
"""Ages in seconds that are told apart, rising."""


class ReadGroups:
    """Consumer groups of a cluster, read some at a time.

    Args:
        reader: The cluster.
        leaderless: Partitions that no offset is asked of.
        limits: How much is asked for at once.
        now: Time of the snapshot in seconds since the epoch.

    Attributes:
        groups: The table `kafka_groups`.
        lags: The table `kafka_lags`.
        unread: What could not be read, in words.
    """

    def __init__(
        self, reader: KafkaReader, leaderless: AbstractSet[KafkaPartition], limits: KafkaPolicy, now: float
    ) -> None:
        self._reader, self._leaderless, self._limits, self._now = reader, leaderless, limits, now
        self._pieces: list[pa.Table] = []
        self._failures: dict[str, str] = {}
        self._untold: set[str] = set()
        self.unread: list[str] = []
        self.groups = _table(KAFKA_GROUPS, self._read())
        self.lags = pa.concat_tables([schema_of(KAFKA_LAGS).empty_table(), *self._pieces])

    def _read(self) -> list[dict[str, object]]:
        try:
            states, errors = self._reader.groups()
        except OutOfTime as over:
            states, errors = {}, [str(over)]
        if errors:
            self.unread.append(f"some consumer groups: {errors[0]}")
        rows: dict[str, dict[str, object]] = {name: {"group_id": name, "state": states[name]} for name in states}
        try:
            for some in chunks(states, self._limits.groups_at_once):
                for name, figures in self._figures(some):
                    rows[name] |= figures
        except OutOfTime as over:
            left = sum("partitions" not in row for row in rows.values()) - len(self._failures)
            self.unread.append(f"offsets of {counted(left, 'consumer group')}: {over}")
        if self._failures:
            name, reason = next(iter(self._failures.items()))
            self.unread.append(f"offsets of {counted(len(self._failures), 'consumer group')}, such as {name}: {reason}")
        if self._untold:
            lacking = counted(len(self._untold), "consumer group")
            self.unread.append(f"ends or ages of some partitions of {lacking}, such as {min(self._untold)}")
        return list(rows.values())

    def _figures(self, names: Sequence[str]) -> Iterator[tuple[str, dict[str, object]]]:
        """Figures of some groups; the rows of `kafka_lags` are kept."""
        told = self._reader.committed(names)
        offsets = {name: each for name, each in told.items() if not isinstance(each, str)}
        self._failures |= {name: each for name, each in told.items() if isinstance(each, str)}
        wanted = sorted({each for found in offsets.values() for each in found}.difference(self._leaderless))
        ends = self._reader.ends(wanted)
        lags = {
            name: {each: ends[each] - offset for each, offset in found.items() if ends.get(each, offset) != offset}
            for name, found in offsets.items()
        }
        worst = {
            name: heapq.nlargest(
                self._limits.timed_partitions,
                (each for each, lag in found.items() if lag > 0),
                key=lambda each: (found[each], each),
            )
            for name, found in lags.items()
        }
        starts = self._reader.starts(sorted({each for found in worst.values() for each in found}))
        ages = self._ages(
            {
                (name, each): next_kept
                for name, found in worst.items()
                for each in found
                if (next_kept := max(offsets[name][each], starts.get(each, 0))) < ends[each]
            }
        )
        ages = {(name, each): ages.get((name, each), 0) for name, found in worst.items() for each in found}
        self._untold |= {name for name, found in offsets.items() if found.keys() - ends.keys() - self._leaderless}
        self._untold |= {name for (name, _), age in ages.items() if age is None}
        self._pieces.append(_table(KAFKA_LAGS, _rows(lags, offsets, starts, ends, ages)))
        for name, found in offsets.items():
            yield (
                name,
                {
                    "partitions": len(found),
                    "untold": len(found.keys() - ends.keys()),
                    "lag_messages": sum(lag for lag in lags[name].values() if lag > 0),
                    "topics": sorted({each.topic for each in found}),
                },
            )

    def _ages(self, behind: dict[tuple[str, KafkaPartition], int]) -> dict[tuple[str, KafkaPartition], int | None]:
        """Least ages in seconds of the messages at these offsets, by group and partition; None: not told."""
        ages: dict[tuple[str, KafkaPartition], int | None] = dict.fromkeys(behind)
        least = 0
        for age in AGES:
            if not behind:
                break
            first = self._reader.first_since(
                sorted({partition for _, partition in behind}), round((self._now - age) * 1000)
            )
            behind = {key: offset for key, offset in behind.items() if key[1] in first}  # the others keep what is known
            ages |= dict.fromkeys(behind, least)
            # -1: all messages are older.
            behind = {key: offset for key, offset in behind.items() if first[key[1]] < 0 or offset < first[key[1]]}
            ages |= dict.fromkeys(behind, age)
            least = age
        return ages


def _rows(
    lags: Mapping[str, Mapping[KafkaPartition, int]],
    offsets: Mapping[str, Mapping[KafkaPartition, int]],
    starts: Mapping[KafkaPartition, int],
    ends: Mapping[KafkaPartition, int],
    ages: Mapping[tuple[str, KafkaPartition], int | None],
) -> Iterator[dict[str, object]]:
    for name, found in lags.items():
        for each in sorted(found):
            yield {
                "group_id": name,
                "topic": each.topic,
                "partition": each.number,
                "committed": offsets[name][each],
                "start_offset": starts.get(each),
                "end_offset": ends[each],
                "behind_seconds": ages.get((name, each)),
                "timed": (name, each) in ages,
            }


def _table(table: Any, rows: Iterable[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema_of(table))
