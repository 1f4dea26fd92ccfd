"""Settings of several clusters from Airflow's connections; the command line runs this in a separate process.

``python -m pulsar_steward.orchestration.fleet_connections`` reads names of clusters as JSON from standard input, and
prints a `ConnectedCluster` for each. They hold secrets: the process that asked reads them through a pipe, and nothing
else does.
"""

from __future__ import annotations

import os
import sys

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.errors import StewardError
from pulsar_steward.model.cluster import admin_connection
from pulsar_steward.policy.fleet import ConnectedCluster
from pulsar_steward.policy.schema import Policy


def connected(cluster: str) -> ConnectedCluster:
    """A cluster with the settings of its connection, or the reason why that is not usable."""
    from pulsar_steward.orchestration.connections import connection_named, observed_settings

    try:
        settings = observed_settings(cluster, Policy())
    except StewardError as error:
        return ConnectedCluster(cluster=cluster, trouble=str(error))
    connection = connection_named(admin_connection(cluster))
    region = connection.extra_dejson.get("region") if connection else None
    return ConnectedCluster(cluster=cluster, variables=settings.in_environment({}), region=region and str(region))


def main() -> None:
    """Prints the clusters as the last line of standard output, as libraries may print lines before."""
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"  # as Airflow's own commands: connections without a task
    found = [connected(each) for each in decode(sys.stdin.buffer.read(), list[str])]
    sys.stdout.write(f"\n{msgspec.json.encode(found).decode()}\n")


if __name__ == "__main__":
    main()
