"""Backlogs with the size quota and the retention that are in force for them.

A topic's own limits take precedence over its namespace's, and these over the brokers' defaults. A topic's own are known
where its own statistics were read (table `drilled`); for other topics its namespace's are taken to be in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.model.tables import TOPICS
from pulsar_steward.report.checkup.measures.arrow import of_users, worst
from pulsar_steward.report.checkup.measures.data import LimitedBacklog
from pulsar_steward.report.checkup.measures.in_force import UNKNOWN, InForce, limits_of_namespaces, limits_of_topics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.snapshots.read import Snapshot

MAX_TOPICS = 20
"""Number of topics shown."""

FULLEST = 10
"""Number of them that fill most of their quota; the others are the largest of the rest."""


def limited_backlogs(snapshot: Snapshot) -> tuple[LimitedBacklog, ...]:
    """Topics of users with a backlog: the fullest, then the largest."""
    topics = snapshot.table(TOPICS, ["topic", "namespace", "backlog_bytes"], [("backlog_bytes", ">", 0)])
    topics = of_users(topics)
    namespaces = limits_of_namespaces(snapshot, pc.unique(topics["namespace"]).to_pylist())
    drilled = limits_of_topics(snapshot, namespaces)
    topics = topics.append_column("share", _share(topics, namespaces, drilled))
    fullest = worst(topics, "share", FULLEST, "topic")
    rest = topics.filter(pc.invert(pc.is_in(topics["topic"], value_set=fullest["topic"].combine_chunks())))
    largest = worst(rest, "backlog_bytes", MAX_TOPICS - fullest.num_rows, "topic")
    rows = pa.concat_tables([fullest, largest]).drop_columns("share").to_pylist()
    return tuple(_limited(row, drilled.get(row["topic"]) or namespaces.get(row["namespace"], UNKNOWN)) for row in rows)


def _limited(row: dict[str, object], limits: InForce) -> LimitedBacklog:
    return LimitedBacklog(
        topic=str(row["topic"]),
        namespace=str(row["namespace"]),
        backlog_bytes=int(str(row["backlog_bytes"])),
        quota_bytes=limits.quota_bytes,
        quota_by=limits.quota_by,
        retention_bytes=limits.retention_bytes,
        retention_by=limits.retention_by,
    )


def _share(topics: pa.Table, namespaces: Mapping[str, InForce], drilled: Mapping[str, InForce]) -> pa.ChunkedArray:
    """Backlog divided by quota for each row; null without a quota, and infinite for a quota of 0 bytes."""
    own = _looked_up(topics["topic"], drilled)
    quota = pc.if_else(_known(topics["topic"], drilled), own, _looked_up(topics["namespace"], namespaces))
    return pc.divide(pc.cast(topics["backlog_bytes"], pa.float64()), pc.cast(quota, pa.float64()))


def _looked_up(names: pa.ChunkedArray, limits: Mapping[str, InForce]) -> pa.ChunkedArray:
    quotas = pa.array([each.quota_bytes for each in limits.values()], pa.int64())
    return pc.take(quotas, pc.index_in(names, value_set=_keys(limits)))


def _known(names: pa.ChunkedArray, limits: Mapping[str, InForce]) -> pa.ChunkedArray:
    return pc.is_in(names, value_set=_keys(limits))


def _keys(limits: Mapping[str, InForce]) -> pa.Array:
    return pa.array(list(limits), pa.string())
