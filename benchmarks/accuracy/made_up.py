"""A made-up cluster over several observations: other figures each time, and always the same brokers."""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from lab.ports import is_free
from lab.simulator import running_simulator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.faults.fault import SimulatedFault
    from lab.simulator import ClusterSpec, Simulator

LOWEST, HIGHEST = 20_000, 30_000
TRIES = 200


class MadeUp:
    """The clusters of one fault, one after the other, on the same ports: a broker's id holds its port.

    Args:
        fault: What they are to look like.
    """

    def __init__(self, fault: SimulatedFault) -> None:
        self._specs = fault.specs
        self._began = time.monotonic()
        self._port = None if fault.observations == 1 else _free_row(max(spec.brokers for spec in fault.specs))

    @contextmanager
    def cluster(self, observation: int) -> Iterator[Simulator]:
        """The cluster as it is at that observation, 0 for the first."""
        spec = self._specs[min(observation, len(self._specs) - 1)]
        if observation:
            spec = self._as_long_ago(spec, observation)
        with running_simulator(spec, base_port=self._port, keep_log=False) as simulator:
            yield simulator

    def _as_long_ago(self, spec: ClusterSpec, observation: int) -> ClusterSpec:
        """The cluster, its brokers started as early as in the first observation: later would be a restart."""
        more = time.monotonic() - self._began + observation
        loads = (spec.load_of(number) for number in range(spec.brokers))
        return replace(spec, loads=tuple(replace(load, uptime_s=load.uptime_s + more) for load in loads))


def _free_row(count: int) -> int:
    """The first of so many ports in a row that nothing listens on."""
    for _ in range(TRIES):
        first = random.randint(LOWEST, HIGHEST)
        if all(is_free("127.0.0.1", port) for port in range(first, first + count)):
            return first
    raise OSError(f"found no {count} free ports in a row from {LOWEST} to {HIGHEST}")
