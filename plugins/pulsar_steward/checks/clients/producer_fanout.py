"""Partitions with thousands of producers: each costs memory and pings, and all of them reconnect at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import BROKERS_READ, RowCheck, Scope, critical_or_warning, nothing_read
from pulsar_steward.checks.clients.fanout import crowded, most_of_one, most_seen, moving
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


class ProducerFanoutPolicy(Section):
    """Thresholds for the number of producers of one partition."""

    warning_producers: int = Field(
        1000, ge=1, description="on one partition; ten times what partitions of a huge cluster in production had"
    )
    critical_producers: int = Field(10_000, ge=1, description="the same; no figure is known, so as for consumers")


def _evidence(row: Row) -> str:
    recent = row["producers_connected_recently"]
    came = "" if recent is None else f", {recent:,} of which connected in the last {row['recent_minutes']} min"
    return f"{row['topic']} on {row['broker']} has {counted(row['producers'], 'producer')}{came}. {moving(row)}"


CHECK = RowCheck(
    check_id="producer-fanout",
    order=60,
    title="Thousands of producers on one partition",
    advice=(
        "Share one producer in a process, and keep it: it is safe for threads.",
        "Let producers of a partitioned topic start lazily, so that each connects only to partitions that it uses.",
        "Give the topic more partitions, or put a service between that sends for many.",
        "Set `maxProducersPerTopic` so that it cannot grow without end.",
    ),
    source="docs/knowledge.md C; docs/checks/producer-fanout.md",
    scope=Scope.NAMESPACE,
    policy=ProducerFanoutPolicy,
    shards={"found": crowded("producers"), "seen": most_seen("producers")},
    cluster={"read": BROKERS_READ},
    severity=critical_or_warning,
    subject="topic",
    evidence=_evidence,
    figures=lambda row: {
        "consumers": row["consumers"] or 0,
        "producers": row["producers"],
        "producers_connected_recently": row["producers_connected_recently"],
    },
    missing=lambda queried, _context: nothing_read(queried["read"]),
    quiet=lambda queried, context: most_of_one(queried["seen"], context, "producers"),
)
