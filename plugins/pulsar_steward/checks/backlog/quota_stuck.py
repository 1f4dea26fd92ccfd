"""Topics over a quota that blocks producers, though their subscriptions have hardly any backlog.

The evidence is indirect: a snapshot shows that the quota's figures and the subscriptions' figures disagree, not why.
Cursors without a subscription (deduplication, replication) are in no table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.backlog.defaults import DEFAULTS, unknown_defaults
from pulsar_steward.checks.backlog.quota_words import age_quota, capitalised, figures, size_quota
from pulsar_steward.checks.backlog.quotas import holds_producers, policies_not_read, unknown_policies
from pulsar_steward.checks.check import Query, RowCheck, Scope
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import KIB, MIB, bytes_in_words, counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import QueryRows, Row

MAX_OVER = 10_000
"""Number of topics over their quota that are examined, the fullest first."""

MAX_MESSAGE = "maxMessageSize"

_DEFAULT_MAX_MESSAGE_BYTES = 5 * MIB
_BATCH_BYTES = 128 * KIB
"""Size at which clients close a batch by default (`batchingMaxBytes`)."""

_MARGIN = 10
"""Factor by which the entries of a backlog may have been larger than present entries."""


class QuotaStuckPolicy(Section):
    """Thresholds for quotas that count storage outside the backlog of every subscription."""

    most_bytes_per_entry: int = Field(
        MIB,
        ge=1,
        description="a backlog with more an entry is implausible, where the topic's own figures do not tell better",
    )


OVER = f"""
with compared as (
    select * replace (told_seconds as oldest_seconds, told_percent as seconds_percent),
        greatest(bytes_percent, told_percent) as percent,
        coalesce({holds_producers("bytes_policy")} and bytes_percent >= 100 and limit_bytes > 0, false) as over_size,
        coalesce({holds_producers("seconds_policy")} and told_percent >= 100, false) as over_age
    from pressed)
select * from compared where over_size or over_age
"""

# Per topic: the largest backlog of a subscription in entries, the most messages of one entry, and all ack holes.
SUBSCRIBED = """
with subscribed as (
    select topic, max(backlog_entries) as entries, max(messages_per_entry) as messages_per_entry,
        sum(ack_holes)::bigint as ack_holes
    from subscriptions semi join worst using (topic) group by topic)
select worst.* replace (coalesce(producers, 0) as producers), messages_per_entry,
    greatest(coalesce(entries, 0), 0) as entries, coalesce(ack_holes, 0) as ack_holes
from worst left join subscribed using (topic)
"""

# An entry is a message or a batch, and never larger than `maxMessageSize` (the largest value of all brokers, as topics
# move). Its size is estimated from the present traffic, with a margin; if that is unknown, by a rule of thumb.
FOUND = f"""
with largest as (
    select trunc(greatest(1, least(1e15, coalesce(
        max(try_cast(trim(value) as double)), {_DEFAULT_MAX_MESSAGE_BYTES}))))::bigint as possible_bytes
    from setting('{MAX_MESSAGE}')),
sized as (
    select over_quota.*, possible_bytes, coalesce(messages_per_entry > 0 and message_bytes > 0, false) as told,
        trunc(least(possible_bytes, case when told
            then greatest({_MARGIN} * messages_per_entry * message_bytes, {_BATCH_BYTES})
            else greatest(most_bytes_per_entry, 2 * coalesce(message_bytes, 0)) end))::bigint as plausible_bytes
    from over_quota join limits using (namespace) cross join largest),
compared as (
    select *, over_size and backlog_bytes > entries::hugeint * plausible_bytes as by_size,
        over_size and backlog_bytes > entries::hugeint * possible_bytes as impossible,
        over_age and entries = 0 as by_age
    from sized)
select *, impossible and ack_holes = 0 and producers = 0 as trouble from compared where by_size or by_age
"""

SHUT_OUT = f"""
select count(*) as topics from ages_not_read
where ({holds_producers("seconds_policy")} or seconds_policy is null) and coalesce(producers, 0) = 0
"""


def _not_drilled(selected: QueryRows) -> str | None:
    """Topics that might be stuck by age: they have an age quota and no producers, and their age was not read."""
    count = sum(row["topics"] for row in selected.rows)
    if not count:
        return None
    one = count == 1
    return (
        f"{counted(count, 'topic')} without producers {'is' if one else 'are'} under an age quota that shuts them out,"
        f" and {'its' if one else 'their'} age was not read."
    )


def _too_many(selected: QueryRows) -> str | None:
    if not selected.more:
        return None
    return (
        f"Of {counted(selected.count, 'topic')} over a quota that shuts producers out the fullest {MAX_OVER:,} were"
        " looked at."
    )


def _evidence(row: Row) -> str:
    quota = size_quota(row) if row["by_size"] else age_quota(row)
    return (
        f"{capitalised(quota)}, but the largest backlog of a subscription is"
        f" {counted(row['entries'], 'entry', 'entries')}, which {_explained(row)}; {_likely(row)}."
        f" {_producers(row['producers'])} Indirect: see stats-internal."
    )


def _explained(row: Row) -> str:
    """Part of the size that the entries explain, and why not more."""
    if not row["by_size"] or not row["entries"]:
        return "does not explain it"
    each, told = row["plausible_bytes"], row["told"]
    if row["impossible"]:
        each, why = row["possible_bytes"], f"more is not possible ({MAX_MESSAGE})"
    elif told and each > _BATCH_BYTES:
        why = f"{_MARGIN} times what one takes now"
    else:
        why = "more is unlikely, unless its messages were much larger before"
    return (
        f"explains {bytes_in_words(row['entries'] * each, rounded=True)} at {bytes_in_words(each, rounded=True)} an"
        f" entry: {why}"
    )


def _likely(row: Row) -> str:
    if row["ack_holes"]:
        return (
            f"{counted(row['ack_holes'], 'ack hole')}: a message that is not acknowledged may hold all that follow it"
        )
    if row["by_size"]:
        return "another cursor (deduplication, replication) may hold it, or the quota is stuck"
    return "the broker's figure may be left over from before the backlog was consumed"


def _producers(count: int) -> str:
    if count == 0:
        return "No producer is connected, as after being shut out."
    return f"{counted(count, 'producer')} {'is' if count == 1 else 'are'} still connected."


# Critical if there is no other explanation, and no figure that contradicts.
CHECK = RowCheck(
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
        "over_quota": Query(OVER, worst_first="percent desc, topic", most=MAX_OVER, detail=SUBSCRIBED),
        "policies_unread": policies_not_read("100"),
        "shut_out": Query(SHUT_OUT),
    },
    cluster={
        "found": Query(FOUND, worst_first="trouble desc, producers, backlog_bytes desc, topic"),
        "defaults": DEFAULTS,
    },
    severity=lambda row: Severity.CRITICAL if row["trouble"] else Severity.WARNING,
    subject="topic",
    evidence=_evidence,
    figures=lambda row: (
        figures(row)
        | {
            "ack_holes": row["ack_holes"],
            "backlog_entries": row["entries"],
            "plausible_bytes_per_entry": row["plausible_bytes"],
        }
    ),
    missing=lambda queried, _context: (
        unknown_defaults(queried, "limit_bytes", "limit_seconds", "policy")
        or unknown_policies(queried["policies_unread"])
        or _not_drilled(queried["shut_out"])
        or _too_many(queried["over_quota"])
    ),
    quiet="No quota shuts producers out without a backlog.",
)
