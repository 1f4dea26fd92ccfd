"""Subscriptions with the most ack holes, and subscriptions whose delayed messages take the most memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.report.checkup.measures.data import DelayedSubscription, HoledSubscription

if TYPE_CHECKING:
    from pulsar_steward.snapshots.read import Snapshot

MAX_SUBSCRIPTIONS = 20
"""Number of subscriptions shown of each kind."""

_HOLED = f"""
    with worst as (select topic, subscription, ack_holes from subscriptions where ack_holes > 0 and of_users(topic)
        order by ack_holes desc, topic, subscription limit {MAX_SUBSCRIPTIONS})
    select topic, subscription, ack_holes, try_cast(value as bigint) as persisted_at_most
    from worst left join topics using (topic) left join configuration
        on configuration.broker = topics.broker and key = 'managedLedgerMaxUnackedRangesToPersist'
    order by ack_holes desc, topic, subscription"""

_DELAYED = f"""
    select topic, subscription, delayed_messages, delayed_index_bytes as index_bytes, delayed_buckets as buckets
    from drilled where subscription <> '' and of_users(topic) and greatest(delayed_index_bytes, delayed_messages) > 0
    order by delayed_index_bytes desc nulls last, if(delayed_index_bytes is null, delayed_messages, null) desc,
        topic, subscription limit {MAX_SUBSCRIPTIONS}"""


def holed(snapshot: Snapshot) -> tuple[HoledSubscription, ...]:
    """Subscriptions of users, most ack holes first, with the number that their broker persists."""
    return tuple(snapshot.select(_HOLED, HoledSubscription))


def delayed(snapshot: Snapshot) -> tuple[DelayedSubscription, ...]:
    """Subscriptions with delayed messages, the largest index first; without a reported index by number of messages."""
    return tuple(snapshot.select(_DELAYED, DelayedSubscription))
