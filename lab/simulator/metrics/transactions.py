"""The series of transaction coordinators, which a broker tells once a client has connected to them."""

from collections.abc import Iterator, Mapping

from lab.simulator.metrics.text import family, sample
from lab.simulator.spec import CoordinatorSpec


def lines(cluster: str, coordinators: Mapping[int, CoordinatorSpec]) -> Iterator[str]:
    """Yields the figures of a broker's own coordinators."""
    for number, spec in coordinators.items():
        figures = {
            "pulsar_txn_active_count": spec.still_open,
            "pulsar_txn_created_total": spec.opened,
            "pulsar_txn_timeout_total": spec.timed_out,
        }
        for series, value in figures.items():
            yield family(series, "gauge")
            yield sample(series, {"cluster": cluster, "coordinator_id": str(number)}, value)
