"""Health of a cluster in a word, and the order of clusters in which people look at them."""

from __future__ import annotations

from enum import StrEnum


class ClusterHealth(StrEnum):
    """Health of a cluster by its newest look; the first that applies, and the worst first."""

    CRITICAL = "critical"
    UNKNOWN = "unknown"
    WARNING = "warning"
    HEALTHY = "healthy"

    @property
    def rank(self) -> int:
        """0 for the worst, rising."""
        return list(ClusterHealth).index(self)

    @classmethod
    def of(cls, *, critical: object, warning: object, known: object) -> ClusterHealth:
        """Health by whether there are such findings, and whether all that bears on health is known.

        What was found stands, whatever else could not be read. Absence of data is never health.
        """
        if critical:
            return cls.CRITICAL
        if not known:
            return cls.UNKNOWN
        return cls.WARNING if warning else cls.HEALTHY
