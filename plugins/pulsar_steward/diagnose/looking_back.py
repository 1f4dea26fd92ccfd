"""Queries on earlier snapshots: all needed snapshots are read together."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pulsar_steward.diagnose.queries import prepared, text_of
from pulsar_steward.diagnose.shards import (
    ShardRows,
    ShardTask,
    all_together,
    run_on_shard,
    views_needed,
    words_needed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.checks.check import CheckContext, LookBack
    from pulsar_steward.checks.views import SqlView
    from pulsar_steward.diagnose.queries import Key, PreparedQuery, QuerySet
    from pulsar_steward.runtime.parallel import MapOver
    from pulsar_steward.snapshots.database import Sources


def looked_back(
    before: Sequence[Sequence[ShardTask]],
    query_sets: Sequence[QuerySet],
    views: tuple[SqlView, ...],
    queried: Mapping[Key, ShardRows],
    map_over: MapOver,
) -> dict[Key, ShardRows]:
    """Results of queries on earlier snapshots, newest first; all snapshots are read together."""
    looking = [each for each in query_sets if each.queries.earlier and not _failed(each, queried)]
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


def _failed(query_set: QuerySet, queried: Mapping[Key, ShardRows]) -> bool:
    return any(queried[query_set.name, name].rows is None for name in query_set.queries.shards)


def _rows_of(queried: Mapping[Key, ShardRows], name: str) -> dict[str, pa.Table]:
    return {query: each.rows for (whose, query), each in queried.items() if whose == name}


def _dated(selected: ShardRows, taken_at: datetime) -> ShardRows:
    if selected.rows is None:
        return selected
    times = pa.array([taken_at] * selected.rows.num_rows, pa.timestamp("us", tz="UTC"))
    return replace(selected, rows=selected.rows.append_column("taken_at", times))
