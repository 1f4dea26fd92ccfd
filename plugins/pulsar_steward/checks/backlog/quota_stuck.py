"""Topics over a quota that shuts producers out, though their subscriptions have hardly any backlog.

This is indirect: a snapshot shows that the figures which the quota looks at and those of the subscriptions do not
agree, not why. Cursors that are no subscriptions (deduplication, replication) are in no table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.backlog.policies import DEFAULTS, Defaults
from pulsar_steward.checks.backlog.quota_words import age_quota, capitalised, figures, size_quota
from pulsar_steward.checks.backlog.quotas import holds_producers
from pulsar_steward.checks.check import Check, Judgement, Question, Scope
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answer, Answers, CheckContext, Row

MAX_SUSPECTS = 100_000
"""Topics over their quota that any policy may have looked at."""


class QuotaStuckPolicy(Section):
    """When a quota counts a backlog that is not there."""

    most_bytes_per_message: int = Field(
        5 * 1024**2, ge=1, description="a backlog with more a message is implausible: the default maxMessageSize"
    )
    suspects: int = Field(
        10_000, ge=1, le=MAX_SUSPECTS, description="topics over their quota that are looked at, the fullest first"
    )


OVER = f"""
with compared as (
    select *, greatest(bytes_percent, seconds_percent) as percent,
        coalesce({holds_producers("bytes_policy")} and bytes_percent >= 100 and limit_bytes > 0, false) as over_size,
        coalesce({holds_producers("seconds_policy")} and seconds_percent >= 100, false) as over_age
    from pressed)
select * from compared where over_size or over_age
"""

# The largest backlog of a subscription, and the ack holes of all.
SUBSCRIBED = """
with subscribed as (
    select topic, max(backlog_messages) as messages, sum(ack_holes)::bigint as ack_holes
    from subscriptions semi join worst using (topic) group by topic)
select worst.* replace (coalesce(producers, 0) as producers),
    coalesce(messages, 0) as messages, coalesce(ack_holes, 0) as ack_holes
from worst left join subscribed using (topic)
"""

# In trouble: neither holes nor producers speak against it.
FOUND = """
with fullest as (select *, row_number() over (order by percent desc, topic) as place from over_quota),
compared as (
    select fullest.*, over_size and backlog_bytes > messages::hugeint * most_bytes_per_message as by_size,
        over_age and messages = 0 as by_age
    from fullest join limits using (namespace) where place <= suspects)
select *, by_size and ack_holes = 0 and producers = 0 as trouble from compared where by_size or by_age
"""

SHUT_OUT = f"""
select count(*) as topics from ages_not_read
where {holds_producers("seconds_policy")} and coalesce(producers, 0) = 0
"""


def judge(answers: Answers, _context: CheckContext[QuotaStuckPolicy]) -> Judgement:
    """Critical where nothing speaks against it."""
    found = answers["found"]
    if found.rows:
        return Judgement(findings=tuple(map(_finding, found.rows)), more=found.more)
    defaults = Defaults.of(answers["defaults"])
    return Judgement(
        quiet="No quota shuts producers out without a backlog.",
        cannot_tell=defaults.unknown("limit_bytes", "limit_seconds", "policy") or _not_drilled(answers["shut_out"]),
    )


def _not_drilled(answer: Answer) -> str | None:
    """Topics that might be stuck by age: under such a quota, without producers, and not asked for their age."""
    count = sum(row["topics"] for row in answer.rows)
    if not count:
        return None
    return f"{count:,} topics without producers are under an age quota that shuts them out, and their age was not read."


def _finding(row: Row) -> Finding:
    quota = size_quota(row) if row["by_size"] else age_quota(row)
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["trouble"] else Severity.WARNING,
        subject=row["topic"],
        evidence=(
            f"{capitalised(quota)}, but the largest backlog of a subscription is {row['messages']:,} messages, which"
            f" does not explain it; {_likely(row)}. {_producers(row['producers'])} Indirect: see stats-internal."
        ),
        figures=figures(row) | {"ack_holes": row["ack_holes"], "backlog_messages": row["messages"]},
    )


def _likely(row: Row) -> str:
    if row["ack_holes"]:
        return f"{row['ack_holes']:,} ack holes: a message that is not acknowledged may hold all that follow it"
    if row["by_size"]:
        return "another cursor (deduplication, replication) may hold it, or the quota is stuck"
    return "the broker's figure may be left over from before the backlog was consumed"


def _producers(count: int) -> str:
    if count == 0:
        return "No producer is connected, as after being shut out."
    return f"{count:,} producers are still connected."


CHECK = Check(
    check_id="quota-stuck",
    order=110,
    title="A quota shuts producers out though no backlog explains it",
    advice=(
        "Look at every cursor: pulsar-admin topics stats-internal; one that is no subscription may hold the ledgers.",
        "If a subscription holds a single unacknowledged message in front of others, have it consumed or skip it.",
        "Otherwise unload the topic, which cures it for a while: pulsar-admin topics unload.",
        "As a stopgap raise the quota: pulsar-admin topics set-backlog-quota.",
    ),
    source="docs/checks/quota-stuck.md; apache/pulsar#15609, apache/pulsar#8184",
    scope=Scope.NAMESPACE,
    policy=QuotaStuckPolicy,
    shards={
        "over_quota": Question(OVER, worst_first="percent desc, topic", most=MAX_SUSPECTS, detail=SUBSCRIBED),
        "shut_out": Question(SHUT_OUT),
    },
    cluster={
        "found": Question(FOUND, worst_first="trouble desc, producers, backlog_bytes desc, topic"),
        "defaults": DEFAULTS,
    },
    judge=judge,
)
