"""Latency of publishing as brokers measure it, by broker and by topic, and the bookies that take no writes.

It includes more than the write to bookies: the wait for a new ledger, and for a thread of the managed ledger.
"""

from __future__ import annotations

from pulsar_steward.checks.earlier import PERIOD, of_previous
from pulsar_steward.checks.resources.views import PUBLISHES
from pulsar_steward.checks.resources.writes import of_event, slow_before, slow_of
from pulsar_steward.model.series import BOOKIE_STATUS, WRITES_OVER_A_SECOND, WRITES_UNDER_A_SECOND

OF_BROKERS = of_event(PUBLISHES)
SLOW_BEFORE = slow_before("publishes", PUBLISHES)
SLOW = slow_of("publishes", "slow_before")
"""Brokers on which publishing is slow."""

MAX_TOPICS = 1000
"""Maximum number of topics that are looked at, the slowest first."""

SLOWEST_FIRST = "stalled desc, slow desc, topic, source"


def _slow_entries(samples: str) -> str:
    """SQL for topics with entries over 200 ms (`slow`) and over a second (`stalled`) in the last statistics period."""
    return f"""
    select source, topic, sum(value order by value) as slow,
        coalesce(sum(value order by value) filter (series = '{WRITES_OVER_A_SECOND}'), 0) as stalled
    from {samples}
    where series in ('{WRITES_UNDER_A_SECOND}', '{WRITES_OVER_A_SECOND}') and topic is not null and isfinite(value)
        and value > 0
    group by source, topic
    """


SLOW_TOPICS = f"""
select told.*, namespace, bundle, coalesce(message_rate_in, 0) as rate
from ({_slow_entries("metrics")}) told join user_topics using (topic) where broker = source
"""

SLOW_TOPICS_BEFORE = f"""
with told as (select * from metrics semi join (select topic from slow_topics where stalled > 0) using (topic))
select topic, stalled, coalesce(message_rate_in, 0) as rate
from ({_slow_entries("told")}) join raw_topics using (topic) where broker = source
"""

_PERIOD = f"coalesce((select max(try_cast(trim(value) as double)) from setting('{PERIOD}')), 60)"

# A share of messages. An entry has one or more messages, so the share of entries is at least as high.
_MANY = f"""
stalled * 60 >= $minimum_stalled_writes_per_minute * {_PERIOD}
    and stalled * 100 >= $warning_topic_stalled_percent * rate * {_PERIOD}
"""

TOPICS = f"""
with still as (select distinct topic from {of_previous("slow_topics_before")} where {_MANY})
select slow_topics.*, stalled * 60 / {_PERIOD} as stalled_per_minute, rate * 60 as messages_per_minute
from slow_topics semi join still using (topic) anti join (select source from slow where rank > 0) using (source)
where {_MANY}
"""
"""Topics with slow publishing in two snapshots in a row, on brokers that are not slow as a whole."""

READ_ONLY = f"select distinct source from process_samples where series = '{BOOKIE_STATUS}' and value <= 0"
"""Bookies that take no writes, by their own metrics (docs/pulsar-behaviour.md)."""

PROCESSES = "select distinct source, source_kind from process_samples where source_kind <> 'broker'"
"""Bookies and ZooKeeper servers that report their metrics."""
