"""Facts of abandoned subscriptions, read from a snapshot: only of those that findings name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.clients.consumers import subject_of
from pulsar_steward.checks.clients.subscription_abandoned import CHECK as SUBSCRIPTION_ABANDONED
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.subscription import SubscriptionState
from pulsar_steward.model.tables import DRILLED, SUBSCRIPTIONS, TOPICS
from pulsar_steward.model.topics import partitioned_topic
from pulsar_steward.planners.subscriptions.facts import SubscriptionFact

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.snapshots.read import Snapshot

MOVED = ("last_consumed_milliseconds", "last_acked_milliseconds")


class AbandonedFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a finding about an abandoned subscription."""

    since_epoch_seconds: int
    without_consumer_seconds: int
    entries_then: int


def subscription_facts(snapshot: Snapshot, findings: Iterable[Finding]) -> tuple[SubscriptionFact, ...]:
    """Facts of the subscriptions that warnings of abandonment name, by subject.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    named = {
        each.subject: msgspec.convert(each.figures, AbandonedFigures)
        for each in findings
        if each.check_id == SUBSCRIPTION_ABANDONED.check_id and each.severity.rank >= Severity.WARNING.rank
    }
    if not named:
        return ()
    kept = [("namespace", "in", sorted(map(_namespace, named)))]
    columns = ["topic", "namespace", "subscription", "consumers", "backlog_entries"]
    rows = snapshot.table(SUBSCRIPTIONS, columns, kept).to_pylist()
    topics = {row["topic"]: row for row in snapshot.table(TOPICS, ["topic", "backlog_bytes"], kept).to_pylist()}
    moved = _moved(snapshot.table(DRILLED, ["topic", "subscription", *MOVED], kept))
    connected: dict[tuple[str, str], int] = {}
    beside: dict[str, int] = {}
    for row in rows:
        same = partitioned_topic(row["topic"]), row["subscription"]
        connected[same] = connected.get(same, 0) + (row["consumers"] or 0)
        beside[row["topic"]] = beside.get(row["topic"], -1) + 1
    facts = [
        SubscriptionFact(
            subject=subject,
            namespace=row["namespace"],
            topic=(topic := row["topic"]),
            subscription=(name := row["subscription"]),
            state=SubscriptionState(
                consumers=row["consumers"] or 0,
                entries=row["backlog_entries"] or 0,
                topic_bytes=topics[topic]["backlog_bytes"] or 0,
                moved_milliseconds=moved.get((topic, name), 0),
                others=beside[topic],
            ),
            consumers_beside=connected[partitioned_topic(topic), name] - (row["consumers"] or 0),
            since=datetime.fromtimestamp(figures.since_epoch_seconds, UTC),
            entries_then=figures.entries_then,
            seconds=figures.without_consumer_seconds,
        )
        for row in rows
        if (figures := named.get(subject := subject_of(row))) is not None and row["topic"] in topics
    ]
    return tuple(sorted(facts, key=lambda fact: fact.subject))


def _namespace(subject: str) -> str:
    return "/".join(subject.partition("://")[2].split("/")[:2])


def _moved(drilled: pa.Table) -> dict[tuple[str, str], int]:
    """Last time that something moved, by topic and subscription; of those that were asked."""
    found: dict[tuple[str, str], int] = {}
    for row in drilled.to_pylist():
        if row["subscription"] is not None:
            key = row["topic"], row["subscription"]
            found[key] = max(found.get(key, 0), *(row[each] or 0 for each in MOVED))
    return found
