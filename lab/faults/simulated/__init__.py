"""Faults of made-up clusters: those that real brokers cannot be brought to on one small machine."""

from lab.faults.simulated import (
    absent,
    backlog,
    bookies,
    brokers,
    capacity,
    clients,
    delayed,
    healthy,
    holders,
    limits,
    placement,
    processes,
    publishing,
    replication,
    reported_twins,
    resources,
    transactions,
)

FAULTS = (
    *resources.FAULTS,
    *processes.FAULTS,
    *brokers.FAULTS,
    *bookies.FAULTS,
    *backlog.FAULTS,
    *clients.FAULTS,
    *holders.FAULTS,
    *absent.FAULTS,
    *delayed.FAULTS,
    *capacity.FAULTS,
    *placement.FAULTS,
    *publishing.FAULTS,
    *limits.FAULTS,
    *replication.FAULTS,
    *transactions.FAULTS,
    *reported_twins.FAULTS,
    *healthy.FAULTS,
)
"""All of them, by subject; the healthy clusters come last."""

__all__ = ["FAULTS"]
