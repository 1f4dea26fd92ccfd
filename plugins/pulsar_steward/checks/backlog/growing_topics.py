"""Topics whose backlogs have kept growing fast enough to matter, for namespaces with the same limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.defaults import Defaults
from pulsar_steward.checks.backlog.growing_sums import growing_together
from pulsar_steward.checks.backlog.growth import Growth, Rise, reference
from pulsar_steward.checks.check import Judgement
from pulsar_steward.checks.earlier import too_few, within
from pulsar_steward.model.units import HOUR, counted, time_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.backlog.growth import BacklogGrowingPolicy, BacklogSum
    from pulsar_steward.checks.check import AboutSnapshot, Answers, Earlier, Row

MAX_POSSIBLE = 10_000
"""Topics whose earlier backlogs are read, the worst first."""

MAX_SUSPECTS = 1_000
"""Those of them with recent growth whose backlogs are read from all snapshots of the window, the worst first."""

# Nothing grew by more than its present size, nor, since the reference snapshot, in fewer than `minimum_minutes`: topics
# that are too small for that rate are not looked up in any earlier snapshot. A quota that is already exceeded is left
# to the check of backlogs near their quota.
# Where too many are left, the fullest are usually not those that grow: nothing grows for long by more than is
# produced.
POSSIBLE = f"""
with rates as (
    select t.*, backlog_bytes / (minimum_minutes * 60) as most_rate,
        case when limit_bytes < 0 then warning_bytes_per_second
            when limit_bytes > backlog_bytes then (limit_bytes - backlog_bytes) / (warning_hours_to_quota * {HOUR})
            end as warning_rate
    from topics_under_policies t join limits using (namespace) where backlog_bytes > 0)
select topic, namespace, backlog_bytes, limit_bytes, bytes_policy, limit_seconds, delayed_messages,
    slowest_subscription, retention_megabytes, warning_rate,
    least(most_rate, throughput_in_bytes) / warning_rate as times_too_fast
from rates where most_rate >= warning_rate
"""

BACKLOGS = """
select topic, raw_topics.backlog_bytes from raw_topics semi join possible using (topic)
where raw_topics.backlog_bytes is not null
"""


@dataclass(frozen=True)
class LimitedPart:
    """Topics of namespaces with the same limits.

    Attributes:
        limits: Their limits.
        about: Metadata of the snapshot.
        rows: The topics, rows of `POSSIBLE`.
        histories: Backlog of all topics, by name and time, this snapshot included.
        sums: Partitioned topics and namespaces whose topics may have grown together.
    """

    limits: BacklogGrowingPolicy
    about: AboutSnapshot
    rows: Sequence[Row]
    histories: Mapping[str, Mapping[datetime, int]]
    sums: Sequence[BacklogSum]

    @cached_property
    def earlier(self) -> tuple[Earlier, ...]:
        """Snapshots of the window, the newest first."""
        return within(self.about, self.limits.window_minutes)

    @cached_property
    def before(self) -> Earlier | None:
        """Reference snapshot for recent growth; None if there is none."""
        return reference(self.about, self.earlier, self.limits)

    @cached_property
    def suspects(self) -> list[tuple[Row, float]]:
        """Topics that grew fast enough since the reference, the worst first, with their bytes per second."""
        if self.before is None:
            return []
        seconds = (self.about.taken_at - self.before.taken_at).total_seconds()
        found = []
        for row in self.rows:
            then = self.histories[row["topic"]].get(self.before.taken_at)
            rate = 0.0 if then is None else (row["backlog_bytes"] - then) / seconds
            if rate >= row["warning_rate"]:
                found.append((row, rate))
        return sorted(found, key=lambda each: worst_first(*each))

    @cached_property
    def growing(self) -> list[Growth]:
        """Suspects that grow steadily, and fast enough even at the lowest of their rates."""
        times = {self.about.taken_at, *(each.taken_at for each in self.earlier)}
        found = []
        for row, recent_rate in self.suspects[:MAX_SUSPECTS]:
            history = self.histories[row["topic"]]
            rise = Rise.of({at: backlog for at, backlog in history.items() if at in times})
            rate = min(rise.rate, recent_rate)
            if rate >= row["warning_rate"] and rise.steady(self.limits):
                left = _seconds_left(row, rate)
                soon = left is not None and left <= self.limits.critical_hours_to_quota * HOUR
                found.append(Growth(row, rise, rate, left, soon))
        return found

    @cached_property
    def together(self) -> list[Growth]:
        """Growth of several topics together: partitions of one topic, topics of one namespace."""
        if self.before is None or self.before.partial:
            return []
        return growing_together(self.sums, self.growing, self.about.taken_at, self.earlier, self.before, self.limits)

    @property
    def quiet(self) -> str:
        """Sentence for a snapshot without findings."""
        if self.before is None:
            return Judgement.quiet
        return (
            f"No topic's backlog kept growing over the last {counted(len(self.earlier) + 1, 'snapshot')} towards its"
            " quota."
        )

    def missing(self, answers: Answers) -> str | None:
        """Reason why the absence of findings proves nothing; None if it does."""
        if self.before is None:
            limits = self.limits
            first = f", the first of them at least {counted(limits.minimum_minutes, 'minute')} before it"
            return too_few(len(self.earlier) + 1, limits.minimum_snapshots, limits.window_minutes, first)
        if self.before.partial:
            return (
                f"The snapshot of {time_in_words(self.before.taken_at)}, with which backlogs are compared, is partial."
            )
        if len(self.suspects) > MAX_SUSPECTS:
            return _too_many("grew", MAX_SUSPECTS)
        if answers["possible"].more:
            return _too_many("may have grown", MAX_POSSIBLE)
        return Defaults.of(answers["defaults"]).unknown("limit_bytes")


def _too_many(grew: str, looked_up: int) -> str:
    return f"More than {counted(looked_up, 'backlog')} {grew} fast lately; of those that were looked up none kept on."


def _seconds_left(row: Row, rate: float) -> float | None:
    """Seconds until the size quota is reached at that rate; None without a quota."""
    if row["limit_bytes"] < 0:
        return None
    return float((row["limit_bytes"] - row["backlog_bytes"]) / rate)


def worst_first(row: Row, rate: float) -> tuple[float, float, str]:
    """Sort key: topics by the time until their quotas, then those without one by their growth."""
    left = _seconds_left(row, rate)
    return (inf if left is None else left), -rate, row["topic"]
