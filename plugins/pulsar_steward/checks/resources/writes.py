"""Writes to bookies: the latency of finished writes, and pending ones."""

from __future__ import annotations

from pulsar_steward.checks.earlier import of_previous, of_sources
from pulsar_steward.checks.resources.views import WRITES, latencies_of


def of_event(event: str) -> str:
    """SQL for the latencies of an event, such as `WRITES`, by broker."""
    return f"select * from ledger_latencies where event = '{event}'"


def slow_before(now: str, event: str) -> str:
    """SQL for earlier latencies of the brokers with a slow event now; if all are fast, next to nothing is read.

    Args:
        now: The result of `of_event`.
        event: The event.
    """
    return f"""
    select source, rate, slow_percent, stalled_rate, lost_percent
    from ({latencies_of(of_sources(f"{now} where slow_rate > 0"))}) where event = '{event}' and slow_rate > 0
    """


_MANY = "rate >= $minimum_writes_per_second and slow_percent >= $warning_slow_percent"
_STALLED = """
round(stalled_rate * 60) >= $minimum_stalled_writes_per_minute and lost_percent >= $warning_lost_percent
"""


def slow_of(now: str, before: str) -> str:
    """SQL for the brokers with a slow event, by the thresholds of the calling check.

    `rank`: 2 critical, 1 warning, 0 information, as one minute may be a single hiccup.

    Args:
        now: The result of `of_event`.
        before: The result of `slow_before`.
    """
    return f"""
    with before as (
        select source, {_MANY} as many_before, {_STALLED} as stalled_before, lost_percent as lost_percent_before
        from {of_previous(before)}),
    judged as (
        select {now}.*, {_MANY} as many, {_STALLED} as stalled, coalesce(many_before, false) as many_again,
            coalesce(stalled_before, false) as stalled_again, lost_percent_before
        from {now} left join before using (source))
    select *, many_again or stalled_again as again, case
        when many and slow_percent >= $critical_slow_percent
            and (many_again or stalled and rate >= $single_look_writes_per_second) then 2
        when stalled and stalled_again and least(lost_percent, lost_percent_before) >= $critical_lost_percent then 2
        when many and rate >= $single_look_writes_per_second
            and (stalled or slow_percent >= $critical_slow_percent) then 1
        when many and many_again then 1
        when stalled and stalled_again then 1
        else 0 end as rank
    from judged where many or stalled
    """


OF_BROKERS = of_event(WRITES)
SLOW_BEFORE = slow_before("writes", WRITES)
SLOW = slow_of("writes", "slow_before")
"""Brokers with slow writes."""

# As many as are produced in the time limit, in seconds: a busy topic always has some pending. Rates count messages, and
# an entry has one or more of them, so the real time is at least as long. An unknown rate is ignored.
_WAITING = """
raw_topics.pending_add_entries > 0
    and raw_topics.pending_add_entries >= raw_topics.message_rate_in * $minimum_waiting_seconds
"""

MAX_TOPICS = 10_000
"""Topics that are looked up in the snapshot before, the ones with most pending entries."""

WAITING = f"select topic, broker, pending_add_entries from raw_topics where {_WAITING}"
LONGEST_FIRST = "pending_add_entries desc, topic, broker"

WAITING_BEFORE = f"select topic from raw_topics semi join waiting using (topic) where {_WAITING}"

WRITTEN_TO = f"""
select broker, count_if(producers > 0 or message_rate_in > 0 or coalesce({_WAITING}, false))::bigint as topics,
    count_if(coalesce({_WAITING}, false))::bigint as waiting
from raw_topics where broker is not null group by broker
"""

STUCK = f"""
with still as (
    select broker, count(*) as stuck, sum(pending_add_entries)::bigint as entries,
        first(topic order by {LONGEST_FIRST}) as topic
    from waiting semi join {of_previous("waiting_before")} using (topic) group by broker),
of_brokers as (
    select broker, sum(topics)::bigint as topics, sum(waiting)::bigint as waiting from written_to group by broker),
judged as (
    select broker as source, topics, waiting, coalesce(stuck, 0) as stuck, entries, topic,
        waiting >= $minimum_waiting_topics and waiting * 100 >= $waiting_percent * topics as many
    from of_brokers left join still using (broker))
select *, case when stuck >= $minimum_waiting_topics and stuck * 100 >= $waiting_percent * topics then 2
    when stuck > 0 then 1 else 0 end as rank
from judged where stuck > 0 or many
"""
"""Brokers with pending writes: `waiting` topics have them now, `stuck` ones in the snapshot before too.

`rank`: 2 critical, 1 warning, 0 information, as one moment may be a single hiccup.
"""
