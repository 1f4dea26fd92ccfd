"""Summary of a snapshot from its small tables: findings, severities, ages, and checks that could not judge."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.finding import Outlook, Severity, Verdict
from pulsar_steward.model.tables import BROKERS, FINDINGS
from pulsar_steward.model.units import time_in_words
from pulsar_steward.snapshots.rows import SnapshotMeta

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.snapshots.read import Snapshot


class FindingCount(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of one check and severity.

    Attributes:
        count: Their number, listed or not.
        listed: Number of the listed ones.
        since: Time of the first snapshot with the oldest listed one; None: none is listed.
    """

    count: int
    listed: int
    since: datetime | None


STALE_AT_LEAST = timedelta(minutes=30)
"""Age to which no snapshot is stale, however seldom or often the cluster is observed."""

LONG_READ = timedelta(minutes=1)
"""Shortest time of reading brokers that is told beside a snapshot's age."""


def span_in_words(meta: SnapshotMeta) -> str | None:
    """When brokers were read: ``read 2026-01-31 14:02:05 to 14:09:10 UTC``; None: within a minute, or not known."""
    if meta.read_from is None or meta.read_until is None or meta.read_until - meta.read_from < LONG_READ:
        return None
    begin, same_day = f"{meta.read_from:%Y-%m-%d %H:%M:%S}", meta.read_from.date() == meta.read_until.date()
    return f"read {begin} to {time_in_words(meta.read_until, date=not same_day, seconds=True)}"


class SnapshotSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of a diagnosed snapshot.

    Attributes:
        brokers: Number of brokers that the cluster lists.
        brokers_read: Number of brokers that responded.
        topics: Topics loaded on these brokers.
        found: Findings by check and severity, listed or not.
        verdicts: Verdict of every check.
        span: When brokers were read, in words; None: at once, or it is not known.
    """

    meta: SnapshotMeta
    brokers: int
    brokers_read: int
    topics: int
    found: Mapping[tuple[str, Severity], FindingCount]
    verdicts: tuple[Verdict, ...]
    span: str | None = None

    @property
    def severities(self) -> Counter[Severity]:
        """Number of findings by severity, listed or not."""
        return sum((Counter({severity: each.count}) for (_, severity), each in self.found.items()), Counter())

    @property
    def unknown(self) -> tuple[Verdict, ...]:
        """Verdicts of the checks that could not judge."""
        return tuple(each for each in self.verdicts if each.outlook is Outlook.UNKNOWN)

    @property
    def clear(self) -> int:
        """Number of checks that are clear."""
        return sum(each.outlook is Outlook.CLEAR for each in self.verdicts)


def summary_of(snapshot: Snapshot) -> SnapshotSummary:
    """Reads a diagnosed snapshot's metadata, the counts of its brokers, and three columns of its findings.

    Raises:
        SnapshotError: If it cannot be read.
    """
    meta, verdicts = snapshot.meta(), snapshot.verdicts()
    brokers = snapshot.table(BROKERS, ["read", "topics"]).to_pydict()
    return SnapshotSummary(
        meta=meta,
        brokers=len(brokers["read"]),
        brokers_read=sum(brokers["read"]),
        topics=sum(topics or 0 for topics in brokers["topics"]),
        found=_found(snapshot, meta.taken_at, verdicts),
        verdicts=verdicts,
        span=span_in_words(meta),
    )


def _found(
    snapshot: Snapshot, taken_at: datetime, verdicts: Iterable[Verdict]
) -> Mapping[tuple[str, Severity], FindingCount]:
    """Findings by check and severity; the listed ones are summed up by Arrow, as there may be 100,000 of them."""
    columns = ["check_id", "severity", "first_seen"]
    groups = snapshot.table(FINDINGS, columns).group_by(["check_id", "severity"])
    rows = groups.aggregate([("check_id", "count"), ("first_seen", "min")]).to_pylist()
    since = {(row["check_id"], Severity(row["severity"])): row["first_seen_min"] or taken_at for row in rows}
    listed: defaultdict[str, dict[Severity, int]] = defaultdict(dict)
    for row in rows:
        listed[row["check_id"]][Severity(row["severity"])] = row["check_id_count"]
    unsaid = {check_id: Counter(each) for check_id, each in listed.items()}  # a check without a verdict
    every = unsaid | {each.check_id: each.found(listed[each.check_id]) for each in verdicts}
    found = {
        (check_id, severity): FindingCount(
            count=count, listed=listed[check_id].get(severity, 0), since=since.get((check_id, severity))
        )
        for check_id, counts in every.items()
        for severity, count in counts.items()
    }
    return dict(sorted(found.items(), key=lambda item: (-item[0][1].rank, item[0][0])))
