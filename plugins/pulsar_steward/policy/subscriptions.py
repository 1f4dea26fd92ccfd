"""Section of subscriptions: whether abandoned ones may be proposed for deletion, and which are never deleted."""

from __future__ import annotations

from pydantic import Field

from pulsar_steward.model.section import Section
from pulsar_steward.policy.names import SubscriptionPattern, TopicPattern  # noqa: TC001 - pydantic reads it


class SubscriptionsPolicy(Section):
    """Deletion of abandoned subscriptions, with their unread messages; only proposed if this section allows it."""

    delete_abandoned: bool = Field(
        default=False, description="whether people are asked to delete what `subscription-abandoned` finds"
    )
    minimum_days: int = Field(
        35, ge=1, le=3650, description="without a consumer: five weeks, so that a job of every month is well"
    )
    growth_percent: int = Field(
        25,
        ge=0,
        le=1000,
        description="that a backlog may grow until it is deleted, at least, as nobody reads it: it is rounded up, so"
        " that no snapshot asks anew",
    )
    most_steps_per_plan: int = Field(
        20, ge=1, le=1000, description="deletions of one plan, of what is abandoned for longest"
    )
    protected_topics: tuple[TopicPattern, ...] = Field(
        (),
        description="topics (full names without `-partition-N`, or such as `persistent://tenant/name/*`) whose"
        " subscriptions all stay",
    )
    protected_subscriptions: tuple[SubscriptionPattern, ...] = Field(
        (), description="names of subscriptions (or such as `audit-*`) that stay on every topic"
    )
