"""Namespaces whose messages expire before their age quota acts: messages are lost despite the quota."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.backlog.defaults import DEFAULTS, PRECISE, ROLLOVER, unknown_defaults
from pulsar_steward.checks.backlog.quota_words import set_by
from pulsar_steward.checks.backlog.quotas import holds_producers
from pulsar_steward.checks.check import Query, RowCheck, Scope
from pulsar_steward.model.finding import Figures, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


class TtlBeforeQuotaPolicy(Section):
    """Thresholds for times to live that end before the age quota acts."""

    warning_percent: int = Field(
        100, ge=1, description="TTL as a share of when the age quota acts: at or below it, the quota is never reached"
    )


class TtlFigures(Figures, frozen=True, kw_only=True):
    """A time to live, an age quota, and the maximum delay of that quota; None: not known."""

    age_quota_delay_seconds: int | None = None
    limit_seconds: int
    ttl_seconds: int


# The TTL ends before the quota's time, or only before its latest time on quiet topics, whose ledgers are closed late.
FOUND = f"""
with compared as (
    select p.namespace, ttl_seconds, ttl_own, limit_seconds, seconds_own, seconds_policy,
        delay_seconds as age_quota_delay_seconds,
        {holds_producers("seconds_policy")} as held,
        ttl_seconds::hugeint * 100 <= limit_seconds::hugeint * warning_percent as always,
        ttl_seconds::hugeint * 100 <= (limit_seconds::hugeint + coalesce(delay_seconds, 0)) * warning_percent as late
    from namespace_policies p join limits using (namespace) cross join age_quota_delays
    where ttl_seconds > 0 and limit_seconds > 0)
select * from compared where always or late
"""

DELAY_UNKNOWN = """
select count(*) as namespaces from namespace_policies cross join age_quota_delays
where ttl_seconds > 0 and limit_seconds > 0 and delay_seconds is null
"""


def _unknown_delay(namespaces: int) -> str | None:
    if not namespaces:
        return None
    have = "has" if namespaces == 1 else "have"
    return (
        f"{counted(namespaces, 'namespace')} {have} a TTL above an age quota, and how much later than its time that one"
        f" acts was not read ({PRECISE}, {ROLLOVER})."
    )


def _evidence(row: Row) -> str:
    meant = (
        f"{row['seconds_policy']} never stops producers, and what nobody consumed in time is lost instead"
        if row["held"]
        else "the TTL drops messages for every subscription, and the quota's eviction has nothing left to do"
    )
    return (
        f"Messages expire after {seconds_in_words(row['ttl_seconds'], rounded=True)} ({_by(own=row['ttl_own'])}),"
        f" the age quota acts at {seconds_in_words(row['limit_seconds'], rounded=True)}"
        f" ({_by(own=row['seconds_own'])}){_when(row)} {meant}."
    )


def _when(row: Row) -> str:
    """Topics that are affected, unless all are."""
    if row["always"]:
        return ":"
    later = seconds_in_words(row["age_quota_delay_seconds"], rounded=True)
    return (
        f", counted from when the ledger of the oldest message was closed, up to {later} later ({ROLLOVER}): where"
        " little is produced,"
    )


def _by(*, own: bool) -> str:
    return set_by("namespace" if own else "default")


# A warning if the quota would stop producers but never acts before the TTL; all else is information.
CHECK = RowCheck(
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
    cluster={
        "found": Query(FOUND, worst_first="held and always desc, held desc, always desc, namespace"),
        "delay_unknown": Query(DELAY_UNKNOWN),
        "defaults": DEFAULTS,
    },
    severity=lambda row: Severity.WARNING if row["held"] and row["always"] else Severity.INFO,
    subject="namespace",
    evidence=_evidence,
    figures=TtlFigures,
    missing=lambda queried, _context: (
        unknown_defaults(queried, "limit_seconds", "ttl_seconds")
        or _unknown_delay(queried["delay_unknown"].one["namespaces"])
    ),
    quiet="No namespace has a TTL before its age quota acts.",
)
