"""Topics with more clients of one kind than a partition should have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.check import Query
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, QueryRows, Row


def crowded(clients: str, detail: str | None = None) -> Query:
    """Query for the topics with most `producers` or `consumers`; `critical` is true if the number is critical.

    Args:
        clients: Kind of clients.
        detail: See `Query`.
    """
    return Query(
        f"""
        select topic, broker, producers, consumers, subscriptions, producers_connected_recently,
            {clients} >= critical_{clients} as critical, $collect__recent_minutes as recent_minutes
        from user_topics join limits using (namespace) where {clients} >= warning_{clients}
        """,
        worst_first=f"critical desc, {clients} desc, topic",
        detail=detail,
    )


def most_seen(clients: str) -> Query:
    """Query for the highest number of clients on one topic, for each threshold that is in force anywhere."""
    return Query(
        f"""
        select warning_{clients} as threshold, max({clients}) as most
        from user_topics join limits using (namespace) group by warning_{clients}
        """
    )


def most_of_one(selected: QueryRows, context: CheckContext[Any], clients: str) -> str:
    """Sentence for the case that no topic is crowded: the highest number of clients on one topic."""
    most: dict[int, int] = {}
    for row in selected.rows:
        most[row["threshold"]] = max(most.get(row["threshold"], 0), row["most"] or 0)
    return context.in_each_part(
        lambda limits: f"No partition has more than {most.get(getattr(limits, f'warning_{clients}'), 0):,} {clients}."
    )


def moving(row: Row) -> str:
    """Sentence about the effect of a move of the topic."""
    clients = (row["producers"] or 0) + (row["consumers"] or 0)
    return f"A move or restart makes all {counted(clients, 'client')} of the topic reconnect at once."
