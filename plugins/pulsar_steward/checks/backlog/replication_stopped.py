"""Replication to another cluster that stopped silently, falls further behind, or would be lost by loading a topic."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.quotas import holds_producers
from pulsar_steward.checks.check import BROKERS_READ, Check, Judgement, LookBack, Query, Scope, nothing_read
from pulsar_steward.checks.earlier import APART_SECONDS, MIN_EARLIER, EarlierRows, each_since, may_expire, rests, wider
from pulsar_steward.checks.views import SqlView
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.pulsar_versions import drops_unsent, who_drops_unsent
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.subscription import DEDUPLICATION, replicator_to
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row


class ReplicationStoppedPolicy(Section):
    """Thresholds for replication to another cluster that stands still or falls behind."""

    warning_minutes: int = number(
        10, "over which snapshots show a topic disconnected, or sending nothing; shorter: information"
    )
    critical_minutes: int = number(60, "the same, when no restart of the other cluster explains it")
    minimum_entries: int = number(
        100,
        "that wait while the topic is connected and nothing is sent: an open transaction holds back a few;"
        " disconnected, one that waits is enough",
    )
    minimum_entries_behind: int = number(100_000, "that queue up where something is sent, but less than is published")
    behind_minutes: int = number(60, "over which the queue has to have grown in each snapshot, and doubled in all")


MAX_ROWS = 1000
"""Maximum number of topics whose earlier snapshots are read, the largest replication backlogs first."""

MAX_BATCH = 1000
"""Messages in an entry if no consumer shows the number: the default maximum of a client's batch."""

KEYS = ("topic", "remote")

_SHAPE = (
    '[{"cluster": "VARCHAR", "connected": "BOOLEAN", "backlog_entries": "BIGINT", "message_rate_out": "DOUBLE",'
    ' "expired_rate": "DOUBLE", "delay_seconds": "BIGINT", "inbound": "BOOLEAN", "message_rate_in": "DOUBLE"}]'
)

_TOLD = """
select topic, message_rate_in, {more} told.cluster as remote, told.connected,
    coalesce(told.backlog_entries, 0) as backlog_entries, told.message_rate_out, told.expired_rate,
    told.delay_seconds, told.inbound, told.message_rate_in as inbound_rate
from (
    select *, unnest(json_transform(case when json_valid(replication_json) then replication_json end, '{shape}'))
        as told
    from {topics} where replication_json is not null)
"""

_HOLDING = SqlView(
    "backlogs",
    f"""
    select topic, namespace, subscription as holder, backlog_entries as entries
    from subscriptions where backlog_entries > 0
    union all select topic, namespace, '{replicator_to("")}' || remote, backlog_entries
    from replicators where backlog_entries > 0
    union all select topic, namespace, '{DEDUPLICATION}', max(deduplication_entries)
    from drilled where deduplication_entries > 0 group by topic, namespace""",
)

VIEWS = (SqlView("replicators", _TOLD.format(more="namespace, broker,", shape=_SHAPE, topics="user_topics")), _HOLDING)
"""Views: `replicators` has one row for each user topic and remote cluster, as the owner reports it."""

BACKLOGS = (SqlView("replicators", _TOLD.format(more="namespace,", shape=_SHAPE, topics="topics")), _HOLDING)
"""Views of a snapshot: `backlogs` has a row for each topic and cursor with entries left to consume, its `holder`."""

_SHUTS_OUT = " or ".join(
    f"({holds_producers(f'p.{each}_policy')} and p.{each}_percent >= 100)" for each in ("bytes", "seconds")
)

# An entry may be a batch of messages. Its size is known only from recent deliveries to consumers of the topic.
WAITING = f"""
with sizes as (
    select topic, max(messages_per_entry) as messages_per_entry from subscriptions
    where messages_per_entry > 0 group by topic),
replicated as (
    select namespace, coalesce(json_extract_string(policies_json, '$.replication_clusters[*]'), []) as remotes
    from namespaces where json_valid(policies_json))
select r.topic, r.namespace, r.broker, remote, connected, r.backlog_entries, r.message_rate_out, expired_rate,
    r.message_rate_in, messages_per_entry, coalesce(({_SHUTS_OUT}), false) as shuts_out, b.pulsar_version,
    coalesce(not list_contains(remotes, remote), false) as by_itself
from replicators r join limits using (namespace) left join sizes using (topic) left join pressed p using (topic)
    left join replicated on replicated.namespace = r.namespace left join brokers b on b.broker = r.broker
where (connected = false and r.backlog_entries > 0) or r.backlog_entries >= minimum_entries_behind
    or ((r.message_rate_out <= 0 or not list_contains(remotes, remote)) and r.backlog_entries >= minimum_entries)
"""
"""Topics with a replication backlog for a remote cluster that may not receive it.

`by_itself` is true if a policy of the topic itself replicates it there, and its namespace's does not.
"""

MOST_FIRST = "connected = false desc, backlog_entries desc, topic, remote"

REMOTES = """
select namespace, remote, count(*) as topics, count_if(coalesce(message_rate_out, 0) > 0) as flowing,
    count_if(message_rate_out is null and connected is distinct from false and backlog_entries >= minimum_entries)
        as unknown
from replicators join limits using (namespace) group by namespace, remote
"""
"""Topics that a namespace replicates to each cluster, how many of them send something, and of how many nobody knows."""

BEFORE = f"""
select told.* from ({_TOLD.format(more="", shape=_SHAPE, topics="raw_topics")}) told
    semi join waiting using (topic, remote)
"""
"""The same topics in an earlier snapshot."""


@dataclass(frozen=True)
class Replicator:
    """A row of `WAITING`, replication of a topic.

    Attributes:
        row: The row.
        limits: The limits in force for it.
        before: Rows of earlier snapshots.
        others_flow: True if other topics of the namespace are sent to the same cluster: no pause explains this one.
    """

    row: Row
    limits: ReplicationStoppedPolicy
    before: EarlierRows
    others_flow: bool = False

    @cached_property
    def stood(self) -> list[Row]:
        """Consecutive earlier snapshots in which replication stood still too, the newest first."""
        if not _stands(self.row) or self._sent_lately:
            return []
        return self.before.in_a_row(self.row, _stood_still)

    @cached_property
    def grew(self) -> list[Row]:
        """Consecutive earlier snapshots with a smaller backlog at each step back, the newest first."""
        return self.before.in_a_row(
            self.row,
            lambda newer, older: bool(0 < older["backlog_entries"] < newer["backlog_entries"]),
            apart_seconds=APART_SECONDS,
        )

    @property
    def disconnected(self) -> bool:
        """True if the owner has no producer in the remote cluster."""
        return self.row["connected"] is False

    @property
    def stands_still(self) -> bool:
        """True if replication was disconnected, or sent nothing, for longer than a restart or a pause explains."""
        rows = self.stood
        enough = 1 if self.disconnected or self.others_flow else MIN_EARLIER
        return len(rows) >= enough and self.before.lasted_seconds(rows) >= 60 * self.limits.warning_minutes

    @property
    def falls_behind(self) -> bool:
        """True if the backlog is large, has grown at every step for long, and has at least doubled."""
        rows = self.grew
        return (
            self.row["backlog_entries"] >= self.limits.minimum_entries_behind
            and len(rows) > MIN_EARLIER
            and self.before.lasted_seconds(rows) >= 60 * self.limits.behind_minutes
            and self.row["backlog_entries"] >= 2 * rows[-1]["backlog_entries"]
        )

    @property
    def shuts_out(self) -> bool:
        """True if it sends nothing, and the quota that it fills shuts the topic's producers out."""
        return bool(self.row["shuts_out"]) and _stands(self.row)

    @property
    def lost_when_loaded(self) -> bool:
        """True if its version of Pulsar drops, or may drop, what waits once the topic is loaded anew."""
        many, version = self.row["backlog_entries"] >= self.limits.minimum_entries, self.row["pulsar_version"]
        return bool(self.row["by_itself"]) and many and bool(version) and drops_unsent(version)

    @cached_property
    def severity(self) -> Severity | None:
        """Severity; None: nothing to report, or not yet."""
        if self.shuts_out:
            return Severity.CRITICAL
        if self.stands_still:
            long = self.before.lasted_seconds(self.stood) >= 60 * self.limits.critical_minutes
            return Severity.CRITICAL if long else Severity.WARNING
        if self.falls_behind or self.lost_when_loaded:
            return Severity.WARNING
        return Severity.INFO if self.disconnected else None

    @property
    def rows(self) -> Sequence[Row]:
        """Earlier snapshots that justify the severity, the newest first."""
        return self.stood if self.stands_still or self.disconnected or self.shuts_out else self.grew

    @property
    def _sent_lately(self) -> bool:
        """True if something was sent: the backlog grew by less than was published since the last snapshot.

        The last snapshot of another minute counts. Without this, replication would seem to stand still in two cases. A
        job may publish only when snapshots are taken. A topic may get only messages from the other cluster: these are
        not sent back, and count for no rate.
        """
        _, older = next(self.before.told(self.row, apart_seconds=APART_SECONDS), (None, None))
        rate = self.row["message_rate_in"] or 0
        if self.disconnected or older is None or rate <= 0 or may_expire(self.row):
            return False
        added = self.row["backlog_entries"] - older["backlog_entries"]
        published = rate * self.before.seconds_since(older["taken_at"]) / (self.row["messages_per_entry"] or MAX_BATCH)
        return bool(2 * added < published)


def _stands(row: Row) -> bool:
    return row["backlog_entries"] > 0 and (row["connected"] is False or rests(row, "message_rate_out"))


def _stood_still(newer: Row, older: Row) -> bool:
    """True if an earlier snapshot shows it standing still, and only expiry has reduced the backlog since."""
    expired = may_expire(newer) or may_expire(older)
    return _stands(older) and (expired or older["backlog_entries"] <= newer["backlog_entries"])


def oldest(replicators: Sequence[Replicator]) -> Sequence[Row]:
    """Earlier snapshots of the replicator that has been in this state for longest."""
    return max((each.rows for each in replicators), key=len, default=())


Remote = tuple[str, str]
"""A namespace and one of the clusters that it is replicated to."""


def _looked_back_minutes(limits: ReplicationStoppedPolicy) -> int:
    return wider(max(limits.critical_minutes, limits.behind_minutes))


def judge(queried: Queried, context: CheckContext[ReplicationStoppedPolicy]) -> Judgement:
    """One finding for each namespace and remote cluster, as their topics stop together; the worst first."""
    topics: dict[Remote, int] = defaultdict(int)
    flowing: dict[Remote, int] = defaultdict(int)
    for row in queried["remotes"].rows:
        topics[row["namespace"], row["remote"]] += row["topics"]
        flowing[row["namespace"], row["remote"]] += row["flowing"]
    before = EarlierRows.of(queried["before"], context, _looked_back_minutes, *KEYS)
    troubled: dict[Remote, list[Replicator]] = defaultdict(list)
    for row in queried["waiting"].rows:
        remote = row["namespace"], row["remote"]
        each = Replicator(row, context.limits_of(row["namespace"]), before, flowing[remote] > 0)
        if each.severity is not None:
            troubled[remote].append(each)
    found = [_finding(remote, theirs, topics[remote], flowing[remote]) for remote, theirs in troubled.items()]
    if found:
        found.sort(key=lambda each: (-each.severity.rank, -each.figures["entries"], each.subject))
        return Judgement(findings=tuple(found))
    sent = counted(sum(topics.values()), "topic sends", "topics send")
    unknown = sum(row["unknown"] for row in queried["remotes"].rows)
    too_many = (
        f"Of more than {MAX_ROWS:,} topics something waits for other clusters; the {MAX_ROWS:,} looked up are well."
    )
    return Judgement(
        quiet=f"Nothing stands still of what {sent} to others."
        if topics
        else "No topic is replicated to another cluster.",
        cannot_tell=nothing_read(queried)
        or (too_many if queried["waiting"].more else None)
        or (f"Whether anything is sent of {counted(unknown, 'topic')}, brokers do not tell." if unknown else None),
    )


def _finding(remote: Remote, suspects: Sequence[Replicator], topics: int, flowing: int) -> Finding:
    worst = max((each.severity or Severity.INFO for each in suspects), key=lambda each: each.rank)
    troubled = [each for each in suspects if worst is Severity.INFO or each.severity is not Severity.INFO]
    entries = sum(each.row["backlog_entries"] for each in troubled)
    longest = oldest(troubled)
    return CHECK.finding(
        severity=worst,
        subject=" to ".join(remote),
        evidence=_evidence(remote, troubled, topics, entries)
        + _flows(remote, troubled, flowing)
        + _lost_when_loaded(remote, troubled),
        figures={
            "disconnected_topics": sum(each.disconnected for each in troubled),
            "entries": entries,
            "replicated_topics": topics,
            "shut_out_topics": sum(each.shuts_out for each in troubled),
            "since_seconds": troubled[0].before.lasted_seconds(longest) if longest else 0,
            "topics": len(troubled),
        },
    )


def _flows(remote: Remote, troubled: Sequence[Replicator], flowing: int) -> str:
    """Further sentence where other topics are sent: the link and the other cluster are well then."""
    if not flowing or any((each.row["message_rate_out"] or 0.0) > 0 for each in troubled):
        return ""
    have = counted(flowing, "other topic is", "other topics are")
    return f" {have} sent to {remote[1]}: the way there is open, and unloading a topic that stands still may free it."


def _lost_when_loaded(remote: Remote, troubled: Sequence[Replicator]) -> str:
    """Further sentence where an unload loses what waits."""
    lost = [each.row for each in troubled if each.lost_when_loaded]
    if not lost:
        return ""
    have, it = ("1 topic is", "its bundle") if len(lost) == 1 else (f"{len(lost):,} topics are", "their bundles")
    return (
        f" {have} replicated by a topic-level policy alone, as the namespace's does not name {remote[1]}:"
        f" {who_drops_unsent(lost[0]['pulsar_version'])} drops what waits when such a topic is loaded anew. Until"
        f" all is sent, do not unload, move or split {it}, and do not restart {lost[0]['broker']}."
    )


def _evidence(remote: Remote, troubled: Sequence[Replicator], topics: int, entries: int) -> str:
    namespace, cluster = remote
    still = [each for each in troubled if each.stands_still or each.disconnected or each.shuts_out]
    slow = sum(each.falls_behind for each in troubled if each not in still)
    disconnected = sum(each.disconnected for each in still)
    nothing = f"nothing is sent of {len(still):,} ({disconnected:,} disconnected)" if still else ""
    less = f"of {slow:,} less is sent than is published" if slow else ""
    longest, first = oldest(troubled), "" if len(troubled) == 1 else "of the first of them "
    since = f"{first}{each_since(longest)}" if longest else "which no earlier snapshot shows: it may just have begun"
    most = max(troubled, key=lambda each: (each.row["backlog_entries"], each.row["topic"])).row
    expired = any((each.row["expired_rate"] or 0.0) > 0 for each in troubled)
    waits = counted(entries, "entry waits", "entries wait")
    state = f"{waits} to be sent from {namespace} to the cluster {cluster}"
    if still or slow:
        state = (
            f"Of {counted(topics, 'topic')} that {namespace} replicates to the cluster {cluster},"
            f" {' and '.join(filter(None, (nothing, less)))}, {since}. {waits} for it"
        )
    return (
        f"{state}, the most, {most['backlog_entries']:,}, of {most['topic']} on {most['broker']}."
        + (
            f" Their backlog fills a quota, which shuts out the producers of {counted(out, 'topic')}."
            if (out := sum(each.shuts_out for each in troubled))
            else ""
        )
        + (f" Messages expire before they are sent: {cluster} never gets them." if expired else "")
    )


CHECK = Check(
    check_id="replication-stopped",
    harm=Harm.SLOW,
    order=25,
    title="Replication to another cluster stands still or falls behind",
    advice=(
        "See whether the other cluster is there, and whether brokers reach it: `pulsar-admin clusters get CLUSTER`.",
        "Read the owner's log for the replicator's name: authorization, a full quota there, a schema that is refused.",
        "Disconnected although the other cluster is well: unload one topic, and see whether its backlog falls.",
        "Sending too little: look at the replicator's dispatch rate, and at the latency between the clusters.",
        "Mind expiry, quotas and disks meanwhile: what waits is kept here, and what expires never gets there.",
        "Replicated by a topic's own policy alone: name the cluster in the namespace's policy, then upgrade.",
    ),
    source="docs/knowledge.md F; docs/checks/replication-stopped.md",
    scope=Scope.NAMESPACE,
    policy=ReplicationStoppedPolicy,
    shards={"waiting": Query(WAITING, worst_first=MOST_FIRST, most=MAX_ROWS), "remotes": Query(REMOTES)},
    earlier={"before": LookBack(minutes=_looked_back_minutes, sql=BEFORE)},
    cluster={"read": BROKERS_READ},
    judge=judge,
)
