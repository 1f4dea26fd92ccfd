"""The ledger by cluster: its state for overviews, and counts and durations for metrics. Cannot write."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from sqlalchemy import JSON, and_, cast, exists, func, select, type_coerce

from pulsar_steward.decoding import convert
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.batch_record import BatchState, of_batches, open_batches, rows_of, same
from pulsar_steward.ledger.chain import HEAD_NAME
from pulsar_steward.ledger.halts import Halt, clusters_in, halt_in
from pulsar_steward.ledger.messages import MessageCounts, message_counts
from pulsar_steward.ledger.questions import (
    RunningBatch,
    UnaskedQuestion,
    WaitingQuestion,
    running_batch,
    unasked_questions,
    waiting_questions,
)
from pulsar_steward.ledger.rows import Decision, Lease, from_row
from pulsar_steward.ledger.silences import Silence, silences_in
from pulsar_steward.ledger.standing import newest_row_in
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.model.cluster import NamedCluster

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Column, Connection, Engine, Select

Question = TypeVar("Question", WaitingQuestion, UnaskedQuestion)

PEOPLE = (Decision.APPROVED.value, Decision.REJECTED.value, Decision.SNOOZED.value, Decision.NEVER.value)
"""Decisions that a person made."""


class ClusterCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of one cluster in the ledger.

    Attributes:
        waiting: Questions that nobody has answered yet, oldest first.
        unasked: Questions that nobody was ever asked, oldest first.
        approved: Number of approved batches that have not begun, by kind.
        silent: Number of silences in force, by kind of batch and decision.
        running: The batch that is being carried out now, or None.
        halt: The halt in force, for this cluster or for every cluster, or None.
        lease_ends_at: End of the last lease; None: there never was one.
        answers: Number of answers by kind of batch and decision.
        outcomes: Number of ended steps by kind of batch and outcome.
        health: Number of done steps by the level of health after them.
        without_outcome: Number of calls that may have left, but have no recorded outcome.
        oldest_without_outcome: Time of the first of these calls, or None.
        answer_seconds: Seconds from each question to the person's answer.
        batch_seconds: Seconds from the first call of each batch to its last outcome.
        messages: Messages to people about the cluster.
    """

    cluster: str
    plans: int
    waiting: tuple[WaitingQuestion, ...]
    unasked: tuple[UnaskedQuestion, ...] = ()
    running: RunningBatch | None
    halt: Halt | None
    lease_ends_at: datetime | None
    answers: Mapping[tuple[str, str], int]
    outcomes: Mapping[tuple[str, str], int]
    health: Mapping[str, int]
    without_outcome: int
    oldest_without_outcome: datetime | None
    answer_seconds: tuple[float, ...]
    batch_seconds: tuple[float, ...]
    messages: MessageCounts = MessageCounts()
    silent: Mapping[tuple[str, str], int] = {}
    approved: Mapping[str, int] = {}


class LedgerCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The ledger summed up at one moment.

    Attributes:
        rows: Number of rows ever added.
        newest_row: Latest time that Steward wrote into a row; None: the ledger is empty.
        clusters: Counts by cluster.
    """

    rows: int
    newest_row: datetime | None
    clusters: Mapping[str, ClusterCounts]


def ledger_counts(engine: Engine, now: datetime, seen: Collection[str] = ()) -> LedgerCounts:
    """Sums the ledger up.

    Args:
        engine: An open ledger.
        now: Current time, UTC.
        seen: Further clusters, which the ledger need not know: one may be halted before it has a plan.

    Raises:
        LedgerError: If it cannot be read.
    """
    with one_moment(engine) as connection:
        return _counts(connection, now, seen)


def _counts(connection: Connection, now: datetime, seen: Collection[str]) -> LedgerCounts:
    of_cluster = tables.PLANS.c.cluster
    of_plans = select(of_cluster, func.count().label("plans")).group_by(of_cluster)
    plans = {row["cluster"]: row["plans"] for row in rows_of(connection, of_plans)}
    leases = {row["cluster"]: from_row(row, Lease) for row in rows_of(connection, select(tables.LEASES))}
    batches = open_batches(connection, now)
    waiting = _by_cluster(waiting_questions(batches, now))
    unasked = _by_cluster(unasked_questions(batches, now))
    approved = Counter((each.cluster, each.kind) for each in batches if each.state(now) is BatchState.APPROVED)
    answers = _by_kind(connection, tables.ANSWERS.c.decision)
    outcomes = _by_kind(connection, tables.OUTCOMES.c.outcome)
    health: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for cluster, level, number in connection.execute(_health(connection)):
        health[cluster][level] = number
    calls = {row["cluster"]: row for row in rows_of(connection, _without_outcome())}
    answering = _durations(connection, _answer_times())
    carrying_out = _durations(connection, _batch_times())
    messages = message_counts(connection)
    silent = Counter((each.cluster, each.kind, each.decision.value) for each in silences_in(connection, now))
    found = {
        cluster: ClusterCounts(
            cluster=cluster,
            plans=plans.get(cluster, 0),
            waiting=tuple(waiting.get(cluster, ())),
            unasked=tuple(unasked.get(cluster, ())),
            running=running_batch(connection, leases.get(cluster), now),
            halt=halt_in(connection, NamedCluster(cluster)),
            lease_ends_at=leases[cluster].expires_at if cluster in leases else None,
            answers=answers.get(cluster, {}),
            outcomes=outcomes.get(cluster, {}),
            health=health.get(cluster, {}),
            without_outcome=calls[cluster]["count"] if cluster in calls else 0,
            oldest_without_outcome=calls[cluster]["oldest"] if cluster in calls else None,
            answer_seconds=tuple(answering.get(cluster, ())),
            batch_seconds=tuple(carrying_out.get(cluster, ())),
            messages=messages.get(cluster, MessageCounts()),
            silent={(kind, decision): number for (of, kind, decision), number in silent.items() if of == cluster},
            approved={kind: number for (of, kind), number in approved.items() if of == cluster},
        )
        for cluster in sorted(clusters_in(connection).union(seen))
    }
    rows = connection.execute(select(tables.HEAD.c.sequence).where(tables.HEAD.c.name == HEAD_NAME)).scalar()
    # SQLite keeps text in a column of numbers.
    return LedgerCounts(rows=convert(rows or 0, int), newest_row=newest_row_in(connection), clusters=found)


def _by_cluster(questions: Sequence[Question]) -> Mapping[str, list[Question]]:
    found: defaultdict[str, list[Question]] = defaultdict(list)
    for each in questions:
        found[each.cluster].append(each)
    return found


def _by_kind(connection: Connection, result: Column[str]) -> Mapping[str, Mapping[tuple[str, str], int]]:
    """Number of rows by cluster, and by kind of batch and result."""
    query = of_batches(result.table, result, func.count()).group_by(
        tables.PLANS.c.cluster, tables.BATCHES.c.kind, result
    )
    found: defaultdict[str, dict[tuple[str, str], int]] = defaultdict(dict)
    for cluster, kind, value, number in connection.execute(query):
        found[cluster][kind, value] = number
    return found


def _health(connection: Connection) -> Select[Any]:
    outcomes, plans = tables.OUTCOMES, tables.PLANS
    sqlite = connection.dialect.name == "sqlite"
    proof: Any = type_coerce(outcomes.c.proof, JSON) if sqlite else cast(outcomes.c.proof, JSON)
    level = proof["health"]["level"].as_string().label("level")
    query = select(plans.c.cluster, level, func.count().label("count")).join(
        plans, plans.c.plan_id == outcomes.c.plan_id
    )
    return query.where(level.is_not(None)).group_by(plans.c.cluster, level)


def _without_outcome() -> Select[Any]:
    """Calls that are under way or that a crash cut short: the latest call of each step without an outcome."""
    intents, outcomes = tables.INTENTS, tables.OUTCOMES
    later = intents.alias("later")
    ended = exists().where(outcomes.c.intent_id == intents.c.intent_id)
    repeated = exists().where(*same(later, intents, "plan_id", "step_id"), later.c.attempt > intents.c.attempt)
    query = select(intents.c.cluster, func.count().label("count"), func.min(intents.c.at).label("oldest"))
    return query.where(~ended, ~repeated).group_by(intents.c.cluster)


def _answer_times() -> Select[Any]:
    asked, answers, plans = tables.REQUESTS, tables.ANSWERS, tables.PLANS
    of_question = and_(
        *same(asked, answers, "plan_id", "batch_id", "run", "voice"), asked.c.at <= answers.c.answered_at
    )
    query = (
        select(plans.c.cluster, func.max(asked.c.at).label("began"), answers.c.answered_at.label("ended"))
        .select_from(answers)
        .join(plans, plans.c.plan_id == answers.c.plan_id)
        .join(asked, of_question)
    )
    of_people = answers.c.decision.in_(PEOPLE)
    return query.where(of_people).group_by(plans.c.cluster, answers.c.answer_id, answers.c.answered_at)


def _batch_times() -> Select[Any]:
    intents, outcomes = tables.INTENTS, tables.OUTCOMES
    query = select(intents.c.cluster, func.min(intents.c.at).label("began"), func.max(outcomes.c.at).label("ended"))
    ended = query.join(outcomes, outcomes.c.intent_id == intents.c.intent_id)
    return ended.group_by(intents.c.cluster, intents.c.plan_id, intents.c.batch_id)


def _durations(connection: Connection, query: Select[Any]) -> Mapping[str, list[float]]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows_of(connection, query):
        found[row["cluster"]].append(max((row["ended"] - row["began"]).total_seconds(), 0.0))
    return found


class LastChange(msgspec.Struct, frozen=True, kw_only=True):
    """The batch with the last ended step: its number of ended steps, by outcome."""

    plan_id: str
    at: datetime
    outcomes: dict[str, int]


class ClusterStates(msgspec.Struct, frozen=True, kw_only=True):
    """State of all clusters, from the ledger.

    Attributes:
        clusters: Clusters that the ledger knows.
        halts: Halt in force for each cluster, or None.
        unasked: Questions that nobody was ever asked, oldest first.
        running: Running batch, or None, of each cluster that ever had a lease.
        changes: The last change of each cluster that was changed.
    """

    clusters: frozenset[str]
    halts: Mapping[str, Halt | None]
    waiting: Sequence[WaitingQuestion]
    unasked: Sequence[UnaskedQuestion]
    silent: Sequence[Silence]
    running: Mapping[str, RunningBatch | None]
    changes: Mapping[str, LastChange]


def cluster_states(connection: Connection, now: datetime, seen: Collection[str] = ()) -> ClusterStates:
    """State of all clusters.

    Args:
        connection: Connection to the ledger.
        now: Current time, UTC.
        seen: Further clusters, which the ledger need not know: one may be halted before it has a plan.
    """
    clusters, batches = clusters_in(connection), open_batches(connection, now)
    leases = {row["cluster"]: from_row(row, Lease) for row in rows_of(connection, select(tables.LEASES))}
    return ClusterStates(
        clusters=clusters,
        halts={name: halt_in(connection, NamedCluster(name)) for name in clusters.union(seen)},
        waiting=waiting_questions(batches, now),
        unasked=unasked_questions(batches, now),
        silent=silences_in(connection, now),
        running={name: running_batch(connection, lease, now) for name, lease in leases.items()},
        changes=_last_changes(connection),
    )


def _last_changes(connection: Connection) -> Mapping[str, LastChange]:
    outcomes, plans = tables.OUTCOMES, tables.PLANS
    of_cluster = select(func.max(outcomes.c.outcome_id)).join(plans, plans.c.plan_id == outcomes.c.plan_id)
    last = of_cluster.group_by(plans.c.cluster)
    query = select(plans.c.cluster, outcomes.c.plan_id, outcomes.c.batch_id, outcomes.c.run, outcomes.c.at)
    found = query.join(plans, plans.c.plan_id == outcomes.c.plan_id).where(outcomes.c.outcome_id.in_(last))
    changes = {}
    for row in rows_of(connection, found):
        of_batch = [outcomes.c[name] == row[name] for name in ("plan_id", "batch_id", "run")]
        counts = select(outcomes.c.outcome, func.count().label("count")).where(*of_batch).group_by(outcomes.c.outcome)
        sums = {each["outcome"]: each["count"] for each in rows_of(connection, counts)}
        changes[row["cluster"]] = LastChange(plan_id=row["plan_id"], at=row["at"], outcomes=sums)
    return changes
