"""Backlog, quotas, retention and expiry."""

from steward_spark.checks.backlog.backlog_growing import CHECK as BACKLOG_GROWING
from steward_spark.checks.backlog.backlog_near_quota import CHECK as BACKLOG_NEAR_QUOTA
from steward_spark.checks.backlog.backlog_quota_missing import CHECK as BACKLOG_QUOTA_MISSING
from steward_spark.checks.backlog.clock_skew import CHECK as CLOCK_SKEW
from steward_spark.checks.backlog.producer_hold_restart_risk import CHECK as PRODUCER_HOLD_RESTART_RISK
from steward_spark.checks.backlog.quota_check_disabled import CHECK as QUOTA_CHECK_DISABLED
from steward_spark.checks.backlog.quota_over_retention import CHECK as QUOTA_OVER_RETENTION
from steward_spark.checks.backlog.quota_stuck import CHECK as QUOTA_STUCK
from steward_spark.checks.backlog.retention_too_long import CHECK as RETENTION_TOO_LONG
from steward_spark.checks.backlog.retention_too_short import CHECK as RETENTION_TOO_SHORT
from steward_spark.checks.backlog.retention_unbounded import CHECK as RETENTION_UNBOUNDED
from steward_spark.checks.backlog.ttl_before_quota import CHECK as TTL_BEFORE_QUOTA

CHECKS = (
    BACKLOG_NEAR_QUOTA,
    BACKLOG_GROWING,
    BACKLOG_QUOTA_MISSING,
    QUOTA_OVER_RETENTION,
    QUOTA_CHECK_DISABLED,
    PRODUCER_HOLD_RESTART_RISK,
    RETENTION_UNBOUNDED,
    RETENTION_TOO_SHORT,
    RETENTION_TOO_LONG,
    TTL_BEFORE_QUOTA,
    QUOTA_STUCK,
    CLOCK_SKEW,
)
"""In the order in which they are carried out."""
