"""What checks of subscriptions share: settings of cursors, and report text about the slowest consumers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import Row

MAX_RANGES = "managedLedgerMaxUnackedRangesToPersist"
LONG_ARRAY = "managedLedgerPersistIndividualAckAsLongArray"
"""Settings for what a cursor persists of its ack state."""

MAX_NAMED = 3
"""Maximum number of consumers named in one sentence, to keep it readable."""

SLOWEST = f"""
with slowest as (
    select topic, subscription, list({{
            'consumer': consumer, 'address': address, 'connected_since': connected_since,
            'unacked_messages': unacked_messages, 'permits': coalesce(available_permits, 0),
            'blocked': coalesce(blocked, false)}}
        order by coalesce(blocked, false) desc, coalesce(unacked_messages, 0) desc, coalesce(available_permits, 0),
            consumer, address, connected_since)[1:{MAX_NAMED}] as slowest
    from clients semi join worst using (topic, subscription) group by topic, subscription)
select worst.*, slowest from worst left join slowest using (topic, subscription)
"""
"""Adds `slowest` to rows with `topic` and `subscription`: blocked consumers first, then by unacknowledged messages.

Null if the snapshot has no consumer.
"""


def subject_of(row: Row) -> str:
    """Subject of a finding about a subscription."""
    return f"{row['topic']} subscription {row['subscription']}"


def named_subscription(row: Row) -> str:
    """A subscription with its type, where that is told, and its topic."""
    kind = "" if row["type"] in {None, "None"} else f"{row['type']} "
    return f"{kind}subscription {row['subscription']} of {row['topic']}"


def slowest_words(row: Row) -> str:
    """Clause about a row with `consumers` and `slowest`."""
    if not row["consumers"]:
        return "no consumer is connected"
    if not row["slowest"] and row["consumers"] == 1:
        return "its only consumer is not named in the snapshot"
    if not row["slowest"]:
        return f"which of its {counted(row['consumers'], 'consumer')} is the slowest is not in the snapshot"
    whose = "its only consumer" if row["consumers"] == 1 else f"slowest of its {counted(row['consumers'], 'consumer')}"
    return f"{whose}: {consumers_words(row['slowest'])}"


def to_the_second(moment: str) -> str:
    """A time as brokers write it, without fractions of a second."""
    return re.sub(r"\.\d+", "", moment)


def consumers_words(consumers: Sequence[Row]) -> str:
    """The first few consumers, with their addresses and unacknowledged messages."""
    words = []
    for consumer in consumers[:MAX_NAMED]:
        held = consumer["unacked_messages"]
        facts = (
            f"connected since {to_the_second(consumer['connected_since'])}" if consumer["connected_since"] else "",
            # Brokers may count below 0, where batches are acknowledged one by one.
            "" if held is None or held < 0 else f"{held:,} unacknowledged",
            "no permits left" if consumer["permits"] <= 0 else f"{consumer['permits']:,} permits left",
            "blocked" if consumer["blocked"] else "",
        )
        who = f"{consumer['consumer'] or '(without a name)'} at {consumer['address'] or '(address not told)'}"
        words.append(f"{who} ({', '.join(filter(None, facts))})")
    return "; ".join(words)
