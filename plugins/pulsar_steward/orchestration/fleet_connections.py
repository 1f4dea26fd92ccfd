"""Clusters that Airflow has a connection to, with their settings; the command line runs this in a separate process.

``python -m pulsar_steward.orchestration.fleet_connections`` prints a list of `ConnectedCluster` as JSON. It holds
secrets: it goes through a pipe to the process that asked, and nowhere else.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import StewardError
from pulsar_steward.model.cluster import admin_connection, require_cluster_name
from pulsar_steward.policy.fleet import ConnectedCluster
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PREFIX = admin_connection("")
_IN_ENVIRONMENT = f"AIRFLOW_CONN_{_PREFIX.upper()}"


def connected_clusters(environment: Mapping[str, str]) -> list[ConnectedCluster]:
    """Clusters with a connection in Airflow's database or in the environment, by name.

    Names of connections in the environment are in upper case there: their clusters' are in lower case, unless the
    database has the same name otherwise. What only a secrets backend holds is not listed: no backend can say it.

    Raises:
        Exception: Any error of the database's driver, if the database cannot be read.
    """
    own = {name.removeprefix(_PREFIX) for name in _names_in_database()}
    known = {each.casefold() for each in own}
    told = {name.removeprefix(_IN_ENVIRONMENT).lower() for name in environment if name.startswith(_IN_ENVIRONMENT)}
    return [_connected(each) for each in sorted(own | (told - known))]


def _names_in_database() -> Iterable[str]:
    from airflow.models.connection import Connection  # noqa: PLC0415 - takes seconds, and only this process needs it
    from airflow.utils.session import create_session  # noqa: PLC0415 - as above
    from sqlalchemy import select  # noqa: PLC0415 - as above

    with create_session() as session:
        names = select(Connection.conn_id).where(Connection.conn_id.startswith(_PREFIX, autoescape=True))
        return list(session.scalars(names))


def _connected(cluster: str) -> ConnectedCluster:
    from pulsar_steward.orchestration.connections import admin_settings, connection_named  # noqa: PLC0415 - Airflow

    try:
        settings = admin_settings(require_cluster_name(cluster), Policy())
        connection = connection_named(admin_connection(cluster))
        region = connection.extra_dejson.get("region") if connection else None
    except StewardError as error:
        return ConnectedCluster(cluster=cluster, trouble=str(error))
    return ConnectedCluster(
        cluster=cluster, variables=settings.in_environment({}), region=str(region) if region else None
    )


def main() -> None:
    """Prints the clusters as the last line of standard output, as libraries may print lines before."""
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"  # as Airflow's own commands: connections without a task
    sys.stdout.write(f"\n{msgspec.json.encode(connected_clusters(os.environ)).decode()}\n")


if __name__ == "__main__":
    main()
