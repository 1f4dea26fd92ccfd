"""Loads of bundles over several snapshots, so that a move never rests on one moment."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.tables import BUNDLES, NAMESPACES
from pulsar_steward.planners.bundles.assignment import LoadAssignment
from pulsar_steward.planners.bundles.balance import PLANNER as BUNDLE_BALANCE
from pulsar_steward.planners.bundles.columns import FIGURES, loads, without_heartbeats
from pulsar_steward.planners.bundles.facts import Load, LoadFacts, OwnedBundlesLoad, PlacedBundle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot

CANDIDATES_A_BROKER = 500
"""Number of a broker's heaviest bundles that are considered for a move."""

FIELDS = ("topics", "bytes", "messages", "producers", "consumers")
VIEWS = ("mean", "peak", "now")


def load_facts(snapshot: Snapshot, findings: Iterable[Finding], policy: Policy) -> LoadFacts | None:
    """The load over several snapshots; None: no finding asks for it, or the snapshot is partial.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    if not BUNDLE_BALANCE.answered(findings) or snapshot.meta().unread:
        return None
    remedy = policy.bundle_balance_remedy
    looked = snapshots_looked_at(snapshot, remedy.window_minutes, remedy.snapshots)
    if len(looked) < remedy.least_snapshots:
        return LoadFacts(snapshots=len(looked))
    bundles = bundles_over_time(looked)
    listed = sorted(row.broker for row in snapshot.brokers() if row.read and row.broker not in policy.brokers.draining)
    brokers = tuple(broker_loads(bundles, listed))
    business = bundles.filter(pc.not_equal(bundles["namespace"], TC_NAMESPACE))
    stays = tuple(_stays(business, brokers, policy))
    return LoadFacts(
        snapshots=len(looked),
        brokers=brokers,
        stays=stays,
        moved=int(pc.sum(pc.and_(pc.invert(business["stayed"]), pc.is_valid(business["owner"]))).as_py() or 0),
        allowed=allowed_by_namespace(snapshot, {stay.namespace for stay in stays}),
    )


def snapshots_looked_at(snapshot: Snapshot, window_minutes: int, most: int) -> list[Snapshot]:
    """This snapshot and the whole ones before it within the window, the newest first.

    Raises:
        SnapshotError: If one cannot be read.
    """
    since = snapshot.meta().taken_at - timedelta(minutes=window_minutes)
    looked = [snapshot]
    for each in snapshot.earlier(4 * most):
        meta = each.meta()
        if meta.taken_at < since or len(looked) == most:
            break
        if not meta.unread:
            looked.append(each)
    return looked[:most]


def _bundles(snapshot: Snapshot) -> pa.Table:
    table = without_heartbeats(snapshot.table(BUNDLES, ["namespace", "bundle", "owner", *FIGURES]))
    key = pc.binary_join_element_wise(table["namespace"], table["bundle"], "/")
    columns = {"name": key, "namespace": table["namespace"], "bundle": table["bundle"], "owner": table["owner"]}
    return pa.table({**columns, **loads(table)})


def bundles_over_time(looked: Sequence[Snapshot]) -> pa.Table:
    """The bundles of the first snapshot, with means, peaks and whether their owner was the same in all of them.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    now, *before = (_bundles(each) for each in looked)
    columns = {name: now[name] for name in ("name", "namespace", "bundle", "owner")}
    stayed = pc.is_valid(now["owner"])
    seen = pc.cast(pc.is_valid(now["name"]), pa.int64())
    sums, peaks = {field: now[field] for field in FIELDS}, {field: now[field] for field in FIELDS}
    for earlier in before:
        index = pc.index_in(now["name"], value_set=earlier["name"])
        owners = pc.take(earlier["owner"], index)
        stayed = pc.and_(stayed, pc.fill_null(pc.equal(owners, now["owner"]), fill_value=False))
        seen = pc.add(seen, pc.cast(pc.is_valid(index), pa.int64()))
        for field in FIELDS:
            then = pc.fill_null(pc.take(earlier[field], index), 0)
            sums[field] = pc.add(sums[field], then)
            peaks[field] = pc.max_element_wise(peaks[field], then)
    for field in FIELDS:
        columns |= {
            f"mean_{field}": pc.divide(sums[field], seen),
            f"peak_{field}": peaks[field],
            f"now_{field}": now[field],
        }
    return pa.table({**columns, "stayed": stayed})


def broker_loads(bundles: pa.Table, brokers: Sequence[str]) -> Iterator[OwnedBundlesLoad]:
    """The load of each of these brokers, by what it owns now."""
    names = [f"{view}_{field}" for view in VIEWS for field in FIELDS]
    summed = bundles.group_by("owner").aggregate([(name, "sum") for name in names])
    known = {row["owner"]: row for row in summed.to_pylist()}
    for broker in brokers:
        row = known.get(broker, {})
        views = {view: Load(**{field: row.get(f"{view}_{field}_sum") or 0 for field in FIELDS}) for view in VIEWS}
        yield OwnedBundlesLoad(broker=broker, **views)


def _stays(bundles: pa.Table, brokers: Sequence[OwnedBundlesLoad], policy: Policy) -> Iterator[PlacedBundle]:
    """Bundles that a lookup could have loaded elsewhere: with a topic, and on a broker that has more than its share."""
    if not brokers:
        return
    assignment = LoadAssignment(brokers, policy.broker_load_skew, policy.bundle_balance_remedy.within_percent)
    free = bundles.filter(pc.and_(bundles["stayed"], pc.greater(bundles["now_topics"], 0)))
    for broker in sorted(assignment.mean):
        if assignment.above_mean(broker):
            rows = free.filter(pc.field("owner") == broker).to_pylist()
            stays = (placed_bundle(row) for row in rows)
            yield from sorted(stays, key=lambda stay: (-assignment.weight(stay), stay.name))[:CANDIDATES_A_BROKER]


def placed_bundle(row: dict[str, object]) -> PlacedBundle:
    """A row of `bundles_over_time`."""
    views = {view: {field: row[f"{view}_{field}"] for field in FIELDS} for view in VIEWS}
    named = {name: row[name] for name in ("namespace", "bundle", "owner")}
    return msgspec.convert({**named, **views}, PlacedBundle)


def allowed_by_namespace(snapshot: Snapshot, namespaces: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Brokers that isolation policies leave to each of these namespaces, where they do not leave all of them.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    names = sorted(namespaces)
    if not names:
        return {}
    table = snapshot.table(NAMESPACES, ["namespace", "allowed_brokers"], [("namespace", "in", names)])
    limited = table.filter(pc.is_valid(table["allowed_brokers"])).sort_by("namespace").to_pylist()
    return {row["namespace"]: tuple(row["allowed_brokers"]) for row in limited}
