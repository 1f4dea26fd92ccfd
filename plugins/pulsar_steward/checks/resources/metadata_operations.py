"""Counters of operations on the metadata store, by process, and their growth between snapshots."""

from __future__ import annotations

from pulsar_steward.checks.earlier import growth, in_time
from pulsar_steward.checks.views import STARTED

MILLISECONDS = "pulsar_metadata_store_ops_latency_ms_sum"
OPERATIONS = "pulsar_metadata_store_ops_latency_ms_count"
BUCKETS = "pulsar_metadata_store_ops_latency_ms_bucket"
WAITED = "pulsar_batch_metadata_store_queue_wait_time_ms_sum"
WAITS = "pulsar_batch_metadata_store_queue_wait_time_ms_count"

BOUNDS = (1000, 2000, 5000)
"""Bounds of buckets, in milliseconds, beyond which an operation is slow; 4.0.7 has no higher one."""

KEYS = ("source", "source_kind", "store", "operation")
COUNTERS = ("operations", "milliseconds", "failed", *(f"over_{bound}" for bound in BOUNDS))

_COUNT = f"sum(value order by value) filter (series = '{OPERATIONS}')"
_OVER = ", ".join(
    f"{_COUNT} - sum(value order by value) filter (series = '{BUCKETS}' and bound = {bound}) as over_{bound}"
    for bound in BOUNDS
)
_ALL_OVER = ", ".join(f"sum(over_{bound} order by over_{bound}) as over_{bound}" for bound in BOUNDS)


def operations_in(samples: str) -> str:
    """SQL for operations by process, store and kind, all since the process's start.

    The number and total time of successful ones, the number of failed ones, and how many of both took longer than each
    of `BOUNDS` (null without buckets). A failed operation that took long timed out; one that did not is mostly a
    version that somebody else changed, or a node that is gone already. Parsing JSON is slow: of the buckets, which are
    nearly all samples, only those are parsed that have such a bound somewhere in their text.

    Args:
        samples: Table to read: `process_samples`, or `metrics`, which needs no preparation.
    """
    return f"""
    with samples as (
        select source, source_kind, coalesce(labels_json->>'name', '') as store,
            coalesce(labels_json->>'type', '') as operation, labels_json->>'status' as status, series, value,
            try_cast(labels_json->>'le' as double) as bound
        from {samples}
        where series in ('{MILLISECONDS}', '{OPERATIONS}', '{BUCKETS}', '{STARTED}') and isfinite(value)
            and (series <> '{BUCKETS}' or contains(labels_json, '000'))),
    starts as (select source, source_kind, max(value) as started from samples where series = '{STARTED}' group by all),
    by_outcome as (
        select source, source_kind, store, operation, status, {_COUNT} as counted,
            sum(value order by value) filter (series = '{MILLISECONDS}') as milliseconds, {_OVER}
        from samples where status in ('success', 'fail') group by all),
    summed as (
        select source, source_kind, store, operation,
            coalesce(max(counted) filter (status = 'success'), 0) as operations,
            coalesce(max(milliseconds) filter (status = 'success'), 0) as milliseconds,
            coalesce(max(counted) filter (status = 'fail'), 0) as failed, {_ALL_OVER}
        from by_outcome group by source, source_kind, store, operation)
    select summed.*, started from summed left join starts using (source, source_kind)
    where operations + failed > 0
    """


WAITING = f"""
with sums as (
    select source, coalesce(labels_json->>'name', '') as store,
        sum(value order by value) filter (series = '{WAITED}') as waited,
        sum(value order by value) filter (series = '{WAITS}') as waits
    from process_samples where series in ('{WAITED}', '{WAITS}') group by source, store)
select source, store, waited / waits as wait_ms from sums where waits > 0
"""
"""Average time that an operation waits in the process itself before it is sent, since the process's start."""

SPANS = f"""
with told as ({in_time("timed", "timed_before")}),
spans as ({growth("told", KEYS, COUNTERS)}),
measured as (
    select *, if(grown_operations > 0, grown_milliseconds / grown_operations, null) as mean_ms,
        grown_over_1000 * 100 / nullif(grown_operations + grown_failed, 0) as slow_percent,
        coalesce(grown_over_1000 + grown_over_2000 + 3 * grown_over_5000, 0) as lost_seconds,
        lost_seconds * 100 / nullif(seconds, 0) as lost_percent
    from spans)
select now.*, coalesce(before.grown_over_1000, 0) as slow_before,
    coalesce(before.lost_percent, 0) as lost_percent_before
from measured now left join measured before
    on {" and ".join(f"now.{key} = before.{key}" for key in KEYS)} and before.started = now.started
        and before.moment = now.since and before.since is not null
where now.moment = $now::double
"""
"""Growth of each of this snapshot's counters since the snapshot before it, or since the start if there is none.

Also the same for the interval before that. `lost_seconds`: the minimum time that operations over a second took, each
counted with the lower bound of its bucket. Many may wait at once for the same stall, so that this is no length of a
standstill.
"""
