"""Sections of the policy: those of checks, each defined beside its check, and small ones of other parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field, create_model

from pulsar_steward.checks.registry import CHECKS
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.policy.names import SubscriptionPattern, TopicPattern

if TYPE_CHECKING:
    from pulsar_steward.checks.backlog.growth import BacklogGrowingPolicy
    from pulsar_steward.checks.placement.broker_load import BrokerLoadSkewPolicy
    from pulsar_steward.checks.placement.bundle_load import BundleTopicSkewPolicy, HotBundlePolicy
    from pulsar_steward.checks.placement.coordinators import TcSkewPolicy

    class CheckSections(Section):
        """Sections of the checks, each an attribute with the check's name; the registry knows their names."""

        # Sections that other code than the check itself reads; other checks need no line here.
        backlog_growing: BacklogGrowingPolicy = BacklogGrowingPolicy()
        broker_load_skew: BrokerLoadSkewPolicy = BrokerLoadSkewPolicy()
        bundle_topic_skew: BundleTopicSkewPolicy = BundleTopicSkewPolicy()
        hot_bundle: HotBundlePolicy = HotBundlePolicy()
        tc_skew: TcSkewPolicy = TcSkewPolicy()

        def __getattr__(self, name: str) -> Any:
            """Section of the check with this name."""

else:
    CheckSections = create_model(
        "CheckSections", __base__=Section, **{check.section: (check.policy, check.policy()) for check in CHECKS}
    )


class SubscriptionsPolicy(Section):
    """Deletion of abandoned subscriptions, with their unread messages; only proposed if this section allows it."""

    delete_abandoned: bool = Field(
        default=False, description="whether people are asked to delete what `subscription-abandoned` finds"
    )
    minimum_days: int = number(35, "without a consumer: five weeks, so that a job of every month is well", le=3650)
    growth_percent: int = number(
        25,
        "that a backlog may grow until it is deleted, at least, as nobody reads it: it is rounded up, so"
        " that no snapshot asks anew",
        ge=0,
        le=1000,
    )
    most_steps_per_plan: int = number(20, "deletions of one plan, of what is abandoned for longest", le=1000)
    protected_topics: tuple[TopicPattern, ...] = Field(
        (),
        description="topics (full names without `-partition-N`, or such as `persistent://tenant/name/*`) whose"
        " subscriptions all stay",
    )
    protected_subscriptions: tuple[SubscriptionPattern, ...] = Field(
        (), description="names of subscriptions (or such as `audit-*`) that stay on every topic"
    )


class HealthPolicy(Section):
    """Measurements after each move or split, and how much worse than right before it they may be.

    From half of a limit on, each measurement halves the pace of the batch's next changes.
    """

    watched_topics: int = number(
        20, "of each bundle, those of most clients, compared before and after; 0: none", ge=0, le=1000
    )
    return_seconds: int = number(30, "that clients and coordinators have to be back after", le=600)
    most_missing_clients_percent: int = percent(
        10, "producers or consumers that are not back by then: refused, or lost", ge=0
    )
    most_backlog_growth_percent: int = number(
        100, "of the watched topics' backlog meanwhile, once it is over `backlog_floor_messages`", ge=0
    )
    backlog_floor_messages: int = number(10_000, "backlog that is never trouble", ge=0)
    most_publish_milliseconds: int = number(
        1000, "99th percentile of publishing at the owner, where it was below it before"
    )


class HousekeepingPolicy(Section):
    """Snapshots that ``pulsar_housekeeping`` removes or compacts. The ledger is kept for ever, as it is a chain."""

    keep_snapshots_days: int = number(14, "from when a snapshot was taken", le=3650)
    keep_snapshots_least: int = number(
        12, "finished snapshots, the newest, that stay whole however old they are", le=1000
    )
    keep_topics_days: int = number(
        3,
        "after which only what was said of a snapshot stays, with its brokers, bundles and namespaces: "
        "topics, subscriptions, clients and metrics are nearly all of its size; it counts as a snapshot no more",
        le=3650,
    )
    unfinished_hours: int = number(24, "after which a snapshot that was never finished is taken for left behind")
