"""Estimated time without service for each broker's topics if it restarts or is lost, of the newest snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.delayed.failover_time import CHECK
from pulsar_steward.model.finding import Outlook
from pulsar_steward.snapshots.rows import FailoverRow

if TYPE_CHECKING:
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.snapshots.read import Snapshot

LISTED_FAILOVERS = 25
"""Number of brokers that a page lists, the longest time first; the API lists all."""


class Failovers(msgspec.Struct, frozen=True, kw_only=True):
    """Estimates by broker.

    Attributes:
        brokers: Brokers that reported their load, the longest time first.
        unknown: Reason why the check `failover-time` could not estimate all; empty: it could.
    """

    brokers: tuple[FailoverRow, ...]
    unknown: str


def failovers(sources: Sources, snapshot: Snapshot) -> Failovers:
    """Estimates for all brokers of a snapshot, from its diagnosis.

    Raises:
        SnapshotError: If it cannot be read.
    """
    return sources.kept_large.get(("failovers", snapshot.uri), lambda: _failovers(sources, snapshot))


def _failovers(sources: Sources, snapshot: Snapshot) -> Failovers:
    told = {each.check_id: each for each in sources.summary(snapshot).verdicts}.get(CHECK.check_id)
    if told is None:
        unknown = f"The check {CHECK.check_id} has not looked at this snapshot."
    else:
        unknown = told.reason if told.outlook is Outlook.UNKNOWN else ""
    return Failovers(
        brokers=tuple(sorted(snapshot.failovers(), key=lambda each: (-each.lost_seconds, each.broker))),
        unknown=unknown,
    )
