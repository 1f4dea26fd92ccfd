"""Brokers that check backlog quotas never or hardly ever: nothing is evicted, no connected producer is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted, named, seconds_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row


class QuotaCheckDisabledPolicy(Section):
    """Thresholds for brokers that never or hardly ever check backlog quotas."""

    warning_namespaces: int = Field(
        1, ge=1, description="namespaces under a quota that nobody enforces; with fewer it is only information"
    )
    warning_interval_minutes: int = Field(
        15, ge=1, description="between two checks of a broker, 1 by default: until the next one a quota stops nobody"
    )


ENABLED, INTERVAL = "backlogQuotaCheckEnabled", "backlogQuotaCheckIntervalInSeconds"

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


def judge(queried: Queried, context: CheckContext[QuotaCheckDisabledPolicy]) -> Judgement:
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
    words = [*_off(disabled, len(brokers)), *_seldom(seldom, len(brokers))]
    finding = Finding(
        check_id=CHECK.check_id,
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


def _off(rows: Sequence[Row], brokers: int) -> list[str]:
    if not rows:
        return []
    who = named([row["broker"] for row in rows])
    return [
        (
            f"{ENABLED} is false on {len(rows)} of {counted(brokers, 'broker')} ({who}): there nothing is evicted and"
            " connected producers are not stopped, yet new ones are refused over a producer_* quota"
        )
    ]


def _seldom(rows: Sequence[Row], brokers: int) -> list[str]:
    if not rows:
        return []
    longest = max(row["seconds"] for row in rows)
    who = named([row["broker"] for row in rows])
    return [
        (
            f"{len(rows)} of {counted(brokers, 'broker')} ({who}) {'checks' if len(rows) == 1 else 'check'} quotas only"
            f" every {seconds_in_words(longest, rounded=True)} ({INTERVAL}): for so long a backlog grows past its quota"
        )
    ]


CHECK = Check(
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
    judge=judge,
)
