"""Topics whose backlog has kept growing over the last snapshots, with the time until it reaches its quota, if any."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.culprits import CULPRITS
from pulsar_steward.checks.backlog.defaults import DEFAULTS
from pulsar_steward.checks.backlog.growing_sums import SUMS, SUMS_BEFORE, sums_of
from pulsar_steward.checks.backlog.growing_topics import BACKLOGS, MAX_POSSIBLE, POSSIBLE, LimitedPart, worst_first
from pulsar_steward.checks.backlog.growing_words import evidence, figures
from pulsar_steward.checks.backlog.growth import BacklogGrowingPolicy
from pulsar_steward.checks.backlog.precision import PRECISION, told_once
from pulsar_steward.checks.check import MAX_FINDINGS, Check, Judgement, Question, Scope
from pulsar_steward.checks.earlier import looking_back
from pulsar_steward.model.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pulsar_steward.checks.backlog.growth import BacklogSum, Growth
    from pulsar_steward.checks.check import Answers, CheckContext, Row


def judge(answers: Answers, context: CheckContext[BacklogGrowingPolicy]) -> Judgement:
    """Judges by the time until the size quota is reached; without a quota, by the rate."""
    named_parts = context.parts or ((context.limits, ()),)
    parts = {part.limits: part for part in _parts(answers, context, [limits for limits, _ in named_parts])}
    growing = [each for part in parts.values() for each in (*part.growing, *part.together)]
    if growing:
        growing.sort(key=lambda each: (not each.critical, *worst_first(each.row, each.rate)))
        findings = told_once(tuple(map(_finding, growing[:MAX_FINDINGS])), answers["precision"])
        return Judgement(findings=findings, more=max(0, len(growing) - MAX_FINDINGS))
    missing = {limits: why for limits, part in parts.items() if (why := part.missing(answers))}
    open_parts = tuple(each for each in named_parts if each[0] in missing)
    return Judgement(
        quiet=context.in_each_part(lambda limits: parts[limits].quiet),
        cannot_tell=replace(context, parts=open_parts).in_each_part(missing.__getitem__) if open_parts else None,
    )


def _parts(
    answers: Answers, context: CheckContext[BacklogGrowingPolicy], of: Sequence[BacklogGrowingPolicy]
) -> list[LimitedPart]:
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
    sums: dict[BacklogGrowingPolicy, list[BacklogSum]] = defaultdict(list)
    for each in sums_of(answers):
        sums[context.limits_of(each.namespace)].append(each)
    return [LimitedPart(limits, context.about, by_limits[limits], histories, sums[limits]) for limits in of]


def _finding(growth: Growth) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if growth.critical else Severity.WARNING,
        subject=growth.row["topic"],
        evidence=evidence(growth),
        figures=figures(growth),
    )


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
        ),
        "sums": Question(SUMS),
    },
    earlier={"backlogs": looking_back(BACKLOGS), "sums_before": looking_back(SUMS_BEFORE)},
    cluster={"defaults": DEFAULTS, "precision": PRECISION},
    judge=judge,
)
