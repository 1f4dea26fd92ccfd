"""Names of Prometheus series of topics that several parts of Steward use."""

SIZE_LIMIT = "pulsar_storage_backlog_quota_limit"
"""Size quota in force, bytes; -1 for none."""

AGE_LIMIT = "pulsar_storage_backlog_quota_limit_time"
"""Age quota in force, seconds; -1 for none."""

AGE = "pulsar_storage_backlog_age_seconds"
"""Age of the oldest message of the backlog; -1 where the broker does not know."""

DELAYED_SERIES = "pulsar_subscription_delayed"
"""Delayed messages of a subscription that are not due yet."""
