"""Present placement, and the placement that a plan predicts for the end of its remaining steps."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pulsar_steward.checks.delayed.failover_time import CHECK
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.finding import Outlook
from pulsar_steward.snapshots.rows import FailoverRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.model.step import UnloadBundle
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.snapshots.read import Snapshot


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """Load of one broker."""

    coordinators: int = 0
    bundles: int = 0
    topics: int = 0
    bytes_per_second: float = 0.0

    def plus(self, other: Share, sign: int = 1) -> Share:
        """Sum of both, or the difference for `sign` -1."""
        ours, theirs = msgspec.structs.asdict(self), msgspec.structs.asdict(other)
        return Share(**{name: value + sign * theirs[name] for name, value in ours.items()})


class BrokerPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's share now, and after the remaining steps."""

    broker: str
    today: Share
    predicted: Share


class PredictedPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """Brokers whose share changes, by name.

    Attributes:
        taken_at: Time of the snapshot with the present placement.
        moves: Number of bundles still to move.
        not_seen: Number of these without an owner, or absent, in the snapshot: they are not counted.
        unchanged: Number of brokers whose share does not change.
    """

    taken_at: datetime
    brokers: tuple[BrokerPlacement, ...]
    moves: int
    not_seen: int
    unchanged: int


class _Bundle(msgspec.Struct, frozen=True):
    name: str
    owner: str
    share: Share


class _Broker(msgspec.Struct, frozen=True):
    broker: str
    share: Share


class _Loads(NamedTuple):
    """Owned bundles of a snapshot by ``namespace/bundle``, and the sums by broker."""

    bundles: Mapping[str, _Bundle]
    brokers: Mapping[str, Share]


_BUNDLES = f"""
    select namespace || '/' || bundle as name, owner, {{'coordinators': coalesce(held, 0), 'bundles': 1,
        'topics': coalesce(topics, 0),
        'bytes_per_second': coalesce(throughput_in_bytes, 0) + coalesce(throughput_out_bytes, 0)}} as share
    from bundles left join (select '{TC_NAMESPACE}' as namespace, bundle, count(*) as held
        from transaction_coordinators group by bundle) using (namespace, bundle)
    where owner is not null"""

_BROKERS = """
    select owner as broker, {'coordinators': coalesce(any_value(held), 0), 'bundles': count(*),
        'topics': coalesce(sum(topics), 0)::bigint,
        'bytes_per_second': sum(coalesce(throughput_in_bytes, 0) + coalesce(throughput_out_bytes, 0))} as share
    from bundles left join (select broker as owner, count(*) as held from transaction_coordinators group by broker)
        using (owner)
    where owner is not null group by owner"""


def predicted_placement(
    sources: Sources, snapshot: Snapshot, moves: Iterable[UnloadBundle]
) -> PredictedPlacement | None:
    """The placement after these moves; None: there are none."""
    targets = {f"{move.namespace}/{move.bundle}": move.target for move in moves}
    if not targets:
        return None
    loads = sources.kept_large.get(("loads", snapshot.uri), lambda: _loads(snapshot))
    changes: dict[str, Share] = defaultdict(Share)
    found = [loads.bundles[name] for name in targets if name in loads.bundles]
    for bundle in found:
        if (target := targets[bundle.name]) != bundle.owner:  # else it has already moved
            changes[bundle.owner] = changes[bundle.owner].plus(bundle.share, -1)
            changes[target] = changes[target].plus(bundle.share)
    brokers = tuple(
        BrokerPlacement(broker=name, today=today, predicted=today.plus(change))
        for name, change in sorted(changes.items())
        for today in [loads.brokers.get(name, Share())]
    )
    return PredictedPlacement(
        taken_at=sources.summary(snapshot).meta.taken_at,
        brokers=brokers,
        moves=len(targets),
        not_seen=len(targets) - len(found),
        unchanged=len(loads.brokers.keys() - changes.keys()),
    )


def _loads(snapshot: Snapshot) -> _Loads:
    return _Loads(
        bundles={row.name: row for row in snapshot.select(_BUNDLES, _Bundle)},
        brokers={row.broker: row.share for row in snapshot.select(_BROKERS, _Broker)},
    )


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
    """Estimates for all brokers of a snapshot, from its diagnosis."""
    return sources.kept_large.get(("failovers", snapshot.uri), lambda: _failovers(sources, snapshot))


def _failovers(sources: Sources, snapshot: Snapshot) -> Failovers:
    verdicts = {each.check_id: each for each in sources.summary(snapshot).verdicts}
    unknown = f"The check {CHECK.check_id} has not looked at this snapshot."
    if told := verdicts.get(CHECK.check_id):
        unknown = told.reason if told.outlook is Outlook.UNKNOWN else ""
    longest_first = sorted(snapshot.failovers(), key=lambda each: (-each.lost_seconds, each.broker))
    return Failovers(brokers=tuple(longest_first), unknown=unknown)
