"""Every labelled fault there is, real ones first."""

from lab.faults.fault import RealFault, SimulatedFault
from lab.faults.real import (
    acks,
    ages,
    bundles,
    clients,
    coordinators,
    delayed,
    healthy,
    quotas,
    retention,
    subscriptions,
    trends,
)
from lab.faults.simulated import FAULTS as SIMULATED

AnyFault = RealFault | SimulatedFault

REAL = (
    *healthy.FAULTS,
    *coordinators.FAULTS,
    *bundles.FAULTS,
    *quotas.FAULTS,
    *ages.FAULTS,
    *retention.FAULTS,
    *delayed.FAULTS,
    *acks.FAULTS,
    *subscriptions.FAULTS,
    *clients.FAULTS,
    *trends.FAULTS,
)

FAULTS: tuple[AnyFault, ...] = (*REAL, *SIMULATED)
"""Names are unique."""
