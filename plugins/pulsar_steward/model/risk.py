"""Risk of a batch: its level, and the reasons for it in words."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Risk(StrEnum):
    """Level of risk, from the lowest to the highest."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for low, rising with the risk."""
        return list(Risk).index(self)


class RiskReason(msgspec.Struct, frozen=True):
    """One reason for a level, in a sentence without its full stop."""

    level: Risk
    words: str


class BatchRisk(msgspec.Struct, frozen=True):
    """Risk of a batch, with all reasons, the gravest first; there is at least one."""

    reasons: tuple[RiskReason, ...]

    @property
    def level(self) -> Risk:
        """The gravest reason's level."""
        return self.reasons[0].level
