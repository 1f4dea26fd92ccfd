"""The Pulsar that the demo plays on: a real one wherever Java and Maven are to be had, else the simulator."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from lab import jars, prerequisites
from lab.cluster import running_lab
from lab.demo.scenarios import Scenario
from lab.errors import JarsUnavailableError
from lab.faults.real.ground import COMMON_SETTINGS
from lab.model import VERSIONS
from lab.simulator import running_simulator
from lab.target import PulsarTarget


def why_simulated() -> str | None:
    """Reason why there can be no real Pulsar here, with what to install; None: there can.

    The jars are fetched here, so that a machine without a way to Maven's repository is found out at once.
    """
    version = VERSIONS[0]
    missing = prerequisites.missing(maven=not jars.fetched(version))
    if missing:
        return "; ".join(missing)
    try:
        jars.fetch(version, print)
    except JarsUnavailableError as error:
        return str(error)
    return None


@contextlib.contextmanager
def pulsar(home: Path, scenario: Scenario, *, simulated: bool) -> Iterator[PulsarTarget]:
    """A Pulsar of three brokers for the length of a ``with`` block."""
    if simulated:
        with running_simulator(scenario.spec) as simulator:
            yield simulator
        return
    with running_lab("demo", home=home, broker_settings=dict(COMMON_SETTINGS)) as lab:
        yield lab
