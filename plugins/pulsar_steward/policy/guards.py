"""Section of the guards: limits under which even an approved change is refused."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from croniter import CroniterError, croniter
from pydantic import AfterValidator, Field

from pulsar_steward.model.pulsar_versions import VERSION
from pulsar_steward.model.section import Section, number
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

    quota_margin_percent: int = number(
        10, "of a `producer_*` quota that a topic must have left for its bundle to be moved", ge=0, le=99
    )
    most_redelivered_messages: int = number(
        1_000_000,
        "acknowledged messages of partly acknowledged batches that a move may deliver again, at most; 0: no"
        " move while consumers hold batches",
        ge=0,
    )
    largest_batch_messages: int = number(
        1_000,
        "that producers put into a batch, at most: the default of clients; 1: nobody batches. Brokers report"
        " only an average",
    )
    most_delayed_index_megabytes: int = number(
        64, "of a bundle's in-memory index of delayed messages, whose backlog a move reads again", ge=0
    )
    most_clock_difference_seconds: int = number(5, "between brokers, for limits that go by a message's age")
    snapshot_valid_minutes: int = number(
        1500, "from the snapshot to the last change that is based on it: a day to answer, and an hour to apply"
    )
    circle_minutes: int = number(720, "a bundle moved away and back within this stops all moves in its namespace", ge=0)
    most_coordinators: int = number(
        0,
        "transaction coordinators up to which their number may be raised, which cannot be undone; 0: no raise"
        " is made or proposed",
        ge=0,
        le=10_000,
    )
    coordinators_rest_minutes: int = number(
        1440, "after their number was raised, before it is raised again: clients connect to new ones late", ge=0
    )
    least_brokers: int = number(
        2, "brokers that an isolation policy has to leave to every namespace, unless it has fewer already"
    )
    most_partitions: int = number(
        0,
        "of a topic up to which their number may be raised, which cannot be undone; 0: no raise is made or proposed",
        ge=0,
        le=10_000,
    )
    fewer_copies: bool = Field(
        default=False,
        description="whether new ledgers may keep fewer copies (Qw, Qa) than they do now",
    )
    most_changes_per_run: int = number(1000, "changes of one batch; more wait for the next")
    most_changes_per_hour: int = number(2000, "changes in this cluster, all batches together")
    versions_tried_here: tuple[Annotated[str, AfterValidator(_version)], ...] = Field(
        (),
        description="versions of Pulsar that you tried changes on: a line (4.3), or as brokers tell it (4.0.7-acme);"
        " they add to docs/versions.md",
    )
    windows: tuple[MaintenanceWindow, ...] = Field((), description="when changes may be made; none: at any time")
