"""Faults of Kafka clusters: on real brokers, and on made-up ones where those would have to be too many."""

from lab.faults.kafka import made_up, real

FAULTS = (*real.FAULTS, *made_up.FAULTS)
"""All of them, real ones first."""

__all__ = ["FAULTS"]
