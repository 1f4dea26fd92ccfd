"""Execution of queries on a snapshot: on its shards in parallel, on shards of earlier snapshots, then on the whole.

A shard is the output of one collecting task: all topics of some brokers, with their subscriptions, clients and metrics.
Spark, with any number of executors, or threads run the queries on shards. The results are the same, for any division
into shards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pulsar_steward.checks.check import AboutSnapshot, Earlier, QueryRows
from pulsar_steward.diagnose.moving import BUNDLES_GIVEN, MOVING, ROWS, moving_bundles, settled_of
from pulsar_steward.diagnose.queries import PreparedQuery, prepared, text_of
from pulsar_steward.diagnose.shards import (
    ShardRows,
    ShardTask,
    all_together,
    prepare,
    run_on_shard,
    selected_by,
    views_needed,
    words_needed,
)
from pulsar_steward.model.system import System
from pulsar_steward.model.tables import BROKERS, BUNDLES, SNAPSHOT
from pulsar_steward.snapshots.database import connect, rows_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from pulsar_steward.checks.check import CheckContext, LookBack, Queried
    from pulsar_steward.checks.views import SqlView
    from pulsar_steward.diagnose.queries import Key, Queries, QuerySet
    from pulsar_steward.runtime.parallel import MapOver
    from pulsar_steward.snapshots.database import Sources


class QueryFailed(Exception):
    """A query that failed to run, which is a defect of its check."""


@dataclass(frozen=True)
class SnapshotSources:
    """Sources of a snapshot's rows.

    Attributes:
        small: The tables `SMALL`.
        shards: The tables `SHARDED` of each shard.
        earlier: Earlier snapshots to compare with, newest first.
    """

    small: Sources
    shards: Sequence[Sources]
    earlier: Sequence[SnapshotSources] = ()


def ask(
    snapshot: SnapshotSources,
    query_sets: Sequence[QuerySet],
    views: Sequence[SqlView],
    map_over: MapOver,
    threads: int = 1,
) -> dict[str, Queried | QueryFailed]:
    """Runs all queries; returns the results by asker. A broken query yields an error for its asker only.

    Args:
        snapshot: Sources of its rows.
        query_sets: The sets of queries.
        views: Views for the queries, besides `pulsar_steward.checks.views`.
        map_over: Runs the queries on shards.
        threads: Threads of one shard's database.
    """
    of_shards = [
        (query.small, prepared(each, name, query)) for each in query_sets for name, query in each.queries.shards.items()
    ]
    once, of_each = (tuple(each for small, each in of_shards if small is first) for first in (True, False))
    now, *before = _with_moves(snapshot, query_sets, map_over, threads)
    tasks = [replace(each, queries=of_each, views=tuple(views)) for each in now]
    tasks[0] = replace(tasks[0], queries=(*once, *of_each))
    told = map_over(run_on_shard, tasks)
    asked = (*once, *of_each)
    queried = all_together(asked, {each.key: [part[each.key] for part in told if each.key in part] for each in asked})
    queried |= looked_back(before, query_sets, tuple(views), queried, map_over)
    of_whole = [each for each in query_sets if each.queries.cluster]
    if of_whole:
        texts = [text_of(query) for each in of_whole for query in each.queries.cluster.values()]
        with connect(threads) as connection:
            prepare(connection, ShardTask(snapshot.small, {}, (), tuple(views), threads), texts)
            for each in of_whole:
                queried |= _of_whole(connection, each, queried)
    return {each.name: _concluded(each, queried) for each in query_sets}


def about_of(snapshot: SnapshotSources) -> AboutSnapshot:
    """Metadata of a snapshot, and of the earlier ones to compare with."""
    (row,), *others = (rows_in(SNAPSHOT, each.small.get(SNAPSHOT.name)) for each in (snapshot, *snapshot.earlier))
    brokers = rows_in(BROKERS, snapshot.small.get(BROKERS.name))
    brokers.sort(key=lambda each: each["broker"])
    earlier = [each for (each,) in others]
    return AboutSnapshot(
        cluster=row["cluster"],
        unread=(*(row["unread_brokers"] or ()), *(row["unread_namespaces"] or ())),
        taken_at=row["taken_at"],
        pulsar_version=row["pulsar_version"],
        load_manager=row["load_manager"],
        coordinators=row["coordinators"],
        topics=sum(each["topics"] or 0 for each in brokers),
        metrics_cut_off=tuple(each["broker"] for each in brokers if each["metrics_read"] is False),
        earlier=tuple(
            Earlier(each["taken_at"], bool(each["unread_brokers"] or each["unread_namespaces"])) for each in earlier
        ),
        system=System(row["system"] or System.PULSAR),
    )


def reads(queries: Queries, table: str, views: Sequence[SqlView]) -> bool:
    """True if any query on this snapshot reads a table, directly or through views."""
    texts = [f"{each.sql} {each.detail or ''}" for each in (*queries.shards.values(), *queries.cluster.values())]
    return table in words_needed(views_needed(views, texts), texts)


def _with_moves(
    snapshot: SnapshotSources, query_sets: Sequence[QuerySet], map_over: MapOver, threads: int
) -> list[list[ShardTask]]:
    """Tasks without queries: for each shard of the snapshot, and of earlier ones if any query reads them.

    If topics moved while brokers were read, the tasks get the rows that count. All such snapshots are read together.
    """
    snapshots = [snapshot, *(snapshot.earlier if any(each.queries.earlier for each in query_sets) else ())]
    tasks = [[ShardTask(each.small, shard, (), (), threads) for shard in each.shards or ({},)] for each in snapshots]
    queries = tuple(PreparedQuery((MOVING, table), sql, None, 0, None, {}, ()) for table, sql in ROWS.items())
    asking: list[tuple[int, ShardTask]] = []
    for number, each in enumerate(snapshots):
        moving = moving_bundles(each.small.get(BUNDLES.name))
        if moving is not None:
            given = {MOVING: {BUNDLES_GIVEN: moving}}
            asking += [(number, replace(task, small={}, queries=queries, given=given)) for task in tasks[number]]
    queried = map_over(run_on_shard, [task for _, task in asking]) if asking else []
    told: dict[int, list[dict[str, pa.Table]]] = {}
    for (number, _), selected in zip(asking, queried, strict=True):
        read = {table: each.rows for (_, table), each in selected.items() if each.rows is not None}
        told.setdefault(number, []).append(read)
    for number, parts in told.items():
        # An error here also occurs in the other queries, which report it.
        if all(len(each) == len(ROWS) for each in parts):
            settled = zip(tasks[number], settled_of(parts), strict=True)
            tasks[number] = [replace(task, settled=rows) for task, rows in settled]
    return tasks


def _of_whole(
    connection: duckdb.DuckDBPyConnection, query_set: QuerySet, queried: Mapping[Key, ShardRows]
) -> dict[Key, ShardRows]:
    """Results of one asker's queries on the whole snapshot; each may select from the results before it."""
    found: dict[Key, ShardRows] = {}
    created: list[str] = []
    try:
        for (whose, name), each in queried.items():
            if whose == query_set.name:
                created += _given(connection, name, each)
        for name, query in query_set.queries.cluster.items():
            asked = prepared(query_set, name, query)
            found[asked.key] = selected_by(connection, asked)
            created += _given(connection, name, found[asked.key])
    finally:
        for name in created:
            connection.execute(f"drop view {name}")
    return found


def _concluded(query_set: QuerySet, queried: Mapping[Key, ShardRows]) -> Queried | QueryFailed:
    """Results for one asker."""
    own = {query: each for (whose, query), each in queried.items() if whose == query_set.name}
    failures = [each.failure for each in own.values() if each.failure is not None]
    if failures:
        return QueryFailed(failures[0])
    return {
        name: QueryRows(tuple(each.rows.to_pylist()), each.count, each.cut)
        for name, each in own.items()
        if each.rows is not None
    }


def _given(connection: duckdb.DuckDBPyConnection, name: str, selected: ShardRows) -> list[str]:
    """Creates a view of a query's rows for later queries; returns its name, if there are rows."""
    if selected.rows is None:
        return []
    connection.register(name, selected.rows)
    return [name]


def looked_back(
    before: Sequence[Sequence[ShardTask]],
    query_sets: Sequence[QuerySet],
    views: tuple[SqlView, ...],
    queried: Mapping[Key, ShardRows],
    map_over: MapOver,
) -> dict[Key, ShardRows]:
    """Results of queries on earlier snapshots, newest first; all snapshots are read together."""
    failed = {whose for (whose, _), each in queried.items() if each.rows is None}
    looking = [each for each in query_sets if each.queries.earlier and each.name not in failed]
    if not looking:
        return {}
    asked = {
        (each.name, name): prepared(each, name, query)
        for each in looking
        for name, query in each.queries.earlier.items()
    }
    tasks: list[ShardTask] = []
    whose: list[datetime] = []
    for number, shards in enumerate(before):
        for small in (True, False):
            wanted = _wanted(looking, number, small=small)
            given = {name: _rows_of(queried, name) for name, _ in wanted}
            queries = tuple(asked[key] for key in wanted)
            for shard in ([replace(shards[0], shard={}, settled={})] if small else shards) if queries else ():
                tables = _named_in(queries, views, shard.small)
                tasks.append(replace(shard, small=tables, queries=queries, views=views, given=given))
                whose.append(looking[0].context.about.earlier[number].taken_at)
    told = map_over(run_on_shard, tasks) if tasks else []
    dated = [
        {key: _dated(each, at) for key, each in selected.items()} for selected, at in zip(told, whose, strict=True)
    ]
    found = {key: [selected[key] for selected in dated if key in selected] for key in asked}
    unasked = [asked[key] for key, parts in found.items() if not parts]
    nothing = _of_nothing(unasked, views, {name: _rows_of(queried, name) for name, _ in asked}) if unasked else {}
    return nothing | all_together(asked.values(), found)


def _named_in(queries: Sequence[PreparedQuery], views: Sequence[SqlView], small: Sources) -> Sources:
    """Small tables that queries need; no others, as tables in memory are sent with every task."""
    texts = [text_of(each) for each in queries]
    words = words_needed(views_needed(views, texts), texts)
    return {name: source for name, source in small.items() if name in words}


def _of_nothing(
    queries: Sequence[PreparedQuery], views: tuple[SqlView, ...], given: Mapping[str, Mapping[str, pa.Table]]
) -> dict[Key, ShardRows]:
    """Results of a look-back without earlier snapshots: no rows, but the usual columns."""
    told = run_on_shard(ShardTask({}, {}, tuple(queries), views, 1, given))
    epoch = datetime.fromtimestamp(0, UTC)
    return {
        key: each if each.rows is None else _dated(ShardRows(each.rows.slice(0, 0)), epoch)
        for key, each in told.items()
    }


def _wanted(looking: Sequence[QuerySet], number: int, *, small: bool) -> list[Key]:
    """Queries on an earlier snapshot, with their askers."""
    return [
        (each.name, name)
        for each in looking
        for name, query in each.queries.earlier.items()
        if query.small is small and _recent(each.context, query, number)
    ]


def _recent(context: CheckContext[Any], query: LookBack, number: int) -> bool:
    about, minutes = context.about, context.longest(query.minutes)
    return about.earlier[number].taken_at >= about.taken_at - timedelta(minutes=minutes)


def _rows_of(queried: Mapping[Key, ShardRows], name: str) -> dict[str, pa.Table]:
    return {query: each.rows for (whose, query), each in queried.items() if whose == name}


def _dated(selected: ShardRows, taken_at: datetime) -> ShardRows:
    if selected.rows is None:
        return selected
    times = pa.array([taken_at] * selected.rows.num_rows, pa.timestamp("us", tz="UTC"))
    return replace(selected, rows=selected.rows.append_column("taken_at", times))
