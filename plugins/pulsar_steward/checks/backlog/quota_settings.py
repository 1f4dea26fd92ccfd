"""Quotas that do not fit: none at all, one that is not below the retention, and one that a time to live forestalls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.quotas import (
    DEFAULTS,
    PRECISE,
    ROLLOVER,
    defaults_known,
    holds_producers,
    set_by,
)
from pulsar_steward.checks.check import Query, RowCheck, Scope, if_any, if_counted
from pulsar_steward.model.finding import Figures, Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.units import GIB, MIB, MINUTE, bytes_in_words, counted, named, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


class BacklogQuotaMissingPolicy(Section):
    """Thresholds for backlogs without a quota."""

    info_backlog_bytes: int = number(1, "of all topics of the namespace that have no quota; 1: any backlog at all")
    warning_backlog_bytes: int = number(
        10 * GIB, "of one topic; 10 GiB was the default quota of Pulsar before it became none"
    )


# A namespace's topics are in several shards: the shards' results are added up.
UNBOUNDED = """
select namespace, count(*) as topics, sum(backlog_bytes)::bigint as backlog_bytes,
    max({'bytes': backlog_bytes, 'topic': topic}) as largest
from quotas_in_force where limit_bytes < 0 and limit_seconds <= 0 and backlog_bytes > 0 group by namespace
"""
MISSING = """
with totals as (
    select namespace, sum(topics)::bigint as topics, sum(backlog_bytes)::bigint as backlog_bytes,
        max(largest) as largest
    from unbounded group by namespace)
select namespace, topics, backlog_bytes, largest.topic as topic, largest.bytes as most_backlog_bytes,
    largest.bytes >= warning_backlog_bytes as warning
from totals join limits using (namespace) where warning or backlog_bytes >= info_backlog_bytes
"""

BACKLOG_QUOTA_MISSING = RowCheck(
    check_id="backlog-quota-missing",
    order=30,
    title="No backlog quota bounds the topics of a namespace",
    advice=(
        "Find the subscription that holds the backlog, and delete it if nobody needs it.",
        (
            "Set a size quota well above the present backlog:"
            " `pulsar-admin namespaces set-backlog-quota NS -l LIMIT -p POLICY`."
        ),
        "Choose its policy with the topic's owners: producer_* stops producers, eviction loses messages.",
        "Keep the quota below the retention, in size and in time.",
    ),
    source="docs/checks/backlog-quota-missing.md",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
    policy=BacklogQuotaMissingPolicy,
    shards={"unbounded": Query(UNBOUNDED)},
    cluster={
        "found": Query(MISSING, worst_first="warning desc, most_backlog_bytes desc, namespace"),
        "defaults": DEFAULTS,
    },
    severity=lambda row: Severity.WARNING if row["warning"] else Severity.INFO,
    subject="namespace",
    evidence=lambda row: (
        f"Neither the namespace nor the brokers' default sets a backlog quota, and {counted(row['topics'], 'topic')}"
        f" without one {'holds' if row['topics'] == 1 else 'hold'} {bytes_in_words(row['backlog_bytes'], rounded=True)}"
        f" of backlog, {row['topic']} the most ({bytes_in_words(row['most_backlog_bytes'], rounded=True)})."
    ),
    figures=("backlog_bytes", "most_backlog_bytes", "topics"),
    missing=defaults_known("limit_bytes", "limit_seconds"),
    quiet="No topic has a backlog without a quota.",
)


class QuotaOverRetentionPolicy(Section):
    """Thresholds for backlog quotas that are larger than the retention."""

    warning_percent: int = number(100, "quota as a share of the retention: brokers refuse a quota that is not below it")


OVER = """
select q.*, warning_percent from quotas_beside_retention q join limits using (namespace)
where percent >= warning_percent
"""


def _over(row: Row) -> str:
    words = []
    if (row["size_percent"] or 0) >= row["warning_percent"]:
        words.append(
            f"The size quota of {bytes_in_words(row['limit_bytes'], rounded=True)} ({set_by(row['bytes_by'])}) is"
            f" {row['size_percent']:,} % of the {bytes_in_words(row['retention_megabytes'] * MIB, rounded=True)} that"
            f" are retained ({set_by(row['retention_by'])})"
        )
    if (row["time_percent"] or 0) >= row["warning_percent"]:
        words.append(
            f"the age quota of {seconds_in_words(row['limit_seconds'], rounded=True)} ({set_by(row['seconds_by'])}) is"
            f" {row['time_percent']:,} % of the {seconds_in_words(row['retention_minutes'] * MINUTE, rounded=True)} of"
            f" retention ({set_by(row['retention_by'])})"
        )
    return (
        f"{', and '.join(words)}: a quota has to be below the retention, and the broker may"
        " refuse the next change of either (412)."
    )


QUOTA_OVER_RETENTION = RowCheck(
    check_id="quota-over-retention",
    order=40,
    title="A backlog quota is not below the retention",
    advice=(
        "Raise the retention above the quota first, in size and in time, or lower the quota.",
        "Before lowering a producer_* quota, see that no topic's backlog is over the new one: its producers stop.",
        "Do not rely on the broker to refuse it: it compares size quotas of the same level only.",
    ),
    source="docs/checks/quota-over-retention.md",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
    policy=QuotaOverRetentionPolicy,
    cluster={"found": Query(OVER, worst_first="percent desc, subject"), "defaults": DEFAULTS},
    severity=Severity.WARNING,
    subject="subject",
    evidence=_over,
    figures=(
        "limit_bytes",
        "limit_seconds",
        "retention_megabytes",
        "retention_minutes",
        "size_percent",
        "time_percent",
    ),
    missing=defaults_known("limit_bytes", "limit_seconds", "retention_minutes", "retention_megabytes"),
    quiet="Every quota is below the retention.",
)


class CompactionOverQuotaPolicy(Section):
    """Thresholds for topics that are compacted too late for their quota."""

    warning_percent: int = number(
        100, "compaction threshold as a share of the size quota: from there on the quota acts before a compaction"
    )


COMPACTED_LATE = f"""
with compared as (
    select l.*, warning_percent, if(limit_bytes = 0, 100, least(9e18,
        floor(compaction_bytes * 100::double / nullif(limit_bytes, 0))))::bigint as percent
    from limits_in_force l join limits using (namespace)
    where compaction_bytes > 0 and limit_bytes >= 0 and (holder = namespace or bytes_by = 'topic'))
select *, {holds_producers("bytes_policy")} as held from compared where percent >= warning_percent
"""


def _compacted_late(row: Row) -> str:
    limit = bytes_in_words(row["limit_bytes"], rounded=True)
    until = (
        "its producers are shut out at that size, and only a compaction lets them in again"
        if row["held"]
        else "its quota acts on what is not compacted yet"
    )
    return (
        f"A topic is compacted once {bytes_in_words(row['compaction_bytes'], rounded=True)} wait for it, and the cursor"
        f" of compaction holds them until then; the size quota of {limit} ({set_by(row['bytes_by'])}) is full before:"
        f" {until}."
    )


# Only namespaces' thresholds and the brokers' are known: a topic's own is in no statistics.
COMPACTION_OVER_QUOTA = RowCheck(
    check_id="compaction-over-quota",
    order=45,
    title="Topics are compacted only after their quota is full",
    advice=(
        (
            "Lower the compaction threshold well below the quota:"
            " `pulsar-admin namespaces set-compaction-threshold NS -t SIZE`."
        ),
        "Have topics that are full compacted now: `pulsar-admin topics compact TOPIC`.",
        "Set no threshold where topics are not meant to be compacted.",
    ),
    source="docs/checks/compaction-over-quota.md; apache/pulsar#11003",
    scope=Scope.NAMESPACE,
    policy=CompactionOverQuotaPolicy,
    cluster={"found": Query(COMPACTED_LATE, worst_first="held desc, percent desc, holder"), "defaults": DEFAULTS},
    severity=Severity.WARNING,
    subject="holder",
    evidence=_compacted_late,
    figures=("compaction_bytes", "limit_bytes", "percent"),
    missing=defaults_known("limit_bytes", "policy"),
    quiet="No compaction threshold is at or above a size quota.",
)


class TtlBeforeQuotaPolicy(Section):
    """Thresholds for times to live that end before the age quota acts."""

    warning_percent: int = number(
        100, "TTL as a share of when the age quota acts: at or below it, the quota is never reached"
    )


class TtlFigures(Figures, frozen=True, kw_only=True):
    """A time to live, an age quota, and the maximum delay of that quota; None: not known."""

    age_quota_delay_seconds: int | None = None
    limit_seconds: int
    ttl_seconds: int


# The TTL ends before the quota's time, or only before its latest time on quiet topics, whose ledgers are closed late.
EARLY = f"""
with compared as (
    select p.namespace, ttl_seconds, limit_seconds, seconds_policy,
        if(ttl_own, 'namespace', 'default') as ttl_by, if(seconds_own, 'namespace', 'default') as seconds_by,
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


def _early(row: Row) -> str:
    meant = (
        f"{row['seconds_policy']} never stops producers, and what nobody consumed in time is lost instead"
        if row["held"]
        else "the TTL drops messages for every subscription, and the quota's eviction has nothing left to do"
    )
    when = ":"
    if not row["always"]:
        later = seconds_in_words(row["age_quota_delay_seconds"], rounded=True)
        when = (
            f", counted from when the ledger of the oldest message was closed, up to {later} later ({ROLLOVER}): where"
            " little is produced,"
        )
    return (
        f"Messages expire after {seconds_in_words(row['ttl_seconds'], rounded=True)} ({set_by(row['ttl_by'])}),"
        f" the age quota acts at {seconds_in_words(row['limit_seconds'], rounded=True)}"
        f" ({set_by(row['seconds_by'])}){when} {meant}."
    )


# A warning if the quota would stop producers but never acts before the TTL; all else is information.
TTL_BEFORE_QUOTA = RowCheck(
    check_id="ttl-before-quota",
    order=100,
    title="Messages expire before their age quota can act",
    advice=(
        "Decide with the topics' owners which is meant: losing old messages (TTL) or stopping producers (quota).",
        "Raise the TTL above the quota's time, or remove it: `pulsar-admin namespaces set-message-ttl NS -ttl TIME`.",
        "Otherwise remove the age quota, which protects nothing: `pulsar-admin namespaces remove-backlog-quota NS`.",
    ),
    source="docs/checks/ttl-before-quota.md",
    scope=Scope.NAMESPACE,
    remedied_by="retention",
    policy=TtlBeforeQuotaPolicy,
    cluster={
        "found": Query(EARLY, worst_first="held and always desc, held desc, always desc, namespace"),
        "delay_unknown": Query(DELAY_UNKNOWN),
        "defaults": DEFAULTS,
    },
    severity=lambda row: Severity.WARNING if row["held"] and row["always"] else Severity.INFO,
    subject="namespace",
    evidence=_early,
    figures=TtlFigures,
    missing=(
        defaults_known("limit_seconds", "ttl_seconds"),
        if_counted(
            "delay_unknown",
            lambda count: (
                f"{counted(count, 'namespace')} {'has' if count == 1 else 'have'} a TTL above an age quota, and how"
                f" much later than its time that one acts was not read ({PRECISE}, {ROLLOVER})."
            ),
        ),
    ),
    quiet="No namespace has a TTL before its age quota acts.",
)


class LimitElsewherePolicy(Section):
    """Thresholds for limits under another cluster's name."""

    minimum_limits: int = number(1, "under such names, of one namespace")


RATES = (
    "publishMaxMessageRate",
    "topicDispatchRate",
    "subscriptionDispatchRate",
    "replicatorDispatchRate",
    "clusterSubscribeRate",
)
"""Members of a namespace's policies with a limit for each cluster (apache/pulsar, `Policies`)."""

_HELD = " union all ".join(
    f"select namespace, serving, '{name}' as rate, unnest(json_keys(own->'{name}')) as cluster from known"
    for name in RATES
)

# A replicator's limit may stand under two clusters at once, as "here->there": the first is where it holds.
ELSEWHERE = f"""
with known as (
    select namespace, policies_json::json as own, list_concat(
        [pulsar_cluster], coalesce(try_cast(policies_json::json->'replication_clusters' as varchar[]), []),
        coalesce(try_cast(policies_json::json->'allowed_clusters' as varchar[]), [])) as serving
    from namespaces cross join (select pulsar_cluster from snapshot where pulsar_cluster is not null)
    where json_valid(policies_json) and not starts_with(namespace, 'pulsar/')),
held as ({_HELD})
select namespace, any_value(minimum_limits) as least, count(*) as amount, list_sort(list(rate)) as rates,
    list_sort(list_distinct(list(cluster))) as clusters, list_sort(list_distinct(flatten(list(serving)))) as serving
from held join limits using (namespace) where not list_contains(serving, split_part(cluster, '->', 1))
group by namespace having amount >= least
"""

LIMIT_ELSEWHERE = RowCheck(
    check_id="limit-elsewhere",
    order=125,
    title="A rate limit stands under a cluster that does not serve the namespace",
    advice=(
        "Ask the owner which limit is meant: what stands there may be far below what is published now.",
        "Then set it by the namespace's own call, which writes the right name: `pulsar-admin namespaces set-...-rate`.",
    ),
    source="docs/checks/limit-elsewhere.md; apache/pulsar#16709",
    scope=Scope.NAMESPACE,
    policy=LimitElsewherePolicy,
    cluster={
        "found": Query(ELSEWHERE, worst_first="amount desc, namespace"),
        "nameless": Query("select cluster from snapshot where pulsar_cluster is null"),
    },
    severity=Severity.WARNING,
    subject="namespace",
    evidence=lambda row: (
        f"{counted(row['amount'], 'limit')} of {row['namespace']} ({named(row['rates'])})"
        f" {'stands' if row['amount'] == 1 else 'stand'} under {named(row['clusters'])}, and it is served by"
        f" {named(row['serving'])} alone: nobody is limited, though the policy is there."
    ),
    figures=lambda row: {"limits": row["amount"]},
    missing=if_any("nameless", "Pulsar's own name of {names} is not in the snapshot."),
    quiet="No namespace's rate limits stand under a cluster that does not serve it.",
)
