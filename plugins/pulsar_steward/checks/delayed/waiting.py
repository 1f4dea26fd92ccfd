"""What checks share: delayed messages and whether they were read at all, sums over partitions, brokers of one host."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.check import Query, brokers_of
from pulsar_steward.model.measures import DELAYED_SERIES
from pulsar_steward.model.topics import PARTITION_END
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pulsar_steward.checks.check import CheckContext, Queried

BASE = f"regexp_replace(topic, '{PARTITION_END}', '')"
"""SQL: the partitioned topic of a partition; any other topic unchanged. Too slow for a million topics."""

PARTITIONS_KEPT = 10_000
"""Number of partitioned topics per shard whose partitions are summed, the largest first."""

TRACKER = "delayedDeliveryTrackerFactoryClassName"
"""Name of the setting in ``broker.conf``."""

BUCKET_TRACKER = "org.apache.pulsar.broker.delayed.BucketDelayedDeliveryTrackerFactory"
"""Factory of the bucket tracker.

It holds only a part of the index in memory, and does not read the delayed backlog again. Any other tracker, also the
default, is assumed to be in memory.
"""


GAP_SHARDS = {
    "tellers": Query("select source, source_kind, delayed from delayed_tellers"),
    "subscribed": Query("select broker from delayed_subscribed"),
}
GAP_CLUSTER = {
    "unmeasured": Query("""
        select broker from brokers
        anti join (select source as broker from tellers where source_kind = 'broker') using (broker) where read
    """),
    "silent": Query("""
        select distinct broker from subscribed
        anti join (select source as broker from tellers where source_kind = 'broker' and delayed) using (broker)
    """),
}
"""Queries for `gap`."""

TALLY = Query("select count(*) as subscriptions, sum(delayed_messages)::bigint as messages from delayed_waiting")
"""Query for `tally_words`."""

BY_BROKER = Query("""
    select broker, sum(delayed_messages)::bigint as messages, max(delayed_messages) as most
    from delayed_waiting group by broker
""")
"""Delayed messages by the owner of the topics: `broker`, `messages`, `most` (the most of one subscription)."""


SETTINGS = Query(f"""
select (select count(*) from setting('{TRACKER}')) as told,
    (select count(*) from setting('{TRACKER}') where value = '{BUCKET_TRACKER}') as in_buckets,
    (select count(*) from brokers anti join setting('{TRACKER}') using (broker) where read) as untold
""")
"""Query for `without_buckets`."""

WITHOUT_BUCKETS = "No broker uses the bucket tracker."


def without_buckets(queried: Queried) -> bool:
    """True if every broker that was read uses another tracker; from the query `settings`."""
    settings = queried["settings"].one
    return bool(settings["told"] and not settings["untold"] and not settings["in_buckets"])


def gap(queried: Queried, _context: CheckContext[Any] | None = None) -> str | None:
    """Reason why the absence of delayed messages proves nothing, in a sentence; None if it does."""
    unmeasured, silent = brokers_of(queried["unmeasured"]), brokers_of(queried["silent"])
    if unmeasured:
        return f"Brokers whose Prometheus series were not read say nothing of delayed messages: {named(unmeasured)}."
    if silent:
        return (
            f"Brokers do not tell {DELAYED_SERIES}, though they have subscriptions"
            f" (exposeTopicLevelMetricsInPrometheus may be off): {named(silent)}."
        )
    return None


def tally_words(queried: Queried, one: str = "delayed message", many: str | None = None) -> str:
    """Number of delayed messages and of the subscriptions that have them, in words; from the query `tally`."""
    rows = queried["tally"].rows
    messages = sum(row["messages"] or 0 for row in rows)
    return f"{counted(messages, one, many)} of {counted(sum(row['subscriptions'] for row in rows), 'subscription')}"


NOTHING_LOADED = (
    "No topic is loaded on any broker that was read: what this cluster carries, and would have to load again, cannot be"
    " seen at the moment."
)
"""Sentence for brokers without topics: after a restart of all brokers, or before the first use."""


def host_of(broker: str) -> str:
    """The host of ``host:webport``. Brokers in containers have host names of their own."""
    return broker.rpartition(":")[0]


def brokers_by_host(brokers: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Brokers of each host, in order."""
    found: dict[str, list[str]] = defaultdict(list)
    for broker in sorted(brokers):
        found[host_of(broker)].append(broker)
    return found


def all_on_one_host(brokers: Sequence[str]) -> str:
    """Further sentence if several brokers are all on one host; else empty."""
    by_host = brokers_by_host(brokers)
    if len(brokers) == 1 or len(by_host) > 1:
        return ""
    return f" All {counted(len(brokers), 'broker')} are on one host, {next(iter(by_host))}: its loss stops everything."
