"""State of Airflow's halt variable; the command line runs this in a separate process.

``python -m pulsar_steward.orchestration.halts_told`` reads a `HaltsAsked` as JSON from standard input, and prints a
`HaltsTold`.
"""

from __future__ import annotations

import os
import sys

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.model.cluster import CLUSTER_NAME, admin_connection
from pulsar_steward.notify.variable import HaltsAsked, HaltsTold


def told(asked: HaltsAsked) -> HaltsTold:
    """Clusters that the variable halts, and the names that have a connection."""
    from pulsar_steward.orchestration.connections import connection_named
    from pulsar_steward.orchestration.halt_variable import halt_by_variable

    halts = {cluster: halt_by_variable(cluster, lambda: asked.clusters) for cluster in asked.clusters}
    return HaltsTold(
        reasons={cluster: halt.words for cluster, halt in halts.items() if halt},
        understood=all(halt is None or halt.understood for halt in halts.values()),
        connected=tuple(
            name
            for name in asked.names
            if CLUSTER_NAME.fullmatch(name) and connection_named(admin_connection(name)) is not None
        ),
    )


def main() -> None:
    """Prints the result as the last line of standard output, as libraries may print lines before."""
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"  # as Airflow's own commands: variables without a task
    answer = told(decode(sys.stdin.buffer.read(), HaltsAsked))
    sys.stdout.write(f"\n{msgspec.json.encode(answer).decode()}\n")


if __name__ == "__main__":
    main()
