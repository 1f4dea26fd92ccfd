"""Which Prometheus series are kept, by who is asked: those that a check looks at, of the thousands there are.

Each has its resting value, or None where every sample is kept. Of a series that rests at 0 (or at -1: "no limit"), only
the samples that do not rest are kept, besides the first of each source, which shows that the series is told at all: a
million healthy topics make no rows. Of topics only that is kept which ``broker-stats/topics`` does not tell.

Names of brokers' series are those of real 4.0.7 brokers. Bookies' and ZooKeeper's are those of Pulsar's metrics
reference; what a bookie or ZooKeeper does not tell has no rows.
"""

from __future__ import annotations

from typing import Literal

Kind = Literal["broker", "bookie", "zookeeper"]

_PROCESS: dict[str, float | None] = dict.fromkeys(
    (
        "jvm_gc_collection_seconds_count",
        "jvm_gc_collection_seconds_sum",
        "jvm_memory_bytes_max",
        "jvm_memory_bytes_used",
        "jvm_memory_max_bytes",  # as later versions of Prometheus's Java library call it
        "jvm_memory_used_bytes",
        "jvm_memory_direct_bytes_max",
        "jvm_memory_direct_bytes_used",
        "jvm_memory_pool_bytes_max",
        "jvm_memory_pool_bytes_used",
        "jvm_memory_pool_collection_used_bytes",
        "jvm_threads_current",
        "jvm_threads_deadlocked",
        "jvm_threads_peak",
        "jvm_threads_state",
        "process_cpu_seconds_total",
        "process_max_fds",
        "process_open_fds",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
    )
)

_OF_BROKER = (
    "pulsar_active_connections",
    "pulsar_batch_metadata_store_batch_execute_time_ms_count",
    "pulsar_batch_metadata_store_batch_execute_time_ms_sum",
    "pulsar_batch_metadata_store_batch_size_count",
    "pulsar_batch_metadata_store_batch_size_sum",
    "pulsar_batch_metadata_store_executor_queue_size",
    "pulsar_batch_metadata_store_queue_wait_time_ms_count",
    "pulsar_batch_metadata_store_queue_wait_time_ms_sum",
    "pulsar_broker_consumers_count",
    "pulsar_broker_lookup",
    "pulsar_broker_lookup_answers_total",
    "pulsar_broker_lookup_count",
    "pulsar_broker_lookup_failures_total",
    "pulsar_broker_lookup_pending_requests",
    "pulsar_broker_lookup_redirects_total",
    "pulsar_broker_lookup_sum",
    "pulsar_broker_producers_count",
    "pulsar_broker_publish_latency",
    "pulsar_broker_publish_latency_count",
    "pulsar_broker_publish_latency_sum",
    "pulsar_broker_storage_backlog_quota_exceeded_evictions_total",
    "pulsar_broker_throttled_connections",
    "pulsar_broker_topic_load_pending_requests",
    "pulsar_broker_topics_count",
    "pulsar_connection_closed_total_count",
    "pulsar_connection_create_fail_count",
    "pulsar_connection_create_success_count",
    "pulsar_connection_created_total_count",
    "pulsar_metadata_store_ops_latency_ms_bucket",
    "pulsar_metadata_store_ops_latency_ms_count",
    "pulsar_metadata_store_ops_latency_ms_sum",
    "pulsar_metadata_store_put_bytes_total",
    "pulsar_ml_cache_evictions",
    "pulsar_ml_cache_hits_rate",
    "pulsar_ml_cache_misses_rate",
    "pulsar_ml_cache_used_size",
    "pulsar_ml_count",
    "pulsar_ml_reads_available_inflight_bytes",
    "pulsar_ml_reads_inflight_bytes",
    "pulsar_storage_backlog_quota_check_duration_seconds_count",
    "pulsar_storage_backlog_quota_check_duration_seconds_sum",
    "pulsar_topic_load_failed_count",
    "pulsar_topic_load_times",
    "pulsar_topic_load_times_count",
    "pulsar_topic_load_times_sum",
    "pulsar_version_info",
    "pulsar_web_executor_active_threads",
    "pulsar_web_executor_idle_threads",
    "pulsar_web_executor_max_threads",
    "topic_load_failed_total",
)

_OF_NAMESPACE = (
    "pulsar_ml_AddEntryErrors",
    "pulsar_ml_AddEntryLatencyBuckets",
    "pulsar_ml_AddEntryLatencyBuckets_OVERFLOW",
    "pulsar_ml_AddEntrySucceed",
    "pulsar_ml_LedgerAddEntryLatencyBuckets",
    "pulsar_ml_LedgerAddEntryLatencyBuckets_OVERFLOW",
    "pulsar_ml_LedgerSwitchLatencyBuckets",
    "pulsar_ml_LedgerSwitchLatencyBuckets_OVERFLOW",
    "pulsar_ml_MarkDeleteRate",
    "pulsar_ml_ReadEntriesErrors",
)

_OF_TOPIC: dict[str, float | None] = {
    "pulsar_compaction_compacted_entries_count": 0,
    "pulsar_compaction_failed_count": 0,
    "pulsar_compaction_latency_count": 0,
    "pulsar_compaction_latency_sum": 0,
    "pulsar_compaction_removed_event_count": 0,
    "pulsar_compaction_succeed_count": 0,
    "pulsar_delayed_message_index_bucket_op_count": 0,
    "pulsar_delayed_message_index_bucket_snapshot_size_bytes": 0,
    "pulsar_delayed_message_index_bucket_total": 0,
    "pulsar_delayed_message_index_loaded": 0,
    "pulsar_delayed_message_index_size_bytes": 0,
    "pulsar_storage_backlog_age_seconds": -1,
    "pulsar_storage_backlog_quota_exceeded_evictions_total": 0,
    "pulsar_storage_backlog_quota_limit": -1,
    "pulsar_storage_backlog_quota_limit_time": -1,
    # Not all of the write latencies' buckets, but the two that stay empty while bookies are well.
    "pulsar_storage_ledger_write_latency_le_1000": 0,
    "pulsar_storage_ledger_write_latency_overflow": 0,
    "pulsar_storage_write_latency_le_1000": 0,
    "pulsar_storage_write_latency_overflow": 0,
    "pulsar_subscription_back_log_no_delayed": 0,
    "pulsar_subscription_delayed": 0,
    "pulsar_subscription_delayed_message_index_size_bytes": 0,
}

_OF_BOOKIE = (
    "bookie_SERVER_STATUS",
    "bookie_entries_count",
    "bookie_flush",
    "bookie_journal_JOURNAL_ADD_ENTRY_count",
    "bookie_journal_JOURNAL_ADD_ENTRY_sum",
    "bookie_journal_JOURNAL_CB_QUEUE_SIZE",
    "bookie_journal_JOURNAL_FORCE_WRITE_QUEUE_SIZE",
    "bookie_journal_JOURNAL_QUEUE_SIZE",
    "bookie_journal_JOURNAL_SYNC_count",
    "bookie_journal_JOURNAL_SYNC_sum",
    "bookie_ledger_writable_dirs",
    "bookie_ledgers_count",
    "bookie_read_cache_size",
    "bookie_rejected_write_requests",
    "bookie_throttled_write_requests",
    "bookie_write_cache_size",
    "bookkeeper_server_ADD_ENTRY_REQUEST_count",
    "bookkeeper_server_ADD_ENTRY_REQUEST_sum",
    "bookkeeper_server_READ_ENTRY_REQUEST_count",
    "bookkeeper_server_READ_ENTRY_REQUEST_sum",
    "bookkeeper_server_thread_executor_queue",
)

_OF_ZOOKEEPER = (
    "approximate_data_size",
    "avg_latency",
    "ephemerals_count",
    "fsynctime_count",
    "fsynctime_sum",
    "max_latency",
    "num_alive_connections",
    "outstanding_requests",
    "readlatency_count",
    "readlatency_sum",
    "snapshottime_count",
    "snapshottime_sum",
    "updatelatency_count",
    "updatelatency_sum",
    "watch_count",
    "znode_count",
)

SERIES: dict[Kind, dict[str, float | None]] = {
    "broker": {**_PROCESS, **dict.fromkeys(_OF_BROKER), **dict.fromkeys(_OF_NAMESPACE, 0.0), **_OF_TOPIC},
    "bookie": {**_PROCESS, **dict.fromkeys(_OF_BOOKIE)},
    "zookeeper": {**_PROCESS, **dict.fromkeys(_OF_ZOOKEEPER)},
}
"""Series → resting value, by who is asked."""

ENDINGS: dict[Kind, tuple[str, ...]] = {"broker": ("_thread_executor_queue",), "bookie": (), "zookeeper": ()}
"""Of series whose names hold a thread's: ``pulsar_managedLedger_client_thread_<thread>_thread_executor_queue``, which a
broker tells where `bookkeeperClientExposeStatsToPrometheus` is on. All of their samples are kept."""
