"""Topics at or over a `producer_*` quota: after a restart or an unload their producers cannot connect again.

A broker compares backlog and quota at each producer creation, even if the periodic check is off. With the check off,
connected producers continue over the quota, and lose their topic at the first restart (tried on Pulsar 4.0.7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.backlog.defaults import DEFAULTS, unknown_defaults
from pulsar_steward.checks.backlog.quota_words import (
    CULPRITS,
    age_quota,
    capitalised,
    figures,
    size_quota,
    slowest_words,
)
from pulsar_steward.checks.backlog.quotas import (
    ages_not_read,
    holds_producers,
    policies_not_read,
    unknown_ages,
    unknown_policies,
)
from pulsar_steward.checks.check import Query, RowCheck, Scope, critical_or_warning
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


class ProducerHoldRestartRiskPolicy(Section):
    """Thresholds for topics whose producers could not connect again after a restart."""

    warning_percent: int = Field(
        90, ge=1, description="of a producer_* quota: a restart that takes minutes may find it exceeded"
    )
    critical_percent: int = Field(100, ge=1, description="of it: new producers are refused already")


# Usage of quotas that block producers; null for a quota that evicts.
FOUND = f"""
with held as (
    select *, case when {holds_producers("bytes_policy")} then bytes_percent end as held_bytes_percent,
        case when {holds_producers("seconds_policy")} then seconds_percent end as held_seconds_percent
    from pressed),
fullest as (select *, greatest(held_bytes_percent, held_seconds_percent) as percent from held)
select fullest.*, percent >= critical_percent as critical
from fullest join limits using (namespace) where percent >= warning_percent
"""


def _evidence(row: Row) -> str:
    by_size = (row["held_bytes_percent"] or 0) >= (row["held_seconds_percent"] or 0)
    policy = row["bytes_policy"] if by_size else row["seconds_policy"]
    quota = size_quota(row) if by_size else age_quota(row)
    return f"{capitalised(quota)} ({policy}); {_outlook(row)}.{slowest_words(row)}"


def _outlook(row: Row) -> str:
    producers = row["producers"] or 0
    if row["percent"] < 100:  # noqa: PLR2004 - all of the quota
        whose = counted(producers, "producer")
        return f"if it is exceeded by then, an unload or restart leaves its {whose} unable to connect"
    if producers == 0:
        return "no producer is connected, and none can until the backlog is down; an unload does not change that"
    whose = counted(producers, "producer")
    return f"its {whose} cannot connect again after an unload or restart until the backlog is down"


# Judges by the fuller of the quotas that block producers.
CHECK = RowCheck(
    check_id="producer-hold-restart-risk",
    order=60,
    title="A restart or an unload would leave a topic's producers unable to connect",
    advice=(
        "Restart no broker and unload or split no bundle that holds this topic until its backlog is down.",
        "Bring the backlog down: more or faster consumers, or delete a subscription that nobody needs.",
        "If a restart cannot wait, raise the quota first: pulsar-admin topics set-backlog-quota, below the retention.",
        "Never lower the quota of a topic in this state.",
    ),
    source="docs/checks/producer-hold-restart-risk.md",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
    policy=ProducerHoldRestartRiskPolicy,
    shards={
        "found": Query(FOUND, worst_first="critical desc, percent desc, producers desc, topic", detail=CULPRITS),
        "policies_unread": policies_not_read("warning_percent"),
        # The policy of a topic's own age quota is not known here either.
        "ages_unread": ages_not_read(f"({holds_producers('seconds_policy')} or seconds_policy is null)"),
    },
    cluster={"defaults": DEFAULTS},
    severity=critical_or_warning,
    subject="topic",
    evidence=_evidence,
    figures=figures,
    missing=lambda queried, _context: (
        unknown_defaults(queried, "limit_bytes", "limit_seconds", "policy")
        or unknown_policies(queried["policies_unread"])
        or unknown_ages(queried["ages_unread"])
    ),
    quiet="No topic is near a quota that shuts producers out.",
)
