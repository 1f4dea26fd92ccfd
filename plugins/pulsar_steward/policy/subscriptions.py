"""Section of subscriptions: whether abandoned ones may be proposed for deletion, and which never are."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pulsar_steward.model.section import Section

TopicName = Annotated[str, Field(pattern=r"^(persistent|non-persistent)://[^/]+/[^/]+/.+$")]


class SubscriptionsPolicy(Section):
    """Deletion of abandoned subscriptions, which loses what they have not read; proposed only where this says so."""

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
    protected_topics: tuple[TopicName, ...] = Field(
        (), description="topics (full names, of partitioned ones without `-partition-N`) whose subscriptions all stay"
    )
    protected_subscriptions: tuple[str, ...] = Field((), description="names of subscriptions that stay on every topic")
