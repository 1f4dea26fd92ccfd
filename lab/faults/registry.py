"""Every labelled fault there is, real ones first."""

from lab.faults.fault import RealFault, RealKafkaFault, SimulatedFault, SimulatedKafkaFault
from lab.faults.field import FAULTS as FIELD
from lab.faults.kafka import FAULTS as KAFKA
from lab.faults.real import (
    ack_holes,
    acks,
    ages,
    bundles,
    clients,
    consumed,
    coordinators,
    copies,
    delayed,
    delayed_lives,
    ensembles,
    expiry,
    healthy,
    logs,
    moves,
    ownership,
    publishing,
    quotas,
    replication,
    retention,
    subscriptions,
    transactions,
    trends,
)
from lab.faults.simulated import FAULTS as SIMULATED

AnyFault = RealFault | SimulatedFault | RealKafkaFault | SimulatedKafkaFault

REAL = (
    *healthy.FAULTS,
    *coordinators.FAULTS,
    *bundles.FAULTS,
    *quotas.FAULTS,
    *ages.FAULTS,
    *retention.FAULTS,
    *ensembles.FAULTS,
    *copies.FAULTS,
    *delayed.FAULTS,
    *delayed_lives.FAULTS,
    *ack_holes.FAULTS,
    *acks.FAULTS,
    *subscriptions.FAULTS,
    *consumed.FAULTS,
    *clients.FAULTS,
    *trends.FAULTS,
    *expiry.FAULTS,
    *moves.FAULTS,
    *ownership.FAULTS,
    *publishing.FAULTS,
    *logs.FAULTS,
    *replication.FAULTS,
    *transactions.FAULTS,
)

ON_EVERY_VERSION = (*quotas.FAULTS, *ages.FAULTS, *retention.FAULTS, *subscriptions.FAULTS, *moves.FAULTS)
"""Faults that `benchmarks.versions` makes on each version: their figures come from what a version reports or lacks."""

FAULTS: tuple[AnyFault, ...] = (*REAL, *SIMULATED, *KAFKA, *FIELD)
"""Names are unique."""
