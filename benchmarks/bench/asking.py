"""From a trigger to an approval that waits, in a real Airflow: ``python -m benchmarks.bench.asking HOME``."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.bench.figures import Meter, told
from lab.airflow.server import running_airflow
from lab.airflow.settings import connection_to
from lab.simulator import ClusterSpec, running_simulator
from lab.waiting import wait_until

NAME = "bench"
ASKED_WITHIN_S = 300.0


def main(home: str) -> None:
    """Observes a made-up cluster of three brokers, one of which has all transaction coordinators."""
    with (
        running_simulator(ClusterSpec(tc_owner=0)) as simulator,
        running_airflow(Path(home), connection_to(simulator, NAME)) as airflow,
    ):
        for name in ("pulsar_observe", "pulsar_remediate"):
            airflow.api.unpause(name)
        meter = Meter()
        airflow.api.trigger("pulsar_observe", {"cluster": NAME})
        wait_until(lambda: bool(airflow.api.waiting()), "an approval waits", ASKED_WITHIN_S, 0.3)
        told(meter.figures("approvals", 1))


if __name__ == "__main__":
    main(sys.argv[1])
