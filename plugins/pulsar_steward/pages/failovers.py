"""How long the topics of each broker would be gone without it, of the newest snapshot: for whoever plans a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.delayed.failover_time import CHECK
from pulsar_steward.model.finding import Outlook

if TYPE_CHECKING:
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.snapshots.read import Snapshot

LISTED_FAILOVERS = 25
"""Brokers that a page lists, those that take longest; the API lists all."""


class Failover(msgspec.Struct, frozen=True, kw_only=True):
    """What it takes until everything of one broker is served again, an estimate.

    Attributes:
        broker: ``host:webport``.
        others: Brokers that would take over; 0: only itself, once it is back.
        delayed_messages: Delayed messages that would be read again, at least.
        session_seconds: Until its metadata session ends; nobody waits for that where it ends orderly.
        assigning_seconds: Until its bundles have a new owner.
        loading_seconds: Until its topics are loaded.
        reading_seconds: Until the delayed messages are read.
        ended_seconds: All of it where the broker ends orderly, with the time that clients take to try again.
        lost_seconds: The same where it is lost.
    """

    broker: str
    others: int
    bundles: int
    topics: int
    delayed_messages: int
    session_seconds: float
    assigning_seconds: float
    loading_seconds: float
    reading_seconds: float
    ended_seconds: int
    lost_seconds: int


class Failovers(msgspec.Struct, frozen=True, kw_only=True):
    """Estimates by broker.

    Attributes:
        brokers: Those that told their load, the one that takes longest first.
        unknown: Why the check `failover-time` could not tell all; empty: it could.
    """

    brokers: tuple[Failover, ...]
    unknown: str


def failovers(sources: Sources, snapshot: Snapshot) -> Failovers:
    """Estimates for all brokers of a snapshot, as it was diagnosed; none of those of an earlier version.

    Raises:
        SnapshotError: If it cannot be read.
    """
    return sources.kept_large.get(("failovers", snapshot.uri), lambda: _failovers(sources, snapshot))


def _failovers(sources: Sources, snapshot: Snapshot) -> Failovers:
    rows = [Failover(**msgspec.structs.asdict(row)) for row in snapshot.failovers()]
    told = {each.check_id: each for each in sources.summary(snapshot).verdicts}.get(CHECK.check_id)
    if told is None:
        unknown = f"The check {CHECK.check_id} has not looked at this snapshot."
    else:
        unknown = told.reason if told.outlook is Outlook.UNKNOWN else ""
    return Failovers(
        brokers=tuple(sorted(rows, key=lambda each: (-each.lost_seconds, each.broker))),
        unknown=unknown,
    )
