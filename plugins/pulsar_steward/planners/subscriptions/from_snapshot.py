"""Facts of abandoned subscriptions with findings, read from a snapshot."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pulsar_steward.checks.clients.consumers import subject_of
from pulsar_steward.checks.clients.subscription_abandoned import CHECK as SUBSCRIPTION_ABANDONED
from pulsar_steward.checks.clients.subscription_abandoned import AbandonedFigures
from pulsar_steward.decoding import decode
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.subscription import Cursor, SubscriptionState, holding
from pulsar_steward.model.tables import DRILLED, SUBSCRIPTIONS, TOPICS
from pulsar_steward.model.topics import partitioned_topic
from pulsar_steward.planners.subscriptions.facts import SubscriptionFact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.snapshots.read import Snapshot

MOVED = ("last_consumed_milliseconds", "last_acked_milliseconds")


def subscription_facts(snapshot: Snapshot, findings: Iterable[Finding]) -> tuple[SubscriptionFact, ...]:
    """Facts of the subscriptions with warnings of abandonment and a known cursor, by subject.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    named = {
        each.subject: AbandonedFigures.of(each)
        for each in findings
        if each.check_id == SUBSCRIPTION_ABANDONED.check_id and each.severity.rank >= Severity.WARNING.rank
    }
    if not named:
        return ()
    kept = [("namespace", "in", sorted(map(_namespace, named)))]
    columns = ["topic", "namespace", "subscription", "consumers", "backlog_entries"]
    rows = snapshot.table(SUBSCRIPTIONS, columns, kept).to_pylist()
    topics = {row["topic"]: row for row in snapshot.table(TOPICS, ["topic", "backlog_bytes"], kept).to_pylist()}
    drilled = snapshot.table(DRILLED, ["topic", "subscription", *MOVED, "cursor_json"], kept).to_pylist()
    asked = {(row["topic"], row["subscription"]): row for row in drilled if row["cursor_json"] is not None}
    connected: dict[tuple[str, str], int] = {}
    beside: dict[str, set[str]] = {}
    for row in rows:
        same = partitioned_topic(row["topic"]), row["subscription"]
        connected[same] = connected.get(same, 0) + (row["consumers"] or 0)
        beside.setdefault(row["topic"], set()).add(row["subscription"])
    facts = [
        SubscriptionFact(
            subject=subject,
            namespace=row["namespace"],
            topic=(topic := row["topic"]),
            subscription=row["subscription"],
            cursor=(cursor := decode(told["cursor_json"], Cursor)),
            state=SubscriptionState(
                consumers=row["consumers"] or 0,
                entries=row["backlog_entries"] or 0,
                topic_bytes=topics[topic]["backlog_bytes"] or 0,
                moved_milliseconds=max(told[each] or 0 for each in MOVED),
                cursor=cursor,
                others=holding(beside[topic] - {row["subscription"]}),
            ),
            consumers_beside=connected[partitioned_topic(topic), row["subscription"]] - (row["consumers"] or 0),
            since=datetime.fromtimestamp(figures.since_epoch_seconds, UTC),
            entries_then=figures.entries_then,
            seconds=figures.without_consumer_seconds,
        )
        for row in rows
        if (figures := named.get(subject := subject_of(row))) is not None
        and row["topic"] in topics
        and (told := asked.get((row["topic"], row["subscription"])))
    ]
    return tuple(sorted(facts, key=lambda fact: fact.subject))


def _namespace(subject: str) -> str:
    return "/".join(subject.partition("://")[2].split("/")[:2])
