"""Thresholds of the checks of consumers, producers and acknowledgements."""

from __future__ import annotations

from pydantic import Field

from pulsar_steward.policy.section import Section


class SubscriptionBlockedPolicy(Section):
    """When consumers that get nothing for too many unacknowledged messages are trouble."""

    warning_blocked_percent: int = Field(
        50, ge=1, le=100, description="consumers of a subscription that are blocked; fewer: information"
    )


class SubscriptionStalledPolicy(Section):
    """When a subscription stands still though there is something to consume and somebody to consume it."""

    minimum_backlog_messages: int = Field(
        1000, ge=1, description="messages that are due; as many fit into one client's receiver queue by default"
    )
    warning_minutes: int = Field(
        10, ge=1, description="since the last delivery or acknowledgement, where known; shorter: information"
    )
    critical_minutes: int = Field(60, ge=1, description="the same, when no pause of a healthy application explains it")
    critical_backlog_messages: int = Field(
        1_000_000, ge=1, description="due messages that make a standstill critical even where its age is not known"
    )


class AckHolesPolicy(Section):
    """When ack holes come near what a broker persists; beyond its limit they are always critical."""

    warning_percent: int = Field(
        50, ge=1, le=100, description="ack holes of `managedLedgerMaxUnackedRangesToPersist`: time to act is left"
    )


class CursorNotPersistablePolicy(Section):
    """When the ack state of a cursor comes near what one BookKeeper entry holds; beyond it is always critical."""

    warning_percent: int = Field(
        50, ge=1, le=100, description="ack state of the largest entry: it doubles with the entries that it spans"
    )


class ConsumerFanoutPolicy(Section):
    """When one partition has too many consumers."""

    warning_consumers: int = Field(
        2000, ge=1, description="on one partition, of all subscriptions; thousands made trouble in production"
    )
    critical_consumers: int = Field(
        10_000, ge=1, description="the same; as many as partitions had whose producers timed out (knowledge.md C)"
    )


class ProducerFanoutPolicy(Section):
    """When one partition has too many producers."""

    warning_producers: int = Field(
        1000, ge=1, description="on one partition; ten times what partitions of a huge cluster in production had"
    )
    critical_producers: int = Field(10_000, ge=1, description="the same; no figure is known, so as for consumers")


class ConnectionChurnPolicy(Section):
    """When clients come and go too often."""

    minimum_clients: int = Field(100, ge=1, description="producers and consumers of a topic; with fewer it is left")
    warning_recent_percent: int = Field(
        50, ge=1, le=100, description="clients of a topic that connected within `collect.recent_minutes`"
    )
    critical_recent_clients: int = Field(
        5000, ge=1, description="as many of them on one topic; half of the largest fan-out known (knowledge.md C)"
    )
    warning_turnovers_per_hour: int = Field(
        1, ge=1, description="how often a broker's connections were replaced as a whole; healthy ones live for days"
    )
    minimum_replaced_per_minute: int = Field(
        60, ge=1, description="connections of a broker; fewer are command-line tools and short jobs"
    )


class ClientsChecks(Section):
    """A section for each check of the group."""

    subscription_blocked: SubscriptionBlockedPolicy = SubscriptionBlockedPolicy()
    subscription_stalled: SubscriptionStalledPolicy = SubscriptionStalledPolicy()
    ack_holes: AckHolesPolicy = AckHolesPolicy()
    cursor_not_persistable: CursorNotPersistablePolicy = CursorNotPersistablePolicy()
    consumer_fanout: ConsumerFanoutPolicy = ConsumerFanoutPolicy()
    producer_fanout: ProducerFanoutPolicy = ProducerFanoutPolicy()
    connection_churn: ConnectionChurnPolicy = ConnectionChurnPolicy()
