"""Section of the guards: limits under which an approved change is refused all the same."""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from croniter import croniter
from pydantic import AfterValidator, Field

from pulsar_steward.model.pulsar_versions import VERSION
from pulsar_steward.model.section import Section


def _cron(text: str) -> str:
    if not croniter.is_valid(text):
        raise ValueError(f"{text!r} is no cron expression of five fields, such as `0 22 * * 1-5`")
    return text


def _zone(text: str) -> str:
    if text not in available_timezones():
        raise ValueError(f"{text!r} is no time zone, such as `Europe/Berlin` or `UTC`")
    return text


def _version(text: str) -> str:
    if not VERSION.fullmatch(text):
        raise ValueError(f"{text!r} is no version of Pulsar, such as `4.3` or `4.0.7-acme`")
    return text


class MaintenanceWindow(Section):
    """Maintenance window in which changes may be made."""

    opens: Annotated[str, AfterValidator(_cron)] = Field(description="cron expression of when it begins")
    minutes: int = Field(ge=1, le=7 * 24 * 60, description="how long it lasts")
    time_zone: Annotated[str, AfterValidator(_zone)] = Field("UTC", description="that `opens` is in")

    @property
    def zone(self) -> ZoneInfo:
        """Time zone of `opens`."""
        return ZoneInfo(self.time_zone)


class GuardsPolicy(Section):
    """Limits of the guards, which leave a cluster alone even where a change was approved."""

    quota_margin_percent: int = Field(
        10, ge=0, le=99, description="of a `producer_*` quota that a topic must have left for its bundle to be moved"
    )
    most_redelivered_messages: int = Field(
        0, ge=0, description="acknowledged messages that a move may bring back, as ack holes beyond a limit are lost"
    )
    most_delayed_index_megabytes: int = Field(
        64, ge=0, description="of a bundle's in-memory index of delayed messages, whose backlog a move reads again"
    )
    most_clock_difference_seconds: int = Field(
        5, ge=1, description="between brokers, for limits that go by a message's age"
    )
    snapshot_valid_minutes: int = Field(
        1500,
        ge=1,
        description="from the snapshot to the last change resting on it: a question's day, and its answer's hour",
    )
    circle_minutes: int = Field(
        720, ge=0, description="a bundle moved away and back within this stops all moves in its namespace"
    )
    most_coordinators: int = Field(
        0,
        ge=0,
        le=10_000,
        description="transaction coordinators that their number may be raised to, which cannot be undone; 0: it is"
        " never raised, nor is that proposed",
    )
    coordinators_rest_minutes: int = Field(
        1440,
        ge=0,
        description="after their number was raised, before it is raised again: clients connect to new ones late",
    )
    most_changes_per_run: int = Field(1000, ge=1, description="changes of one batch; what is more waits for the next")
    most_changes_per_hour: int = Field(2000, ge=1, description="changes in this cluster, all batches together")
    versions_tried_here: tuple[Annotated[str, AfterValidator(_version)], ...] = Field(
        (),
        description="versions of Pulsar that you tried changes on: a line (4.3), or as brokers tell it (4.0.7-acme);"
        " they add to docs/versions.md",
    )
    windows: tuple[MaintenanceWindow, ...] = Field((), description="when changes may be made; none: at any time")
