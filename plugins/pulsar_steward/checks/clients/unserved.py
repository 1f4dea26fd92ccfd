"""Consumers that get nothing, and nothing that is due shows it: overdue delayed messages, readers left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.clients.consumers import MAX_NAMED
from pulsar_steward.model.units import counted, seconds_in_words, time_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import Row
    from pulsar_steward.checks.earlier import EarlierRows

STRICT = "isDelayedDeliveryDeliverAtTimeStrict"
"""Setting with which brokers deliver no earlier than at the time itself."""

# The age is that of the topic's slowest subscription, so it counts for no other one.
OVERDUE = f"""
with ages as (select topic, max(age_seconds) as age_seconds from delayed_backlog_ages group by topic),
slowest as (select topic, max(slowest_subscription) as slowest from drilled group by topic)
select w.topic, w.subscription, w.namespace, w.broker, w.delayed_messages, age_seconds, longest_delay_seconds,
    coalesce((select bool_or(lower(value) = 'true') from setting('{STRICT}')), false) as strict
from delayed_waiting w join user_subscriptions s using (topic, subscription) join topics t using (topic)
    join delayed_bounds b on b.namespace = w.namespace join limits l on l.namespace = w.namespace
    join ages using (topic) left join slowest using (topic)
where s.consumers > coalesce(s.consumers_without_permits, 0) and s.message_rate_out <= 0 and s.ack_rate <= 0
    and coalesce(s.unacked_messages, 0) <= 0 and w.delayed_messages >= s.backlog_entries
    and longest_delay_seconds > 0 and age_seconds >= longest_delay_seconds + 60 * warning_minutes
    and (slowest = w.subscription or (slowest is null and t.subscriptions <= 1))
"""
"""Subscriptions all of whose backlog is delayed, and older than messages may be delayed at all."""

OLDEST_FIRST = "age_seconds desc, topic, subscription, broker"

READERS = f"""
with still as (
    select s.topic, s.namespace, s.broker, s.subscription, s.backlog_entries
    from (from subscriptions where is_reader(subscription) and consumers > 0 and message_rate_out <= 0) s
        join user_topics t using (topic) join limits l on l.namespace = s.namespace
    where s.backlog_entries >= minimum_due_messages and t.message_rate_in <= 0),
hosts as (
    select topic, list(distinct address order by address)[:{MAX_NAMED}] as addresses
    from clients semi join still using (topic, subscription) where address <> '' group by topic)
select topic, namespace, broker, count(*) as readers, max(backlog_entries) as backlog_entries,
    list(subscription order by subscription)[:1000] as names, any_value(addresses) as addresses
from still left join hosts using (topic) group by topic, namespace, broker having count(*) > 2
"""
"""Topics that nobody publishes to, with readers that get nothing of what is stored."""

MOST_READERS_FIRST = "readers desc, topic, broker"

READERS_BEFORE = """
select topic, list(subscription order by subscription)[:1000] as names
from raw_subscriptions semi join readers using (topic)
where is_reader(subscription) and consumers > 0 and message_rate_out <= 0 group by topic
"""
"""Readers that got nothing in an earlier snapshot either, of the topics found above."""


def overdue_words(row: Row) -> str:
    """Evidence of a row of `OVERDUE`."""
    why = ""
    if row["strict"]:
        why = (
            f" Brokers deliver strictly at the time ({STRICT}), and may lose the timer until the next message is"
            " published: publish one, or reconnect a consumer."
        )
    return (
        f"Subscription {row['subscription']} of {row['topic']} on {row['broker']} has consumers that ask for more, and"
        f" {counted(row['delayed_messages'], 'delayed message')} that wait: the oldest for"
        f" {seconds_in_words(row['age_seconds'], rounded=True)}, though none may be delayed for more than"
        f" {seconds_in_words(row['longest_delay_seconds'], rounded=True)}: they are overdue.{why}"
    )


def left_behind(row: Row, before: EarlierRows) -> Sequence[Row]:
    """Consecutive earlier snapshots from which no reader went, the newest first; empty: none came since either."""
    alike = before.in_a_row(row, lambda newer, older: set(older["names"]) <= set(newer["names"]))
    came = alike and 1 < len(alike[-1]["names"]) < len(row["names"])
    return alike if came else ()


def readers_words(row: Row, alike: Sequence[Row]) -> str:
    """Evidence of a row of `READERS` with earlier snapshots."""
    came = row["readers"] - len(alike[-1]["names"])
    named = ", ".join(row["names"][:MAX_NAMED]) + (" and others" if row["readers"] > MAX_NAMED else "")
    addresses = f", from {', '.join(row['addresses'])}" if row["addresses"] else ""
    return (
        f"{counted(row['readers'], 'reader')} of {row['topic']} on {row['broker']} get nothing of"
        f" {counted(row['backlog_entries'], 'entry', 'entries')}, and nobody publishes ({named}{addresses}). {came:,}"
        f" came since {time_in_words(alike[-1]['taken_at'])} and none went: each attempt of a client may leave one"
        " behind. Have the client close its readers, and unload this one topic."
    )
