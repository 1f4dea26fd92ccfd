"""Namespaces where messages expire before their age quota can act: it looks like protection, and messages are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.backlog.policies import DEFAULTS, Defaults
from pulsar_steward.checks.backlog.quota_words import set_by
from pulsar_steward.checks.backlog.quotas import holds_producers
from pulsar_steward.checks.check import Check, Judgement, Question, Scope
from pulsar_steward.checks.words import duration
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class TtlBeforeQuotaPolicy(Section):
    """When messages expire before their age quota acts."""

    warning_percent: int = Field(
        100, ge=1, description="TTL as a share of the age quota: at or below it, the quota is never reached"
    )


FOUND = f"""
select p.namespace, ttl_seconds, ttl_own, limit_seconds, seconds_own, seconds_policy,
    {holds_producers("seconds_policy")} as held
from namespace_policies p join limits using (namespace)
where ttl_seconds > 0 and limit_seconds > 0
    and ttl_seconds::hugeint * 100 <= limit_seconds::hugeint * warning_percent
"""


def judge(answers: Answers, _context: CheckContext[TtlBeforeQuotaPolicy]) -> Judgement:
    """A warning where the quota was to stop producers so that nothing is lost."""
    found = answers["found"]
    if found.rows:
        return Judgement(findings=tuple(map(_finding, found.rows)), more=found.more)
    return Judgement(
        quiet="No namespace has a TTL below its age quota.",
        cannot_tell=Defaults.of(answers["defaults"]).unknown("limit_seconds", "ttl_seconds"),
    )


def _finding(row: Row) -> Finding:
    meant = (
        f"{row['seconds_policy']} never stops producers, and what nobody consumed in time is lost instead"
        if row["held"]
        else "the TTL drops messages for every subscription, and the quota's eviction has nothing left to do"
    )
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.WARNING if row["held"] else Severity.INFO,
        subject=row["namespace"],
        evidence=(
            f"Messages expire after {duration(row['ttl_seconds'])} ({_by(own=row['ttl_own'])}), the age quota acts"
            f" at {duration(row['limit_seconds'])} ({_by(own=row['seconds_own'])}): {meant}."
        ),
        figures={"limit_seconds": row["limit_seconds"], "ttl_seconds": row["ttl_seconds"]},
    )


def _by(*, own: bool) -> str:
    return set_by("namespace" if own else "default")


CHECK = Check(
    check_id="ttl-before-quota",
    order=100,
    title="Messages expire before their age quota can act",
    advice=(
        "Decide with the topics' owners which is meant: losing old messages (TTL) or stopping producers (quota).",
        "Raise the TTL above the quota's time, or remove it: pulsar-admin namespaces set-message-ttl.",
        "Otherwise remove the age quota, which protects nothing: pulsar-admin namespaces remove-backlog-quota.",
    ),
    source="docs/checks/ttl-before-quota.md",
    scope=Scope.NAMESPACE,
    remedied_by="retention",
    policy=TtlBeforeQuotaPolicy,
    cluster={"found": Question(FOUND, worst_first="held desc, namespace"), "defaults": DEFAULTS},
    judge=judge,
)
