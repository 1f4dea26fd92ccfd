"""Estimates of the check `failover-time` for every broker, for pages: before a restart, short ones matter too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.delayed.failover_time import CHECK, estimated, estimates_by_broker
from pulsar_steward.diagnose.running import QueryFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.checks.check import Queried
    from pulsar_steward.checks.delayed.failover_time import Estimate, FailoverTimePolicy
    from pulsar_steward.diagnose.queries import QuerySet


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
