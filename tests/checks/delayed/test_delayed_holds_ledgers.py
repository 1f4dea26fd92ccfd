"""Few delayed messages that keep much consumed data from deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.delayed import delayed_holds_ledgers, delayed_index
from pulsar_steward.model.finding import Severity
from tests.checks.conftest import told
from tests.checks.delayed.conftest import BROKERS, cluster, delayed

if TYPE_CHECKING:
    from tests.golden import Golden

GIB = 1024**3

CASES: dict[str, tuple[int, int, int, Severity | None]] = {
    # name: backlog in entries, entries that it spans, bytes that these have
    "all-wait": (1_000_000, 1_000_000, 500 * GIB, None),
    "just-too-many-wait": (1_001, 10_000, 50 * GIB, None),
    "one-in-ten-waits": (1_000, 10_000, 50 * GIB, Severity.WARNING),
    "little-is-held": (10, 10_000, 10 * GIB, None),
    "enough-is-held": (10, 10_000, 10 * GIB + GIB // 20, Severity.WARNING),
    "very-much-is-held": (10, 1_000_000, 101 * GIB, Severity.CRITICAL),
    "far-behind-anyway": (1_000_000, 10_000, 500 * GIB, None),
    "nothing-was-read-yet": (10, 0, 500 * GIB, None),
}


def rows(name: str, backlog: int, entries: int | None, held: int) -> dict[str, list[dict[str, Any]]]:
    topic = f"persistent://t/n/{name}"
    cursor = {"topic": topic, "subscription": "s", "backlog_entries": backlog, "entries_since_first_gap": entries}
    stored = {"topic": topic, "broker": "a:8080", "storage_bytes": 2 * held, "backlog_bytes": held}
    return {"subscriptions": [cursor], "topics": [stored]}


def test_every_topic_is_judged() -> None:
    """Topics are judged by the consumed data that few waiting entries hold, and those that hold most come first."""
    topics, subscriptions = [], []
    for name, (backlog, entries, held, _) in CASES.items():
        made = rows(name, backlog, entries, held)
        topics += made["topics"]
        subscriptions += made["subscriptions"]
    metrics = [delayed(row["topic"], 5) for row in topics]
    judgement = cluster(topics=topics, subscriptions=subscriptions, metrics=metrics).judged(delayed_holds_ledgers.CHECK)
    found = {finding.subject.rpartition("/")[2]: finding.severity for finding in judgement.findings}
    assert found == {name: severity for name, (*_, severity) in CASES.items() if severity}
    order = [finding.figures["held_bytes"] for finding in judgement.findings]
    assert order == sorted(order, reverse=True)


def test_what_it_says(golden: Golden) -> None:
    """Those that hold most come first, without Pulsar's own; an unknown span is no health."""
    topic = "persistent://t/n/x"
    drilled = {"topic": topic, "subscription": "s", "ledgers": 41, "oldest_backlog_age_seconds": 20 * 86_400}
    made = [rows(f"x{number:03}", 10, 1_000_000, (20 + number) * GIB) for number in range(MAX_FINDINGS + 2)]
    made.append(rows("__change_events", 10, 1_000_000, 900 * GIB))
    many = cluster(
        topics=[row for each in made for row in each["topics"]],
        subscriptions=[row for each in made for row in each["subscriptions"]],
        metrics=[delayed(row["topic"], 5) for each in made for row in each["topics"]],
    )
    held = cluster(**rows("x", 100, 1_000_000, 20 * GIB), metrics=[delayed(topic, 90)], drilled=[drilled])
    cases = {
        "nothing is delayed": cluster(**rows("x", 10, 1_000_000, 500 * GIB)),
        "few that wait hold much": held,
        "the cursor's span was not read": cluster(**rows("x", 100, None, 20 * GIB), metrics=[delayed(topic, 90)]),
        "more than a hundred": many,
    }
    golden(told({rule: each.judged(delayed_holds_ledgers.CHECK) for rule, each in cases.items()}))


@pytest.mark.parametrize("table", ["topics", "subscriptions"])
def test_what_only_metrics_tell_of_is_no_health(table: str, golden: Golden) -> None:
    """The check cannot tell if the topic or the cursor of a subscription with delayed messages was not read."""
    told = rows("x", 100, 200, 20 * GIB) | {table: []}
    golden(cluster(**told, metrics=[delayed("persistent://t/n/x", 90)]).judged(delayed_holds_ledgers.CHECK).cannot_tell)


MIB = 1024**2

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
