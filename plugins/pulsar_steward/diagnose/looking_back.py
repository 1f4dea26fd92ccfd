"""Queries on earlier snapshots: all needed snapshots are read together."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pulsar_steward.diagnose.questions import prepared, text_of
from pulsar_steward.diagnose.shards import (
    AnswerTable,
    ShardTask,
    all_together,
    answers_of_shard,
    views_needed,
    words_needed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.checks.check import CheckContext, LookBack
    from pulsar_steward.checks.views import SqlView
    from pulsar_steward.diagnose.questions import Asker, Key, PreparedQuestion
    from pulsar_steward.runtime.parallel import MapOver
    from pulsar_steward.snapshots.database import Sources


def looked_back(
    before: Sequence[Sequence[ShardTask]],
    askers: Sequence[Asker],
    views: tuple[SqlView, ...],
    answers: Mapping[Key, AnswerTable],
    map_over: MapOver,
) -> dict[Key, AnswerTable]:
    """Results of queries on earlier snapshots, newest first; all snapshots are read together."""
    looking = [each for each in askers if each.questions.earlier and not _failed(each, answers)]
    if not looking:
        return {}
    asked = {
        (each.name, name): prepared(each, name, question)
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
    told = map_over(answers_of_shard, tasks) if tasks else []
    dated = [{key: _dated(each, at) for key, each in answer.items()} for answer, at in zip(told, whose, strict=True)]
    found = {key: [answer[key] for answer in dated if key in answer] for key in asked}
    unasked = [asked[key] for key, parts in found.items() if not parts]
    nothing = _of_nothing(unasked, views, {name: _rows_of(answers, name) for name, _ in asked}) if unasked else {}
    return nothing | all_together(asked.values(), found)


def _named_in(questions: Sequence[PreparedQuestion], views: Sequence[SqlView], small: Sources) -> Sources:
    """Small tables that queries need; no others, as tables in memory are sent with every task."""
    texts = [text_of(each) for each in questions]
    words = words_needed(views_needed(views, texts), texts)
    return {name: source for name, source in small.items() if name in words}


def _of_nothing(
    questions: Sequence[PreparedQuestion], views: tuple[SqlView, ...], given: Mapping[str, Mapping[str, pa.Table]]
) -> dict[Key, AnswerTable]:
    """Results of a look-back without earlier snapshots: no rows, but the usual columns."""
    told = answers_of_shard(ShardTask({}, {}, tuple(questions), views, 1, given))
    epoch = datetime.fromtimestamp(0, UTC)
    return {
        key: each if each.rows is None else _dated(AnswerTable(each.rows.slice(0, 0)), epoch)
        for key, each in told.items()
    }


def _wanted(looking: Sequence[Asker], number: int, *, small: bool) -> list[Key]:
    """Queries on an earlier snapshot, with their askers."""
    return [
        (each.name, name)
        for each in looking
        for name, question in each.questions.earlier.items()
        if question.small is small and _recent(each.context, question, number)
    ]


def _recent(context: CheckContext[Any], question: LookBack, number: int) -> bool:
    about, minutes = context.about, context.longest(question.minutes)
    return about.earlier[number].taken_at >= about.taken_at - timedelta(minutes=minutes)


def _failed(asker: Asker, answers: Mapping[Key, AnswerTable]) -> bool:
    return any(answers[asker.name, name].rows is None for name in asker.questions.shards)


def _rows_of(answers: Mapping[Key, AnswerTable], name: str) -> dict[str, pa.Table]:
    return {question: each.rows for (whose, question), each in answers.items() if whose == name}


def _dated(answer: AnswerTable, taken_at: datetime) -> AnswerTable:
    if answer.rows is None:
        return answer
    times = pa.array([taken_at] * answer.rows.num_rows, pa.timestamp("us", tz="UTC"))
    return replace(answer, rows=answer.rows.append_column("taken_at", times))
