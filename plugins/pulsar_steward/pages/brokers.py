"""Brokers with their load, and the bundles on them as a map, of the newest snapshot."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.model.step import UnloadBundle
from pulsar_steward.model.tables import BUNDLES, TRANSACTION_COORDINATORS
from pulsar_steward.model.units import counted
from pulsar_steward.snapshots.rows import BrokerRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.snapshots.read import Snapshot

LISTED_BROKERS = 100
"""Brokers that a page lists at first."""

DRAWN_BROKERS = 40
DRAWN_BUNDLES = 60
"""Largest bundles of a broker that are drawn by themselves; the others are one cell."""


class Broker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker with its load; figures are None where it was not read or does not report them."""

    broker: str
    read: bool
    failure: str | None
    leader: bool
    bundles: int | None
    topics: int | None
    coordinators: int
    producers: int | None
    consumers: int | None
    cpu_percent: float | None
    memory_percent: float | None
    direct_memory_percent: float | None
    throughput_in_bytes: float | None
    throughput_out_bytes: float | None
    read_milliseconds: int


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle on the map, or several small ones together.

    Attributes:
        bundles: How many bundles it stands for.
        heat: Throughput in relation to the busiest cell, from 0 to 1.
        target: Broker that a plan that waits would move it to; None: it stays.
    """

    name: str
    bundles: int
    topics: int
    bytes_per_second: float
    heat: float
    target: str | None = None


class Shelf(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's bundles on the map, the largest first; `broker` is None for those that nobody owns."""

    broker: str | None
    topics: int
    bundles: int
    cells: tuple[Cell, ...]


class BundleMap(msgspec.Struct, frozen=True, kw_only=True):
    """Bundles by broker.

    Attributes:
        most_topics: Topics of the fullest broker, which is as wide as the map.
        not_drawn: Number of brokers beyond those that are drawn, each with fewer topics.
    """

    shelves: tuple[Shelf, ...]
    most_topics: int
    bundles: int
    not_drawn: int


def broker_rows(sources: Sources, snapshot: Snapshot) -> tuple[Broker, ...]:
    """All brokers of a snapshot, by name.

    Raises:
        SnapshotError: If it cannot be read.
    """
    return sources.kept_large.get(("brokers", snapshot.uri), lambda: _brokers(snapshot))


def listed_brokers(brokers: tuple[Broker, ...], *, every: bool) -> tuple[Broker, ...]:
    """Brokers for a page: all, or of very many those that were not read and the fullest; by name."""
    if every or len(brokers) <= LISTED_BROKERS:
        return brokers
    first = sorted(brokers, key=lambda each: (each.read, -(each.topics or 0)))
    return tuple(sorted(first[:LISTED_BROKERS], key=lambda each: each.broker))


def _brokers(snapshot: Snapshot) -> tuple[Broker, ...]:
    held = Counter(snapshot.table(TRANSACTION_COORDINATORS, ["broker"])["broker"].to_pylist())
    shared = {field.name for field in msgspec.structs.fields(Broker)} & set(BrokerRow.__struct_fields__)
    return tuple(
        Broker(**{name: getattr(row, name) for name in shared}, coordinators=held[row.broker])
        for row in snapshot.brokers()
    )


def bundle_map(sources: Sources, snapshot: Snapshot, plans: Iterable[Plan]) -> BundleMap:
    """The map of a snapshot's bundles, with the moves of plans that wait.

    Raises:
        SnapshotError: If it cannot be read.
    """
    drawn = sources.kept_large.get(("bundles", snapshot.uri), lambda: _map(snapshot))
    targets = _targets(plans)
    if not targets:
        return drawn
    shelves = tuple(
        msgspec.structs.replace(shelf, cells=tuple(_marked(cell, targets) for cell in shelf.cells))
        for shelf in drawn.shelves
    )
    return msgspec.structs.replace(drawn, shelves=shelves)


def _targets(plans: Iterable[Plan]) -> Mapping[str, str]:
    steps = (step.change for plan in plans for batch in plan.batches for step in batch.steps)
    return {
        f"{change.namespace}/{change.bundle}": change.target for change in steps if isinstance(change, UnloadBundle)
    }


def _marked(cell: Cell, targets: Mapping[str, str]) -> Cell:
    return msgspec.structs.replace(cell, target=targets[cell.name]) if cell.name in targets else cell


def _map(snapshot: Snapshot) -> BundleMap:
    rows = _read(snapshot)
    owners: list[str | None] = rows["owner"].to_pylist()
    topics: list[int] = rows["topics"].to_pylist()
    by_owner: Counter[str | None] = Counter()
    for owner, count in zip(owners, topics, strict=True):
        by_owner[owner] += count
    fullest = by_owner.most_common(DRAWN_BROKERS)
    places: dict[str | None, list[int]] = {owner: [] for owner, _ in fullest}
    for place, owner in enumerate(owners):
        if owner in places:
            places[owner].append(place)
    busiest = max(pc.max(rows["rate"]).as_py() or 0.0, 1.0)
    return BundleMap(
        shelves=tuple(_shelf(owner, rows, places[owner], busiest) for owner, _ in fullest),
        most_topics=max(by_owner.values(), default=0),
        bundles=rows.num_rows,
        not_drawn=len(by_owner) - len(fullest),
    )


def _read(snapshot: Snapshot) -> pa.Table:
    """Bundles with topics, the fullest first, and the sum of what goes in and out."""
    names = ["namespace", "bundle", "owner", "topics", "throughput_in_bytes", "throughput_out_bytes"]
    table = snapshot.table(BUNDLES, names)
    into, out = (pc.fill_null(table[f"throughput_{way}_bytes"], 0.0) for way in ("in", "out"))
    topics = pc.fill_null(table["topics"], 0)
    summed = table.select(["namespace", "bundle", "owner"]).append_column("topics", topics)
    rated = summed.append_column("rate", pc.add(into, out)).filter(pc.greater(topics, 0))
    return rated.sort_by([("topics", "descending"), ("namespace", "ascending"), ("bundle", "ascending")])


def _shelf(owner: str | None, rows: pa.Table, places: list[int], busiest: float) -> Shelf:
    """A broker's bundles, of which the rows at these places are, the fullest first."""
    cells = [
        Cell(
            name=f"{row['namespace']}/{row['bundle']}",
            bundles=1,
            topics=row["topics"],
            bytes_per_second=row["rate"],
            heat=row["rate"] / busiest,
        )
        for row in rows.take(places[:DRAWN_BUNDLES]).to_pylist()
    ]
    if rest := places[DRAWN_BUNDLES:]:
        others = rows.take(rest)
        together = Cell(
            name=counted(len(rest), "smaller bundle"),
            bundles=len(rest),
            topics=pc.sum(others["topics"]).as_py(),
            bytes_per_second=pc.sum(others["rate"]).as_py(),
            heat=pc.max(others["rate"]).as_py() / busiest,
        )
        cells = [*cells, together]
    topics = sum(cell.topics for cell in cells)
    return Shelf(broker=owner, topics=topics, bundles=len(places), cells=tuple(cells))
