"""Sections of remedies: size of quotas, length of retention, splits and moves of bundles."""

from __future__ import annotations

from pydantic import Field

from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.setting import QuotaPolicy


class BacklogQuotaRemedy(Section):
    """Assumptions and limits of a proposed backlog quota."""

    survive_outage_hours: int = number(
        24, "outage of all consumers: messages published meanwhile have to fit in the quota"
    )
    peak_headroom_percent: int = number(
        50, "over the largest backlog seen in the last snapshots, which has to fit as well", ge=0
    )
    retention_margin_percent: int = number(
        10, "that a quota stays below the retention: brokers refuse one that is not below it", le=90
    )
    room_percent: int = number(
        10, "of a new quota that the largest or the oldest backlog has to leave free when it is set", ge=0, le=99
    )
    age_share_percent: int = number(
        75, "of the retention time, after which an age quota acts: the rest is time to read again", le=90
    )
    outage_headroom_percent: int = number(
        50, "beyond the outage, in an age quota's time: its backlog has to be consumed as well", ge=0
    )
    most_topics_asked: int = number(
        500, "one by one, before a quota is set or messages could be deleted; each age costs a bookie read", le=100_000
    )
    eviction_most_megabytes: int = number(
        0, "of a new evicting quota, at most, even if it evicts at once; 0: never below the present backlog", ge=0
    )
    raise_headroom_hours: int = number(24, "of present growth, for which a nearly full quota is raised")
    raise_most_hours: int = number(
        336, "up to which an age quota is raised, or a retention for it: consumed messages are stored for longer"
    )
    raise_most_megabytes: int = number(102_400, "of a topic up to which a quota is raised, whatever the forecast")
    raise_namespace_megabytes: int = number(
        1_048_576, "that the nearly full topics of a namespace may store more by one plan, before copies", ge=0
    )
    raise_cluster_megabytes: int = number(
        4_194_304, "the same of all namespaces together: brokers do not tell how much disk bookies have left", ge=0
    )
    minimum_megabytes: int = number(1024, "below this a quota acts on an ordinary burst")
    policy: QuotaPolicy = Field(
        QuotaPolicy.HOLD, description="where none is in force: producers wait, and nothing is lost"
    )


class RetentionRemedy(Section):
    """Assumptions and limits of a proposed retention."""

    keep_hours: int = number(72, "for consumed messages that are kept for ever or far too long now")


class DelayedDeliveryRemedy(Section):
    """Assumptions and limits of a longer time to live, and of a maximum delay, for delayed messages."""

    longest_delay_hours: int = number(
        168,
        "that producers may ask for, where nothing bounds it; 0: no bound is proposed, as longer delays are"
        " refused then",
        ge=0,
    )
    age_headroom_percent: int = number(
        50, "over the oldest message that waits, which a bound of delays has to leave room for", ge=0
    )
    ttl_margin_percent: int = number(
        10, "of a time to live, that is left after the longest delay for messages to be consumed", le=90
    )
    most_ttl_hours: int = number(720, "up to which a time to live is raised: unconsumed messages are stored as long")


class PersistenceRemedy(Section):
    """Which parts of a namespace's persistence are proposed, and how often its cursors are written then."""

    propose_rate: bool = Field(
        default=False, description="whether people are asked to have cursors written more seldom, or more often"
    )
    seldom_seconds: int = number(1, "proposed between two writes of a cursor that is written too seldom")
    often_seconds: int = number(
        5, "the same if written too often; below `ack_state_seldom.information_seconds`, or that check finds it"
    )
    propose_ensemble: bool = Field(
        default=False,
        description="whether people are asked to lower E to Qw where there are fewer bookies",
    )


class BundleSplitRemedy(Section):
    """Limits of proposed splits; the checks bundle_topic_skew and hot_bundle decide which bundles are too large."""

    room_percent: int = number(
        10, "that a part stays below the check's warning, so that it does not warn again soon", ge=0, le=90
    )
    least_topics: int = number(
        20, "loaded topics from which a bundle is split for their number: fewer are no burden anywhere", ge=2
    )
    most_splits: int = number(100, "splits of one namespace in one batch; none of them can be undone", le=100_000)


class BundleBalanceRemedy(Section):
    """Limits of proposed moves that spread bundles over brokers."""

    snapshots: int = percent(6, "looked at, this one included: a burst is no reason to move")
    least_snapshots: int = percent(3, "whole snapshots within the window, below which nothing is moved")
    window_minutes: int = number(360, "older snapshots say little about the present load")
    within_percent: int = percent(25, "of the mean that a broker may be off; nearer costs clients more than it gains")
    most_moves: int = number(
        50, "moves of one batch, the most helpful first; the rest comes with later plans", le=10_000
    )


class BrokerDrainRemedy(Section):
    """Limits of moves that empty the brokers of `brokers.draining`."""

    most_moves: int = number(50, "moves of one batch, each of which a person approves", le=10_000)
    most_batches: int = number(10, "batches of one plan; the rest comes with later plans", le=1000)
    most_brokers_percent: int = number(
        50, "of all listed brokers that may drain at once; for more, nothing is proposed", le=99
    )
    most_usage_percent: int = number(
        80, "CPU, and direct memory, that a broker may come to; brokers on one machine each report all its CPU", le=1000
    )
    most_topics: int = number(50_000, "topics that a broker may come to, as `loadBalancerBrokerMaxTopics`")


class BrokerGroupRemedy(Section):
    """Limits of moves that bring bundles to the brokers of their group; the room is that of `broker_drain_remedy`."""

    most_moves: int = number(200, "moves of one batch; the rest comes with later plans", le=10_000)


class TcCountRemedy(Section):
    """Number of transaction coordinators that is proposed if there are too few, within the limit of `guards`."""

    coordinators_per_broker: int = percent(1, "on each broker that could hold one: their number is raised to it")


class TopicPartitionsRemedy(Section):
    """Number of partitions that is proposed for a topic that is too much for those it has, within `guards`."""

    raise_percent: int = number(
        200, "of the partitions that a topic has, that one plan raises them to", ge=110, le=1000
    )
    even_percent: int = number(
        200,
        "of the mean of a topic's partitions, that its largest carries at most: a load that follows few keys is not"
        " divided by more partitions",
        ge=100,
    )


class Remedies(Section):
    """Sections of the planners that propose a remedy."""

    backlog_quota_remedy: BacklogQuotaRemedy = BacklogQuotaRemedy()
    retention_remedy: RetentionRemedy = RetentionRemedy()
    delayed_delivery_remedy: DelayedDeliveryRemedy = DelayedDeliveryRemedy()
    persistence_remedy: PersistenceRemedy = PersistenceRemedy()
    bundle_split_remedy: BundleSplitRemedy = BundleSplitRemedy()
    bundle_balance_remedy: BundleBalanceRemedy = BundleBalanceRemedy()
    broker_drain_remedy: BrokerDrainRemedy = BrokerDrainRemedy()
    broker_group_remedy: BrokerGroupRemedy = BrokerGroupRemedy()
    tc_count_remedy: TcCountRemedy = TcCountRemedy()
    topic_partitions_remedy: TopicPartitionsRemedy = TopicPartitionsRemedy()
