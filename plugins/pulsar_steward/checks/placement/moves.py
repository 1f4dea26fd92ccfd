"""Owners of bundles over the snapshots of a window: moves that no restart explains, and restarts."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from pulsar_steward.checks.views import STARTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.check import Row


STARTS = f"""
select source as broker, max(value) as started from metrics
where series = '{STARTED}' and source_kind = 'broker' and isfinite(value) group by source
"""
"""Start times of brokers' processes, seconds since the epoch."""

OWNERS = """
with owned as (
    select namespace, bundle, owner, min(owner) over same = max(owner) over same as sure
    from bundles where owner is not null and not is_heartbeat(namespace)
    window same as (partition by namespace, bundle)),
held as (
    select owner as broker,
        coalesce(list(namespace || '/' || bundle order by namespace, bundle) filter (sure), []) as bundles
    from owned group by owner)
select broker, coalesce(read, false) as read, held.bundles from brokers full join held using (broker)
"""
"""One row per listed broker: whether it was read, and its bundles, null if it has none.

One row per bundle would be far more data, as hardly any bundle moves. A bundle that two brokers report is just moving.
"""


@dataclass(frozen=True)
class OwnershipPeriod:
    """A bundle at one owner, for one or more consecutive snapshots.

    Attributes:
        owner: The broker.
        at: Time of the first of the snapshots.
        restart: True if the previous owner was away when the bundle left it.
    """

    owner: str
    at: datetime
    restart: bool = False


@dataclass(frozen=True)
class Journey:
    """The owners of a bundle over time.

    Attributes:
        namespace: The bundle's namespace.
        bundle: Its range.
        stays: Its periods at one owner, in order of time; at least two.
    """

    namespace: str
    bundle: str
    stays: tuple[OwnershipPeriod, ...]

    @property
    def explained(self) -> int:
        """Number of moves away from brokers that were away."""
        return sum(stay.restart for stay in self.stays)

    @property
    def moves(self) -> int:
        """Number of the other moves, without a restart to explain them."""
        return len(self.stays) - 1 - self.explained

    @property
    def returns(self) -> int:
        """Number of these moves that went straight back to the previous owner."""
        there_and_back = zip(self.stays, self.stays[1:], self.stays[2:], strict=False)
        return sum(
            before.owner == back.owner and not there.restart and not back.restart
            for before, there, back in there_and_back
        )

    @property
    def weight(self) -> int:
        """Weight of the moves: a move straight back counts as two."""
        return self.moves + self.returns


@dataclass(frozen=True)
class Restarts:
    """A broker whose process restarted again and again.

    Attributes:
        broker: The broker.
        seen: Times of the snapshots that show a later start than the snapshot before, in order. A snapshot has only the
            last start, so there may have been more.
        left: Number of bundles that moved away from it while it was away.
    """

    broker: str
    seen: tuple[datetime, ...]
    left: int


Owners: TypeAlias = "Mapping[datetime, Sequence[Row]]"
"""Rows of `OWNERS` by the time of their snapshot."""

Starts: TypeAlias = "Mapping[datetime, Sequence[Row]]"
"""Rows of `STARTS` by the time of their snapshot."""

Gone: TypeAlias = "Mapping[str, Sequence[datetime]]"
"""Brokers that were away at some time since the snapshot before, with the times of all such snapshots."""


def journeys(times: Sequence[datetime], owners: Owners, gone: Gone) -> Iterator[Journey]:
    """Yields the journeys of bundles that moved; snapshots in which a bundle's owner is unknown or missing are skipped.

    Args:
        times: Times of the snapshots, the oldest first.
        owners: The owners in them.
        gone: Brokers that were away.
    """
    stays: dict[str, list[OwnershipPeriod]] = {}
    seen: dict[str, datetime] = {}
    for at in times:
        for row in owners.get(at, ()):
            here = OwnershipPeriod(row["broker"], at)
            for name in row["bundles"] or ():
                so_far = stays.setdefault(name, [here])
                if (source := so_far[-1].owner) != here.owner:
                    restart = any(seen[name] < moment <= at for moment in gone.get(source, ()))
                    so_far.append(OwnershipPeriod(here.owner, at, restart))
                seen[name] = at
    for name, its_stays in stays.items():
        if len(its_stays) > 1:
            namespace, _, bundle = name.rpartition("/")
            yield Journey(namespace, bundle, tuple(its_stays))


def away(times: Sequence[datetime], owners: Owners, starts: Starts) -> Gone:
    """Brokers that were away at some time since the snapshot before: restarted, not listed, or not read.

    A broker without a known start counts as away if it has no bundle left.

    Args:
        times: Times of the snapshots, the oldest first.
        owners: The owners in them.
        starts: The rows of `STARTS` by the time of their snapshot.
    """
    gone: dict[str, list[datetime]] = defaultdict(list)
    brokers = {row["broker"] for rows in owners.values() for row in rows}
    for before, after in pairwise(times):
        rows = {row["broker"]: row for row in owners.get(after, ())}
        started = {row["broker"]: row["started"] for row in starts.get(after, ())}
        for broker in brokers:
            row = rows.get(broker)
            if row is None or not row["read"]:
                gone[broker].append(after)
            elif broker in started:
                if started[broker] > before.timestamp():
                    gone[broker].append(after)
            elif row["bundles"] is None:
                gone[broker].append(after)
    return gone


def restarts(times: Sequence[datetime], starts: Starts, journeys: Iterable[Journey]) -> list[Restarts]:
    """Brokers that restarted between snapshots, by name; unknown starts are skipped.

    Args:
        times: Times of the snapshots, the oldest first.
        starts: The starts in them.
        journeys: Journeys of the bundles that moved meanwhile.
    """
    last: dict[str, float] = {}
    seen: dict[str, list[datetime]] = defaultdict(list)
    for at in times:
        for row in starts.get(at, ()):
            if row["started"] > last.get(row["broker"], row["started"]):
                seen[row["broker"]].append(at)
            last[row["broker"]] = row["started"]
    left = Counter(before.owner for journey in journeys for before, after in pairwise(journey.stays) if after.restart)
    return [Restarts(broker, tuple(seen[broker]), left[broker]) for broker in sorted(seen)]
