"""Faults of made-up clusters: those that real brokers cannot be brought to on one small machine."""

from lab.faults.simulated import backlog, capacity, clients, delayed, healthy, placement, publishing, resources

FAULTS = (
    *resources.FAULTS,
    *backlog.FAULTS,
    *clients.FAULTS,
    *delayed.FAULTS,
    *capacity.FAULTS,
    *placement.FAULTS,
    *publishing.FAULTS,
    *healthy.FAULTS,
)
"""All of them, by subject; the healthy clusters come last."""

__all__ = ["FAULTS"]
