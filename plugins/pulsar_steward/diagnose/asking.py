"""Execution of queries on a snapshot: on its shards in parallel, on those of earlier snapshots, then on the whole.

A shard is what one collecting task wrote: all topics of some brokers, with their subscriptions, clients and metrics.
The mapping over shards may be done by Spark, with any number of executors, or by threads; the results are the same, and
they do not depend on how a snapshot is divided into shards.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_steward.checks.check import About, Answer, Earlier
from pulsar_steward.checks.views import LARGE_TABLES, SHARED, TABLE_MACROS
from pulsar_steward.diagnose.database import add_table, add_views, connect
from pulsar_steward.diagnose.limits import limits_select
from pulsar_steward.diagnose.moving import BUNDLES_GIVEN, IN_PLACE, MOVING, MOVING_BUNDLES, ROWS, settled_of
from pulsar_steward.model.tables import BROKERS, BUNDLES, CONFIGURATION, SHARDED, SMALL, SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.checks.check import Answers, CheckContext, LookBack, Question
    from pulsar_steward.checks.views import View
    from pulsar_steward.diagnose.database import Sources
    from pulsar_steward.model.section import Section
    from pulsar_steward.model.tables import Table
    from pulsar_steward.parallel import MapOver

log = logging.getLogger(__name__)

_FOUND = "_found"
_PARAMETER = re.compile(r"(?<![$\w])\$(\w+)")
_WORD = re.compile(r"\w+")

Key = tuple[str, str]
"""Name of the asker, and of its question."""


class Questions(Protocol):
    """Set of questions, such as those of a `pulsar_steward.checks.check.Check`."""

    @property
    def shards(self) -> Mapping[str, Question]:
        """Questions to each shard."""

    @property
    def earlier(self) -> Mapping[str, LookBack]:
        """Questions to each shard of earlier snapshots."""

    @property
    def cluster(self) -> Mapping[str, Question]:
        """Questions to the whole snapshot."""


@dataclass(frozen=True)
class Asker:
    """A set of questions with a name and limits.

    Attributes:
        name: A check's id, or another unique name.
        questions: The questions.
        context: The limits that the questions refer to.
    """

    name: str
    questions: Questions
    context: CheckContext[Any]


class NoAnswer(Exception):
    """A question failed to run, which is a defect of its check."""


@dataclass(frozen=True)
class SnapshotSources:
    """Sources of a snapshot's rows.

    Attributes:
        small: The tables `SMALL`.
        shards: The tables `SHARDED` of each shard.
        earlier: Earlier snapshots to compare with, the newest first.
    """

    small: Sources
    shards: Sequence[Sources]
    earlier: Sequence[SnapshotSources] = ()


@dataclass(frozen=True)
class _Asked:
    """A question with everything needed to run it, so that tasks need neither checks nor policies."""

    key: Key
    sql: str
    worst_first: str | None
    most: int
    detail: str | None
    parameters: Mapping[str, Any]
    limits: tuple[Mapping[str, Any], ...]
    """Rows of `limits`: the values for a `namespace` or `tenant` (both null: everything else)."""


@dataclass(frozen=True)
class _Answered:
    """Rows of an answer, limited in number, and their full count; or the failure."""

    rows: pa.Table | None
    count: int = 0
    failure: str | None = None


@dataclass(frozen=True)
class ShardTask:
    """Questions to one shard.

    Attributes:
        small: The small tables.
        shard: The shard's own tables.
        questions: The questions.
        views: Views that questions may select from.
        threads: Threads of its database.
        given: For questions to an earlier snapshot: the answers of this one's shards, by asker.
        settled: Replacement for rows of topics that moved meanwhile; empty if none did.
    """

    small: Sources
    shard: Sources
    questions: tuple[_Asked, ...]
    views: tuple[View, ...]
    threads: int
    given: Mapping[str, Mapping[str, pa.Table]] = field(default_factory=dict)
    settled: Mapping[str, pa.Table] = field(default_factory=dict)

    def places(self) -> list[str]:
        """Files of the shard's own tables."""
        return [place for source in self.shard.values() if not isinstance(source, pa.Table) for place in source]

    def with_contents(self, contents: Mapping[str, bytes]) -> ShardTask:
        """Returns the task with tables instead of files, from the files' content."""
        tables = {
            name: source
            if isinstance(source, pa.Table)
            else pa.concat_tables([pq.read_table(BytesIO(contents[place])) for place in source])
            for name, source in self.shard.items()
        }
        return replace(self, shard=tables)


def ask(
    snapshot: SnapshotSources,
    askers: Sequence[Asker],
    views: Sequence[View],
    map_over: MapOver,
    threads: int = 1,
) -> dict[str, Answers | NoAnswer]:
    """Runs all questions; returns the answers by asker. A broken question yields an error for its asker alone.

    Args:
        snapshot: Sources of its rows.
        askers: The sets of questions.
        views: Views that questions select from besides `pulsar_steward.checks.views`.
        map_over: Runs the questions to shards.
        threads: Threads of one shard's database.
    """
    asked = [_asked(each, name, question) for each in askers for name, question in each.questions.shards.items()]
    now, *before = _with_moves(snapshot, askers, map_over, threads)
    of_shards = map_over(_answer_of_shard, [replace(each, questions=tuple(asked), views=tuple(views)) for each in now])
    answers = _all_together(asked, {each.key: [answer[each.key] for answer in of_shards] for each in asked})
    answers |= _looked_back(before, askers, tuple(views), answers, map_over)
    with connect(threads) as connection:
        last = [_text(question) for each in askers for question in each.questions.cluster.values()]
        _prepare(connection, ShardTask(snapshot.small, {}, (), tuple(views), threads), last)
        return {each.name: _concluded(connection, each, answers) for each in askers}


def about_of(snapshot: SnapshotSources) -> About:
    """Metadata of a snapshot, and of those that it may be compared with."""
    with connect(1) as connection:
        snapshots = enumerate((snapshot, *snapshot.earlier))
        (row,), *others = (_small_rows(connection, each, SNAPSHOT, number) for number, each in snapshots)
        brokers = sorted(_small_rows(connection, snapshot, BROKERS), key=lambda each: each["broker"])
    earlier = [each for (each,) in others]
    return About(
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


def reads(questions: Questions, table: str, views: Sequence[View]) -> bool:
    """True if any question about this snapshot reads a table, directly or through views."""
    texts = [f"{each.sql} {each.detail or ''}" for each in (*questions.shards.values(), *questions.cluster.values())]
    named = [view.sql for view in _needed((*LARGE_TABLES, *SHARED, *views), texts)]
    return any(table in _WORD.findall(text) for text in (*texts, *named))


def _small_rows(
    connection: duckdb.DuckDBPyConnection, snapshot: SnapshotSources, table: Table, number: int = 0
) -> list[dict[str, Any]]:
    """Rows of a small table; of several snapshots, each has its number."""
    name = f"{table.name}_{number}"
    add_table(connection, table, snapshot.small.get(table.name), name)
    return [dict(row) for row in connection.sql(f"from {name}").to_arrow_table().to_pylist()]


def _asked(asker: Asker, name: str, question: Question | LookBack) -> _Asked:
    words = _text(question)
    return _Asked(
        key=(asker.name, name),
        sql=question.sql,
        worst_first=getattr(question, "worst_first", None),
        most=getattr(question, "most", 0),
        detail=getattr(question, "detail", None),
        parameters={each: _value(asker.context, each) for each in sorted(set(_PARAMETER.findall(words)))},
        limits=tuple(_limits(asker.context)) if "limits" in _WORD.findall(words) else (),
    )


def _text(question: Question | LookBack | _Asked) -> str:
    """SQL of a question, with its detail."""
    return f"{question.sql} {getattr(question, 'detail', None) or ''}"


def _value(context: CheckContext[Any], parameter: str) -> Any:
    """Value of a parameter: `now`, a field of the asker's own section, or ``section__field``."""
    if parameter == "now":
        return context.about.taken_at.timestamp()
    section, found, name = parameter.partition("__")
    if found:
        return getattr(getattr(context.policy, section), name)
    return getattr(context.limits, parameter)


def _limits(context: CheckContext[Any]) -> Iterator[Mapping[str, Any]]:
    yield {"tenant": None, "namespace": None, **_fields(context.limits)}
    for limits, names in context.parts:
        for name in names:
            column = "namespace" if "/" in name else "tenant"
            yield {"tenant": None, "namespace": None, column: name, **_fields(limits)}


def _fields(section: Section) -> dict[str, Any]:
    return {name: value for name, value in section.model_dump().items() if isinstance(value, bool | int | float | str)}


def _with_moves(
    snapshot: SnapshotSources, askers: Sequence[Asker], map_over: MapOver, threads: int
) -> list[list[ShardTask]]:
    """Tasks without questions: for each shard of the snapshot, and of the earlier ones that any question is about.

    Where topics moved while brokers were read, the tasks get the rows that count: all such snapshots are read in one
    go.
    """
    snapshots = [snapshot, *(snapshot.earlier if any(each.questions.earlier for each in askers) else ())]
    tasks = [[ShardTask(each.small, shard, (), (), threads) for shard in each.shards or ({},)] for each in snapshots]
    questions = tuple(_Asked((MOVING, table), sql, None, 0, None, {}, ()) for table, sql in ROWS.items())
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
    answers = map_over(_answer_of_shard, [task for _, task in asking]) if asking else []
    told: dict[int, list[dict[str, pa.Table]]] = {}
    for (number, _), answer in zip(asking, answers, strict=True):
        read = {table: each.rows for (_, table), each in answer.items() if each.rows is not None}
        told.setdefault(number, []).append(read)
    for number, parts in told.items():
        # What fails here fails for the other questions as well, and they report it.
        if all(len(each) == len(ROWS) for each in parts):
            settled = zip(tasks[number], settled_of(parts), strict=True)
            tasks[number] = [replace(task, settled=rows) for task, rows in settled]
    return tasks


def _prepare(connection: duckdb.DuckDBPyConnection, task: ShardTask, texts: Sequence[str]) -> None:
    """Creates the tables, and the views that any of the texts needs."""
    for table in SMALL:
        add_table(connection, table, task.small.get(table.name), table.name)
    for name, rows in task.settled.items():
        connection.from_arrow(rows).create_view(name if name == MOVING else f"settled_{name}")
    for table in SHARDED:
        add_table(connection, table, task.shard.get(table.name), f"{'told' if task.settled else 'raw'}_{table.name}")
        if task.settled:
            connection.execute(f"create temp view raw_{table.name} as {IN_PLACE[table.name]}")
    for macro in TABLE_MACROS:
        connection.execute(macro)
    add_views(connection, _needed((*LARGE_TABLES, *SHARED, *task.views), texts))


def _needed(views: Sequence[View], texts: Sequence[str]) -> list[View]:
    """Views that texts name, and those that these name, in their order; `limits` needs the namespaces."""
    words = {word for text in texts for word in _WORD.findall(text)}
    if "limits" in words:
        words.add("namespaces_seen")
    found = []
    for view in reversed(views):
        if view.name in words:
            found.append(view)
            words.update(_WORD.findall(view.sql))
    return found[::-1]


def _answer_of_shard(task: ShardTask) -> dict[Key, _Answered]:
    """Answers of one shard to every question."""
    with connect(task.threads) as connection:
        _prepare(connection, task, [_text(asked) for asked in task.questions])
        answers = {}
        for asked in task.questions:
            given = task.given.get(asked.key[0], {})
            for name, rows in given.items():
                connection.from_arrow(rows).create_view(name, replace=True)
            answers[asked.key] = _answer(connection, asked)
            for name in given:
                connection.execute(f"drop view {name}")
        return answers


def _answer(connection: duckdb.DuckDBPyConnection, asked: _Asked) -> _Answered:
    """Answer to one question, or its failure."""
    try:
        rows = connection.sql(_statement(asked), params=dict(asked.parameters)).to_arrow_table()
    except duckdb.Error as error:
        log.exception("%s: its question `%s` is broken on this snapshot", *asked.key)
        return _Answered(None, failure=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    if asked.worst_first is None:
        return _Answered(rows, rows.num_rows)
    count = rows[_FOUND][0].as_py() if rows.num_rows else 0
    return _Answered(rows.drop_columns([_FOUND]), count)


def _statement(asked: _Asked) -> str:
    """Full SELECT statement of a question."""
    parts = [f"limits as ({limits_select(asked.limits)})"] if asked.limits else []
    if asked.worst_first is None:
        return f"with {', '.join([*parts, f'found as ({asked.sql})'])} select * from found order by all"
    listed = f"select *, count(*) over () as {_FOUND} from found order by {asked.worst_first} limit {asked.most}"
    parts += [f"found as ({asked.sql})", f"worst as materialized ({listed})"]
    if asked.detail is not None:
        parts.append(f"detailed as ({asked.detail})")
        return f"with {', '.join(parts)} select * from detailed order by {asked.worst_first}"
    return f"with {', '.join(parts)} select * from worst order by {asked.worst_first}"


def _all_together(asked: Iterable[_Asked], parts: Mapping[Key, Sequence[_Answered]]) -> dict[Key, _Answered]:
    """Combines the answers of several shards to each question; questions without answers are left out."""
    with connect(1) as connection:
        return {each.key: _together(connection, each, parts[each.key]) for each in asked if parts[each.key]}


def _together(connection: duckdb.DuckDBPyConnection, asked: _Asked, parts: Sequence[_Answered]) -> _Answered:
    """Combines the answers of several shards to one question, ordered and limited again."""
    for part in parts:
        if part.rows is None:
            return part
    if len(parts) == 1:
        return parts[0]
    rows = pa.concat_tables([part.rows for part in parts], promote_options="permissive")
    if rows.num_rows > 1:
        order = "all" if asked.worst_first is None else f"{asked.worst_first} limit {asked.most}"
        connection.from_arrow(rows).create_view("answers", replace=True)
        rows = connection.sql(f"select * from answers order by {order}").to_arrow_table()
    return _Answered(rows, sum(part.count for part in parts))


def _looked_back(
    before: Sequence[Sequence[ShardTask]],
    askers: Sequence[Asker],
    views: tuple[View, ...],
    answers: Mapping[Key, _Answered],
    map_over: MapOver,
) -> dict[Key, _Answered]:
    """Answers of earlier snapshots, the newest first; all of them are read in one go."""
    looking = [each for each in askers if each.questions.earlier and not _failed(each, answers)]
    if not looking:
        return {}
    asked = {
        (each.name, name): _asked(each, name, question)
        for each in looking
        for name, question in each.questions.earlier.items()
    }
    tasks: list[ShardTask] = []
    whose: list[datetime] = []
    for number, shards in enumerate(before):
        for small in (True, False):
            wanted = _wanted(looking, number, small=small)
            given = {name: _rows_of(answers, name) for name, _ in wanted}
            questions = tuple(asked[key] for key in wanted)
            for shard in ([replace(shards[0], shard={}, settled={})] if small else shards) if questions else ():
                tables = _named_in(questions, views, shard.small)
                tasks.append(replace(shard, small=tables, questions=questions, views=views, given=given))
                whose.append(looking[0].context.about.earlier[number].taken_at)
    told = map_over(_answer_of_shard, tasks) if tasks else []
    dated = [{key: _dated(each, at) for key, each in answer.items()} for answer, at in zip(told, whose, strict=True)]
    found = {key: [answer[key] for answer in dated if key in answer] for key in asked}
    unasked = [asked[key] for key, parts in found.items() if not parts]
    nothing = _of_nothing(unasked, views, {name: _rows_of(answers, name) for name, _ in asked}) if unasked else {}
    return nothing | _all_together(asked.values(), found)


def _named_in(questions: Sequence[_Asked], views: Sequence[View], small: Sources) -> Sources:
    """Small tables that questions need: tables in memory travel with every task."""
    texts = [_text(each) for each in questions]
    texts += [view.sql for view in _needed((*LARGE_TABLES, *SHARED, *views), texts)]
    words = {word for text in texts for word in _WORD.findall(text)}
    if "setting" in words:
        words.add(CONFIGURATION.name)
    return {name: source for name, source in small.items() if name in words}


def _of_nothing(
    questions: Sequence[_Asked], views: tuple[View, ...], given: Mapping[str, Mapping[str, pa.Table]]
) -> dict[Key, _Answered]:
    """Answers to a look-back without any snapshot: no rows, with the columns that it would have."""
    told = _answer_of_shard(ShardTask({}, {}, tuple(questions), views, 1, given))
    epoch = datetime.fromtimestamp(0, UTC)
    return {
        key: each if each.rows is None else _dated(_Answered(each.rows.slice(0, 0)), epoch)
        for key, each in told.items()
    }


def _wanted(looking: Sequence[Asker], number: int, *, small: bool) -> list[Key]:
    """Questions to an earlier snapshot, with their askers."""
    return [
        (each.name, name)
        for each in looking
        for name, question in each.questions.earlier.items()
        if question.small is small and _recent(each.context, question, number)
    ]


def _recent(context: CheckContext[Any], question: LookBack, number: int) -> bool:
    about, limits = context.about, [each for each, _ in context.parts] or [context.limits]
    minutes = max(question.minutes(each) for each in limits)
    return about.earlier[number].taken_at >= about.taken_at - timedelta(minutes=minutes)


def _failed(asker: Asker, answers: Mapping[Key, _Answered]) -> bool:
    return any(answers[asker.name, name].rows is None for name in asker.questions.shards)


def _rows_of(answers: Mapping[Key, _Answered], name: str) -> dict[str, pa.Table]:
    return {question: each.rows for (whose, question), each in answers.items() if whose == name}


def _dated(answer: _Answered, taken_at: datetime) -> _Answered:
    if answer.rows is None:
        return answer
    times = pa.array([taken_at] * answer.rows.num_rows, pa.timestamp("us", tz="UTC"))
    return replace(answer, rows=answer.rows.append_column("taken_at", times))


def _concluded(
    connection: duckdb.DuckDBPyConnection, asker: Asker, answers: Mapping[Key, _Answered]
) -> Answers | NoAnswer:
    """Answers for one asker, with those to its questions to the whole snapshot."""
    own = {question: each for (whose, question), each in answers.items() if whose == asker.name}
    created: list[str] = []
    try:
        for name, each in own.items():
            created += _given(connection, name, each)
        for name, question in asker.questions.cluster.items():
            own[name] = _answer(connection, _asked(asker, name, question))
            created += _given(connection, name, own[name])
    finally:
        for name in created:
            connection.execute(f"drop view {name}")
    failures = [each.failure for each in own.values() if each.failure is not None]
    if failures:
        return NoAnswer(failures[0])
    return {
        name: Answer(tuple(each.rows.to_pylist()), each.count) for name, each in own.items() if each.rows is not None
    }


def _given(connection: duckdb.DuckDBPyConnection, name: str, answer: _Answered) -> list[str]:
    """Creates a view of an answer for the questions that follow; returns its name, if there is an answer."""
    if answer.rows is None:
        return []
    connection.from_arrow(answer.rows).create_view(name)
    return [name]
