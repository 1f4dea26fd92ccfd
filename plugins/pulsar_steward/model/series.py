"""Names of Prometheus series of topics that more than one part of Steward asks for."""

SIZE_LIMIT = "pulsar_storage_backlog_quota_limit"
"""The size quota in force, bytes; -1 for none."""

AGE_LIMIT = "pulsar_storage_backlog_quota_limit_time"
"""The age quota in force, seconds; -1 for none."""

AGE = "pulsar_storage_backlog_age_seconds"
"""Of the oldest message of the backlog; -1 where the broker does not know."""

DELAYED_SERIES = "pulsar_subscription_delayed"
"""Messages of a subscription that wait for their time."""
