"""Names of Prometheus series, most of them of topics, that several parts of Steward use."""

BOOKIE_STATUS = "bookie_SERVER_STATUS"
"""Of a bookie, by its own metrics: 1 takes writes, 0 is read-only, -1 is not registered, so nobody writes to it."""

SIZE_LIMIT = "pulsar_storage_backlog_quota_limit"
"""Size quota in force, bytes; -1 for none."""

AGE_LIMIT = "pulsar_storage_backlog_quota_limit_time"
"""Age quota in force, seconds; -1 for none."""

AGE = "pulsar_storage_backlog_age_seconds"
"""Age of the oldest message of the backlog; -1 where the broker does not know."""

DELAYED_SERIES = "pulsar_subscription_delayed"
"""Messages of a subscription that wait for their time."""

DELAYED_INDEX = "pulsar_delayed_message_index_size_bytes"
"""Bytes of the broker's memory that the index of a topic's or subscription's delayed messages takes."""

DELAYED_BUCKETS = "pulsar_delayed_message_index_bucket_total"
"""Buckets of a subscription's delayed index, of which the one that is being filled is one."""

DELAYED_BUCKET_OPERATIONS = "pulsar_delayed_message_index_bucket_op_count"
"""Operations on a subscription's buckets since anybody last read it, by ``type`` and ``state``."""

WRITES_UNDER_A_SECOND = "pulsar_storage_write_latency_le_1000"
"""Entries of a topic in the last statistics period that took from 200 ms to a second to be published."""

WRITES_OVER_A_SECOND = "pulsar_storage_write_latency_overflow"
"""Entries of a topic in the last statistics period that took over a second to be published."""
