"""Names of Prometheus metrics, most of them of topics, that several parts of Steward use."""

STARTED = "process_start_time_seconds"
"""Series of a process's start time, seconds since the epoch."""

BOOKIE_STATUS = "bookie_SERVER_STATUS"
"""State of a bookie, by its own metrics: 1 takes writes, 0 is read-only, -1 is not registered, so gets no writes."""

PRODUCERS = "pulsar_producers_count"
"""Connected producers of a topic; every loaded topic has it."""

LOADED_TOPICS = "pulsar_topics_count"
"""Loaded topics of a namespace on a broker, exported even without metrics of single topics."""

SIZE_LIMIT = "pulsar_storage_backlog_quota_limit"
"""Size quota in force, bytes; -1 for none."""

AGE_LIMIT = "pulsar_storage_backlog_quota_limit_time"
"""Age quota in force, seconds; -1 for none."""

AGE = "pulsar_storage_backlog_age_seconds"
"""Age of the oldest message of the backlog; -1 if the broker does not know."""

DELAYED_SERIES = "pulsar_subscription_delayed"
"""Messages of a subscription that are not due yet."""

DELAYED_INDEX = "pulsar_delayed_message_index_size_bytes"
"""Bytes of the broker's memory for the index of a topic's or subscription's delayed messages."""

DELAYED_BUCKETS = "pulsar_delayed_message_index_bucket_total"
"""Buckets of a subscription's delayed index, including the one that is being filled."""

DELAYED_BUCKET_OPERATIONS = "pulsar_delayed_message_index_bucket_op_count"
"""Operations on a subscription's buckets since the metric was last read, by ``type`` and ``state``."""

WRITES_UNDER_A_SECOND = "pulsar_storage_write_latency_le_1000"
"""Entries of a topic in the last statistics period that took 200 ms to 1 s to publish."""

WRITES_OVER_A_SECOND = "pulsar_storage_write_latency_overflow"
"""Entries of a topic in the last statistics period that took over 1 s to publish."""
