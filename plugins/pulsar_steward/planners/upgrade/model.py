"""Parts and lines of the report on an upgrade, and the pages of Pulsar's own that they rest on."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pulsar_steward.planners.restarts.model import State

TARGET = "5.0"
"""Line of releases that the report is about."""

_SITE = "https://pulsar.apache.org/docs"
GUIDE = f"{_SITE}/5.0.x/administration-upgrade-to-5.0.x/"
CONFIGURATION = f"{_SITE}/5.0.x/administration-upgrade-to-5.0.x-configuration/"
APPLICATIONS = f"{_SITE}/5.0.x/administration-upgrade-to-5.0.x-applications/"
SEQUENCE = f"{_SITE}/5.0.x/administration-upgrade/"
ROLLING = f"{_SITE}/5.0.x/administration-rolling-upgrade/"
MIGRATION = f"{_SITE}/5.0.x/administration-metadata-store-migration/"


def pull(number: int) -> str:
    """Address of a pull request or issue of apache/pulsar."""
    return f"https://github.com/apache/pulsar/pull/{number}"


def pip(number: int) -> str:
    """Address of a Pulsar improvement proposal."""
    return f"https://github.com/apache/pulsar/blob/master/pip/pip-{number}.md"


class Part(StrEnum):
    """A part of the report, in its order."""

    BLOCKS = "In the way of a rolling upgrade today"
    GONE = "Gone in 5.0"
    CHANGES = "Defaults that change"
    NEW = "New settings"
    KEPT = "Set here, and kept"
    VERSIONS = "Java and clients"
    METADATA = "The metadata store"
    ORDER = "In this order"


HOLDING = frozenset({Part.BLOCKS, Part.GONE, Part.METADATA})
"""Parts with what has to be done or known before the first broker is upgraded."""


class UpgradeLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the report.

    Attributes:
        part: Its part.
        subject: A setting, check, feature or version; empty for a step.
        state: Its state.
        words: Effect on this cluster, with its figures.
        sources: Addresses, or a page of Steward's documents.
        before: Default of the running brokers' version, or the value in force; None: no setting.
        after: Default in 5.0.
        idle: True if it is about something that the cluster has none of.
    """

    part: Part
    subject: str = ""
    state: State = State.NOTE
    words: str
    sources: tuple[str, ...]
    before: str | None = None
    after: str | None = None
    idle: bool = False


class UpgradeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report.

    Attributes:
        cluster: The cluster's name in Steward.
        snapshot_id: Its snapshot.
        versions: Versions of the brokers.
        unread: Brokers and namespaces that could not be read.
        lines: Its lines, part by part.
    """

    cluster: str
    snapshot_id: str
    versions: tuple[str, ...]
    unread: tuple[str, ...]
    lines: tuple[UpgradeLine, ...]

    @property
    def state(self) -> State:
        """Whether the upgrade may begin: `STOP` if something is in the way, `UNKNOWN` if that is not known."""
        states = {each.state for each in self.lines if each.part in HOLDING}
        if State.STOP in states:
            return State.STOP
        return State.UNKNOWN if State.UNKNOWN in states or self.unread else State.NOTE
