"""The stop switch in Airflow's pages: the variable ``steward_halt`` lists clusters in which nothing is changed."""

from __future__ import annotations

from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowRuntimeError

from pulsar_steward.ledger.halts import EVERY_CLUSTER

HALT = "steward_halt"


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
    named = {name.strip() for name in str(value or "").split(",")}
    if named & {cluster, EVERY_CLUSTER}:
        return f"halted by the Airflow variable {HALT} ({value}); take {cluster} out of it to go on"
    return None
