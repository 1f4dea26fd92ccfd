"""The stop switch in Airflow's pages: the variable ``steward_halt`` lists clusters in which nothing is changed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec
from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowRuntimeError

from pulsar_steward.ledger.halts import VARIABLE, is_named
from pulsar_steward.notify.variable import VariableHalt, seen_now

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

log = logging.getLogger(__name__)

HALT = VARIABLE

SEEN = "steward_halt_seen"
"""The variable that keeps what the other one was seen to say, so that each change is told once."""

_SEEN: msgspec.json.Decoder[dict[str, VariableHalt]] = msgspec.json.Decoder(dict[str, VariableHalt])


def halted_by_variable(cluster: str) -> str | None:
    """Reason why a cluster is halted, or None.

    Args:
        cluster: The cluster's name in Steward's connections.

    A variable that cannot be read halts, as it may be set.
    """
    try:
        value = Variable.get(HALT, default=None)
    except AirflowRuntimeError as error:
        return f"whether the Airflow variable {HALT} stops changes cannot be read: {error}"
    if is_named(str(value or ""), cluster):
        return f"halted by the Airflow variable {HALT} ({value}); take {cluster} out of it to go on"
    return None


def halts_seen(clusters: Collection[str], now: datetime) -> dict[str, VariableHalt]:
    """The variable's word on each cluster, as it was seen; a new one is kept before anybody is told of it.

    Where that cannot be read or kept, nobody is told: the next look sees it, and tells it once.

    Args:
        clusters: Clusters of which somebody is told.
        now: Current time, UTC.
    """
    try:
        before = _seen_before()
        seen = seen_now(before, str(Variable.get(HALT, default=None) or ""), clusters, now)
        if seen != before:
            kept = msgspec.json.encode(seen, order="sorted").decode()
            Variable.set(SEEN, kept, description=f"What {HALT} was seen to say (docs/notifications.md)")
    except AirflowRuntimeError as error:
        log.warning("whether the Airflow variable %s changed is not told: %s", HALT, error)
        return {}
    return seen


def _seen_before() -> dict[str, VariableHalt]:
    try:
        return _SEEN.decode(Variable.get(SEEN, default=None) or "{}")
    except msgspec.MsgspecError as error:
        log.warning("the Airflow variable %s cannot be read, and is written anew: %s", SEEN, error)
        return {}
