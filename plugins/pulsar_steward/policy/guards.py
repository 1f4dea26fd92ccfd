"""Section of the guards: limits under which even an approved change is refused."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from croniter import CroniterError, croniter
from pydantic import AfterValidator, Field

from pulsar_steward.model.pulsar_versions import VERSION
from pulsar_steward.model.section import Section
from pulsar_steward.policy.names import ANY

_AT_RANDOM = re.compile(r"(?<![a-z])[hr](?![a-z])", re.IGNORECASE)
"""Letters for which croniter chooses a random time, another one at each call."""

_ANY_DAY = datetime(2026, 1, 1)  # noqa: DTZ001 - whether a time ever comes does not depend on the zone


_FIELDS = 5


def _cron(text: str) -> str:
    if len(text.split()) != _FIELDS or _AT_RANDOM.search(text) or not croniter.is_valid(text):
        raise ValueError(f"{text!r} is no cron expression of five fields, such as `0 22 * * 1-5`")
    try:
        croniter(text, _ANY_DAY).get_next()
    except CroniterError as error:
        raise ValueError(f"{text!r} never comes, as no month has such a day: such a window would not open") from error
    return text


def _zone(text: str) -> str:
    if text not in available_timezones():
        raise ValueError(f"{text!r} is no time zone, such as `Europe/Berlin` or `UTC`")
    return text


def _version(text: str) -> str:
    if not VERSION.fullmatch(text) or ANY in text:
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
    """Limits of the guards, which refuse changes even after approval."""

    quota_margin_percent: int = Field(
        10, ge=0, le=99, description="of a `producer_*` quota that a topic must have left for its bundle to be moved"
    )
    most_redelivered_messages: int = Field(
        1_000_000,
        ge=0,
        description="acknowledged messages of batches acknowledged in part that a move may deliver again, at most; 0:"
        " none, so that nothing is moved that consumers of batches hold messages of",
    )
    largest_batch_messages: int = Field(
        1_000,
        ge=1,
        description="that producers put into a batch, at most: what clients do by default; 1: nobody batches. Brokers"
        " tell no more than an average",
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
