"""Causes of a topic's backlog: its slowest subscription and that one's worst consumer, for listed topics only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row

CULPRITS = """
with slowest as (
    select topic, list({
            'subscription': s.subscription, 'entries': coalesce(s.backlog_entries, 0),
            'messages_per_entry': coalesce(s.messages_per_entry, 0), 'consumers': coalesce(s.consumers, 0)}
        order by coalesce(s.subscription = w.slowest_subscription, false) desc, coalesce(s.backlog_entries, 0) desc,
            s.subscription desc)[1] as slowest
    from subscriptions s join worst w using (topic) group by topic),
consumers as (
    select topic, list({
            'consumer': c.consumer, 'address': c.address, 'connected_since': c.connected_since,
            'unacked_messages': coalesce(c.unacked_messages, 0), 'blocked': coalesce(c.blocked, false)}
        order by coalesce(c.unacked_messages, 0) desc, c.consumer desc, c.address desc, c.connected_since desc
        )[1] as slowest_consumer
    from clients c join slowest s using (topic) where c.subscription = s.slowest.subscription group by topic)
select worst.*, slowest, slowest_consumer from worst left join slowest using (topic) left join consumers using (topic)
"""
"""Adds `slowest` and `slowest_consumer` to rows with `topic` and `slowest_subscription`.

Where `slowest_subscription` is null, the one with the largest backlog is used. `slowest` is null where the topic has no
subscription, and `slowest_consumer` where none of its consumers is in the snapshot.
"""


def slowest_words(row: Row) -> str:
    """Further sentence, such as `` Slowest is subscription s with 12 entries; no consumer is connected to it.``."""
    slowest, consumer = row["slowest"], row["slowest_consumer"]
    if slowest is None:
        return ""
    words = f"Slowest is subscription {slowest['subscription']} with {_backlog_words(slowest)}"
    if slowest["consumers"] == 0:
        return f" {words}; no consumer is connected to it."
    if consumer is None:
        return f" {words}."
    whose = "its only consumer" if slowest["consumers"] == 1 else f"of its {counted(slowest['consumers'], 'consumer')}"
    return f" {words}; {whose}, {_in_words(consumer)}."


def _backlog_words(slowest: Row) -> str:
    """Size of the backlog as text: brokers count entries, and a batch of messages is one."""
    entries, batch = counted(slowest["entries"], "entry", "entries"), slowest["messages_per_entry"]
    return f"{entries} (lately of up to {counted(batch, 'message')} each)" if batch > 1 else entries


def _in_words(consumer: Row) -> str:
    since = f", connected since {consumer['connected_since']}," if consumer["connected_since"] else ""
    blocked = ", blocked" if consumer["blocked"] else ""
    return (
        f"{consumer['consumer'] or '(without a name)'} at {consumer['address'] or '(address not told)'}{since}"
        f" holds {consumer['unacked_messages']:,} unacknowledged{blocked}"
    )
