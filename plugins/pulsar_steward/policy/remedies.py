"""How far remedies go: what a quota has to hold, how long is kept."""

from __future__ import annotations

from pydantic import Field

from pulsar_steward.model.setting import QuotaPolicy
from pulsar_steward.policy.section import Section


class BacklogQuotaRemedy(Section):
    """What a proposed backlog quota rests on."""

    survive_outage_hours: int = Field(
        24, ge=1, description="of all consumers: what is produced meanwhile has to fit below the quota"
    )
    peak_headroom_percent: int = Field(
        50, ge=0, description="over the largest backlog seen in the last snapshots, which has to fit as well"
    )
    retention_margin_percent: int = Field(
        10, ge=1, le=90, description="that a quota stays below the retention: brokers refuse one that is not below it"
    )
    room_percent: int = Field(
        10, ge=0, le=99, description="of a new size quota that the largest backlog has to leave free when it is set"
    )
    minimum_megabytes: int = Field(1024, ge=1, description="below this a quota acts on an ordinary burst")
    policy: QuotaPolicy = Field(
        QuotaPolicy.HOLD, description="where none is in force: producers wait, and nothing is lost"
    )


class RetentionRemedy(Section):
    """What a proposed retention rests on."""

    keep_hours: int = Field(72, ge=1, description="of what is consumed, where it is kept for ever now")


class Remedies(Section):
    """How far remedies go."""

    backlog_quota_remedy: BacklogQuotaRemedy = BacklogQuotaRemedy()
    retention_remedy: RetentionRemedy = RetentionRemedy()
