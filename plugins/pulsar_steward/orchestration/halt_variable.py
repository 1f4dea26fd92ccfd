"""The stop switch in Airflow's pages: nothing is changed in clusters that the variable ``steward_halt`` lists."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec
from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import ErrorResponse, GetVariable, VariableResult

from pulsar_steward.decoding import decode
from pulsar_steward.ledger.halts import VARIABLE, WayOut, way_out_of_variable
from pulsar_steward.model.cluster import CLUSTER_NAME, admin_connection
from pulsar_steward.notify.variable import VariableHalt, seen_now
from pulsar_steward.orchestration.connections import connection_named
from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

log = logging.getLogger(__name__)

HALT = VARIABLE

SEEN = "steward_halt_seen"
"""Variable with the last known state of ``steward_halt``, so that each change is reported once."""

MAX_SHOWN = 200
"""Characters of a value that a reason quotes."""


def halted_by_variable(cluster: str, known: Callable[[], Collection[str]]) -> str | None:
    """Reason why a cluster is halted, or None.

    A variable that cannot be read halts the cluster, as it may be set. So does a value that is not understood.

    Args:
        cluster: The cluster's name in Steward's connections.
        known: Returns the clusters that the ledger knows; called only if the variable has a value.
    """
    found = halt_by_variable(cluster, known)
    return found.words if found else None


def halt_by_variable(cluster: str, known: Callable[[], Collection[str]]) -> WayOut | None:
    """As `halted_by_variable`; also tells whether the variable's value was understood."""
    try:
        value = value_now()
        out = way_out_of_variable(value, cluster, names_clusters(cluster, known))
    except Exception as error:  # noqa: BLE001 - whatever it is, the variable may be set
        return WayOut(f"whether the Airflow variable {HALT} stops changes cannot be read: {error}", understood=False)
    if out is None:
        return None
    return WayOut(f"halted by the Airflow variable {HALT} ({shown(value)[:MAX_SHOWN]}); {out.words}", out.understood)


def value_now() -> Any:
    """The variable's value; None: there is no such variable.

    Raises:
        AirflowRuntimeError: If it cannot be read.
    """
    value = Variable.get(HALT, default=None)
    return _by_the_server() if value is None else value


def _by_the_server() -> str | None:
    """The value from the API server itself: `Variable.get` returns the default also if the server does not respond.

    Seen with 3.3.2: a secrets backend returns None both if its call fails and if there is no such variable.
    """
    comms = getattr(task_runner, "SUPERVISOR_COMMS", None)
    if comms is None:  # outside of a task, `Variable.get` reads the database
        return None
    told = comms.send(GetVariable(key=HALT))
    if isinstance(told, VariableResult):
        return told.value
    if isinstance(told, ErrorResponse) and told.error is not ErrorType.VARIABLE_NOT_FOUND:
        raise AirflowRuntimeError(told)
    return None


def names_clusters(cluster: str, known: Callable[[], Collection[str]]) -> Callable[[str], bool]:
    """Function that is true for names of clusters in the ledger, or else in Airflow's connections.

    Connections in the environment ignore case, so they do not distinguish ``EAST`` from ``east``. So a name that
    differs from a known one only in case is no cluster's name.

    Args:
        cluster: A known cluster.
        known: Returns the clusters that the ledger knows.
    """

    def is_known(name: str) -> bool:
        ledger = {cluster, *known()}
        if name in ledger or name.casefold() in {each.casefold() for each in ledger}:
            return name in ledger
        return CLUSTER_NAME.fullmatch(name) is not None and connection_named(admin_connection(name)) is not None

    return is_known


def halts_seen(
    clusters: Collection[str], now: datetime, known: Callable[[], Collection[str]]
) -> dict[str, VariableHalt]:
    """The variable's state by cluster; a change is stored before it is reported.

    If it cannot be read or stored, nothing is reported: the next run sees the change, and reports it once.

    Args:
        clusters: Clusters with recipients of messages.
        now: Current time, UTC.
        known: Returns the clusters that the ledger knows.
    """
    try:
        before, value = _seen_before(), value_now()
        seen = seen_now(
            before,
            value,
            lambda cluster: way_out_of_variable(value, cluster, names_clusters(cluster, known)),
            clusters,
            now,
        )
        if seen != before:
            kept = msgspec.json.encode(seen, order="sorted").decode()
            Variable.set(SEEN, kept, description=f"What {HALT} was seen to say (docs/notifications.md)")
    except (AirflowRuntimeError, PermissionError) as error:  # Airflow raises the latter if access is denied
        log.warning("whether the Airflow variable %s changed is not told: %s", HALT, error)
        return {}
    return seen


def _seen_before() -> dict[str, VariableHalt]:
    try:
        return decode(Variable.get(SEEN, default=None) or "{}", dict[str, VariableHalt])
    except msgspec.MsgspecError as error:
        log.warning("the Airflow variable %s cannot be read, and is written anew: %s", SEEN, error)
        return {}
