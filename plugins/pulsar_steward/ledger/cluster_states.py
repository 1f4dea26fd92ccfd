"""State of every cluster in the ledger: its halt, waiting questions, running batch and last change. Cannot write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import func, select

from pulsar_steward.ledger import tables
from pulsar_steward.ledger.batch_record import open_batches, rows_of
from pulsar_steward.ledger.halts import Halt, clusters_in, halt_in
from pulsar_steward.ledger.rows import Lease, from_row
from pulsar_steward.ledger.silences import Silence, silences_in
from pulsar_steward.ledger.waiting import (
    RunningBatch,
    UnaskedQuestion,
    WaitingQuestion,
    running_batch,
    unasked_questions,
    waiting_questions,
)
from pulsar_steward.model.cluster import NamedCluster

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection


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
