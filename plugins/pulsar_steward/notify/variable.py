"""The halt variable of Airflow as it was seen, and since when; pure functions.

The variable has neither a history nor a row of the ledger: what was seen before is handed in, and what is seen now is
kept by whoever looked, before anybody is told of it.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.ledger.halts import is_named

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class VariableHalt(msgspec.Struct, frozen=True, kw_only=True):
    """The variable's word on a cluster, as it was seen.

    Attributes:
        halted: True: no changes may be made; False: it did once, and does not any more.
        at: When that was seen first, UTC.
        value: The variable's value then.
    """

    halted: bool
    at: datetime
    value: str


def seen_now(
    before: Mapping[str, VariableHalt], value: str, clusters: Collection[str], now: datetime
) -> dict[str, VariableHalt]:
    """Words seen so far, by cluster, with those that are new in the variable's value.

    Args:
        before: What was seen before.
        value: The variable's value; empty where there is no such variable.
        clusters: Clusters of which somebody is told; what was seen of others is kept as it is.
        now: Current time, UTC.
    """
    seen = dict(before)
    for cluster in clusters:
        halted = is_named(value, cluster)
        if halted != (cluster in before and before[cluster].halted):
            seen[cluster] = VariableHalt(halted=halted, at=now, value=value)
    return seen
