"""Faults that other people reported in public, each with its address and the answer that is right.

They are made on a made-up cluster from the figures that a report shows, or that follow from it.
"""

from lab.faults.field import bookies, clients, consumers, cursors, issue, placement, quotas, replication, unseen

FAULTS = (
    *issue.FAULTS,
    *quotas.FAULTS,
    *cursors.FAULTS,
    *replication.FAULTS,
    *clients.FAULTS,
    *consumers.FAULTS,
    *placement.FAULTS,
    *bookies.FAULTS,
    *unseen.FAULTS,
)

__all__ = ["FAULTS"]
