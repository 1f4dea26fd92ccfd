"""Partitions with thousands of consumers: costly to dispatch to, a source of ack holes, and dangerous to move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import BROKERS_READ, RowCheck, Scope, critical_or_warning, nothing_read
from pulsar_steward.checks.clients.fanout import crowded, most_of_one, most_seen, moving
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


class ConsumerFanoutPolicy(Section):
    """Thresholds for the number of consumers of one partition."""

    warning_consumers: int = Field(
        2000, ge=1, description="on one partition, of all subscriptions; thousands made trouble in production"
    )
    critical_consumers: int = Field(
        10_000, ge=1, description="the same; as many as partitions had whose producers timed out (knowledge.md C)"
    )


# The subscription with most consumers; at a tie, the last by name.
LARGEST = """
with largest as (
    select topic, list({
            'subscription': subscription, 'consumers': consumers, 'type': type, 'ack_holes': ack_holes}
        order by consumers desc, subscription desc)[1] as largest
    from subscriptions semi join worst using (topic) group by topic)
select worst.*, largest from worst left join largest using (topic)
"""


def _evidence(row: Row) -> str:
    largest = row["largest"]
    return (
        f"{row['topic']} on {row['broker']} has {counted(row['consumers'], 'consumer')} in"
        f" {counted(row['subscriptions'] or 0, 'subscription')}{_most(largest)}. {moving(row)}"
    )


def _most(largest: Row | None) -> str:
    if largest is None:
        return ""
    kind = f" ({largest['type']})" if largest["type"] else ""
    return (
        f", {largest['consumers'] or 0:,} of them in {largest['subscription']}{kind},"
        f" which has {counted(largest['ack_holes'] or 0, 'ack hole')}"
    )


CHECK = RowCheck(
    check_id="consumer-fanout",
    order=50,
    title="Thousands of consumers on one partition",
    advice=(
        "Use fewer consumers with more threads or larger receiver queues, or more partitions.",
        "Watch the ack holes of its subscriptions: they grow with the number of consumers (check ack-holes).",
        "Count the clients before you move its bundle: all of them reconnect at once.",
        "Set `maxConsumersPerTopic` or `maxConsumersPerSubscription` so that it cannot grow without end.",
    ),
    source="docs/knowledge.md C; docs/checks/consumer-fanout.md",
    scope=Scope.NAMESPACE,
    policy=ConsumerFanoutPolicy,
    shards={"found": crowded("consumers", detail=LARGEST), "seen": most_seen("consumers")},
    cluster={"read": BROKERS_READ},
    severity=critical_or_warning,
    subject="topic",
    evidence=_evidence,
    figures=lambda row: {
        "consumers": row["consumers"],
        "producers": row["producers"] or 0,
        "largest_subscription_consumers": row["largest"] and (row["largest"]["consumers"] or 0),
    },
    missing=lambda queried, _context: nothing_read(queried["read"]),
    quiet=lambda queried, context: most_of_one(queried["seen"], context, "consumers"),
)
