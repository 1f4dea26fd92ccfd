"""Observed values of Airflow's halt variable, with the time since when; pure functions.

The variable has no history and no row in the ledger. So the caller passes the earlier observations, and stores the new
ones before anybody is notified.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pulsar_steward.ledger.halts import WayOut


class VariableHalt(msgspec.Struct, frozen=True, kw_only=True):
    """Observed value of the variable for a cluster.

    Attributes:
        halted: True: no changes are allowed; False: the halt has ended.
        at: Time of the first observation, UTC.
        value: The variable's value then.
        way_out: Way to end the halt; empty: there is no halt.
    """

    halted: bool
    at: datetime
    value: str
    way_out: str = ""


class HaltsAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Request to the Airflow of an environment for its halt variable.

    Attributes:
        clusters: Known clusters.
        names: Further names to look for among the connections.
    """

    clusters: tuple[str, ...]
    names: tuple[str, ...] = ()


class HaltsTold(msgspec.Struct, frozen=True, kw_only=True):
    """Response to `HaltsAsked`.

    Attributes:
        reasons: Reason of the halt for each halted cluster.
        understood: False: its value names no cluster, or it cannot be read.
        connected: The names with a connection.
    """

    reasons: dict[str, str]
    understood: bool
    connected: tuple[str, ...]


def seen_now(
    before: Mapping[str, VariableHalt],
    value: object,
    way_out: Callable[[str], WayOut | None],
    clusters: Collection[str],
    now: datetime,
) -> dict[str, VariableHalt]:
    """Observations so far, by cluster, with the new ones from the variable's value.

    Args:
        before: Earlier observations.
        value: The variable's value; None: there is no such variable.
        way_out: Function to the way of ending a cluster's halt; None: the value does not halt it.
        clusters: Clusters with recipients; observations of other clusters are kept as they are.
        now: Current time, UTC.
    """
    seen = dict(before)
    for cluster in clusters:
        out = way_out(cluster)
        halted = out is not None
        if halted != (cluster in before and before[cluster].halted):
            said = "" if value is None else str(value)
            seen[cluster] = VariableHalt(halted=halted, at=now, value=said, way_out=out.words if out else "")
    return seen
