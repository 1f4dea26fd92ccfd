"""Brokers on which quotas and times do not work as set: quotas that are not checked, and clocks that are apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.quotas import INTERVAL
from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.units import counted, named, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried


class QuotaCheckDisabledPolicy(Section):
    """Thresholds for brokers that never or hardly ever check backlog quotas."""

    warning_namespaces: int = number(
        1, "namespaces under a quota that nobody enforces; with fewer it is only information"
    )
    warning_interval_minutes: int = number(
        15, "between two checks of a broker, 1 by default: until the next one a quota stops nobody"
    )


ENABLED = "backlogQuotaCheckEnabled"

# One row for each broker that was read; null: not reported.
TOLD = f"""
with told as (
    select broker, bool_and(lower(trim(value)) = 'true') filter (key = '{ENABLED}') as enabled,
        max(try_cast(trim(value) as double)) filter (key = '{INTERVAL}') as seconds
    from configuration where key in ('{ENABLED}', '{INTERVAL}') and value is not null group by broker)
select broker, enabled, try_cast(trunc(seconds) as bigint) as seconds
from (select distinct broker from brokers where read) left join told using (broker)
"""

UNDER_QUOTA = """
select count(distinct namespace) as namespaces from limits_in_force where limit_bytes >= 0 or limit_seconds > 0
"""


def quota_check(queried: Queried, context: CheckContext[QuotaCheckDisabledPolicy]) -> Judgement:
    """A warning if a quota is set but not enforced."""
    brokers, most = queried["told"].rows, context.limits.warning_interval_minutes
    disabled = [row for row in brokers if row["enabled"] is False]
    seldom = [row for row in brokers if row["enabled"] and (row["seconds"] or 0) >= most * 60]
    silent = {
        name: [row["broker"] for row in brokers if row[column] is None and row["enabled"] is not False]
        for name, column in ((ENABLED, "enabled"), (INTERVAL, "seconds"))
    }
    not_told = [f"{name} was not read of {named(names)}" for name, names in silent.items() if names]
    if not disabled and not seldom:
        if not brokers:
            return Judgement(cannot_tell=f"{ENABLED} was not read of any broker.")
        return Judgement(
            quiet=(
                f"All {counted(len(brokers), 'broker')} check backlog quotas at least every {counted(most, 'minute')}."
            ),
            cannot_tell=f"{'; '.join(not_told)}." if not_told else None,
        )
    namespaces = queried["under_quota"].one["namespaces"]
    words, of_all = [], counted(len(brokers), "broker")
    if disabled:
        who = named([row["broker"] for row in disabled])
        words.append(
            f"{ENABLED} is false on {len(disabled)} of {of_all} ({who}): there nothing is evicted and"
            " connected producers are not stopped, yet new ones are refused over a producer_* quota"
        )
    if seldom:
        longest = seconds_in_words(max(row["seconds"] for row in seldom), rounded=True)
        who = named([row["broker"] for row in seldom])
        words.append(
            f"{len(seldom)} of {of_all} ({who}) {'checks' if len(seldom) == 1 else 'check'} quotas only every"
            f" {longest} ({INTERVAL}): for so long a backlog grows past its quota"
        )
    finding = QUOTA_CHECK_DISABLED.finding(
        severity=Severity.WARNING if namespaces >= context.limits.warning_namespaces else Severity.INFO,
        subject=context.about.cluster,
        evidence=(
            f"{'; '.join([*words, *not_told])}; {counted(namespaces, 'namespace')} {'is' if namespaces == 1 else 'are'}"
            " under a quota."
        ),
        figures={
            "brokers_disabled": len(disabled),
            "brokers_seldom": len(seldom),
            "brokers_told": sum(row["enabled"] is not None for row in brokers),
            "namespaces_under_quota": namespaces,
        },
    )
    return Judgement(findings=(finding,))


QUOTA_CHECK_DISABLED = Check(
    check_id="quota-check-disabled",
    order=50,
    title="Brokers do not check backlog quotas, or hardly ever",
    advice=(
        "Look for topics that are over their quota first: turning the check on cuts their producers off.",
        "Bring these backlogs down, or raise the quotas.",
        "Set backlogQuotaCheckEnabled=true and backlogQuotaCheckIntervalInSeconds=60 in broker.conf.",
        "Then restart the brokers one at a time.",
    ),
    source="docs/checks/quota-check-disabled.md",
    policy=QuotaCheckDisabledPolicy,
    cluster={"told": Query(TOLD), "under_quota": Query(UNDER_QUOTA)},
    judge=quota_check,
)


class ClockSkewPolicy(Section):
    """Thresholds for the difference between brokers' clocks; they are read to ±1 s, so a difference of 2 s is noise."""

    warning_milliseconds: int = number(
        5_000, "between the earliest and the latest clock; twice what reading alone can make up", ge=2_000
    )
    critical_milliseconds: int = number(
        60_000, "between them: age quotas and TTLs of minutes are off by a good part", ge=2_000
    )


CLOCKS = "select broker, clock_skew_milliseconds as ahead from brokers where read"
"""Milliseconds by which each broker's clock is ahead of the collector's; null: not known."""


def clocks_apart(queried: Queried, context: CheckContext[ClockSkewPolicy]) -> Judgement:
    """Judges by the difference of the earliest and the latest clock: the collector's own does not matter."""
    seen = queried["clocks"].rows
    known = sorted((row["ahead"], row["broker"]) for row in seen if row["ahead"] is not None)
    if not known:
        return Judgement(cannot_tell="No broker's clock was read.")
    (earliest, slow), (latest, fast) = known[0], known[-1]
    apart = latest - earliest
    if apart < context.limits.warning_milliseconds:
        clocks, missed = len(seen), counted(len(seen) - len(known), "clock was", "clocks were")
        if len(known) < clocks:
            return Judgement(cannot_tell=f"Of {counted(clocks, 'broker')}, {missed} not read.")
        within = f"{counted(clocks, 'clock is', 'clocks are')} within {apart / 1000:,.1f} s, read to ±1 s."
        return Judgement(quiet=within)
    finding = CLOCK_SKEW.finding(
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


CLOCK_SKEW = Check(
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
    judge=clocks_apart,
)
