"""Retention: too long for what anything needs, without any bound, or too short for a quota or a backlog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.quotas import DEFAULTS, defaults_known, set_by, unknown_defaults
from pulsar_steward.checks.check import Check, Judgement, Query, RowCheck, Scope
from pulsar_steward.decoding import convert
from pulsar_steward.model.broker_defaults import OFFLOAD_DRIVER
from pulsar_steward.model.finding import Figures, Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import GIB, MIB, MINUTE, bytes_in_words, counted, epoch_in_words, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row

UNBOUNDED = "retention_minutes < 0 and retention_megabytes < 0"
BOUNDED = "retention_minutes <> 0 and retention_megabytes <> 0 and (retention_minutes > 0 or retention_megabytes > 0)"
"""SQL: true for a bounded retention. Zero in both keeps nothing; brokers refuse it in one alone."""


class RetentionTooLongPolicy(Section):
    """Thresholds for bounded retentions that store far more than is needed after an outage."""

    warning_consumed_bytes: int = number(
        1024 * GIB, "stored by the loaded topics of the namespace though all of it is consumed; each copy comes on top"
    )
    warning_percent: int = number(
        1_000, "of what quota and outage need, in time and in size: a week is usual, ten times an outage is not", ge=101
    )


# Consumed data stored by the loaded topics of a namespace. Topics known to have another retention are left out.
BOUNDED_STORED = f"""
with bounded as (select namespace, retention_minutes, retention_megabytes from namespace_policies where {BOUNDED}),
consumed as (
    select namespace, topic, storage_bytes, backlog_bytes, throughput_in_bytes,
        coalesce(greatest(storage_bytes - coalesce(backlog_bytes, 0), 0), 0) as consumed
    from retained_topics join bounded using (namespace, retention_minutes, retention_megabytes))
select namespace, count(*) as topics, sum(storage_bytes)::bigint as storage_bytes,
    sum(consumed)::bigint as consumed_bytes, max(consumed) as most_consumed,
    arg_max(topic, (consumed, topic)) as topic,
    coalesce(max(backlog_bytes), 0) as peak_bytes, coalesce(max(throughput_in_bytes), 0) as busiest
from consumed group by namespace
"""

# A retention needs room for an outage, for the quotas and for the present backlogs, each with its headroom. If there
# are several bounds, the tighter one counts.
TOO_LONG = f"""
with together as (
    select namespace, sum(topics)::bigint as topics, sum(storage_bytes)::bigint as storage_bytes,
        sum(consumed_bytes)::bigint as consumed_bytes, arg_max(topic, (most_consumed, topic)) as topic,
        max(peak_bytes) as peak_bytes, max(busiest) as busiest
    from stored group by namespace),
outage as (select $backlog_quota_remedy__survive_outage_hours::bigint * 3600 as outage_seconds),
needs as (
    select t.*, retention_minutes, retention_megabytes, retention_own, offloaded, offloaded_bytes,
        warning_consumed_bytes,
        warning_percent,
        greatest(
            outage_seconds * (100 + $backlog_quota_remedy__outage_headroom_percent) // 100,
            coalesce(limit_seconds, 0)
        ) as needed_seconds,
        -- The largest number that counts as a limit does not fit once it was a double.
        trunc(least(9e18, greatest(
            peak_bytes * (100 + $backlog_quota_remedy__peak_headroom_percent) / 100,
            busiest * outage_seconds,
            $backlog_quota_remedy__minimum_megabytes::double * {MIB},
            coalesce(limit_bytes, 0)::double
        )))::bigint as needed_bytes
    from together t join namespace_policies using (namespace) join limits using (namespace) cross join outage
        left join offloads using (namespace)),
shares as (
    select *, floor(least(
            case when retention_minutes > 0 then retention_minutes * 100::double * {MINUTE} / needed_seconds end,
            case when retention_megabytes > 0 then retention_megabytes * 100::double * {MIB} / needed_bytes end
        ))::bigint as percent
    from needs)
select * from shares where consumed_bytes >= warning_consumed_bytes and percent >= warning_percent
"""


def _offload(row: Row) -> str:
    """Further words on a namespace that is set to offload; what its topics tell counts, and not the setting."""
    if row["offloaded"] is None:
        return ""
    if row["offloaded"]:
        return f"; {bytes_in_words(row['offloaded_bytes'], rounded=True)} of old ledgers are offloaded"
    return "; it is set to be offloaded, but no topic that was looked at shows that it is"


def _too_long(row: Row) -> str:
    kept = []
    if row["retention_minutes"] > 0:
        kept.append(seconds_in_words(row["retention_minutes"] * MINUTE, rounded=True))
    if row["retention_megabytes"] > 0:
        kept.append(f"{bytes_in_words(row['retention_megabytes'] * MIB, rounded=True)} a topic")
    who = set_by("namespace" if row["retention_own"] else "default")
    return (
        f"Over the cluster, {counted(row['topics'], 'loaded topic')} {'stores' if row['topics'] == 1 else 'store'}"
        f" {bytes_in_words(row['consumed_bytes'], rounded=True)} that every subscription has consumed, of"
        f" {bytes_in_words(row['storage_bytes'], rounded=True)} in all and before copies, {row['topic']} the most:"
        f" retention is {' and '.join(kept)} ({who}), {counted(row['percent'] / 100, 'time')} what quota and outage"
        f" need ({seconds_in_words(row['needed_seconds'], rounded=True)},"
        f" {bytes_in_words(row['needed_bytes'], rounded=True)} a topic){_offload(row)}."
    )


# A warning; information if old ledgers are offloaded, as the retention is then probably intended.
RETENTION_TOO_LONG = RowCheck(
    check_id="retention-too-long",
    order=90,
    title="Consumed messages are stored for far longer than anything needs",
    advice=(
        "Ask the topics' owners how far back they read again: that, and not a habit, is what retention is for.",
        (
            "Lower it above quota and outage, which deletes what is over it:"
            " `pulsar-admin namespaces set-retention NS -s SIZE -t TIME`."
        ),
        (
            "If it is needed, offload old ledgers to tiered storage:"
            " `pulsar-admin namespaces set-offload-policies NS -d DRIVER -b BUCKET`."
        ),
    ),
    source="docs/checks/retention-too-long.md; docs/knowledge.md B",
    scope=Scope.NAMESPACE,
    remedied_by="retention",
    policy=RetentionTooLongPolicy,
    shards={"stored": Query(BOUNDED_STORED)},
    cluster={
        "found": Query(TOO_LONG, worst_first="coalesce(offloaded, false), consumed_bytes desc, namespace"),
        "defaults": DEFAULTS,
    },
    severity=lambda row: Severity.INFO if row["offloaded"] else Severity.WARNING,
    subject="namespace",
    evidence=_too_long,
    figures=(
        "consumed_bytes",
        "needed_bytes",
        "needed_seconds",
        "percent",
        "retention_megabytes",
        "retention_minutes",
        "storage_bytes",
        "topics",
    ),
    missing=defaults_known("limit_bytes", "limit_seconds", "retention_minutes", "retention_megabytes"),
    quiet="No namespace stores much more of what is consumed than its quota or an outage need.",
)


class RetentionUnboundedPolicy(Section):
    """Thresholds for topics with unlimited retention."""

    warning_storage_bytes: int = number(
        100 * GIB, "stored by the loaded topics of the namespace that are kept for ever"
    )


# Data that the loaded topics of a namespace store for ever, by the namespace's setting or by their own.
UNBOUNDED_STORED = f"""
select namespace, count(*) as topics, sum(storage_bytes)::bigint as storage_bytes, max(storage_bytes) as most_bytes,
    arg_max(topic, (coalesce(storage_bytes, -1), topic)) as topic
from retained_topics where {UNBOUNDED} group by namespace
"""

ENDLESS = f"""
with together as (
    select namespace, sum(topics)::bigint as topics, sum(storage_bytes)::bigint as storage_bytes,
        max(most_bytes) as most_bytes, arg_max(topic, (coalesce(most_bytes, -1), topic)) as topic
    from stored group by namespace),
kept as (
    select p.namespace, {UNBOUNDED} as unbounded, retention_own, offloaded, offloaded_bytes, warning_storage_bytes,
        topic,
        coalesce(topics, 0) as topics, coalesce(storage_bytes, 0) as storage_bytes,
        coalesce(most_bytes, 0) as most_storage_bytes
    from namespace_policies p join limits using (namespace) left join together using (namespace)
        left join offloads using (namespace))
select *, offloaded is not true and storage_bytes >= warning_storage_bytes as trouble
from kept where unbounded or topics > 0
"""


def _endless(row: Row) -> str:
    who = set_by("namespace" if row["retention_own"] else "default") if row["unbounded"] else "set on topics"
    stored = (
        f"{counted(row['topics'], 'loaded topic')} {'stores' if row['topics'] == 1 else 'store'}"
        f" {bytes_in_words(row['storage_bytes'], rounded=True)} under it, {row['topic']} the most"
        f" ({bytes_in_words(row['most_storage_bytes'], rounded=True)})"
        if row["topics"]
        else "no topic under it is loaded"
    )
    return f"Retention has no limit in time nor in size ({who}): {stored}{_offload(row)}."


# A warning if much is stored without limit and nothing is offloaded.
RETENTION_UNBOUNDED = RowCheck(
    check_id="retention-unbounded",
    order=70,
    title="Messages are retained for ever",
    advice=(
        "Ask the topics' owners whether consumed messages are really needed for ever.",
        (
            "If not, bound it in time or size, which deletes what is over it:"
            " `pulsar-admin namespaces set-retention NS -s SIZE -t TIME`."
        ),
        "If so, offload old ledgers: `pulsar-admin namespaces set-offload-policies NS -d DRIVER -b BUCKET`.",
        "Watch the bookies' disks.",
    ),
    source="docs/checks/retention-unbounded.md",
    scope=Scope.NAMESPACE,
    remedied_by="retention",
    policy=RetentionUnboundedPolicy,
    shards={"stored": Query(UNBOUNDED_STORED)},
    cluster={"found": Query(ENDLESS, worst_first="trouble desc, storage_bytes desc, namespace"), "defaults": DEFAULTS},
    severity=lambda row: Severity.WARNING if row["trouble"] else Severity.INFO,
    subject="namespace",
    evidence=_endless,
    figures=("most_storage_bytes", "storage_bytes", "topics"),
    missing=defaults_known("retention_minutes", "retention_megabytes"),
    quiet="No namespace retains messages for ever.",
)


class RetentionTooShortPolicy(Section):
    """Thresholds for retentions that leave too little room above the backlog or its quota."""

    info_percent: int = number(90, "quota as a share of the retention: so close, raising the quota is refused soon")
    minimum_backlog_bytes: int = number(GIB, "backlogs smaller than this are not compared with the retained size")
    minimum_backlog_age_seconds: int = number(
        3600, "backlogs younger than this are not compared with the retained time"
    )


class RetentionFigures(Figures, frozen=True, kw_only=True):
    """A retention beside a topic's backlog or a quota, and their shares of it; None: absent or unknown."""

    backlog_bytes: int | None = None
    limit_bytes: int | None = None
    limit_seconds: int | None = None
    oldest_backlog_age_seconds: int | None = None
    retention_megabytes: int | None = None
    retention_minutes: int | None = None
    size_percent: int | None = None
    time_percent: int | None = None


# Topics whose backlog is at least as large or as old as the retention. A share is null if it is not judged.
OUTGROWN = f"""
with large_or_old as (
    select topic, backlog_bytes, oldest_seconds, oldest_seconds as oldest_backlog_age_seconds, slowest_subscription,
        retention_minutes, retention_megabytes,
        retention_megabytes > 0 and backlog_bytes >= minimum_backlog_bytes as large,
        retention_minutes > 0 and oldest_seconds >= minimum_backlog_age_seconds as old
    from topics_under_policies join limits using (namespace) where large or old),
shares as (
    select * exclude (large, old),
        case when large then floor(backlog_bytes * 100::double / (retention_megabytes::double * {MIB}))::bigint end
            as size_percent,
        case when old then floor(oldest_seconds * 100::double / (retention_minutes::double * {MINUTE}))::bigint end
            as time_percent
    from large_or_old)
select *, greatest(size_percent, time_percent) as percent from shares where percent >= 100
"""

# If a drilled topic has no age, its broker does not know it either.
BLIND = """
select count(*) as topics from topics_under_policies
where retention_minutes > 0 and backlog_bytes > 0 and not drilled and told_seconds is null
"""

# The threshold of `quota-over-retention` is not among this check's limits: `too_short` leaves those quotas out.
TIGHT = "select q.* from quotas_beside_retention q join limits using (namespace) where percent >= info_percent"


def too_short(queried: Queried, context: CheckContext[RetentionTooShortPolicy]) -> Judgement:
    """Reports topics whose backlog exceeds the retention first, then the quotas that nearly reach it, the tightest."""
    over = {
        name: context.policy.for_namespace(name).quota_over_retention.warning_percent
        for _, names in context.parts
        for name in names
    }
    elsewhere = context.policy.quota_over_retention.warning_percent

    def percent_over(namespace: str) -> int:
        return int(over.get(namespace, over.get(namespace.partition("/")[0], elsewhere)))

    tight = [row for row in queried["tight"].rows if row["percent"] < percent_over(row["namespace"])]
    tight.sort(key=lambda row: (-row["percent"], row["subject"]))
    little = "of the retention: there is little room to raise it."
    told = (
        *((row, row["topic"], Severity.WARNING, _outgrown(row)) for row in queried["outgrown"].rows),
        *((row, row["subject"], Severity.INFO, f"The quota takes {row['percent']:,} % {little}") for row in tight),
    )
    findings = tuple(
        RETENTION_TOO_SHORT.finding(
            severity=severity, subject=subject, evidence=words, figures=convert(row, RetentionFigures).by_name
        )
        for row, subject, severity, words in told
    )
    missing = unknown_defaults(queried, "limit_bytes", "limit_seconds", "retention_minutes", "retention_megabytes")
    blind = sum(row["topics"] for row in queried["blind"].rows)
    have = f"{counted(blind, 'topic')} under a retention in time {'has' if blind == 1 else 'have'}"
    return Judgement(
        findings=findings,
        more=queried["outgrown"].more,
        graded=queried["outgrown"].more_by(Severity.WARNING),
        quiet="No retention is too short for its quota or for the backlog seen.",
        cannot_tell=missing or (f"{have} a backlog whose age was not read." if blind else None),
    )


def _outgrown(row: Row) -> str:
    if (row["size_percent"] or 0) >= (row["time_percent"] or 0):
        what = (
            f"The backlog is {bytes_in_words(row['backlog_bytes'], rounded=True)}, and"
            f" {bytes_in_words(row['retention_megabytes'] * MIB, rounded=True)} are retained"
        )
    else:
        what = (
            f"The oldest message of the backlog is {seconds_in_words(row['oldest_seconds'], rounded=True)} old, and"
            f" the retention is {seconds_in_words(row['retention_minutes'] * MINUTE, rounded=True)}"
        )
    slowest = f" by subscription {row['slowest_subscription']}" if row["slowest_subscription"] else ""
    return f"{what}: once it is acknowledged{slowest}, the excess is deleted and cannot be read again."


RETENTION_TOO_SHORT = Check(
    check_id="retention-too-short",
    harm=Harm.SOON,
    order=80,
    title="The retention leaves little room over the quota or the backlog",
    advice=(
        "Raise the retention well above the quota: `pulsar-admin namespaces set-retention NS -s SIZE -t TIME`.",
        "Bring the slowest subscription up to date: once it has acknowledged, no history is left to go back to.",
        "Set size and time: where both are set, the tighter one holds.",
    ),
    source="docs/checks/retention-too-short.md",
    remedied_by="retention",
    scope=Scope.NAMESPACE,
    reads=("quota_over_retention",),
    policy=RetentionTooShortPolicy,
    shards={"outgrown": Query(OUTGROWN, worst_first="percent desc, topic"), "blind": Query(BLIND)},
    cluster={"tight": Query(TIGHT), "defaults": DEFAULTS},
    judge=too_short,
)


class OffloadFailingPolicy(Section):
    """Thresholds for offloading that fails."""

    within_minutes: int = number(1440, "since the failure; an older one is history")


# A topic with nothing but an open ledger has nothing to offload: silence is right there.
NOT_OFFLOADED = """
select offloads.* from offloads join limits using (namespace)
where without_driver or (failing is not null and failed // 1000 >= floor($now)::bigint - 60 * within_minutes)
"""


def _not_offloaded(row: Row) -> str:
    if row["without_driver"]:
        return (
            "The namespace is set to offload old ledgers, but neither it nor the brokers name a driver"
            f" ({OFFLOAD_DRIVER}): brokers cannot offload, and everything stays in the bookies."
        )
    topics = counted(row["failing_topics"], "topic")
    since = f"the last success was at {epoch_in_words(row['succeeded'])}" if row["succeeded"] else "none ever succeeded"
    return (
        f"Of the topics that were looked at, {topics} failed to offload, {row['failing']} last, at"
        f" {epoch_in_words(row['failed'])}; {since}. What was to leave the bookies is still there."
    )


OFFLOAD_FAILING = RowCheck(
    check_id="offload-failing",
    harm=Harm.SOON,
    order=95,
    title="A namespace is set to offload old ledgers, and that fails",
    advice=(
        (
            "Name a driver, and install its offloader on every broker:"
            " `pulsar-admin namespaces set-offload-policies NS -d DRIVER -b BUCKET`."
        ),
        "Read the owner's log for the failure: credentials, bucket, region, network.",
        "Have one topic offloaded by hand and look: `pulsar-admin topics offload-status TOPIC`.",
        "Watch the bookies' disks meanwhile: nothing is freed.",
    ),
    source="docs/checks/offload-failing.md; apache/pulsar#7639, apache/pulsar#12156",
    scope=Scope.NAMESPACE,
    policy=OffloadFailingPolicy,
    cluster={"found": Query(NOT_OFFLOADED, worst_first="without_driver desc, failing_topics desc, namespace")},
    severity=Severity.WARNING,
    subject="namespace",
    evidence=_not_offloaded,
    figures=("failing_topics", "offloaded_bytes"),
    quiet="No namespace that is set to offload is known to fail.",
)
