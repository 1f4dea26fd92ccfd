"""Subscriptions that stand still: they have messages and consumers, and nothing moves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import BROKERS_READ, Check, Judgement, LookBack, Query, Scope, grouped, nothing_read
from pulsar_steward.checks.clients.consumers import SLOWEST, consumers_words, named_subscription, subject_of
from pulsar_steward.checks.clients.holders import HOLDING, holders_of
from pulsar_steward.checks.clients.holders import LONGEST_FIRST as MOST_HELD_FIRST
from pulsar_steward.checks.clients.rates import SUBSCRIPTIONS_HELD
from pulsar_steward.checks.clients.standstill import (
    BEFORE,
    LONGEST_FIRST,
    MAX_ROWS,
    POSSIBLE,
    STANDING,
    Standstill,
    SubscriptionStalledPolicy,
)
from pulsar_steward.checks.clients.unserved import (
    MOST_READERS_FIRST,
    OLDEST_FIRST,
    OVERDUE,
    READERS,
    READERS_BEFORE,
    left_behind,
    overdue_words,
    readers_words,
)
from pulsar_steward.checks.earlier import EarlierRows, each_since, wider
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, seconds_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.checks.check import CheckContext, Queried, Row


HELD_UP = f"select found.*, held from ({SLOWEST}) found left join {SUBSCRIPTIONS_HELD} using (topic, subscription)"
"""Adds `slowest`, and `held`: the dispatch rate that held a subscription back; null: none did."""

MAX_CONSUMERS = 1000
"""Number of consumers that are examined, the ones with most unacknowledged messages first."""

STUCK_COLUMNS = ("topic", "subscription", "consumer", "address", "connected_since", "unacked_messages")
"""Columns that identify a consumer with the same messages: a working consumer rarely has the same number twice."""

# Only consumers that the snapshot names. On Exclusive and Failover subscriptions one consumer gets everything: if it is
# stuck, all stands still.
STUCK = """
select topic, subscription, consumer, address, connected_since, c.unacked_messages, s.namespace, s.type,
    coalesce(c.available_permits, 0) as permits, false as blocked, s.consumers, s.consumers_stuck,
    s.entries_since_first_gap as entries, floor($now)::bigint - rested_since_milliseconds // 1000 as rested_seconds
from clients c left join clients_holders using (topic, subscription, consumer, address, connected_since)
    join user_subscriptions s using (topic, subscription) join limits on limits.namespace = s.namespace
where c.unacked_messages >= minimum_held_messages and c.available_permits <= 0 and c.message_rate_out <= 0
    and c.ack_rate <= 0 and not coalesce(c.blocked, false) and s.consumers_stuck > 0 and s.consumers_stuck < s.consumers
    and coalesce(s.type, 'Shared') not in ('Exclusive', 'Failover')
"""

MOST_FIRST = "unacked_messages desc, topic, subscription, consumer, address, connected_since"

STUCK_BEFORE = """
with gaps as (
    select topic, subscription, max(entries_since_first_gap) as entries
    from raw_subscriptions semi join stuck using (topic, subscription) group by topic, subscription)
select topic, subscription, consumer, address, connected_since, unacked_messages, entries
from raw_clients
    semi join stuck using (topic, subscription, consumer, address, connected_since, unacked_messages)
    left join gaps using (topic, subscription)
where available_permits <= 0 and message_rate_out <= 0 and ack_rate <= 0
"""
"""Consumers that were already stuck in an earlier snapshot, with the same number of messages."""


@dataclass(frozen=True)
class StuckConsumers:
    """Rows of `STUCK` of one subscription, those with most messages first, and rows of earlier snapshots."""

    rows: tuple[Row, ...]
    limits: SubscriptionStalledPolicy
    before: EarlierRows

    @property
    def count(self) -> int:
        """Number of stuck consumers, named or not."""
        return max(int(self.rows[0]["consumers_stuck"]), len(self.rows))

    @property
    def held(self) -> int:
        """Unacknowledged messages of the named consumers."""
        return sum(row["unacked_messages"] for row in self.rows)

    @cached_property
    def alike(self) -> list[Row]:
        """Consecutive snapshots with the consumer that has been stuck longest, the newest first."""
        return max((self.before.in_a_row(row, self._no_fewer) for row in self.rows), key=len)

    @staticmethod
    def _no_fewer(newer: Row, older: Row) -> bool:
        """True if the first unacknowledged entry may be the same: the number of entries read behind it only grows."""
        return newer["entries"] is None or older["entries"] is None or newer["entries"] >= older["entries"]

    @property
    def since_seconds(self) -> int | None:
        """Minimum time for which a consumer has been stuck, by its topic or by snapshots; None: not known."""
        if self.told_seconds is not None:
            return self.told_seconds
        return self.before.lasted_seconds(self.alike) if self.alike else None

    @property
    def told_seconds(self) -> int | None:
        """The same, by the topic's own times; None: it was not asked."""
        return max((row["rested_seconds"] for row in self.rows if row["rested_seconds"] is not None), default=None)

    @property
    def severity(self) -> Severity | None:
        """Severity by duration and number; None: it worked a short while ago, for example if a consumer pauses."""
        since = self.since_seconds
        if since is None:
            lately = self.before.looked_within(self.rows[0], 2 * self.limits.warning_minutes)
            return None if lately else Severity.INFO
        if self.told_seconds is not None and since < 60 * self.limits.warning_minutes:
            return None
        many = self.count * 100 >= self.rows[0]["consumers"] * self.limits.warning_stuck_percent
        least = self.limits.warning_minutes if many else self.limits.critical_minutes
        return Severity.WARNING if since >= 60 * least else Severity.INFO

    @property
    def evidence(self) -> str:
        """Evidence in a sentence."""
        row, named = self.rows[0], consumers_words(self.rows)
        since = "since when is not known; a pause would look the same"
        if self.told_seconds is not None:
            since = f"for {seconds_in_words(self.told_seconds, rounded=True)}, by the topic's own times"
        elif self.alike:
            since = f"with as many messages {each_since(self.alike)} too"
        return (
            f"{self.count:,} of the {counted(row['consumers'], 'consumer')} of {named_subscription(row)}"
            f" {'is' if self.count == 1 else 'are'} stuck, holding"
            f" {counted(self.held, 'unacknowledged message')}: no permits left, nothing delivered and nothing"
            f" acknowledged in the last minute ({since}): {named}."
        )

    @property
    def figures(self) -> dict[str, int]:
        """Figures of the evidence."""
        since = {} if self.since_seconds is None else {"since_seconds": self.since_seconds}
        return {
            "consumers": self.rows[0]["consumers"],
            "consumers_stuck": self.count,
            "unacked_messages": self.held,
        } | since


def _looked_back_minutes(limits: SubscriptionStalledPolicy) -> int:
    return wider(limits.critical_minutes)


def judge(queried: Queried, context: CheckContext[SubscriptionStalledPolicy]) -> Judgement:
    """Judges by the duration of the standstill, from the topic's own statistics or from earlier snapshots."""
    before = EarlierRows.of(queried["before"], context, _looked_back_minutes, "topic", "subscription")
    holders = {
        subject_of(each.rows[0]): each
        for each in holders_of(queried["holding"].rows, 1000 * context.about.taken_at.timestamp())
    }
    found = []
    for row in (*queried["standing"].rows, *queried["possible"].rows):
        still = Standstill(row, context.limits_of(row["namespace"]), context.policy.collect.recent_minutes, before)
        if still.severity is not None:
            holder = holders.get(subject_of(row))
            evidence = f"{still.evidence} {holder.evidence}" if holder else still.evidence
            found.append((_finding(row, still.severity, evidence, still.figures), row["messages"]))
    found.extend(
        (_finding(each.rows[0], Severity.WARNING, each.evidence, each.figures), each.rows[0]["held"])
        for each in holders.values()
    )
    before = EarlierRows.of(queried["stuck_before"], context, _looked_back_minutes, *STUCK_COLUMNS)
    stuck = (
        StuckConsumers(tuple(rows), context.limits_of(rows[0]["namespace"]), before)
        for rows in grouped(queried["stuck"].rows, "topic", "subscription").values()
    )
    found.extend(
        (_finding(each.rows[0], each.severity, each.evidence, each.figures), each.held)
        for each in stuck
        if each.severity is not None
    )
    found.extend(_unserved(queried, context))
    worst: dict[str, tuple[Finding, int]] = {}
    for finding, messages in found:
        if finding.subject not in worst or worst[finding.subject][0].severity.rank < finding.severity.rank:
            worst[finding.subject] = finding, messages
    most_first = sorted(worst.values(), key=lambda each: (-each[1], each[0].subject))
    too_many = (
        f"More than {MAX_ROWS:,} subscriptions may stand still with few entries due; the {MAX_ROWS:,} that were looked"
        " up do not."
    )
    return Judgement(
        findings=tuple(finding for finding, _ in most_first),
        more=queried["standing"].more,
        quiet=context.in_each_part(
            lambda limits: (
                f"No subscription with consumers and {limits.minimum_due_messages:,} or more due messages stands still."
            )
        ),
        cannot_tell=nothing_read(queried) or (too_many if queried["possible"].more else None),
    )


def _unserved(queried: Queried, context: CheckContext[SubscriptionStalledPolicy]) -> Iterator[tuple[Finding, int]]:
    for row in queried["overdue"].rows:
        figures = {"delayed_messages": row["delayed_messages"], "oldest_seconds": row["age_seconds"]}
        yield _finding(row, Severity.WARNING, overdue_words(row), figures), row["delayed_messages"]
    before = EarlierRows.of(queried["readers_before"], context, _looked_back_minutes, "topic")
    for row in queried["readers"].rows:
        if alike := left_behind(row, before):
            figures = {"due_entries": row["backlog_entries"], "readers": row["readers"]}
            evidence = readers_words(row, alike)
            found = CHECK.finding(severity=Severity.WARNING, subject=row["topic"], evidence=evidence, figures=figures)
            yield found, row["backlog_entries"]


def _finding(row: Row, severity: Severity, evidence: str, figures: dict[str, int]) -> Finding:
    return CHECK.finding(severity=severity, subject=subject_of(row), evidence=evidence, figures=figures)


CHECK = Check(
    check_id="subscription-stalled",
    harm=Harm.SLOW,
    explained_by=("subscription-blocked", "limit-reached"),
    order=20,
    title="A subscription with a backlog and consumers stands still",
    advice=(
        "Where a dispatch rate held it back: ask who set that limit, and raise it; the consumers are well.",
        "Look at the consumers that the evidence names, on their hosts: a thread dump shows where their handlers hang.",
        "No permits left: the client is not asking for more, its handlers are stuck or its receiver queue is full.",
        "Permits left: the broker does not dispatch; see `pulsar-admin topics stats-internal TOPIC` and its log.",
        "Delivered again and again: give the consumer a dead letter topic, and read why its handler fails.",
        "How often a message was delivered is forgotten with each move of its topic and each reconnect.",
        "Consumers that come and go: look at their hosts for restarts, and at the message that ends them.",
        "Close or restart the consumer that is stuck first: what it holds goes to the others.",
        "Unload the topic last, and only when its ack holes are few (ack-holes).",
    ),
    source="docs/knowledge.md C; docs/checks/subscription-stalled.md; apache/pulsar#14337",
    scope=Scope.NAMESPACE,
    policy=SubscriptionStalledPolicy,
    shards={
        "standing": Query(STANDING, worst_first=LONGEST_FIRST, most=MAX_ROWS, detail=HELD_UP),
        "possible": Query(POSSIBLE, worst_first=LONGEST_FIRST, most=MAX_ROWS, detail=HELD_UP),
        "holding": Query(HOLDING, worst_first=MOST_HELD_FIRST, most=MAX_CONSUMERS),
        "stuck": Query(STUCK, worst_first=MOST_FIRST, most=MAX_CONSUMERS),
        "overdue": Query(OVERDUE, worst_first=OLDEST_FIRST),
        "readers": Query(READERS, worst_first=MOST_READERS_FIRST),
    },
    earlier={
        "before": LookBack(minutes=_looked_back_minutes, sql=BEFORE),
        "stuck_before": LookBack(minutes=_looked_back_minutes, sql=STUCK_BEFORE),
        "readers_before": LookBack(minutes=_looked_back_minutes, sql=READERS_BEFORE),
    },
    cluster={"read": BROKERS_READ},
    judge=judge,
)
