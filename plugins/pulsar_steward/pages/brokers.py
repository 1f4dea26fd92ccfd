"""Brokers with their load, and the bundles on them as a map, of the newest snapshot."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.step import UnloadBundle
from pulsar_steward.model.tables import TRANSACTION_COORDINATORS
from pulsar_steward.model.units import counted
from pulsar_steward.snapshots.rows import BrokerRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.snapshots.read import Snapshot

LISTED_BROKERS = 100
"""Number of brokers that a page lists at first."""

DRAWN_BROKERS = 40
DRAWN_BUNDLES = 60
"""Number of a broker's largest bundles with a cell of their own; all others share one cell."""


class Broker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker with its load; figures are None if it was not read or does not report them."""

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
        bundles: Number of its bundles.
        heat: Throughput relative to the busiest cell, from 0 to 1.
        target: Target broker of a move in a waiting plan; None: it stays. Bundles that move have a cell of their own,
            before all others.
    """

    name: str
    bundles: int
    topics: int
    bytes_per_second: float
    heat: float
    target: str | None = None


class _OwnedCell(msgspec.Struct, frozen=True):
    owner: str | None
    cell: Cell


_BUNDLES = """
    select owner, {'name': namespace || '/' || bundle, 'bundles': 1, 'topics': topics, 'bytes_per_second': rate,
        'heat': rate / greatest(max(rate) over (), 1)} as cell
    from (select *, coalesce(throughput_in_bytes, 0) + coalesce(throughput_out_bytes, 0) as rate from bundles
        where topics > 0)
    order by topics desc, namespace, bundle"""


_MOVING = """
    with moving as (select * from bundles where list_contains($names, namespace || '/' || bundle))
    select owner, {'name': namespace || '/' || bundle, 'bundles': 1, 'topics': coalesce(topics, 0),
        'bytes_per_second': rate, 'heat': rate / greatest((select max(coalesce(throughput_in_bytes, 0)
            + coalesce(throughput_out_bytes, 0)) from bundles where topics > 0), rate, 1)} as cell
    from (select *, coalesce(throughput_in_bytes, 0) + coalesce(throughput_out_bytes, 0) as rate from moving)
    order by topics desc nulls last, namespace, bundle"""


class BundleShown(msgspec.Struct, frozen=True, kw_only=True):
    """One bundle; figures are None where its owner was not read. Without an owner, nobody owns it if that is known."""

    name: str
    owner: str | None
    owner_known: bool
    topics: int | None
    coordinators: int
    throughput_in_bytes: float | None
    throughput_out_bytes: float | None
    target: str | None = None


_BUNDLE = """
    select namespace || '/' || bundle as name, owner, owner_known, topics, throughput_in_bytes, throughput_out_bytes,
        (select count(*) from transaction_coordinators held
            where held.bundle = bundles.bundle and bundles.namespace = $tc_namespace) as coordinators
    from bundles where namespace || '/' || bundle = $name"""


class Shelf(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's bundles on the map, the largest first; `broker` is None for bundles without an owner."""

    broker: str | None
    topics: int
    bundles: int
    cells: tuple[Cell, ...]


class BundleMap(msgspec.Struct, frozen=True, kw_only=True):
    """Bundles by broker.

    Attributes:
        most_topics: Topics of the fullest broker, whose row fills the width of the map.
        not_drawn: Number of brokers that are not drawn; each has fewer topics.
        most_moving: The most cells of a broker that a waiting plan moves.
    """

    shelves: tuple[Shelf, ...]
    most_topics: int
    bundles: int
    not_drawn: int
    most_moving: int = 0


def broker_rows(sources: Sources, snapshot: Snapshot) -> tuple[Broker, ...]:
    """All brokers of a snapshot, by name."""
    return sources.kept_large.get(("brokers", snapshot.uri), lambda: _brokers(snapshot))


def listed_brokers(brokers: tuple[Broker, ...], *, every: bool) -> tuple[Broker, ...]:
    """Brokers for a page: all; if there are very many, the unread and the fullest ones; by name."""
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


def bundle_row(snapshot: Snapshot, name: str, plans: Iterable[Plan]) -> BundleShown | None:
    """The bundle ``tenant/namespace/range``, with the move of a waiting plan; None: the snapshot has none like that."""
    rows = snapshot.select(_BUNDLE, BundleShown, name=name, tc_namespace=TC_NAMESPACE)
    return msgspec.structs.replace(rows[0], target=_targets(plans).get(name)) if rows else None


def _targets(plans: Iterable[Plan]) -> dict[str, str | None]:
    """Target brokers of the bundles that these plans move."""
    changes = (step.change for plan in plans for batch in plan.batches for step in batch.steps)
    return {f"{each.namespace}/{each.bundle}": each.target for each in changes if isinstance(each, UnloadBundle)}


def bundle_map(sources: Sources, snapshot: Snapshot, plans: Iterable[Plan]) -> BundleMap:
    """The map of a snapshot's bundles, with the moves of waiting plans."""
    drawn = sources.kept_large.get(("bundles", snapshot.uri), lambda: _map(snapshot))
    if not (targets := _targets(plans)):
        return drawn
    names = tuple(sorted(targets))
    rows = sources.kept_large.get(
        ("moving", snapshot.uri, names), lambda: snapshot.select(_MOVING, _OwnedCell, names=list(names))
    )
    moving: defaultdict[str | None, list[Cell]] = defaultdict(list)
    for row in rows:
        moving[row.owner].append(msgspec.structs.replace(row.cell, target=targets[row.cell.name]))
    shelves = tuple(_with_moving(shelf, moving[shelf.broker]) for shelf in drawn.shelves)
    most = max((len(moving[shelf.broker]) for shelf in shelves), default=0)
    return msgspec.structs.replace(drawn, shelves=shelves, most_moving=most)


def _with_moving(shelf: Shelf, moving: Sequence[Cell]) -> Shelf:
    """A broker's bundles with those first that move; those without a cell of their own leave the one of all others."""
    names = {cell.name for cell in moving}
    others = [cell for cell in shelf.cells if cell.name not in names]
    own = {cell.name for cell in shelf.cells}
    left = [cell for cell in moving if cell.name not in own and cell.topics]
    if left and others:
        last = others[-1]
        last = msgspec.structs.replace(
            last, bundles=last.bundles - len(left), topics=last.topics - sum(cell.topics for cell in left)
        )
        others[-1:] = [last] if last.bundles > 0 else []
    return msgspec.structs.replace(shelf, cells=(*moving, *others))


def _map(snapshot: Snapshot) -> BundleMap:
    by_owner: defaultdict[str | None, list[Cell]] = defaultdict(list)
    rows = snapshot.select(_BUNDLES, _OwnedCell)
    for row in rows:
        by_owner[row.owner].append(row.cell)
    shelves = sorted((_shelf(owner, cells) for owner, cells in by_owner.items()), key=lambda shelf: -shelf.topics)
    return BundleMap(
        shelves=tuple(shelves[:DRAWN_BROKERS]),
        most_topics=max((shelf.topics for shelf in shelves), default=0),
        bundles=len(rows),
        not_drawn=len(shelves[DRAWN_BROKERS:]),
    )


def _shelf(owner: str | None, cells: list[Cell]) -> Shelf:
    """A broker's bundles, the fullest first; the smaller ones share one cell."""
    drawn = cells[:DRAWN_BUNDLES]
    if rest := cells[DRAWN_BUNDLES:]:
        together = Cell(
            name=counted(len(rest), "smaller bundle"),
            bundles=len(rest),
            topics=sum(cell.topics for cell in rest),
            bytes_per_second=sum(cell.bytes_per_second for cell in rest),
            heat=max(cell.heat for cell in rest),
        )
        drawn = [*drawn, together]
    return Shelf(broker=owner, topics=sum(cell.topics for cell in cells), bundles=len(cells), cells=tuple(drawn))
