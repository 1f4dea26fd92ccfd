"""Partitions that are each below a limit, and together far above it."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_steward.checks.delayed import delayed_holds_ledgers, delayed_index
from pulsar_steward.model.finding import Severity
from tests.checks.delayed.conftest import BROKERS, cluster, delayed

MIB = 1024**2
GIB = 1024**3

HELD: dict[str, tuple[str, int, int, Severity | None]] = {
    # name of a partition, partitions, bytes that each holds: below 10 GiB each, 100 GiB and 1 TiB together
    "all together hold enough": ("x-partition-{}", 30, 4 * GIB, Severity.WARNING),
    "very much": ("x-partition-{}", 120, 9 * GIB, Severity.CRITICAL),
    "not enough": ("x-partition-{}", 30, 3 * GIB, None),
    "topics of their own are not one": ("x-{}", 30, 4 * GIB, None),
    "each is next to nothing": ("x-partition-{}", 30, 99 * MIB, None),
}


def partitions(name: str, count: int, held: int) -> dict[str, list[Any]]:
    """Partitions over all brokers, which hold so many bytes each: ten of 1,000 entries are waited for."""
    topics = {f"persistent://t/n/{name.format(number)}": BROKERS[number % 3] for number in range(count)}
    cursor = {"subscription": "s", "backlog_entries": 10, "entries_since_first_gap": 1_000}
    backlog = held * 1_000 // 990 + 1
    return {
        "topics": [
            {"topic": topic, "broker": broker, "storage_bytes": backlog, "backlog_bytes": backlog}
            for topic, broker in topics.items()
        ],
        "subscriptions": [{"topic": topic} | cursor for topic in topics],
        "metrics": [delayed(topic, 5, source=broker) for topic, broker in topics.items()],
    }


@pytest.mark.parametrize(("name", "count", "held", "severity"), HELD.values(), ids=HELD)
def test_what_partitions_hold_is_added_up(name: str, count: int, held: int, severity: Severity | None) -> None:
    """The bytes that a topic's partitions hold are added up to one finding across all brokers."""
    judgement = cluster(**partitions(name, count, held)).judged(delayed_holds_ledgers.CHECK)
    found = [(finding.subject, finding.severity, finding.figures["partitions"]) for finding in judgement.findings]
    assert found == ([] if severity is None else [("persistent://t/n/x", severity, count)])
    assert judgement.cannot_tell is None


def test_a_partition_that_is_found_by_itself_is_not_added_up() -> None:
    """Partitions that each exceed the limit are findings of their own, without one for the whole topic."""
    findings = cluster(**partitions("x-partition-{}", 12, 11 * GIB)).judged(delayed_holds_ledgers.CHECK).findings
    assert len(findings) == 12
    assert all("partition" in finding.subject for finding in findings)


EXTRA: dict[str, tuple[str, int, int, Severity | None]] = {
    # name of a partition, partitions, copied entries of each: below a million each, 20 and 200 million together
    "all together repeat enough": ("x-partition-{}", 30, 900_000, Severity.WARNING),
    "very many": ("x-partition-{}", 230, 900_000, Severity.CRITICAL),
    "not enough": ("x-partition-{}", 30, 600_000, None),
    "topics of their own are not one": ("x-{}", 30, 900_000, None),
    "each is next to nothing": ("x-partition-{}", 1_100, 19_999, None),
}


@pytest.mark.parametrize(("name", "count", "extra", "severity"), EXTRA.values(), ids=EXTRA)
def test_what_partitions_repeat_is_added_up(name: str, count: int, extra: int, severity: Severity | None) -> None:
    """The copied index entries of a topic's partitions are added up to one finding across all brokers."""
    metrics = [
        delayed(f"persistent://t/n/{name.format(number)}", extra, subscription, source=BROKERS[number % 3])
        for number in range(count)
        for subscription in ("one", "two")
    ]
    topics = [{"topic": row["topic"], "broker": row["source"], "subscriptions": 2} for row in metrics[::2]]
    judgement = cluster(metrics=metrics, topics=topics).judged(delayed_index.DELAYED_INDEX_MULTIPLIED)
    found = [
        (finding.subject, finding.severity, finding.figures["extra_index_entries"]) for finding in judgement.findings
    ]
    assert found == ([] if severity is None else [("persistent://t/n/x", severity, count * extra)])
    assert judgement.cannot_tell is None
