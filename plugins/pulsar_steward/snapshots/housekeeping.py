"""Removal of snapshots past their keep time, and of the large tables of old ones."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.snapshots.folder import LOOK_BACK, SnapshotFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.policy.schema import HousekeepingPolicy

log = logging.getLogger(__name__)


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A stored snapshot.

    Attributes:
        folder: Its folder.
        taken_at: Its time, by its name, UTC.
        finished: True if it is finished, or was until it was compacted.
        compacted: True if its large tables were removed.
    """

    folder: SnapshotFolder
    taken_at: datetime
    finished: bool
    compacted: bool = False


class Tidied(msgspec.Struct, frozen=True, kw_only=True):
    """Removed and compacted snapshots, oldest first, and the number of the remaining ones."""

    removed: tuple[str, ...]
    compacted: tuple[str, ...]
    left: int


def past_their_time(there: Sequence[Kept], policy: HousekeepingPolicy, now: datetime) -> list[Kept]:
    """Snapshots to remove, oldest first; has no side effects.

    Args:
        there: All snapshots of one cluster, in any order.
        policy: How long they are kept.
        now: Current time, UTC.
    """
    oldest_first = sorted(there, key=lambda each: each.taken_at)
    finished = [each for each in oldest_first if each.finished]
    old = now - timedelta(days=policy.keep_snapshots_days)
    left_behind = now - timedelta(hours=policy.unfinished_hours)
    may_go = finished[: -policy.keep_snapshots_least]
    return [
        each
        for each in oldest_first
        if (each in may_go and each.taken_at < old) or (not each.finished and each.taken_at < left_behind)
    ]


def too_large_by_now(there: Sequence[Kept], policy: HousekeepingPolicy, now: datetime) -> list[Kept]:
    """Snapshots to compact, oldest first; has no side effects. Arguments as those of `past_their_time`.

    Snapshots that a diagnosis may read stay whole, whatever the policy says.
    """
    finished = sorted((each for each in there if each.finished), key=lambda each: each.taken_at)
    old = now - timedelta(days=policy.keep_topics_days)
    may_be = finished[: -max(policy.keep_snapshots_least, LOOK_BACK)]
    return [each for each in may_be if each.taken_at < old and not each.compacted]


def tidy(newest: SnapshotFolder, policy: HousekeepingPolicy, now: datetime) -> Tidied:
    """Removes expired snapshots, and compacts old ones, for the cluster of a snapshot.

    Args:
        newest: Any snapshot in the cluster's folder; it need not exist.
        policy: How long snapshots are kept.
        now: Current time, UTC.
    """
    there = [
        Kept(folder=folder, taken_at=taken_at, finished=compacted or folder.finished(), compacted=compacted)
        for folder, taken_at in newest.all_of_cluster()
        for compacted in (folder.compacted(),)
    ]
    gone = past_their_time(there, policy, now)
    for each in gone:
        each.folder.remove()
        log.info("removed %s", each.folder.uri)
    left = [each for each in there if each not in gone]
    compacted = too_large_by_now(left, policy, now)
    for each in compacted:
        each.folder.compact()
        log.info("compacted %s", each.folder.uri)
    return Tidied(
        removed=tuple(each.folder.uri for each in gone),
        compacted=tuple(each.folder.uri for each in compacted),
        left=len(left),
    )
