"""Worth of a batch: what it mends, each in its own unit, as far as the plan's own figures tell it.

There is no sum: a quota that is reached in two hours and four coordinators too many on a broker have no common unit,
and weights would be made up. What is not known is None, and is said to be unknown.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.finding import Severity
from pulsar_steward.model.loss import Loss

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch

SECONDS_TO_QUOTA = "seconds_to_quota"
"""Figure of a finding about a backlog that grows towards its quota."""


class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """Worth of a batch: what it mends.

    Attributes:
        critical: Critical findings that it answers.
        warnings: Warnings that it answers.
        seconds_to_quota: Time from the snapshot until the first of its topics reaches its quota, as fast as it grew;
            None: not known.
        spread_before: Difference between the broker with the most and the one with the fewest; None: not known.
        spread_after: The same when every step is done.
        kept_messages: Messages that nobody has read, and that brokers may delete if it is not done; None: none are
            known of.
    """

    critical: int
    warnings: int
    seconds_to_quota: int | None = None
    spread_before: int | None = None
    spread_after: int | None = None
    kept_messages: int | None = None

    @property
    def rank(self) -> tuple[int, float, int, int]:
        """Sort key, what is worth most first: critical findings, then time left, then what is kept and evened out."""
        evened = (self.spread_before or 0) - (self.spread_after or 0)
        left = inf if self.seconds_to_quota is None else self.seconds_to_quota
        return -self.critical, left, -(self.kept_messages or 0), -evened


def worth_of(batch: Batch) -> Worth:
    """Worth of a batch by its findings, its placement and its steps."""
    severities = [finding.severity for finding in batch.findings]
    left = [finding.figures[SECONDS_TO_QUOTA] for finding in batch.findings if SECONDS_TO_QUOTA in finding.figures]
    averts = [step.averts for step in batch.steps if isinstance(step.averts, Loss)]
    before, after = ([place.count for place in places] for places in (batch.before, batch.after))
    both = bool(before and after)
    return Worth(
        critical=severities.count(Severity.CRITICAL),
        warnings=severities.count(Severity.WARNING),
        seconds_to_quota=min(left, default=None),
        spread_before=max(before) - min(before) if both else None,
        spread_after=max(after) - min(after) if both else None,
        kept_messages=sum(loss.messages or 0 for loss in averts) or None,
    )
