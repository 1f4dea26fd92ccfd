"""Execution of queries on a snapshot: on its shards in parallel, on shards of earlier snapshots, then on the whole.

A shard is the output of one collecting task: all topics of some brokers, with their subscriptions, clients and metrics.
Spark, with any number of executors, or threads run the queries on shards. The results are the same, for any division
into shards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.check import AboutSnapshot, CheckAnswer, Earlier
from pulsar_steward.diagnose.looking_back import looked_back
from pulsar_steward.diagnose.moving import BUNDLES_GIVEN, MOVING, MOVING_BUNDLES, ROWS, settled_of
from pulsar_steward.diagnose.questions import PreparedQuestion, prepared, text_of
from pulsar_steward.diagnose.shards import (
    ShardTask,
    all_together,
    answer_to,
    answers_of_shard,
    prepare,
    views_needed,
    words_needed,
)
from pulsar_steward.model.tables import BROKERS, BUNDLES, SNAPSHOT
from pulsar_steward.snapshots.database import add_table, connect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb
    import pyarrow as pa

    from pulsar_steward.checks.check import Answers
    from pulsar_steward.checks.views import SqlView
    from pulsar_steward.diagnose.questions import Asker, Key, Questions
    from pulsar_steward.diagnose.shards import AnswerTable
    from pulsar_steward.model.tables import Table
    from pulsar_steward.runtime.parallel import MapOver
    from pulsar_steward.snapshots.database import Sources


class NoAnswer(Exception):
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
    askers: Sequence[Asker],
    views: Sequence[SqlView],
    map_over: MapOver,
    threads: int = 1,
) -> dict[str, Answers | NoAnswer]:
    """Runs all queries; returns the results by asker. A broken query yields an error for its asker only.

    Args:
        snapshot: Sources of its rows.
        askers: The sets of queries.
        views: Views for the queries, besides `pulsar_steward.checks.views`.
        map_over: Runs the queries on shards.
        threads: Threads of one shard's database.
    """
    once, of_each = _of_shards(askers)
    now, *before = _with_moves(snapshot, askers, map_over, threads)
    tasks = [replace(each, questions=of_each, views=tuple(views)) for each in now]
    tasks[0] = replace(tasks[0], questions=(*once, *of_each))
    told = map_over(answers_of_shard, tasks)
    asked = (*once, *of_each)
    answers = all_together(asked, {each.key: [part[each.key] for part in told if each.key in part] for each in asked})
    answers |= looked_back(before, askers, tuple(views), answers, map_over)
    with connect(threads) as connection:
        last = [text_of(question) for each in askers for question in each.questions.cluster.values()]
        prepare(connection, ShardTask(snapshot.small, {}, (), tuple(views), threads), last)
        return {each.name: _concluded(connection, each, answers) for each in askers}


def _of_shards(askers: Sequence[Asker]) -> tuple[tuple[PreparedQuestion, ...], tuple[PreparedQuestion, ...]]:
    """Queries on shards, ready to run: first queries on small tables only, then queries on each shard."""
    asked = [
        (question.small, prepared(each, name, question))
        for each in askers
        for name, question in each.questions.shards.items()
    ]
    return tuple(each for small, each in asked if small), tuple(each for small, each in asked if not small)


def about_of(snapshot: SnapshotSources) -> AboutSnapshot:
    """Metadata of a snapshot, and of the earlier ones to compare with."""
    with connect(1) as connection:
        snapshots = enumerate((snapshot, *snapshot.earlier))
        (row,), *others = (_small_rows(connection, each, SNAPSHOT, number) for number, each in snapshots)
        brokers = sorted(_small_rows(connection, snapshot, BROKERS), key=lambda each: each["broker"])
    earlier = [each for (each,) in others]
    return AboutSnapshot(
        cluster=row["cluster"],
        unread=(*(row["unread_brokers"] or ()), *(row["unread_namespaces"] or ())),
        taken_at=row["taken_at"],
        pulsar_version=row["pulsar_version"],
        load_manager=row["load_manager"],
        coordinators=row["coordinators"],
        tcs_by_bundle=row["tcs_by_bundle"],
        topics=sum(each["topics"] or 0 for each in brokers),
        metrics_cut_off=tuple(each["broker"] for each in brokers if each["metrics_read"] is False),
        earlier=tuple(
            Earlier(each["taken_at"], bool(each["unread_brokers"] or each["unread_namespaces"])) for each in earlier
        ),
    )


def reads(questions: Questions, table: str, views: Sequence[SqlView]) -> bool:
    """True if any query on this snapshot reads a table, directly or through views."""
    texts = [f"{each.sql} {each.detail or ''}" for each in (*questions.shards.values(), *questions.cluster.values())]
    return table in words_needed(views_needed(views, texts), texts)


def _small_rows(
    connection: duckdb.DuckDBPyConnection, snapshot: SnapshotSources, table: Table, number: int = 0
) -> list[dict[str, Any]]:
    """Rows of a snapshot's small table; `number` distinguishes several snapshots."""
    name = f"{table.name}_{number}"
    add_table(connection, table, snapshot.small.get(table.name), name)
    return [dict(row) for row in connection.sql(f"from {name}").to_arrow_table().to_pylist()]


def _with_moves(
    snapshot: SnapshotSources, askers: Sequence[Asker], map_over: MapOver, threads: int
) -> list[list[ShardTask]]:
    """Tasks without queries: for each shard of the snapshot, and of earlier ones if any query reads them.

    If topics moved while brokers were read, the tasks get the rows that count. All such snapshots are read together.
    """
    snapshots = [snapshot, *(snapshot.earlier if any(each.questions.earlier for each in askers) else ())]
    tasks = [[ShardTask(each.small, shard, (), (), threads) for shard in each.shards or ({},)] for each in snapshots]
    questions = tuple(PreparedQuestion((MOVING, table), sql, None, 0, None, {}, ()) for table, sql in ROWS.items())
    asking: list[tuple[int, ShardTask]] = []
    with connect(1) as connection:
        for number, each in enumerate(snapshots):
            add_table(connection, BUNDLES, each.small.get(BUNDLES.name), BUNDLES.name)
            moving = connection.sql(MOVING_BUNDLES).to_arrow_table()
            connection.execute(f"drop view {BUNDLES.name}")
            if moving.num_rows:
                given = {MOVING: {BUNDLES_GIVEN: moving}}
                asking += [
                    (number, replace(task, small={}, questions=questions, given=given)) for task in tasks[number]
                ]
    answers = map_over(answers_of_shard, [task for _, task in asking]) if asking else []
    told: dict[int, list[dict[str, pa.Table]]] = {}
    for (number, _), answer in zip(asking, answers, strict=True):
        read = {table: each.rows for (_, table), each in answer.items() if each.rows is not None}
        told.setdefault(number, []).append(read)
    for number, parts in told.items():
        # An error here also occurs in the other queries, which report it.
        if all(len(each) == len(ROWS) for each in parts):
            settled = zip(tasks[number], settled_of(parts), strict=True)
            tasks[number] = [replace(task, settled=rows) for task, rows in settled]
    return tasks


def _concluded(
    connection: duckdb.DuckDBPyConnection, asker: Asker, answers: Mapping[Key, AnswerTable]
) -> Answers | NoAnswer:
    """Results for one asker, including its queries on the whole snapshot."""
    own = {question: each for (whose, question), each in answers.items() if whose == asker.name}
    created: list[str] = []
    try:
        for name, each in own.items():
            created += _given(connection, name, each)
        for name, question in asker.questions.cluster.items():
            own[name] = answer_to(connection, prepared(asker, name, question))
            created += _given(connection, name, own[name])
    finally:
        for name in created:
            connection.execute(f"drop view {name}")
    failures = [each.failure for each in own.values() if each.failure is not None]
    if failures:
        return NoAnswer(failures[0])
    return {
        name: CheckAnswer(tuple(each.rows.to_pylist()), each.count)
        for name, each in own.items()
        if each.rows is not None
    }


def _given(connection: duckdb.DuckDBPyConnection, name: str, answer: AnswerTable) -> list[str]:
    """Creates a view of a query's rows for later queries; returns its name, if there are rows."""
    if answer.rows is None:
        return []
    connection.from_arrow(answer.rows).create_view(name)
    return [name]
