"""Sections of remedies: size of quotas, length of retention, splits and moves of bundles."""

from __future__ import annotations

from pydantic import Field

from pulsar_steward.model.section import Section
from pulsar_steward.model.setting import QuotaPolicy


class BacklogQuotaRemedy(Section):
    """Assumptions and limits of a proposed backlog quota."""

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
        10,
        ge=0,
        le=99,
        description="of a new quota that the largest or the oldest backlog has to leave free when it is set",
    )
    age_share_percent: int = Field(
        75,
        ge=1,
        le=90,
        description="of the retention time, after which an age quota acts: the rest is time to read again",
    )
    outage_headroom_percent: int = Field(
        50, ge=0, description="over the outage, in an age quota's time: what has piled up has to be consumed as well"
    )
    most_topics_asked: int = Field(
        500,
        ge=1,
        le=100_000,
        description="one by one right before a quota is set or something could be deleted; for ages a bookie reads",
    )
    eviction_most_megabytes: int = Field(
        0,
        ge=0,
        description="of a new quota that evicts, even if it does so at once; 0: it is never below what is there",
    )
    raise_headroom_hours: int = Field(
        24, ge=1, description="of growth as it is now, for which a quota that is nearly full is raised"
    )
    raise_most_hours: int = Field(
        336,
        ge=1,
        description="that an age quota is raised to, or a retention raised for: what is consumed is stored for longer",
    )
    raise_most_megabytes: int = Field(
        102_400, ge=1, description="of a topic, that a quota is raised to: no forecast asks for more than that"
    )
    raise_namespace_megabytes: int = Field(
        1_048_576,
        ge=0,
        description="that the nearly full topics of a namespace may store more by one plan, before copies",
    )
    raise_cluster_megabytes: int = Field(
        4_194_304,
        ge=0,
        description="the same of all namespaces together: brokers do not tell how much disk bookies have left",
    )
    minimum_megabytes: int = Field(1024, ge=1, description="below this a quota acts on an ordinary burst")
    policy: QuotaPolicy = Field(
        QuotaPolicy.HOLD, description="where none is in force: producers wait, and nothing is lost"
    )


class RetentionRemedy(Section):
    """Assumptions and limits of a proposed retention."""

    keep_hours: int = Field(72, ge=1, description="of what is consumed, where it is kept for ever or far too long now")


class DelayedDeliveryRemedy(Section):
    """Assumptions and limits of a longer time to live, and of a maximum delay, for delayed messages."""

    longest_delay_hours: int = Field(
        168,
        ge=0,
        description="that producers may ask for, where nothing bounds it; 0: no bound is proposed, as longer delays are"
        " refused then",
    )
    age_headroom_percent: int = Field(
        50, ge=0, description="over the oldest message that waits, which a bound of delays has to leave room for"
    )
    ttl_margin_percent: int = Field(
        10,
        ge=1,
        le=90,
        description="of a time to live, that is left after the longest delay for messages to be consumed",
    )
    most_ttl_hours: int = Field(
        720, ge=1, description="that a time to live is raised to: what nobody consumes is stored for so long"
    )


class BundleSplitRemedy(Section):
    """Limits of proposed splits; the checks bundle_topic_skew and hot_bundle decide which bundles are too large."""

    room_percent: int = Field(
        10, ge=0, le=90, description="that a part stays below what the check warns of, so that it does not do so soon"
    )
    least_topics: int = Field(
        20,
        ge=2,
        description="loaded topics from which a bundle is split for their number: fewer are no burden anywhere",
    )
    most_splits: int = Field(
        100, ge=1, le=100_000, description="splits of one namespace in one batch; none of them can be undone"
    )


class BundleBalanceRemedy(Section):
    """Limits of proposed moves that spread bundles over brokers."""

    snapshots: int = Field(6, ge=1, le=100, description="looked at, this one included: a burst is no reason to move")
    least_snapshots: int = Field(
        3, ge=1, le=100, description="whole snapshots within the window, below which nothing is moved"
    )
    window_minutes: int = Field(360, ge=1, description="snapshots that are older say little of what is carried now")
    within_percent: int = Field(
        25, ge=1, le=100, description="of the mean a broker may be off; to be nearer costs clients more than it gains"
    )
    most_moves: int = Field(
        50, ge=1, le=10_000, description="moves of one batch, the most helpful first; the rest comes with later plans"
    )


class BrokerDrainRemedy(Section):
    """Limits of moves that empty the brokers of `brokers.draining`."""

    most_moves: int = Field(50, ge=1, le=10_000, description="moves of one batch, each of which a person approves")
    most_batches: int = Field(10, ge=1, le=1000, description="batches of one plan; the rest comes with later plans")
    most_brokers_percent: int = Field(
        50, ge=1, le=99, description="of all listed brokers that may drain at once; of more, nothing is proposed"
    )
    most_usage_percent: int = Field(
        80,
        ge=1,
        le=1000,
        description="CPU, and direct memory, that a broker may come to; brokers on one machine each report all its CPU",
    )
    most_topics: int = Field(
        50_000, ge=1, description="topics that a broker may come to, as `loadBalancerBrokerMaxTopics`"
    )


class TcCountRemedy(Section):
    """Number of transaction coordinators that is proposed if there are too few, within the limit of `guards`."""

    coordinators_per_broker: int = Field(
        1, ge=1, le=100, description="of those that could hold one, which the number is raised to"
    )


class Remedies(Section):
    """Sections of the planners that propose a remedy."""

    backlog_quota_remedy: BacklogQuotaRemedy = BacklogQuotaRemedy()
    retention_remedy: RetentionRemedy = RetentionRemedy()
    delayed_delivery_remedy: DelayedDeliveryRemedy = DelayedDeliveryRemedy()
    bundle_split_remedy: BundleSplitRemedy = BundleSplitRemedy()
    bundle_balance_remedy: BundleBalanceRemedy = BundleBalanceRemedy()
    broker_drain_remedy: BrokerDrainRemedy = BrokerDrainRemedy()
    tc_count_remedy: TcCountRemedy = TcCountRemedy()
