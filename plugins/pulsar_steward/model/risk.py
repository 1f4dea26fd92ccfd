"""Risk of a batch: its level, and the reasons for it in words."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.finding import QuotaFigures, Severity
from pulsar_steward.model.loss import Loss

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch


class Risk(StrEnum):
    """Level of risk, from the lowest to the highest."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @cached_property
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


# There is no sum. A quota that is reached in two hours and a broker with four coordinators too many have no common
# unit, and any weights would be arbitrary. An unknown value is None, and is reported as unknown.
class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """Worth of a batch: the problems that it solves.

    Attributes:
        critical: Listed critical findings that it resolves.
        warnings: Listed warnings that it resolves.
        more: True if it may resolve further ones that are not listed.
        seconds_to_quota: Time from the snapshot until the first of its topics reaches its quota, at the present growth;
            None: not known.
        spread_before: Difference between the brokers with the most and the fewest items; None: not known.
        spread_after: The same after all steps.
        kept_messages: Unread entries that brokers may delete without the batch; None: none are known.
    """

    critical: int
    warnings: int
    more: bool = False
    seconds_to_quota: int | None = None
    spread_before: int | None = None
    spread_after: int | None = None
    kept_messages: int | None = None

    @property
    def rank(self) -> tuple[int, float, int, int]:
        """Sort key, the highest worth first: critical findings, time left, kept entries, and the evened out spread."""
        evened = (self.spread_before or 0) - (self.spread_after or 0)
        left = inf if self.seconds_to_quota is None else self.seconds_to_quota
        return -self.critical, left, -(self.kept_messages or 0), -evened


def worth_of(batch: Batch) -> Worth:
    """Worth of a batch by its findings, its placement and its steps."""
    severities = [finding.severity for finding in batch.findings]
    left = [QuotaFigures.of(finding).seconds_to_quota for finding in batch.findings]
    averts = [step.averts for step in batch.steps if isinstance(step.averts, Loss)]
    before, after = ([place.count for place in places] for places in (batch.before, batch.after))
    both = bool(before and after)
    return Worth(
        critical=severities.count(Severity.CRITICAL),
        warnings=severities.count(Severity.WARNING),
        more=isinstance(batch.unlisted, int),
        seconds_to_quota=min((each for each in left if each is not None), default=None),
        spread_before=max(before) - min(before) if both else None,
        spread_after=max(after) - min(after) if both else None,
        kept_messages=sum(loss.messages or 0 for loss in averts) or None,
    )
