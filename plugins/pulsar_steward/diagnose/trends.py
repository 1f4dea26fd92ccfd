"""Figures over time, for plots in reports: this snapshot's own figures, added to the previous snapshot's table.

So each figure is computed once, from its own snapshot. Only two things are read from earlier snapshots: this small
table, and the largest backlogs of one snapshot, to see which backlogs grow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pulsar_steward.checks.backlog.growth import reference
from pulsar_steward.checks.check import CheckContext, Query
from pulsar_steward.checks.clients.connection_churn import SUCCEEDED
from pulsar_steward.checks.delayed.failover_time import CHECK, estimated, estimates_by_broker
from pulsar_steward.checks.earlier import looking_back, within
from pulsar_steward.diagnose.queries import QuerySet
from pulsar_steward.diagnose.running import QueryFailed
from pulsar_steward.model.measures import (
    BROKER_CONNECTION_RATE,
    BROKER_CONNECTIONS,
    BROKER_COORDINATORS,
    BROKER_TOPICS,
    CLUSTER_BACKLOG,
    CLUSTER_CONSUMERS,
    CLUSTER_PRODUCERS,
    CLUSTER_SUBSCRIPTIONS,
    CLUSTER_TOPICS,
    STARTED,
    TOPIC_BACKLOG,
)
from pulsar_steward.model.system import System
from pulsar_steward.model.tables import TRENDS
from pulsar_steward.snapshots.database import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.check import AboutSnapshot, LookBack, Queried, Row
    from pulsar_steward.checks.delayed.failover_time import Estimate, FailoverTimePolicy
    from pulsar_steward.policy.schema import Policy

NAME = "trends"

LARGEST = 1000
"""Number of topics, those with the largest backlogs, among which the fastest growing ones are searched."""

FASTEST = 10
"""Number of topics with a recorded backlog."""


class _Point(NamedTuple):
    """A row of the table `trends`."""

    measure: str
    subject: str
    taken_at: datetime
    value: float


@dataclass(frozen=True)
class _TrendQueries:
    """Queries for the figures of `trends`."""

    shards: Mapping[str, Query]
    earlier: Mapping[str, LookBack]
    cluster: Mapping[str, Query]


_QUERIES = _TrendQueries(
    shards={
        "of_topics": Query("""
            select coalesce(sum(backlog_bytes), 0)::bigint as backlog, count(*) as topics,
                coalesce(sum(producers), 0)::bigint as producers, coalesce(sum(consumers), 0)::bigint as consumers,
                (select count(*) from raw_subscriptions) as subscriptions
            from raw_topics
        """),
        "of_processes": Query(f"""
            select source as broker, max(value) filter (series = '{SUCCEEDED}') as created,
                $now - max(value) filter (series = '{STARTED}') as uptime_seconds
            from raw_metrics
            where source_kind = 'broker' and series in ('{SUCCEEDED}', '{STARTED}') and isfinite(value)
            group by source
        """),
        "largest": Query(
            "select topic, backlog_bytes from raw_topics where backlog_bytes > 0",
            worst_first="backlog_bytes desc, topic",
            most=LARGEST,
        ),
    },
    earlier={
        "before": looking_back("select topic, raw_topics.backlog_bytes from raw_topics semi join largest using (topic)")
    },
    cluster={
        "brokers": Query("select broker, read, topics from brokers"),
        "held": Query("select broker, count(*) as held from transaction_coordinators group by broker"),
    },
)


def trends_queries(about: AboutSnapshot, policy: Policy) -> QuerySet:
    """Queries for trends, with the limits for growing backlogs."""
    own = policy.for_cluster(about.cluster)
    return QuerySet(NAME, _QUERIES, CheckContext(about=about, policy=own, limits=own.backlog_growing))


def trends(queried: Queried, context: CheckContext[Any], recorded: pa.Table | None) -> pa.Table:
    """The table `trends` of a snapshot; its size does not grow with the topics.

    Args:
        queried: Results of the queries of `trends_queries`.
        context: The context of these queries.
        recorded: The table `trends` of the snapshot before; None: there is none.
    """
    past = _recorded(recorded, context.about.taken_at, context.policy.trends.most_snapshots - 1)
    own = [*_of_cluster(queried, context.about), *_of_brokers(queried, context.about)]
    growing = _of_growing_topics(queried, context)
    if growing is None:
        return _table(
            [*own, *_connection_rates(queried, own, past), *(each for each in past if each.measure != TOPIC_BACKLOG)]
        )
    # A topic that still grows keeps its recorded points; only the first point of its growth is computed again.
    subjects, known = {each.subject for each in growing}, {(each.subject, each.taken_at) for each in growing}
    carried = [
        each
        for each in past
        if each.measure != TOPIC_BACKLOG or (each.subject in subjects and (each.subject, each.taken_at) not in known)
    ]
    return _table([*own, *_connection_rates(queried, own, past), *carried, *growing])


def _recorded(recorded: pa.Table | None, now: datetime, most: int) -> list[_Point]:
    """Points recorded before this snapshot, only for the latest `most` times."""
    rows = [] if recorded is None else [_Point(**row) for row in recorded.select(list(TRENDS.names)).to_pylist()]
    past = [row for row in rows if row.taken_at < now]
    latest = set(sorted({row.taken_at for row in past}, reverse=True)[:most])
    return [row for row in past if row.taken_at in latest]


def _of_cluster(queried: Queried, about: AboutSnapshot) -> Iterator[_Point]:
    """Sums over all brokers, only if all were read: a gap in a plot is correct, a dip would be false."""
    if about.system is not System.PULSAR or not all(row["read"] for row in queried["brokers"].rows):
        return
    parts = queried["of_topics"].rows
    measures = {
        CLUSTER_BACKLOG: "backlog",
        CLUSTER_TOPICS: "topics",
        CLUSTER_PRODUCERS: "producers",
        CLUSTER_CONSUMERS: "consumers",
        CLUSTER_SUBSCRIPTIONS: "subscriptions",
    }
    for measure, column in measures.items():
        yield _Point(measure, about.cluster, about.taken_at, float(sum(part[column] for part in parts)))


def _of_brokers(queried: Queried, about: AboutSnapshot) -> Iterator[_Point]:
    held = {row["broker"]: row["held"] for row in queried["held"].rows}
    created = {row["broker"]: row["created"] for row in queried["of_processes"].rows}
    for row in queried["brokers"].rows:
        if not row["read"]:
            continue
        values = {
            BROKER_TOPICS: row["topics"],
            BROKER_COORDINATORS: held.get(row["broker"], 0) if about.coordinators else None,
            BROKER_CONNECTIONS: created.get(row["broker"]),
        }
        for measure, value in values.items():
            if value is not None:
                yield _Point(measure, row["broker"], about.taken_at, float(value))


def _connection_rates(queried: Queried, own: Sequence[_Point], past: Sequence[_Point]) -> Iterator[_Point]:
    """Connections accepted per second since the snapshot before, for brokers that did not restart in between."""
    last = {
        each.subject: each
        for each in sorted(past, key=lambda each: each.taken_at)
        if each.measure == BROKER_CONNECTIONS
    }
    uptime = {row["broker"]: row["uptime_seconds"] for row in queried["of_processes"].rows}
    for now in own:
        before, ran = last.get(now.subject), uptime.get(now.subject)
        if now.measure != BROKER_CONNECTIONS or before is None or ran is None:
            continue
        seconds = (now.taken_at - before.taken_at).total_seconds()
        if ran >= seconds and now.value >= before.value:
            yield _Point(BROKER_CONNECTION_RATE, now.subject, now.taken_at, (now.value - before.value) / seconds)


def _of_growing_topics(queried: Queried, context: CheckContext[Any]) -> list[_Point] | None:
    """Backlogs of the fastest growing topics, now and at the reference snapshot; None: there is no such snapshot."""
    about = context.about
    before = reference(about, within(about, context.limits.window_minutes), context.limits)
    if before is None:
        return None
    then = {row["topic"]: row["backlog_bytes"] for row in queried["before"].rows if row["taken_at"] == before.taken_at}
    grown = [row for row in queried["largest"].rows if _grew(row, then)]
    fastest = sorted(grown, key=lambda row: (then[row["topic"]] - row["backlog_bytes"], row["topic"]))[:FASTEST]
    return [
        point
        for row in fastest
        for point in (
            _Point(TOPIC_BACKLOG, row["topic"], about.taken_at, float(row["backlog_bytes"])),
            _Point(TOPIC_BACKLOG, row["topic"], before.taken_at, float(then[row["topic"]])),
        )
    ]


def _grew(row: Row, then: Mapping[str, int | None]) -> bool:
    before = then.get(row["topic"])
    return before is not None and bool(row["backlog_bytes"] > before)


def _table(rows: Sequence[_Point]) -> pa.Table:
    told = sorted(row for row in rows if math.isfinite(row.value))
    return pa.Table.from_pylist([row._asdict() for row in told], schema=schema_of(TRENDS))


def failovers(query_sets: Sequence[QuerySet], queried: Mapping[str, Queried | QueryFailed]) -> list[dict[str, object]]:
    """Rows of the table `failovers`, by broker; none if the check did not run, or its queries failed.

    Args:
        query_sets: The askers that ran.
        queried: Results of queries by asker.
    """
    query_set = next((each for each in query_sets if each.name == CHECK.check_id), None)
    own = queried.get(CHECK.check_id)
    if query_set is None or own is None or isinstance(own, QueryFailed):
        return []
    policy = query_set.context.limits
    rows = [_row(each, policy) for each in estimates_by_broker(own, policy)]
    return sorted(rows, key=lambda row: str(row["broker"]))


def _row(lost: Estimate, policy: FailoverTimePolicy) -> dict[str, object]:
    load = lost.load
    # After an orderly shutdown, nobody waits for the end of the broker's metadata session.
    ended = estimated(load, lost.takers, 0.0, policy)
    return {
        "broker": load.lost,
        "others": lost.takers.others,
        "bundles": load.bundles,
        "topics": load.topics,
        "delayed_messages": load.delayed,
        "session_seconds": float(lost.session),
        "assigning_seconds": lost.assigning,
        "loading_seconds": lost.loading,
        "reading_seconds": lost.reading,
        "ended_seconds": ended.seconds,
        "lost_seconds": lost.seconds,
    }
