"""Bundles' owners over the snapshots of a window, the moves between them that no restart explains, and the restarts."""

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
"""When the processes of brokers started, seconds since the epoch."""

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
"""A row a broker that is listed: whether it was read, and its bundles, null where it has none. A row a bundle would be
far more than is worth handing on, as hardly any of them moves. A bundle that two brokers told of was just moving."""


@dataclass(frozen=True)
class Stay:
    """A bundle at an owner, for one snapshot or more in a row.

    Attributes:
        owner: The broker.
        at: When the first of the snapshots was taken.
        restart: Whether the owner before was away when the bundle left it.
    """

    owner: str
    at: datetime
    restart: bool = False


@dataclass(frozen=True)
class Journey:
    """Where a bundle was, each owner once a stay.

    Attributes:
        namespace: Of the bundle.
        bundle: Its range.
        stays: In order of time, at least two.
    """

    namespace: str
    bundle: str
    stays: tuple[Stay, ...]

    @property
    def explained(self) -> int:
        """Moves away from brokers that were away."""
        return sum(stay.restart for stay in self.stays)

    @property
    def moves(self) -> int:
        """The others, which no restart explains."""
        return len(self.stays) - 1 - self.explained

    @property
    def returns(self) -> int:
        """Of these, the ones straight back to the owner before."""
        there_and_back = zip(self.stays, self.stays[1:], self.stays[2:], strict=False)
        return sum(
            before.owner == back.owner and not there.restart and not back.restart
            for before, there, back in there_and_back
        )

    @property
    def weight(self) -> int:
        """What the moves weigh: one straight back weighs two."""
        return self.moves + self.returns


@dataclass(frozen=True)
class Restarts:
    """A broker whose process started anew again and again.

    Attributes:
        broker: Which.
        seen: When the snapshots were taken that show a later start than the one before, in order; a snapshot shows the
            last start only, so there may have been more.
        left: Moves of bundles away from it while it was away.
    """

    broker: str
    seen: tuple[datetime, ...]
    left: int


Owners: TypeAlias = "Mapping[datetime, Sequence[Row]]"
"""The rows of `OWNERS` by the time of their snapshot."""

Starts: TypeAlias = "Mapping[datetime, Sequence[Row]]"
"""The rows of `STARTS` by the time of their snapshot."""

Gone: TypeAlias = "Mapping[str, Sequence[datetime]]"
"""Brokers that were away at some time since the snapshot before, with the times of all snapshots that show it."""


def by_time(rows: Iterable[Row]) -> dict[datetime, list[Row]]:
    """The rows of each earlier snapshot."""
    found: dict[datetime, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["taken_at"]].append(row)
    return found


def journeys(times: Sequence[datetime], owners: Owners, gone: Gone) -> Iterator[Journey]:
    """Of the bundles that moved; snapshots in which nobody had them, or nobody knows who, are passed over.

    Args:
        times: When the snapshots were taken, the oldest first.
        owners: What they say.
        gone: Who was away.
    """
    stays: dict[str, list[Stay]] = {}
    seen: dict[str, datetime] = {}
    for at in times:
        for row in owners.get(at, ()):
            here = Stay(row["broker"], at)
            for name in row["bundles"] or ():
                so_far = stays.setdefault(name, [here])
                if (source := so_far[-1].owner) != here.owner:
                    restart = any(seen[name] < moment <= at for moment in gone.get(source, ()))
                    so_far.append(Stay(here.owner, at, restart))
                seen[name] = at
    for name, its_stays in stays.items():
        if len(its_stays) > 1:
            namespace, _, bundle = name.rpartition("/")
            yield Journey(namespace, bundle, tuple(its_stays))


def away(times: Sequence[datetime], owners: Owners, starts: Starts) -> Gone:
    """Who was away at some time since the snapshot before: restarted, or not listed, or not read.

    A broker whose start is not known counts as away when it has no bundle left.

    Args:
        times: When the snapshots were taken, the oldest first.
        owners: What they say.
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
    """Brokers that started anew between snapshots, in order of their names; starts that nobody knows are passed over.

    Args:
        times: When the snapshots were taken, the oldest first.
        starts: What they say.
        journeys: Of the bundles that moved meanwhile.
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
