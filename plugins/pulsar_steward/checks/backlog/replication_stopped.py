"""Replication to another cluster that stopped silently, or falls further and further behind."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.replicators import (
    BEFORE,
    KEYS,
    MAX_ROWS,
    MOST_FIRST,
    REMOTES,
    WAITING,
    ReplicationStoppedPolicy,
    Replicator,
    oldest,
)
from pulsar_steward.checks.check import Check, Judgement, LookBack, Question, Scope
from pulsar_steward.checks.earlier import EarlierRows, each_since, wider
from pulsar_steward.checks.unread import BROKERS_READ, nothing_read
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.checks.check import Answers, CheckAnswer, CheckContext

Remote = tuple[str, str]
"""A namespace and one of the clusters that it is replicated to."""


def _looked_back_minutes(limits: ReplicationStoppedPolicy) -> int:
    return wider(max(limits.critical_minutes, limits.behind_minutes))


def judge(answers: Answers, context: CheckContext[ReplicationStoppedPolicy]) -> Judgement:
    """One finding for each namespace and remote cluster, as their topics stop together; the worst first."""
    topics: dict[Remote, int] = defaultdict(int)
    for row in answers["remotes"].rows:
        topics[row["namespace"], row["remote"]] += row["topics"]
    troubled = _troubled(answers["waiting"], answers["before"], context)
    found = [_finding(remote, theirs, topics[remote]) for remote, theirs in troubled.items()]
    if found:
        found.sort(key=lambda each: (-each.severity.rank, -each.figures["entries"], each.subject))
        return Judgement(findings=tuple(found))
    return Judgement(
        quiet=_quiet(topics), cannot_tell=nothing_read(answers["read"]) or _too_many(answers["waiting"].more)
    )


def _troubled(
    waiting: CheckAnswer, earlier: CheckAnswer, context: CheckContext[ReplicationStoppedPolicy]
) -> Mapping[Remote, Sequence[Replicator]]:
    before = EarlierRows.of(earlier, context, _looked_back_minutes, *KEYS)
    found: dict[Remote, list[Replicator]] = defaultdict(list)
    for row in waiting.rows:
        each = Replicator(row, context.limits_of(row["namespace"]), before)
        if each.severity is not None:
            found[row["namespace"], row["remote"]].append(each)
    return found


def _finding(remote: Remote, suspects: Sequence[Replicator], topics: int) -> Finding:
    namespace, cluster = remote
    worst = max((each.severity or Severity.INFO for each in suspects), key=lambda each: each.rank)
    troubled = [each for each in suspects if worst is Severity.INFO or each.severity is not Severity.INFO]
    disconnected = sum(each.disconnected for each in troubled)
    entries = sum(each.row["backlog_entries"] for each in troubled)
    longest = oldest(troubled)
    return Finding(
        check_id=CHECK.check_id,
        severity=worst,
        subject=f"{namespace} to {cluster}",
        evidence=_evidence(remote, troubled, topics, entries),
        figures={
            "disconnected_topics": disconnected,
            "entries": entries,
            "replicated_topics": topics,
            "since_seconds": troubled[0].before.lasted_seconds(longest) if longest else 0,
            "topics": len(troubled),
        },
    )


def _evidence(remote: Remote, troubled: Sequence[Replicator], topics: int, entries: int) -> str:
    namespace, cluster = remote
    still = [each for each in troubled if each.stands_still or each.disconnected]
    slow = len(troubled) - len(still)
    disconnected = sum(each.disconnected for each in still)
    parts = []
    if still:
        parts.append(f"nothing is sent of {len(still):,} ({disconnected:,} disconnected)")
    if slow:
        parts.append(f"of {slow:,} less is sent than is published")
    longest = oldest(troubled)
    first = "" if len(troubled) == 1 else "of the first of them "
    begun = "which no earlier snapshot shows: it may just have begun"
    since = f", {first}{each_since(longest)}" if longest else f", {begun}"
    most = max(troubled, key=lambda each: (each.row["backlog_entries"], each.row["topic"])).row
    expired = any(each.row["expired_rate"] > 0 for each in troubled)
    return (
        f"Of {counted(topics, 'topic')} that {namespace} replicates to the cluster {cluster},"
        f" {' and '.join(parts)}{since}. {counted(entries, 'entry waits', 'entries wait')} for it, the most,"
        f" {most['backlog_entries']:,}, of {most['topic']} on {most['broker']}."
        + (f" Messages expire before they are sent: {cluster} never gets them." if expired else "")
    )


def _quiet(topics: Mapping[Remote, int]) -> str:
    if not topics:
        return "No topic is replicated to another cluster."
    return f"Nothing stands still of what {counted(sum(topics.values()), 'topic sends', 'topics send')} to others."


def _too_many(more: int) -> str | None:
    if not more:
        return None
    return f"Of more than {MAX_ROWS:,} topics something waits for other clusters; the {MAX_ROWS:,} looked up are well."


CHECK = Check(
    check_id="replication-stopped",
    order=25,
    title="Replication to another cluster stands still or falls behind",
    advice=(
        "See whether the other cluster is there, and whether brokers reach it: `pulsar-admin clusters get CLUSTER`.",
        "Read the owner's log for the replicator's name: authorization, a full quota there, a schema that is refused.",
        "Disconnected although the other cluster is well: unload one topic, and see whether its backlog falls.",
        "Sending too little: look at the replicator's dispatch rate, and at the latency between the clusters.",
        "Mind expiry, quotas and disks meanwhile: what waits is kept here, and what expires never gets there.",
    ),
    source="docs/knowledge.md F; docs/checks/replication-stopped.md",
    scope=Scope.NAMESPACE,
    policy=ReplicationStoppedPolicy,
    shards={
        "waiting": Question(WAITING, worst_first=MOST_FIRST, most=MAX_ROWS),
        "remotes": Question(REMOTES),
    },
    earlier={"before": LookBack(minutes=_looked_back_minutes, sql=BEFORE)},
    cluster={"read": BROKERS_READ},
    judge=judge,
)
