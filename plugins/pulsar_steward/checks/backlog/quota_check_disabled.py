"""Brokers that do not check backlog quotas: nothing is evicted, no connected producer is stopped, nobody is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Question
from pulsar_steward.checks.words import named
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext


class QuotaCheckDisabledPolicy(Section):
    """When a check that is off is trouble."""

    warning_namespaces: int = Field(
        1, ge=1, description="namespaces under a quota that nobody enforces; with fewer it is only information"
    )


ENABLED = "backlogQuotaCheckEnabled"

TOLD = f"select broker, bool_and(lower(value) = 'true') as enabled from setting('{ENABLED}') group by broker"
SILENT = f"select broker from brokers anti join setting('{ENABLED}') using (broker) where read"
UNDER_QUOTA = "select count(*) as namespaces from namespace_policies where limit_bytes >= 0 or limit_seconds > 0"


def judge(answers: Answers, context: CheckContext[QuotaCheckDisabledPolicy]) -> Judgement:
    """A warning where there is a quota that is not enforced."""
    told = answers["told"].rows
    disabled = [row["broker"] for row in told if not row["enabled"]]
    if not disabled:
        silent = [row["broker"] for row in answers["silent"].rows]
        if silent or not told:
            return Judgement(cannot_tell=f"{ENABLED} was not read of {named(silent) or 'any broker'}.")
        return Judgement(quiet=f"All {len(told)} brokers check backlog quotas.")
    namespaces = answers["under_quota"].one["namespaces"]
    trouble = namespaces >= context.limits.warning_namespaces
    finding = Finding(
        check_id=CHECK.check_id,
        severity=Severity.WARNING if trouble else Severity.INFO,
        subject=context.about.cluster,
        evidence=(
            f"{ENABLED} is false on {len(disabled)} of {len(told)} brokers ({named(disabled)}) while {namespaces:,}"
            " namespaces are under a quota: there nothing is evicted and connected producers are not stopped, yet new"
            " ones are refused over a producer_* quota."
        ),
        figures={"brokers_disabled": len(disabled), "brokers_told": len(told), "namespaces_under_quota": namespaces},
    )
    return Judgement(findings=(finding,))


CHECK = Check(
    check_id="quota-check-disabled",
    order=50,
    title="Brokers do not check backlog quotas",
    advice=(
        "Look for topics that are over their quota first: turning the check on cuts their producers off.",
        "Bring these backlogs down, or raise the quotas.",
        "Set backlogQuotaCheckEnabled=true in broker.conf and restart the brokers one at a time.",
    ),
    source="docs/checks/quota-check-disabled.md",
    policy=QuotaCheckDisabledPolicy,
    cluster={"told": Question(TOLD), "silent": Question(SILENT), "under_quota": Question(UNDER_QUOTA)},
    judge=judge,
)
