"""Thresholds of the checks of backlog, quotas, retention and expiry."""

from __future__ import annotations

from pydantic import Field

from pulsar_steward.policy.section import Section

_GIB = 1024**3


class BacklogNearQuotaPolicy(Section):
    """When a topic is close to its backlog quota."""

    warning_percent: int = Field(80, ge=1, description="of the quota, in size or age: time is left to react")
    critical_percent: int = Field(
        95, ge=1, description="of the quota: brokers check once a minute, so the next check may act"
    )


class BacklogGrowingPolicy(Section):
    """When a backlog that keeps growing is trouble; a quota that is reached sooner is worse."""

    UNORDERED = frozenset({"hours_to_quota"})

    window_minutes: int = Field(
        360, ge=1, description="earlier snapshots that are looked at: a backlog that shrank within it is not growing"
    )
    minimum_snapshots: int = Field(
        4, ge=3, le=13, description="over which it has to grow, this one included: three steps show more than a burst"
    )
    minimum_minutes: int = Field(
        10, ge=1, description="over which it has to grow: brokers' statistics are up to a minute old"
    )
    rising_percent: int = Field(75, ge=1, le=100, description="steps between snapshots in which it has to have grown")
    most_shrunk_percent: int = Field(
        25, ge=0, le=100, description="of its growth, that it may have shrunk by within the window"
    )
    warning_hours_to_quota: int = Field(
        12, ge=1, description="until the size quota in force is reached at this rate: time to act in daylight"
    )
    critical_hours_to_quota: int = Field(2, ge=1, description="the same: time to act is running out")
    warning_bytes_per_second: int = Field(
        1024**2, ge=1, description="where no size quota is in force; 1 MiB/s fills 84 GiB a day"
    )


class BacklogQuotaMissingPolicy(Section):
    """When a backlog that no quota bounds is worth a word."""

    info_backlog_bytes: int = Field(
        1, ge=1, description="of all topics of the namespace that have no quota; 1: any backlog at all"
    )
    warning_backlog_bytes: int = Field(
        10 * _GIB, ge=1, description="of one topic; 10 GiB was the default quota of Pulsar before it became none"
    )


class QuotaOverRetentionPolicy(Section):
    """When a quota is over the retention."""

    warning_percent: int = Field(
        100, ge=1, description="quota as a share of the retention: brokers refuse a quota that is not below it"
    )


class QuotaCheckDisabledPolicy(Section):
    """When a check that is off is trouble."""

    warning_namespaces: int = Field(
        1, ge=1, description="namespaces under a quota that nobody enforces; with fewer it is only information"
    )


class ProducerHoldRestartRiskPolicy(Section):
    """When a restart would leave producers unable to connect."""

    warning_percent: int = Field(
        90, ge=1, description="of a producer_* quota: a restart that takes minutes may find it exceeded"
    )
    critical_percent: int = Field(100, ge=1, description="of it: new producers are refused already")


class RetentionUnboundedPolicy(Section):
    """When retention without any limit is trouble."""

    warning_storage_bytes: int = Field(
        100 * _GIB, ge=1, description="stored by the loaded topics of the namespace that are kept for ever"
    )


class RetentionTooShortPolicy(Section):
    """When the retention leaves too little room."""

    info_percent: int = Field(
        90, ge=1, description="quota as a share of the retention: so close, raising the quota is refused soon"
    )
    minimum_backlog_bytes: int = Field(
        _GIB, ge=1, description="backlogs smaller than this are not compared with the retained size"
    )
    minimum_backlog_age_seconds: int = Field(
        3600, ge=1, description="backlogs younger than this are not compared with the retained time"
    )


class RetentionTooLongPolicy(Section):
    """When a bounded retention costs far more than anybody needs."""

    warning_consumed_bytes: int = Field(
        1024 * _GIB,
        ge=1,
        description="stored by the loaded topics of the namespace though all of it is consumed; each copy comes on top",
    )
    warning_percent: int = Field(
        1_000,
        ge=101,
        description="of what quota and outage need, in time and in size: a week is usual, ten times an outage is not",
    )


class TtlBeforeQuotaPolicy(Section):
    """When messages expire before their age quota acts."""

    warning_percent: int = Field(
        100, ge=1, description="TTL as a share of the age quota: at or below it, the quota is never reached"
    )


class QuotaStuckPolicy(Section):
    """When a quota counts a backlog that is not there."""

    most_bytes_per_message: int = Field(
        5 * 1024**2, ge=1, description="a backlog with more a message is implausible: the default maxMessageSize"
    )
    suspects: int = Field(
        10_000, ge=1, le=100_000, description="topics over their quota that are looked at, the fullest first"
    )


class ClockSkewPolicy(Section):
    """When the brokers' clocks are apart; they are read to ±1 s, so that 2 s between two brokers mean nothing."""

    warning_milliseconds: int = Field(
        5_000, ge=2_000, description="between the earliest and the latest clock; twice what reading alone can make up"
    )
    critical_milliseconds: int = Field(
        60_000, ge=2_000, description="between them: age quotas and TTLs of minutes are off by a good part"
    )


class BacklogChecks(Section):
    """A section for each check of the group."""

    backlog_near_quota: BacklogNearQuotaPolicy = BacklogNearQuotaPolicy()
    backlog_growing: BacklogGrowingPolicy = BacklogGrowingPolicy()
    backlog_quota_missing: BacklogQuotaMissingPolicy = BacklogQuotaMissingPolicy()
    quota_over_retention: QuotaOverRetentionPolicy = QuotaOverRetentionPolicy()
    quota_check_disabled: QuotaCheckDisabledPolicy = QuotaCheckDisabledPolicy()
    producer_hold_restart_risk: ProducerHoldRestartRiskPolicy = ProducerHoldRestartRiskPolicy()
    retention_unbounded: RetentionUnboundedPolicy = RetentionUnboundedPolicy()
    retention_too_short: RetentionTooShortPolicy = RetentionTooShortPolicy()
    retention_too_long: RetentionTooLongPolicy = RetentionTooLongPolicy()
    ttl_before_quota: TtlBeforeQuotaPolicy = TtlBeforeQuotaPolicy()
    quota_stuck: QuotaStuckPolicy = QuotaStuckPolicy()
    clock_skew: ClockSkewPolicy = ClockSkewPolicy()
