"""Topics close to their backlog quota or over it: its effect, restarts meanwhile, and quotas that are stuck.

A broker compares backlog and quota at each producer creation, even if the periodic check is off. With the check off,
connected producers continue over the quota, and lose their topic at the first restart (tried on Pulsar 4.0.7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.brokers import QUOTA_CHECK_DISABLED
from pulsar_steward.checks.backlog.quotas import (
    CULPRITS,
    DEFAULTS,
    KEEPS_A_BACKLOG,
    PRECISION,
    ages_not_read,
    consequence,
    defaults_known,
    delayed_words,
    figures,
    holds_producers,
    in_brackets,
    policies_not_read,
    quota_used,
    slowest_words,
    told_once,
    unknown_ages,
    unknown_defaults,
    unknown_policies,
)
from pulsar_steward.checks.check import Check, Judgement, Query, RowCheck, Scope, critical_or_warning, if_counted
from pulsar_steward.model.broker_defaults import default_number
from pulsar_steward.model.finding import QuotaFigures, Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.subscription import unexplained
from pulsar_steward.model.trouble import Harm, by_severity
from pulsar_steward.model.units import KIB, MIB, bytes_in_words, counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row
    from pulsar_steward.model.finding import Finding


class BacklogNearQuotaPolicy(Section):
    """Thresholds for backlogs close to their quota."""

    warning_percent: int = number(80, "of the quota, in size or age: time is left to react")
    critical_percent: int = number(95, "of the quota: brokers check once a minute, so the next check may act")


# A topic may be over two quotas: if one shuts producers out, that is the worst that happens.
NEAR = f"""
with fullest as (
    select *, greatest(bytes_percent, seconds_percent) as percent,
        ({holds_producers("bytes_policy")} and coalesce(bytes_percent >= 100, false))
        or ({holds_producers("seconds_policy")} and coalesce(seconds_percent >= 100, false)) as shuts_out
    from pressed)
select fullest.*, percent >= critical_percent as critical
from fullest join limits using (namespace) where percent >= warning_percent
"""


FULL_PERCENT = 100
"""Backlog in percent of its quota from which on the quota acts."""

NO_RESTART = "Restart no broker and unload no bundle of theirs: no producer could come back."


def _harm(finding: Finding) -> Harm:
    used = QuotaFigures.of(finding)
    full = max(used.bytes_percent or 0, used.seconds_percent or 0) >= FULL_PERCENT
    if not full or used.holds_producers is None:
        return Harm.SOON
    if used.unchecked:  # brokers still compare them when a producer connects
        return Harm.AT_RESTART if used.holds_producers else Harm.SOON
    return Harm.CUT_OFF if used.holds_producers else Harm.LOSING


def near_quota(queried: Queried, context: CheckContext[BacklogNearQuotaPolicy]) -> Judgement:
    """Judges by the fuller of the two quotas, whatever the policy."""
    findings = []
    unchecked = {"unchecked": 1} if context.results[QUOTA_CHECK_DISABLED.check_id].judgement.findings else {}
    for row in queried["found"].rows:
        by_size = (row["bytes_percent"] or 0) >= (row["seconds_percent"] or 0)
        policy = row["bytes_policy"] if by_size else row["seconds_policy"]
        holds = 1 if row["shuts_out"] else policy and int(policy.startswith("producer_"))
        when = "once exceeded" if row["percent"] < FULL_PERCENT else "exceeded"
        findings.append(
            BACKLOG_NEAR_QUOTA.finding(
                severity=critical_or_warning(row),
                subject=row["topic"],
                evidence=(
                    f"{quota_used(row, by_size=by_size)}; {when}{in_brackets(policy)}, {consequence(policy)}."
                    f"{delayed_words(row)}{slowest_words(row)}"
                ),
                figures=figures({**row, "holds_producers": holds, **unchecked}),
            )
        )
    return Judgement(
        findings=told_once(findings, queried["precision"]),
        more=queried["found"].more,
        graded=queried["found"].more_by(critical_or_warning),
        quiet="No topic's backlog is close to its quota.",
        cannot_tell=unknown_defaults(queried, "limit_bytes", "limit_seconds") or unknown_ages(queried),
    )


BACKLOG_NEAR_QUOTA = Check(
    check_id="backlog-near-quota",
    harm=_harm,
    explained_by=KEEPS_A_BACKLOG,
    headlines={
        Harm.CUT_OFF: "PRODUCERS CUT OFF",
        Harm.LOSING: "UNREAD MESSAGES DELETED",
        Harm.SOON: "Backlogs close to their quota",
    },
    beware={
        Harm.CUT_OFF: NO_RESTART,
        Harm.AT_RESTART: NO_RESTART,
        Harm.LOSING: "Do not lower the quota.",
    },
    rests_on=(QUOTA_CHECK_DISABLED.check_id,),
    order=10,
    title="A topic's backlog is close to its quota, or over it",
    advice=(
        "See what holds it: `pulsar-admin topics stats TOPIC`.",
        "Mend a replication, compaction or deduplication that holds it; never delete its cursor.",
        "Find out why a subscription lags: consumers missing, blocked, slow, or without permits.",
        "Delete an application's subscription if nobody needs it: `pulsar-admin topics unsubscribe TOPIC -s SUB`.",
        "Expire messages that may be lost: `pulsar-admin topics expire-messages TOPIC -s SUB -t AGE`.",
        (
            "Raise the quota, below the retention, if bookies have room:"
            " `pulsar-admin namespaces set-backlog-quota NS -l LIMIT -p POLICY`."
        ),
        "Never lower a quota that is nearly full.",
        "Unload, split or restart nothing that holds this topic until its backlog is down.",
    ),
    source="docs/checks/backlog-near-quota.md; apache/pulsar#14337",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
    policy=BacklogNearQuotaPolicy,
    shards={
        "found": Query(
            NEAR, worst_first="critical desc, shuts_out desc, percent desc, backlog_bytes desc, topic", detail=CULPRITS
        ),
        "ages_unread": ages_not_read(),
    },
    cluster={"defaults": DEFAULTS, "precision": PRECISION},
    judge=near_quota,
)


class ProducerHoldRestartRiskPolicy(Section):
    """Thresholds for topics whose producers could not connect again after a restart."""

    warning_percent: int = number(90, "of a producer_* quota: a restart that takes minutes may find it exceeded")
    critical_percent: int = number(100, "of it: new producers are refused already")


# Usage of quotas that block producers; null for a quota that evicts.
HELD = f"""
with held as (
    select *, case when {holds_producers("bytes_policy")} then bytes_percent end as held_bytes_percent,
        case when {holds_producers("seconds_policy")} then coalesce(seconds_percent, estimated_percent) end
            as held_seconds_percent
    from pressed),
fullest as (select *, greatest(held_bytes_percent, held_seconds_percent) as percent from held)
select fullest.*, percent >= critical_percent as critical
from fullest join limits using (namespace) where percent >= warning_percent
"""


def _held(row: Row) -> str:
    by_size = (row["held_bytes_percent"] or 0) >= (row["held_seconds_percent"] or 0)
    policy, whose = row["bytes_policy" if by_size else "seconds_policy"], counted(row["producers"] or 0, "producer")
    if row["percent"] < FULL_PERCENT:
        outlook = f"if it is exceeded by then, an unload or restart leaves its {whose} unable to connect"
    elif not row["producers"]:
        outlook = "no producer is connected, and none can until the backlog is down; an unload does not change that"
    else:
        outlook = f"its {whose} cannot connect again after an unload or restart until the backlog is down"
    if not by_size and row["seconds_percent"] is None:
        used = (
            f"By what comes in, the oldest message of the backlog is"
            f" {seconds_in_words(row['estimated_seconds'], rounded=True)} old, {row['estimated_percent']:,} % of the"
            f" age quota of {seconds_in_words(row['limit_seconds'], rounded=True)}; its broker knows only once its"
            f" ledger is closed, as by an unload, and shuts producers out then ({policy})"
        )
        return f"{used}.{slowest_words(row)}"
    return f"{quota_used(row, by_size=by_size)} ({policy}); {outlook}.{slowest_words(row)}"


# Judges by the fuller of the quotas that block producers.
PRODUCER_HOLD_RESTART_RISK = RowCheck(
    check_id="producer-hold-restart-risk",
    harm=Harm.AT_RESTART,
    beware={Harm.AT_RESTART: NO_RESTART},
    explained_by=("backlog-near-quota", *KEEPS_A_BACKLOG),
    order=60,
    title="A restart or an unload would leave a topic's producers unable to connect",
    advice=(
        "Restart no broker and unload or split no bundle that holds this topic until its backlog is down.",
        "Bring the backlog down: more or faster consumers, or mend the replication or compaction that holds it.",
        (
            "If a restart cannot wait, raise the quota below the retention:"
            " `pulsar-admin topics set-backlog-quota TOPIC -l LIMIT -p POLICY`."
        ),
        "Never lower the quota of a topic in this state.",
    ),
    source="docs/checks/producer-hold-restart-risk.md",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
    policy=ProducerHoldRestartRiskPolicy,
    shards={
        "found": Query(HELD, worst_first="critical desc, percent desc, producers desc, topic", detail=CULPRITS),
        "policies_unread": policies_not_read("warning_percent"),
        # The policy of a topic's own age quota is not known here either.
        "ages_unread": ages_not_read(f"({holds_producers('seconds_policy')} or seconds_policy is null)"),
    },
    cluster={"defaults": DEFAULTS},
    severity=critical_or_warning,
    subject="topic",
    evidence=_held,
    figures=figures,
    missing=(defaults_known("limit_bytes", "limit_seconds", "policy"), unknown_policies, unknown_ages),
    quiet="No topic is near a quota that shuts producers out.",
)


MAX_OVER = 10_000
"""Number of topics over their quota that are examined, the fullest first."""

MAX_MESSAGE = "maxMessageSize"

_DEFAULT_MAX_MESSAGE_BYTES = int(default_number(MAX_MESSAGE))
_BATCH_BYTES = 128 * KIB
"""Size at which clients close a batch by default (`batchingMaxBytes`)."""

_MARGIN = 10
"""Factor by which the entries of a backlog may have been larger than present entries."""


class QuotaStuckPolicy(Section):
    """Thresholds for quotas that count storage outside the backlog of every subscription."""

    most_bytes_per_entry: int = number(
        MIB, "a backlog with more an entry is implausible, where the topic's own figures do not tell better"
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

# Per topic: the largest backlog of a cursor in entries, the most messages of one entry, and all ack holes.
HOLDING = """
with subscribed as (
    select topic, max(messages_per_entry) as messages_per_entry, sum(ack_holes)::bigint as ack_holes
    from subscriptions semi join worst using (topic) group by topic),
held as (select topic, max(entries) as entries from backlogs semi join worst using (topic) group by topic)
select worst.* replace (coalesce(producers, 0) as producers), messages_per_entry,
    coalesce(entries, 0) as entries, coalesce(ack_holes, 0) as ack_holes
from worst left join subscribed using (topic) left join held using (topic)
"""

# An entry is a message or a batch, and never larger than `maxMessageSize` (the largest value of all brokers, as topics
# move). Its size is estimated from the present traffic, with a margin; if that is unknown, by a rule of thumb.
STUCK = f"""
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
select compared.*, coalesce(n.deduplicated, true) as deduplicated,
    impossible and ack_holes = 0 and producers = 0 and not coalesce(n.deduplicated, true) as trouble
from compared left join deduplication n using (namespace) where by_size or by_age
"""

SHUT_OUT = f"""
select count(*) as topics from ages_not_read
where ({holds_producers("seconds_policy")} or seconds_policy is null) and coalesce(producers, 0) = 0
"""


def _stuck(row: Row) -> str:
    count = row["producers"]
    if row["ack_holes"]:
        holes = counted(row["ack_holes"], "ack hole")
        likely = f"{holes}: a message that is not acknowledged may hold all that follow it"
    elif row["deduplicated"]:
        likely = f"the cursor of deduplication may hold it; if so, {unexplained().remedy}"
    elif row["by_size"]:
        likely = "another cursor may hold it, or the quota is stuck"
    else:
        likely = "the broker's figure may be left over from before the backlog was consumed"
    producers = f"{counted(count, 'producer')} {'is' if count == 1 else 'are'} still connected."
    return (
        f"{quota_used(row, by_size=row['by_size'])}, but the largest backlog of a known cursor is"
        f" {counted(row['entries'], 'entry', 'entries')}, which {_explained(row)}; {likely}."
        f" {producers if count else 'No producer is connected, as after being shut out.'} Indirect: see stats-internal."
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


# The evidence is indirect: a snapshot shows that the quota's figures and the subscriptions' figures disagree, not why.
# The cursor of deduplication is known for drilled topics only.
# Critical if there is no other explanation, and no figure that contradicts.
QUOTA_STUCK = RowCheck(
    check_id="quota-stuck",
    headlines={Harm.CUT_OFF: "PRODUCERS CUT OFF, by no backlog"},
    beware={Harm.CUT_OFF: "Do not lower the quota."},
    harm=by_severity(Harm.CUT_OFF, Harm.SOON),
    order=110,
    title="A quota shuts producers out though no backlog explains it",
    advice=(
        "Look at every cursor, also those of no subscription: `pulsar-admin topics stats-internal TOPIC`.",
        "If that is pulsar.dedup, wait for its next snapshot (brokerDeduplicationSnapshotIntervalSeconds).",
        "If a subscription holds a single unacknowledged message in front of others, have it consumed or skip it.",
        "Only if no cursor holds anything, which cures it for a while: `pulsar-admin topics unload TOPIC`.",
        "As a stopgap raise the quota: `pulsar-admin topics set-backlog-quota TOPIC -l LIMIT -p POLICY`.",
    ),
    source="docs/checks/quota-stuck.md; apache/pulsar#15609, apache/pulsar#8184",
    scope=Scope.NAMESPACE,
    policy=QuotaStuckPolicy,
    shards={
        "over_quota": Query(OVER, worst_first="percent desc, topic", most=MAX_OVER, detail=HOLDING),
        "policies_unread": policies_not_read("100"),
        "shut_out": Query(SHUT_OUT),
    },
    cluster={
        "found": Query(STUCK, worst_first="trouble desc, producers, backlog_bytes desc, topic"),
        "defaults": DEFAULTS,
    },
    severity=lambda row: Severity.CRITICAL if row["trouble"] else Severity.WARNING,
    subject="topic",
    evidence=_stuck,
    figures=lambda row: (
        figures(row)
        | {
            "ack_holes": row["ack_holes"],
            "backlog_entries": row["entries"],
            "plausible_bytes_per_entry": row["plausible_bytes"],
        }
    ),
    missing=(
        defaults_known("limit_bytes", "limit_seconds", "policy"),
        unknown_policies,
        if_counted(  # topics that might be stuck by an age that was not read
            "shut_out",
            lambda count: (
                f"{counted(count, 'topic')} without producers {'is' if count == 1 else 'are'} under an age quota that"
                f" shuts them out, and {'its' if count == 1 else 'their'} age was not read."
            ),
        ),
        lambda queried, _context: (
            f"Of {counted(queried['over_quota'].count, 'topic')} over a quota that shuts producers out the fullest"
            f" {MAX_OVER:,} were looked at."
            if queried["over_quota"].more
            else None
        ),
    ),
    quiet="No quota shuts producers out without a backlog.",
)
