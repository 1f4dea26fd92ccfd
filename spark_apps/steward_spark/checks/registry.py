"""Every check there is."""

from __future__ import annotations

from steward_spark.checks import backlog, clients, delayed, placement, resources

CHECKS = (*resources.CHECKS, *clients.CHECKS, *placement.CHECKS, *backlog.CHECKS, *delayed.CHECKS)
"""In the order in which they are carried out and reported."""
