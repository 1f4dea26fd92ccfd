"""Newest plans of a cluster, one line each. Cannot write."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import select

from pulsar_steward.ledger.batch_record import batch_records, rows_of
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.ledger.tables import PLANS, SUPERSESSIONS

if TYPE_CHECKING:
    from sqlalchemy import Connection


class PlanLine(msgspec.Struct, frozen=True, kw_only=True):
    """A plan's line in a list.

    Attributes:
        titles: Titles of its batches.
        steps: Number of steps in all of its batches.
        waiting: Number of its questions that wait for an answer.
        outcomes: Number of ended steps, by outcome.
    """

    plan_id: str
    recorded_at: datetime
    superseded_by: str | None
    titles: tuple[str, ...]
    steps: int
    waiting: int
    outcomes: dict[str, int]


def plan_lines(connection: Connection, cluster: str, now: datetime, most: int) -> tuple[PlanLine, ...]:
    """A cluster's newest plans, newest first."""
    by = SUPERSESSIONS.c.by_plan_id
    newest = select(PLANS.c.plan_id, PLANS.c.created_at, by).outerjoin(
        SUPERSESSIONS, SUPERSESSIONS.c.plan_id == PLANS.c.plan_id
    )
    of_cluster = newest.where(PLANS.c.cluster == cluster).order_by(PLANS.c.sequence.desc()).limit(most)
    plans = rows_of(connection, of_cluster)
    batches = batch_records(connection, [row["plan_id"] for row in plans]).values()
    found = []
    for row in plans:
        own = [each for each in batches if each.plan_id == row["plan_id"]]
        outcomes = Counter(outcome.outcome for each in own for outcome in each.outcomes)
        found.append(
            PlanLine(
                plan_id=row["plan_id"],
                recorded_at=row["created_at"],
                superseded_by=row["by_plan_id"],
                titles=tuple(each.title for each in own),
                steps=sum(each.steps for each in own),
                waiting=sum(len(each.waiting(now)) for each in own),
                outcomes={each.value: count for each in Outcome if (count := outcomes[each])},
            )
        )
    return tuple(found)
