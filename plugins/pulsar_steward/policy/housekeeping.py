"""Section of housekeeping: how long snapshots are kept, and how much of each."""

from __future__ import annotations

from pydantic import Field

from pulsar_steward.model.section import Section


class HousekeepingPolicy(Section):
    """Snapshots that ``pulsar_housekeeping`` removes or compacts. The ledger is kept for ever, as it is a chain."""

    keep_snapshots_days: int = Field(14, ge=1, le=3650, description="from when a snapshot was taken")
    keep_snapshots_least: int = Field(
        12, ge=1, le=1000, description="finished snapshots, the newest, that stay whole however old they are"
    )
    keep_topics_days: int = Field(
        3,
        ge=1,
        le=3650,
        description="after which only what was said of a snapshot stays, with its brokers, bundles and namespaces: "
        "topics, subscriptions, clients and metrics are nearly all of its size; it counts as a snapshot no more",
    )
    unfinished_hours: int = Field(
        24, ge=1, description="after which a snapshot that was never finished is taken for left behind"
    )
