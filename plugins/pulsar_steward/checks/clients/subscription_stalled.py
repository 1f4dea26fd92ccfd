"""Subscriptions that stand still: they have messages and consumers, and nothing moves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import BROKERS_READ, Check, Judgement, LookBack, Query, Scope, grouped, nothing_read
from pulsar_steward.checks.clients.consumers import (
    MAX_NAMED,
    SLOWEST,
    consumers_words,
    named_subscription,
    subject_of,
    to_the_second,
)
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
from pulsar_steward.checks.earlier import EarlierRows, each_since, wider
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, seconds_in_words, time_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row


# Where one consumer gets everything, as on Exclusive and Failover subscriptions, all stands still if it does.
HOLDING = """
with delayed as (
    select topic, subscription, max(messages) as delayed
    from clients_delayed join user_subscriptions using (topic, subscription)
    where told_by is null or told_by = broker group by all),
resting as (
    select h.*, s.namespace, s.broker, s.type, s.consumers, greatest(s.backlog_entries, 0) as backlog_entries,
        greatest(s.backlog_entries - coalesce(delayed, 0), 0) as waiting,
        floor($now)::bigint - rested_since_milliseconds // 1000 as rested_seconds,
        holding_percent
    from clients_holders h join user_subscriptions s using (topic, subscription)
        join limits on limits.namespace = s.namespace
        left join delayed using (topic, subscription)
    where s.type in ('Shared', 'Key_Shared') and s.consumers > 1 and s.backlog_entries > 0
        and not coalesce(s.blocked_on_unacked, false) and coalesce(s.consumers_blocked, 0) = 0
        and h.unacked_messages >= minimum_holding_messages and rested_seconds >= 60 * holding_minutes),
holding as (
    select *, sum(unacked_messages) over (partition by topic, subscription)::bigint as held,
        sum(unacked_messages // greatest(messages_per_entry, 1)) over (partition by topic, subscription) as entries,
        sum(draining_hashes) over (partition by topic, subscription)::bigint as keys,
        sum(draining_messages) over (partition by topic, subscription)::bigint as of_keys
    from resting)
select topic, subscription, namespace, broker, type, consumers, backlog_entries, consumer, address, connected_since,
    unacked_messages, acked_milliseconds, consumed_milliseconds, rested_seconds, held, keys, of_keys,
    consumers_waiting
from holding
where entries * 100 >= holding_percent * waiting or keys > 0 or consumers_waiting > 0
"""
"""Consumers that together hold nearly all that waits of a subscription, or what others wait for."""

MOST_HELD_FIRST = "held desc, topic, subscription, unacked_messages desc, consumer, address, connected_since"


def keys_held_back(row: Row) -> str:
    """Clause on Key_Shared consumers that wait for others, from `keys`, `of_keys` and `consumers_waiting`."""
    if row["keys"]:
        keys, messages = counted(row["keys"], "hash", "hashes"), counted(row["of_keys"], "message is", "messages are")
        return (
            f"{keys} of its keys now belong to other consumers, which get none of them before {messages} acknowledged"
            " (drainingHashes)"
        )
    if row["consumers_waiting"]:
        waiting = counted(
            row["consumers_waiting"], "consumer that joined later gets", "consumers that joined later get"
        )
        return f"{waiting} nothing before these are acknowledged (consumersAfterMarkDeletePosition)"
    return ""


@dataclass(frozen=True)
class Holders:
    """Rows of `HOLDING` of one subscription, the consumers with most messages first."""

    rows: tuple[Row, ...]
    now_milliseconds: float

    @property
    def since_seconds(self) -> int:
        """Time for which all of them have got and acknowledged nothing."""
        return int(min(row["rested_seconds"] for row in self.rows))

    @property
    def evidence(self) -> str:
        """Evidence in a sentence."""
        row, count = self.rows[0], len(self.rows)
        others = row["consumers"] - count
        idle = f"the other {counted(others, 'consumer')}" if others != 1 else "the other consumer"
        held_back = keys_held_back(row)
        named = "; ".join(map(self._named, self.rows[:MAX_NAMED]))
        return (
            f"{count:,} of the {counted(row['consumers'], 'consumer')} of {named_subscription(row)} on {row['broker']}"
            f" {'holds' if count == 1 else 'hold'} {counted(row['held'], 'message')} of a backlog of"
            f" {counted(row['backlog_entries'], 'entry', 'entries')} and {'does' if count == 1 else 'do'} nothing, by"
            f" the topic's own times: {named}. {idle.capitalize()} cannot get these"
            f"{f'; {held_back}' if held_back else ''}. A message that takes as long would look the same."
        )

    def _named(self, row: Row) -> str:
        connected = f"connected since {to_the_second(row['connected_since'])}, " if row["connected_since"] else ""
        return (
            f"{row['consumer'] or '(without a name)'} at {row['address'] or '(address not told)'} ({connected}"
            f"{row['unacked_messages']:,} unacknowledged, last message {self._ago(row['consumed_milliseconds'])}, last"
            f" acknowledgement {self._ago(row['acked_milliseconds'])})"
        )

    def _ago(self, milliseconds: int) -> str:
        if not milliseconds:
            return "none since it connected"
        seconds = max(int((self.now_milliseconds - milliseconds) / 1000), 0)
        return f"{seconds_in_words(seconds, rounded=True)} before"

    @property
    def figures(self) -> dict[str, int]:
        """Figures of the evidence."""
        return {
            "consumers": self.rows[0]["consumers"],
            "consumers_stuck": len(self.rows),
            "unacked_messages": self.rows[0]["held"],
            "since_seconds": self.since_seconds,
        }


def holders_of(rows: Iterable[Row], now_milliseconds: float) -> Iterator[Holders]:
    """Groups rows of `HOLDING` by subscription."""
    for theirs in grouped(rows, "topic", "subscription").values():
        yield Holders(tuple(theirs), now_milliseconds)


STRICT = "isDelayedDeliveryDeliverAtTimeStrict"
"""Setting with which brokers deliver no earlier than at the time itself."""

# The age is that of the topic's slowest subscription, so it counts for no other one.
OVERDUE = f"""
with ages as (select topic, max(age_seconds) as age_seconds from delayed_backlog_ages group by topic),
slowest as (select topic, max(slowest_subscription) as slowest from drilled group by topic)
select w.topic, w.subscription, w.namespace, w.broker, w.delayed_messages, age_seconds, longest_delay_seconds,
    coalesce((select bool_or(lower(value) = 'true') from setting('{STRICT}')), false) as strict
from delayed_waiting w join user_subscriptions s using (topic, subscription) join topics t using (topic)
    join delayed_bounds b on b.namespace = w.namespace join limits l on l.namespace = w.namespace
    join ages using (topic) left join slowest using (topic)
where s.consumers > coalesce(s.consumers_without_permits, 0) and s.message_rate_out <= 0 and s.ack_rate <= 0
    and coalesce(s.unacked_messages, 0) <= 0 and w.delayed_messages >= s.backlog_entries
    and longest_delay_seconds > 0 and age_seconds >= longest_delay_seconds + 60 * warning_minutes
    and (slowest = w.subscription or (slowest is null and t.subscriptions <= 1))
"""
"""Subscriptions all of whose backlog is delayed, and older than messages may be delayed at all."""

OLDEST_FIRST = "age_seconds desc, topic, subscription, broker"

READERS = f"""
with still as (
    select s.topic, s.namespace, s.broker, s.subscription, s.backlog_entries
    from (from subscriptions where is_reader(subscription) and consumers > 0 and message_rate_out <= 0) s
        join user_topics t using (topic) join limits l on l.namespace = s.namespace
    where s.backlog_entries >= minimum_due_messages and t.message_rate_in <= 0),
hosts as (
    select topic, list(distinct address order by address)[:{MAX_NAMED}] as addresses
    from clients semi join still using (topic, subscription) where address <> '' group by topic)
select topic, namespace, broker, count(*) as readers, max(backlog_entries) as backlog_entries,
    list(subscription order by subscription)[:1000] as names, any_value(addresses) as addresses
from still left join hosts using (topic) group by topic, namespace, broker having count(*) > 2
"""
"""Topics that nobody publishes to, with readers that get nothing of what is stored."""

MOST_READERS_FIRST = "readers desc, topic, broker"

READERS_BEFORE = """
select topic, list(subscription order by subscription)[:1000] as names
from raw_subscriptions semi join readers using (topic)
where is_reader(subscription) and consumers > 0 and message_rate_out <= 0 group by topic
"""
"""Readers of these topics that got nothing in an earlier snapshot either."""


def overdue_words(row: Row) -> str:
    """Evidence of a row of `OVERDUE`."""
    why = ""
    if row["strict"]:
        why = (
            f" Brokers deliver strictly at the time ({STRICT}), and may lose the timer until the next message is"
            " published: publish one, or reconnect a consumer."
        )
    return (
        f"Subscription {row['subscription']} of {row['topic']} on {row['broker']} has consumers that ask for more, and"
        f" {counted(row['delayed_messages'], 'delayed message')} that wait: the oldest for"
        f" {seconds_in_words(row['age_seconds'], rounded=True)}, though none may be delayed for more than"
        f" {seconds_in_words(row['longest_delay_seconds'], rounded=True)}: they are overdue.{why}"
    )


def left_behind(row: Row, before: EarlierRows) -> Sequence[Row]:
    """Consecutive earlier snapshots from which no reader went, the newest first; empty: none came since either."""
    alike = before.in_a_row(row, lambda newer, older: set(older["names"]) <= set(newer["names"]))
    came = alike and 1 < len(alike[-1]["names"]) < len(row["names"])
    return alike if came else ()


def readers_words(row: Row, alike: Sequence[Row]) -> str:
    """Evidence of a row of `READERS` with earlier snapshots."""
    came = row["readers"] - len(alike[-1]["names"])
    named = ", ".join(row["names"][:MAX_NAMED]) + (" and others" if row["readers"] > MAX_NAMED else "")
    addresses = f", from {', '.join(row['addresses'])}" if row["addresses"] else ""
    return (
        f"{counted(row['readers'], 'reader')} of {row['topic']} on {row['broker']} get nothing of"
        f" {counted(row['backlog_entries'], 'entry', 'entries')}, and nobody publishes ({named}{addresses}). {came:,}"
        f" came since {time_in_words(alike[-1]['taken_at'])} and none went: each attempt of a client may leave one"
        " behind. Have the client close its readers, and unload this one topic."
    )


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
