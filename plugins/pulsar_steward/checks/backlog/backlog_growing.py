"""Topics whose backlog has kept growing over the last snapshots, with the time until it reaches its quota, if any."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.growth import (
    FLOOR_BYTES,
    SUMS,
    SUMS_BEFORE,
    BacklogGrowingPolicy,
    Growth,
    Rise,
    growing_together,
    reference,
    sums_of,
)
from pulsar_steward.checks.backlog.quotas import (
    CULPRITS,
    DEFAULTS,
    KEEPS_A_BACKLOG,
    PRECISION,
    consequence,
    delayed_words,
    in_brackets,
    slowest_words,
    told_once,
    unknown_defaults,
)
from pulsar_steward.checks.check import Check, Judgement, Query, Scope
from pulsar_steward.checks.earlier import looking_back, too_few, within
from pulsar_steward.model.finding import QuotaFigures, Severity
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import DAY, HOUR, MIB, bytes_in_words, counted, seconds_in_words, time_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.backlog.growth import BacklogSum
    from pulsar_steward.checks.check import AboutSnapshot, CheckContext, Earlier, Queried, Row


MAX_POSSIBLE = 10_000
"""Topics whose earlier backlogs are read, the worst first."""

MAX_SUSPECTS = 1_000
"""Topics with recent growth whose backlogs are read from all snapshots of the window, the worst first."""

# A backlog cannot have grown by more than its present size, nor in less than `minimum_minutes` since the reference
# snapshot. Topics too small for that rate are not looked up in earlier snapshots. Topics already over their quota are
# left to the check `backlog-near-quota`. If too many are left, the fullest ones are usually not the growing ones: a
# backlog never grows for long by more than is produced.
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
    """Topics under the same limits, rows of `POSSIBLE`; all backlogs by name and time, this snapshot included."""

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
        """Suspects that grow steadily, and fast enough even at their lowest rate."""
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

    def missing(self, queried: Queried) -> str | None:
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
        if queried["possible"].more:
            return _too_many("may have grown", MAX_POSSIBLE)
        return unknown_defaults(queried, "limit_bytes")


def _too_many(grew: str, looked_up: int) -> str:
    return f"More than {counted(looked_up, 'backlog')} {grew} fast lately; those that were looked up did not go on."


def _seconds_left(row: Row, rate: float) -> float | None:
    """Seconds until the size quota is reached at that rate; None without a quota."""
    if row["limit_bytes"] < 0:
        return None
    return float((row["limit_bytes"] - row["backlog_bytes"]) / rate)


def worst_first(row: Row, rate: float) -> tuple[float, float, str]:
    """Sort key: topics by the time until their quotas are reached, then topics without a quota by their growth."""
    left = _seconds_left(row, rate)
    return (inf if left is None else left), -rate, row["topic"]


_CENTURY = 36_525 * DAY


def evidence(growth: Growth) -> str:
    """Evidence: start, rate and expected end of the growth."""
    row, rise, together, whose = growth.row, growth.rise, growth.together, "the backlog has"
    if together is not None:
        members = "partitions of this topic" if together.of_partitions else "topics of this namespace"
        whose = f"the backlogs of {together.topics:,} {members} together have"
        end = (
            f"no size quota of the namespace bounds them. Of each, what is beyond"
            f" {bytes_in_words(FLOOR_BYTES, rounded=True)} is counted; the largest is {together.largest['topic']} with"
            f" {bytes_in_words(together.largest['bytes'], rounded=True)}."
        )
    else:
        end = f"{_end(growth)}{delayed_words(row)}{slowest_words(row)}"
    return (
        f"Since {time_in_words(rise.low_at)} {whose} grown from {bytes_in_words(rise.low_bytes, rounded=True)} to"
        f" {bytes_in_words(rise.now_bytes, rounded=True)}, in {rise.rising} of {counted(rise.snapshots - 1, 'step')}"
        f" between snapshots, by {bytes_in_words(growth.rate, rounded=True)}/s at least; {end}"
    )


def figures(growth: Growth) -> dict[str, int]:
    """Figures of the evidence."""
    rise, left = growth.rise, growth.seconds_left
    quota = QuotaFigures(
        backlog_bytes=rise.now_bytes,
        limit_bytes=None if left is None else growth.row["limit_bytes"],
        seconds_to_quota=None if left is None else round(left),
    )
    found = quota.by_name | {
        "growth_bytes_per_second": int(growth.rate),
        "growth_seconds": int((rise.now_at - rise.low_at).total_seconds()),
        "low_backlog_bytes": rise.low_bytes,
        "rising_steps": rise.rising,
        "snapshots": rise.snapshots,
    }
    if growth.together is not None:
        found["topics"] = growth.together.topics
    return found


def _end(growth: Growth) -> str:
    """What the backlog reaches, and when: its size quota, or without one what is retained."""
    row, now = growth.row, growth.rise.now_bytes
    if growth.seconds_left is not None:
        quota = bytes_in_words(row["limit_bytes"], rounded=True)
        then = f"then{in_brackets(row['bytes_policy'])} {consequence(row['bytes_policy'])}"
        return f"so it reaches the size quota of {quota} {_ahead(growth, growth.seconds_left)}; {then}."
    seconds = row["limit_seconds"] or 0
    age = f", only an age quota of {seconds_in_words(seconds, rounded=True)}" if seconds > 0 else ""
    words = f"no size quota is in force{age}"
    retained = (row["retention_megabytes"] or 0) * MIB
    if retained <= 0:
        return f"{words}, and no retained size to compare with."
    if retained <= now:
        return f"{words}, and it is over the {bytes_in_words(retained, rounded=True)} that are retained already."
    outgrown = f"it outgrows the {bytes_in_words(retained, rounded=True)} that are retained"
    return f"{words}; {outgrown} {_ahead(growth, (retained - now) / growth.rate)}."


def _ahead(growth: Growth, seconds: float) -> str:
    """Time of an event and the time until then; no date if that is more than a century."""
    at = f"at {time_in_words(growth.rise.now_at + timedelta(seconds=seconds))}, " if seconds < _CENTURY else ""
    return f"{at}in {seconds_in_words(seconds, rounded=True)}"


def judge(queried: Queried, context: CheckContext[BacklogGrowingPolicy]) -> Judgement:
    """Judges by the time until the size quota is reached; without a quota, by the rate."""
    named_parts = context.parts or ((context.limits, ()),)
    parts = {part.limits: part for part in _parts(queried, context, [limits for limits, _ in named_parts])}
    growing = [each for part in parts.values() for each in (*part.growing, *part.together)]
    if growing:
        growing.sort(key=lambda each: (not each.critical, *worst_first(each.row, each.rate)))
        findings = [
            CHECK.finding(
                severity=Severity.CRITICAL if each.critical else Severity.WARNING,
                subject=each.row["topic"],
                evidence=evidence(each),
                figures=figures(each),
            )
            for each in growing
        ]
        return Judgement(findings=told_once(findings, queried["precision"]))
    missing = {limits: why for limits, part in parts.items() if (why := part.missing(queried))}
    open_parts = tuple(each for each in named_parts if each[0] in missing)
    return Judgement(
        quiet=context.in_each_part(lambda limits: parts[limits].quiet),
        cannot_tell=replace(context, parts=open_parts).in_each_part(missing.__getitem__) if open_parts else None,
    )


def _parts(
    queried: Queried, context: CheckContext[BacklogGrowingPolicy], of: Sequence[BacklogGrowingPolicy]
) -> list[LimitedPart]:
    histories: dict[str, dict[datetime, int]] = defaultdict(dict)
    for row in queried["backlogs"].rows:
        histories[row["topic"]][row["taken_at"]] = row["backlog_bytes"]
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in queried["possible"].rows:
        rows[row["namespace"]].append(row)
        histories[row["topic"]][context.about.taken_at] = row["backlog_bytes"]
    by_limits: dict[BacklogGrowingPolicy, list[Row]] = defaultdict(list)
    for namespace, theirs in rows.items():
        by_limits[context.limits_of(namespace)] += theirs
    sums: dict[BacklogGrowingPolicy, list[BacklogSum]] = defaultdict(list)
    for each in sums_of(queried):
        sums[context.limits_of(each.namespace)].append(each)
    return [LimitedPart(limits, context.about, by_limits[limits], histories, sums[limits]) for limits in of]


CHECK = Check(
    check_id="backlog-growing",
    harm=Harm.SOON,
    explained_by=("backlog-near-quota", *KEEPS_A_BACKLOG),
    order=20,
    title="A topic's backlog keeps growing, towards its quota or without one",
    advice=(
        "Where a dispatch rate held it back: ask who set that limit, and raise it, before you look at consumers.",
        "Look at the slowest subscription first: consumers missing, blocked, without permits, or too slow.",
        "Compare the rates in and out: `pulsar-admin topics stats TOPIC`; a burst of producing ends by itself.",
        "Add consumers, or partitions where a subscription type allows one consumer each.",
        "Delete the subscription and its backlog, if nobody needs it: `pulsar-admin topics unsubscribe TOPIC -s SUB`.",
        "Raise the quota before it is reached, below the retention, if bookies have room. Without a quota, set one.",
    ),
    source="docs/checks/backlog-growing.md; docs/knowledge.md B; apache/pulsar#14337",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
    policy=BacklogGrowingPolicy,
    shards={
        "possible": Query(
            POSSIBLE, worst_first="times_too_fast desc, backlog_bytes desc, topic", most=MAX_POSSIBLE, detail=CULPRITS
        ),
        "sums": Query(SUMS),
    },
    earlier={"backlogs": looking_back(BACKLOGS), "sums_before": looking_back(SUMS_BEFORE)},
    cluster={"defaults": DEFAULTS, "precision": PRECISION},
    judge=judge,
)
