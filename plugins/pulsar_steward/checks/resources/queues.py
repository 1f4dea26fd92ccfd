"""Tasks that wait for BookKeeper's threads, at bookies and in brokers."""

from __future__ import annotations

BOOKIE_QUEUE = "bookkeeper_server_thread_executor_queue"
"""Series of a bookie; the thread is in the label `thread`, as ``BookieWriteThreadPool-OrderedExecutor-0-0``."""

BROKER_QUEUE = "^pulsar_managedLedger_client_thread_(.+)_thread_executor_queue$"
"""Series of a broker's BookKeeper client, whose names contain the thread.

Exported where `bookkeeperClientExposeStatsToPrometheus` is on.
"""

QUEUES = f"""
with shown as (
    select source, source_kind, value as queued,
        coalesce(if(series = '{BOOKIE_QUEUE}', labels_json->>'thread', null),
            regexp_extract(series, '{BROKER_QUEUE}', 1)) as thread
    from process_samples where series = '{BOOKIE_QUEUE}' or regexp_matches(series, '{BROKER_QUEUE}')),
pooled as (
    select *, sum(queued) over pool as all_queued, count(*) over pool as threads
    from (select *, regexp_replace(thread, '[-_]OrderedExecutor.*$', '') as pool from shown)
    window pool as (partition by source, pool))
select source, source_kind, thread, queued,
    if(threads > 1, (all_queued - queued) / (threads - 1), null) as others_mean
from pooled
"""
"""Tasks that wait for each thread, and for the others of its pool: whole numbers, so that the order does not matter."""

BUSY = f"with queues as ({QUEUES}) select * from queues where queued >= $warning_queued_tasks"
SHOWN = f"with queues as ({QUEUES}) select count(*) as threads, max(queued) as most from queues"
