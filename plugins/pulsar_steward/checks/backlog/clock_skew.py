"""Brokers whose clocks are apart: age quotas, TTLs and delays compare a client's clock with the broker's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried


class ClockSkewPolicy(Section):
    """Thresholds for the difference between brokers' clocks; they are read to ±1 s, so a difference of 2 s is noise."""

    warning_milliseconds: int = Field(
        5_000, ge=2_000, description="between the earliest and the latest clock; twice what reading alone can make up"
    )
    critical_milliseconds: int = Field(
        60_000, ge=2_000, description="between them: age quotas and TTLs of minutes are off by a good part"
    )


CLOCKS = "select broker, clock_skew_milliseconds as ahead from brokers where read"
"""Milliseconds by which each broker's clock is ahead of the collector's; null: not known."""


def judge(queried: Queried, context: CheckContext[ClockSkewPolicy]) -> Judgement:
    """Judges by the difference of the earliest and the latest clock: the collector's own does not matter."""
    seen = queried["clocks"].rows
    known = sorted((row["ahead"], row["broker"]) for row in seen if row["ahead"] is not None)
    if not known:
        return Judgement(cannot_tell="No broker's clock was read.")
    (earliest, slow), (latest, fast) = known[0], known[-1]
    apart = latest - earliest
    if apart < context.limits.warning_milliseconds:
        return _together(len(known), len(seen), apart)
    finding = Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if apart >= context.limits.critical_milliseconds else Severity.WARNING,
        subject=context.about.cluster,
        evidence=(
            f"The clock of {fast} is {apart / 1000:,.1f} s ahead of that of {slow} (read to ±1 s, {len(known)} of"
            f" {counted(len(seen), 'broker')}); age quotas, TTLs and delays act that much too early or too late."
        ),
        figures={
            "apart_milliseconds": apart,
            "brokers": len(seen),
            "brokers_known": len(known),
            "earliest_milliseconds": earliest,
            "latest_milliseconds": latest,
        },
    )
    return Judgement(findings=(finding,))


def _together(known: int, brokers: int, apart: int) -> Judgement:
    if known < brokers:
        missed = counted(brokers - known, "clock was", "clocks were")
        return Judgement(cannot_tell=f"Of {counted(brokers, 'broker')}, {missed} not read.")
    return Judgement(quiet=f"{counted(brokers, 'clock is', 'clocks are')} within {apart / 1000:,.1f} s, read to ±1 s.")


CHECK = Check(
    check_id="clock-skew",
    order=120,
    title="The brokers' clocks are apart",
    advice=(
        "Confirm it on the machines: chronyc tracking, or timedatectl timesync-status.",
        "Let every broker, bookie and client machine follow the same time source.",
        "Correct a clock slowly (slew, do not step): a jump ahead makes TTLs and age quotas act at once.",
    ),
    source="docs/checks/clock-skew.md",
    policy=ClockSkewPolicy,
    cluster={"clocks": Query(CLOCKS)},
    judge=judge,
)
