"""How long snapshots are kept."""

from __future__ import annotations

from pydantic import Field

from pulsar_steward.policy.section import Section


class HousekeepingPolicy(Section):
    """What ``pulsar_housekeeping`` removes. The ledger is kept for ever: it is a chain."""

    keep_snapshots_days: int = Field(14, ge=1, le=3650, description="from when a snapshot was taken")
    keep_snapshots_least: int = Field(
        10, ge=1, le=1000, description="finished snapshots, the newest, that stay however old they are"
    )
    unfinished_hours: int = Field(
        24, ge=1, description="after which a snapshot that was never finished is taken for left behind"
    )
