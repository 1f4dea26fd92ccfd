"""Subscriptions with the most ack holes, and those whose delayed messages take the most memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.model.tables import CONFIGURATION, DRILLED, SUBSCRIPTIONS, TOPICS
from pulsar_steward.report.checkup.measures.arrow import of_users, worst
from pulsar_steward.report.checkup.measures.data import DelayedSubscription, HoledSubscription

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.snapshots.read import Snapshot

MAX_SUBSCRIPTIONS = 20
"""Subscriptions shown of each kind."""

PERSISTED_AT_MOST = "managedLedgerMaxUnackedRangesToPersist"


def holed(snapshot: Snapshot) -> tuple[HoledSubscription, ...]:
    """Subscriptions of users, most ack holes first, with the number that their broker persists."""
    names = ["topic", "subscription", "ack_holes"]
    counted = of_users(snapshot.table(SUBSCRIPTIONS, names, [("ack_holes", ">", 0)]))
    rows = worst(counted, "ack_holes", MAX_SUBSCRIPTIONS, "topic", "subscription").to_pylist()
    limits = _persisted_at_most(snapshot, [row["topic"] for row in rows])
    return tuple(HoledSubscription(**row, persisted_at_most=limits.get(row["topic"])) for row in rows)


def _persisted_at_most(snapshot: Snapshot, topics: Sequence[str]) -> dict[str, int]:
    """Limit of persisted ranges by topic; brokers of one cluster may be configured differently."""
    if not topics:
        return {}
    set_to = snapshot.table(CONFIGURATION, ["broker", "value"], [("key", "=", PERSISTED_AT_MOST)]).to_pylist()
    limits = {row["broker"]: int(row["value"]) for row in set_to if str(row["value"]).isdecimal()}
    owners = snapshot.table(TOPICS, ["topic", "broker"], [("topic", "in", set(topics))]).to_pylist()
    return {row["topic"]: limits[row["broker"]] for row in owners if row["broker"] in limits}


def delayed(snapshot: Snapshot) -> tuple[DelayedSubscription, ...]:
    """Subscriptions with delayed messages, the largest index first; those without a reported index by messages."""
    names = ["topic", "subscription", "delayed_messages", "delayed_index_bytes", "delayed_buckets"]
    table = snapshot.table(DRILLED, names, [("subscription", "!=", "")])
    table = of_users(table.filter(pc.greater(_either(table, "delayed_index_bytes", "delayed_messages"), 0)))
    told, untold = _parted(table)
    rows = [
        *worst(told, "delayed_index_bytes", MAX_SUBSCRIPTIONS, "topic", "subscription").to_pylist(),
        *worst(untold, "delayed_messages", MAX_SUBSCRIPTIONS, "topic", "subscription").to_pylist(),
    ]
    return tuple(
        DelayedSubscription(
            topic=row["topic"],
            subscription=row["subscription"],
            delayed_messages=row["delayed_messages"],
            index_bytes=row["delayed_index_bytes"],
            buckets=row["delayed_buckets"],
        )
        for row in rows[:MAX_SUBSCRIPTIONS]
    )


def _either(table: pa.Table, *columns: str) -> pa.ChunkedArray:
    return pc.max_element_wise(*(table[column] for column in columns))


def _parted(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    told = pc.is_valid(table["delayed_index_bytes"])
    return table.filter(told), table.filter(pc.invert(told))
