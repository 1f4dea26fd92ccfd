"""Topics whose backlog has kept growing over the last snapshots: when it reaches its quota, or that it has none."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.backlog.culprits import CULPRITS, slowest_words
from pulsar_steward.checks.backlog.growth import Rise, reference, too_few, within
from pulsar_steward.checks.backlog.policies import DEFAULTS, Defaults
from pulsar_steward.checks.backlog.quota_words import consequence, delayed_words
from pulsar_steward.checks.check import MAX_FINDINGS, Check, Judgement, LookBack, Question, Scope
from pulsar_steward.checks.words import duration, size
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.check import About, Answers, CheckContext, Earlier, Row

_HOUR = 3600
_CENTURY = 36_525 * 86_400
_MIB = 1024**2


class BacklogGrowingPolicy(Section):
    """When a backlog that keeps growing is trouble; a quota that is reached sooner is worse."""

    UNORDERED = frozenset({"hours_to_quota"})

    window_minutes: int = Field(
        360, ge=1, description="earlier snapshots that are looked at: a backlog that shrank within it is not growing"
    )
    minimum_snapshots: int = Field(
        4, ge=3, le=13, description="over which it has to grow, this one included: three steps show more than a burst"
    )
    minimum_minutes: int = Field(
        10, ge=1, description="over which it has to grow: brokers' statistics are up to a minute old"
    )
    rising_percent: int = Field(75, ge=1, le=100, description="steps between snapshots in which it has to have grown")
    most_shrunk_percent: int = Field(
        25, ge=0, le=100, description="of its growth, that it may have shrunk by within the window"
    )
    warning_hours_to_quota: int = Field(
        12, ge=1, description="until the size quota in force is reached at this rate: time to act in daylight"
    )
    critical_hours_to_quota: int = Field(2, ge=1, description="the same: time to act is running out")
    warning_bytes_per_second: int = Field(
        1024**2, ge=1, description="where no size quota is in force; 1 MiB/s fills 84 GiB a day"
    )


MAX_POSSIBLE = 10_000
"""Topics whose earlier backlogs are looked up, the worst first."""

MAX_SUSPECTS = 1_000
"""Those of them that grew fast enough lately and are looked at over all snapshots of the window, the worst first."""

# Nothing grew by more than it is now, nor, since the snapshot that it is compared with, in fewer than
# `minimum_minutes`: what is not fast enough at that rate is not looked up in any earlier snapshot. A quota that is
# exceeded already is left to the check of backlogs near their quota.
# Where too many are left, those that are fullest are as a rule not those that grow: nothing grows for long by more than
# is produced.
POSSIBLE = f"""
with rates as (
    select t.*, backlog_bytes / (minimum_minutes * 60) as most_rate,
        case when limit_bytes < 0 then warning_bytes_per_second
            when limit_bytes > backlog_bytes then (limit_bytes - backlog_bytes) / (warning_hours_to_quota * {_HOUR})
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
class Growth:
    """How a topic grows.

    Attributes:
        row: The topic, of `POSSIBLE`.
        rise: Its latest rise.
        rate: Bytes per second: the lower one of that since the low and that lately.
        seconds_left: Until it reaches its size quota at that rate; None where there is none.
        critical: Whether that is soon.
    """

    row: Row
    rise: Rise
    rate: float
    seconds_left: float | None
    critical: bool


@dataclass(frozen=True)
class Part:
    """The topics of namespaces that have the same limits.

    Attributes:
        limits: These.
        about: What the snapshot is.
        rows: The topics, of `POSSIBLE`.
        histories: Of all topics, by name: how large the backlog was at which time, this snapshot included.
    """

    limits: BacklogGrowingPolicy
    about: About
    rows: Sequence[Row]
    histories: Mapping[str, Mapping[datetime, int]]

    @cached_property
    def earlier(self) -> tuple[Earlier, ...]:
        """The snapshots of the window, the newest first."""
        return within(self.about, self.limits.window_minutes)

    @cached_property
    def before(self) -> Earlier | None:
        """The one that shows what grew lately; None where none does."""
        return reference(self.about, self.earlier, self.limits)

    @cached_property
    def suspects(self) -> list[tuple[Row, float]]:
        """Topics that grew fast enough since then, the worst first, and by how many bytes per second."""
        if self.before is None:
            return []
        seconds = (self.about.taken_at - self.before.taken_at).total_seconds()
        found = []
        for row in self.rows:
            then = self.histories[row["topic"]].get(self.before.taken_at)
            rate = 0.0 if then is None else (row["backlog_bytes"] - then) / seconds
            if rate >= row["warning_rate"]:
                found.append((row, rate))
        return sorted(found, key=lambda each: _worst_first(*each))

    @cached_property
    def growing(self) -> list[Growth]:
        """Those of the suspects that grow steadily, and fast enough even at the lowest of their rates."""
        times = {self.about.taken_at, *(each.taken_at for each in self.earlier)}
        found = []
        for row, recent_rate in self.suspects[:MAX_SUSPECTS]:
            history = self.histories[row["topic"]]
            rise = Rise.of({at: backlog for at, backlog in history.items() if at in times})
            rate = min(rise.rate, recent_rate)
            if rate >= row["warning_rate"] and rise.steady(self.limits):
                left = _seconds_left(row, rate)
                soon = left is not None and left <= self.limits.critical_hours_to_quota * _HOUR
                found.append(Growth(row, rise, rate, left, soon))
        return found

    @property
    def quiet(self) -> str:
        """What was looked at."""
        if self.before is None:
            return Judgement.quiet
        return f"No topic's backlog kept growing over the last {len(self.earlier) + 1} snapshots towards its quota."

    def missing(self, answers: Answers) -> str | None:
        """Why silence means nothing; None where it does mean something."""
        if self.before is None:
            return too_few(len(self.earlier) + 1, self.limits)
        if self.before.partial:
            return f"The snapshot of {_utc(self.before.taken_at)}, with which backlogs are compared, is partial."
        if len(self.suspects) > MAX_SUSPECTS:
            return _too_many("grew", MAX_SUSPECTS)
        if answers["possible"].more:
            return _too_many("may have grown", MAX_POSSIBLE)
        return Defaults.of(answers["defaults"]).unknown("limit_bytes")


def _too_many(grew: str, looked_up: int) -> str:
    return (
        f"More than {looked_up:,} backlogs {grew} fast lately; the {looked_up:,} that were looked up did not keep on."
    )


def _seconds_left(row: Row, rate: float) -> float | None:
    """Until the size quota is reached at that rate; None where there is none."""
    if row["limit_bytes"] < 0:
        return None
    return float((row["limit_bytes"] - row["backlog_bytes"]) / rate)


def _worst_first(row: Row, rate: float) -> tuple[float, float, str]:
    """Orders topics by when they reach their quotas, then those without one by how fast they grow."""
    left = _seconds_left(row, rate)
    return (inf if left is None else left), -rate, row["topic"]


def judge(answers: Answers, context: CheckContext[BacklogGrowingPolicy]) -> Judgement:
    """By the time until the size quota is reached; without one, by the rate."""
    named_parts = context.parts or ((context.limits, ()),)
    parts = {part.limits: part for part in _parts(answers, context, [limits for limits, _ in named_parts])}
    growing = [each for part in parts.values() for each in part.growing]
    if growing:
        growing.sort(key=lambda each: (not each.critical, *_worst_first(each.row, each.rate)))
        return Judgement(
            findings=tuple(map(_finding, growing[:MAX_FINDINGS])), more=max(0, len(growing) - MAX_FINDINGS)
        )
    missing = {limits: why for limits, part in parts.items() if (why := part.missing(answers))}
    open_parts = tuple(each for each in named_parts if each[0] in missing)
    return Judgement(
        quiet=context.in_each_part(lambda limits: parts[limits].quiet),
        cannot_tell=replace(context, parts=open_parts).in_each_part(missing.__getitem__) if open_parts else None,
    )


def _parts(
    answers: Answers, context: CheckContext[BacklogGrowingPolicy], of: Sequence[BacklogGrowingPolicy]
) -> list[Part]:
    histories: dict[str, dict[datetime, int]] = defaultdict(dict)
    for row in answers["backlogs"].rows:
        histories[row["topic"]][row["taken_at"]] = row["backlog_bytes"]
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in answers["possible"].rows:
        rows[row["namespace"]].append(row)
        histories[row["topic"]][context.about.taken_at] = row["backlog_bytes"]
    by_limits: dict[BacklogGrowingPolicy, list[Row]] = defaultdict(list)
    for namespace, theirs in rows.items():
        by_limits[context.limits_of(namespace)] += theirs
    return [Part(limits, context.about, by_limits[limits], histories) for limits in of]


def _finding(growth: Growth) -> Finding:
    row, rise, left = growth.row, growth.rise, growth.seconds_left
    figures = {
        "backlog_bytes": rise.now_bytes,
        "growth_bytes_per_second": int(growth.rate),
        "growth_seconds": int((rise.now_at - rise.low_at).total_seconds()),
        "low_backlog_bytes": rise.low_bytes,
        "rising_steps": rise.rising,
        "snapshots": rise.snapshots,
    }
    if left is not None:
        figures |= {"limit_bytes": row["limit_bytes"], "seconds_to_quota": round(left)}
    end = _until_retention(growth) if left is None else _until_quota(growth, left)
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if growth.critical else Severity.WARNING,
        subject=row["topic"],
        evidence=f"{_growth_words(growth)}; {end}{delayed_words(row)}{slowest_words(row)}",
        figures=figures,
    )


def _growth_words(growth: Growth) -> str:
    rise = growth.rise
    return (
        f"Since {_utc(rise.low_at)} the backlog has grown from {size(rise.low_bytes)} to {size(rise.now_bytes)},"
        f" in {rise.rising} of {rise.snapshots - 1} steps between snapshots, by {size(growth.rate)}/s at least"
    )


def _until_quota(growth: Growth, left: float) -> str:
    row = growth.row
    return (
        f"so it reaches the size quota of {size(row['limit_bytes'])} {_ahead(growth, left)};"
        f" then ({row['bytes_policy']}) {consequence(row['bytes_policy'])}."
    )


def _until_retention(growth: Growth) -> str:
    row, now = growth.row, growth.rise.now_bytes
    age = f", only an age quota of {duration(row['limit_seconds'])}" if (row["limit_seconds"] or 0) > 0 else ""
    words = f"no size quota is in force{age}"
    retained = (row["retention_megabytes"] or 0) * _MIB
    if retained <= 0:
        return f"{words}, and no retained size to compare with."
    if retained <= now:
        return f"{words}, and it is over the {size(retained)} that are retained already."
    left = (retained - now) / growth.rate
    return f"{words}; it outgrows the {size(retained)} that are retained {_ahead(growth, left)}."


def _ahead(growth: Growth, seconds: float) -> str:
    """When that is, and in how long; a retention that nothing outgrows in our time has no date."""
    at = f"at {_utc(growth.rise.now_at + timedelta(seconds=seconds))}, " if seconds < _CENTURY else ""
    return f"{at}in {duration(seconds)}"


def _utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


CHECK = Check(
    check_id="backlog-growing",
    order=20,
    title="A topic's backlog keeps growing, towards its quota or without one",
    advice=(
        "Look at the slowest subscription first: consumers missing, blocked, without permits, or too slow.",
        "Compare the rates in and out: pulsar-admin topics stats; a burst of producing ends by itself.",
        "Add consumers, or partitions where a subscription type allows one consumer each.",
        "Delete the subscription if nobody needs it any more: pulsar-admin topics unsubscribe.",
        "Raise the quota in time, below the retention, if bookies have room; where there is none, set one.",
    ),
    source="docs/checks/backlog-growing.md; docs/knowledge.md B; apache/pulsar#14337",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
    policy=BacklogGrowingPolicy,
    shards={
        "possible": Question(
            POSSIBLE,
            worst_first="times_too_fast desc, backlog_bytes desc, topic",
            most=MAX_POSSIBLE,
            detail=CULPRITS,
        )
    },
    earlier={"backlogs": LookBack(minutes=lambda limits: limits.window_minutes, sql=BACKLOGS)},
    cluster={"defaults": DEFAULTS},
    judge=judge,
)
