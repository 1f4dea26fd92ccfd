"""The table `metrics` of a large cluster's snapshot: what `large_snapshot` says its topics and brokers tell."""

from __future__ import annotations

RARE = 100_000

_SUBSCRIPTION = (
    '\'{"cluster":"large","namespace":"\', namespace,'
    ' \'","subscription":"\', subscription, \'","topic":"\', topic, \'"}\''
)
_TOPIC = '\'{"cluster":"large","namespace":"\', namespace, \'","topic":"\', topic, \'"}\''
_BOUNDS = ("0.0_0.5", "0.5_1.0", "1.0_5.0", "5.0_10.0", "10.0_20.0", "20.0_50.0", "50.0_100.0", "100.0_200.0")
_OF_BROKER = {
    "process_start_time_seconds": ("", 1_769_774_400.0),
    "jvm_gc_collection_seconds_sum": ('"gc":"G1 Young Generation"', 60.0),
    "jvm_gc_collection_seconds_count": ('"gc":"G1 Young Generation"', 600.0),
    "jvm_memory_bytes_max": ('"area":"heap"', 8e9),
    "jvm_memory_direct_bytes_max": ("", 16e9),
    "jvm_memory_direct_bytes_used": ("", 6e9),
    "jvm_threads_deadlocked": ("", 0.0),
    "jvm_threads_state": ('"state":"BLOCKED"', 1.0),
    "process_open_fds": ("", 5_000.0),
    "process_max_fds": ("", 65_536.0),
    "pulsar_broker_lookup_pending_requests": ("", 0.0),
    "pulsar_broker_topic_load_pending_requests": ("", 0.0),
    "pulsar_active_connections": ("", 1_000.0),
    "pulsar_connection_create_success_count": ("", 2_000.0),
    "pulsar_connection_create_fail_count": ("", 0.0),
    "pulsar_metadata_store_ops_latency_ms_sum": ('"name":"metadata-store","status":"success","type":"get"', 40_000.0),
    "pulsar_metadata_store_ops_latency_ms_count": ('"name":"metadata-store","status":"success","type":"get"', 20_000.0),
    "pulsar_batch_metadata_store_queue_wait_time_ms_sum": ('"name":"metadata-store"', 30_000.0),
    "pulsar_batch_metadata_store_queue_wait_time_ms_count": ('"name":"metadata-store"', 20_000.0),
}
"""Series → labels and value, the same of each broker."""


def metrics() -> str:
    """A question for the samples of one shard: those of topics, of namespaces and of brokers themselves.

    Of every second topic the age of its backlog is told, of every third the bytes of its delayed index and of its
    subscriptions the delayed messages. Latencies of publishing, writes and
    switches are told by bucket, of each namespace on each of its brokers.
    """
    parts = " union all by name ".join(f"({part})" for part in (_AGES, _DELAYED, _INDEXES, _LATENCIES, _OWN))
    return f"select *, 'broker' as source_kind from ({parts})"


_AGES = f"""
    select broker as source, 'pulsar_storage_backlog_age_seconds' as series, topic, concat({_TOPIC}) as labels_json,
        (hash(i, 'age') % 3600)::double as value
    from topics where i % 2 = 0
"""

_WAITING = f"if(i % {RARE} = 6, 5000000.0, 1.0 + hash(i, 'delayed') % 50)::double"
_DELAYED = f"""
    select broker as source, 'pulsar_subscription_delayed' as series, topic, subscription,
        concat({_SUBSCRIPTION}) as labels_json, {_WAITING} as value
    from subscriptions where i % 3 = 0
"""

_INDEXES = f"""
    select broker as source, 'pulsar_delayed_message_index_size_bytes' as series, topic,
        concat({_TOPIC}) as labels_json, 24 * {_WAITING} * subscriptions as value
    from topics where i % 3 = 0
"""
"""At 24 bytes a delayed message."""

_BUCKETS = ", ".join(f"('{bound}', {100.0 / (1 + place)}::double)" for place, bound in enumerate(_BOUNDS))
_LATENCIES = f"""
    select broker as source, series, concat('{{"cluster":"large","namespace":"', namespace,
        '/persistent","quantile":"', quantile, '"}}') as labels_json, value
    from (select distinct broker, namespace from topics),
        (values ('pulsar_ml_AddEntryLatencyBuckets'), ('pulsar_ml_LedgerAddEntryLatencyBuckets'),
            ('pulsar_ml_LedgerSwitchLatencyBuckets')) as told(series),
        (values {_BUCKETS}) as buckets(quantile, value)
    order by source, namespace, series, quantile
"""
"""About the same work of every namespace on a broker."""

_SAMPLES = ", ".join(f"('{name}', '{labels}', {value}::double)" for name, (labels, value) in _OF_BROKER.items())
_OWN = f"""
    select broker as source, series, concat('{{"cluster":"large"', if(labels = '', '', ','), labels, '}}')
        as labels_json, value
    from own_brokers, (values {_SAMPLES}) as told(series, labels, value)
"""
