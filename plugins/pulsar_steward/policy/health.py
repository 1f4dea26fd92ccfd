"""Section of health limits: a batch slows down or stops if its changes harm the touched clients."""

from __future__ import annotations

from pydantic import Field

from pulsar_steward.model.section import Section


class HealthPolicy(Section):
    """Measurements after each move or split, and how much worse than right before it they may be.

    From half of a limit on, each measurement halves the pace of the batch's next changes.
    """

    watched_topics: int = Field(
        20, ge=0, le=1000, description="of each bundle, those of most clients, compared before and after; 0: none"
    )
    return_seconds: int = Field(30, ge=1, le=600, description="that clients and coordinators have to be back after")
    most_missing_clients_percent: int = Field(
        10, ge=0, le=100, description="producers or consumers that are not back by then: refused, or lost"
    )
    most_backlog_growth_percent: int = Field(
        100, ge=0, description="of the watched topics' backlog meanwhile, once it is over `backlog_floor_messages`"
    )
    backlog_floor_messages: int = Field(10_000, ge=0, description="backlog that is never trouble")
    most_publish_milliseconds: int = Field(
        1000, ge=1, description="99th percentile of publishing at the owner, where it was below it before"
    )
