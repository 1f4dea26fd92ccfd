"""Placement that a plan predicts, beside today's: what each broker has, and will have when the steps left are done."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.tables import BUNDLES, TRANSACTION_COORDINATORS

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
        """Both together, or what is left without the other."""
        ours, theirs = msgspec.structs.asdict(self), msgspec.structs.asdict(other)
        return Share(**{name: value + sign * theirs[name] for name, value in ours.items()})


class BrokerPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's share today, and when the steps that are left are done."""

    broker: str
    today: Share
    predicted: Share


class PredictedPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """Brokers whose share changes, by name.

    Attributes:
        taken_at: Time of the snapshot that shows today's.
        moves: Bundles that are still to move.
        not_seen: Those of them that the snapshot shows without an owner, or not at all: they are not counted.
        unchanged: Brokers whose share stays as it is.
    """

    taken_at: datetime
    brokers: tuple[BrokerPlacement, ...]
    moves: int
    not_seen: int
    unchanged: int


class _Loads(NamedTuple):
    """Bundles of a snapshot by ``namespace/bundle``, as columns, and the sums by broker."""

    bundles: pa.Table
    coordinators: Mapping[str, int]
    brokers: Mapping[str, Share]


def predicted_placement(
    sources: Sources, snapshot: Snapshot, moves: Iterable[UnloadBundle]
) -> PredictedPlacement | None:
    """The placement when these moves are done; None: there are none.

    Raises:
        SnapshotError: If the snapshot cannot be read.
    """
    targets = {f"{move.namespace}/{move.bundle}": move.target for move in moves}
    if not targets:
        return None
    loads = sources.kept_large.get(("loads", snapshot.uri), lambda: _loads(snapshot))
    changes: dict[str, Share] = defaultdict(Share)
    found = loads.bundles.filter(pc.is_in(loads.bundles["name"], value_set=pa.array(list(targets)))).to_pylist()
    for row in found:
        if row["owner"] == targets[row["name"]]:  # it is there already
            continue
        share = Share(
            coordinators=loads.coordinators.get(row["name"], 0),
            bundles=1,
            topics=row["topics"],
            bytes_per_second=row["rate"],
        )
        changes[row["owner"]] = changes[row["owner"]].plus(share, -1)
        changes[targets[row["name"]]] = changes[targets[row["name"]]].plus(share)
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
    names = ["namespace", "bundle", "owner", "topics", "throughput_in_bytes", "throughput_out_bytes"]
    table = snapshot.table(BUNDLES, names)
    table = table.filter(pc.is_valid(table["owner"]))
    into, out = (pc.fill_null(table[f"throughput_{way}_bytes"], 0.0) for way in ("in", "out"))
    columns = {
        "name": pc.binary_join_element_wise(table["namespace"], table["bundle"], "/"),
        "owner": table["owner"],
        "topics": pc.fill_null(table["topics"], 0),
        "rate": pc.add(into, out),
    }
    bundles = pa.table(columns)
    sums = bundles.group_by("owner").aggregate([("name", "count"), ("topics", "sum"), ("rate", "sum")])
    by_bundle: dict[str, int] = defaultdict(int)
    by_broker: dict[str, int] = defaultdict(int)
    for row in snapshot.table(TRANSACTION_COORDINATORS, ["bundle", "broker"]).to_pylist():
        by_bundle[f"{TC_NAMESPACE}/{row['bundle']}"] += 1
        by_broker[row["broker"]] += 1
    return _Loads(
        bundles=bundles,
        coordinators=by_bundle,
        brokers={
            row["owner"]: Share(
                coordinators=by_broker[row["owner"]],
                bundles=row["name_count"],
                topics=row["topics_sum"],
                bytes_per_second=row["rate_sum"],
            )
            for row in sums.to_pylist()
        },
    )
