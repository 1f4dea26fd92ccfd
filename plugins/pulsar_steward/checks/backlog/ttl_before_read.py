"""Topics whose TTL deletes unread messages of a slow subscription, now or soon, with a forecast of the loss.

Brokers know the age of a backlog only if an age quota needs it. Otherwise it is estimated: the time in which the
present inflow makes a backlog of that size. The growth of a backlog is the part of the inflow that is not read. Once
the oldest entry is as old as the TTL, entries are deleted at the rate of that growth.

Brokers delete every five minutes and report the rate of one minute: 0 in most minutes, too high in the others. So the
reported rate is limited by the backlog. Entries also count as deleted if they are neither read nor make an old backlog
grow.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.quotas import DEFAULTS, unknown_defaults
from pulsar_steward.checks.check import BROKERS_READ, Check, Judgement, Query, Scope, nothing_read
from pulsar_steward.checks.earlier import APART_SECONDS, WINDOW_MINUTES, EarlierRows, looking_back, window_minutes
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import DAY, HOUR, MINUTE, bytes_in_words, counted, number_in_words, seconds_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row


class TtlBeforeReadPolicy(Section):
    """Thresholds for times to live that delete unread messages of a slow subscription."""

    window_minutes: int = number(WINDOW_MINUTES, "earlier snapshots that show how a backlog grows, and what expired")
    minimum_minutes: int = number(10, "over which a backlog has to have grown")
    minimum_entries: int = number(100, "of backlog; what waits on a topic that is read at once is less")
    warning_age_percent_of_ttl: int = percent(50, "age of the oldest entry: below it, whoever reads may still catch up")
    warning_hours: int = number(12, "until entries are deleted unread: time to act in daylight")


MAX_ROWS = 1000
"""Maximum number of topics that are looked up in earlier snapshots."""

MAX_ENTRIES = 1 << 53
"""Maximum number of entries in a report; a higher figure is wrong."""

OLD_PERCENT = 90
"""Age of the oldest entry, in percent of the TTL, from which entries may be deleted: most ages are estimates."""

LEAST_UNREAD_PERCENT = 5
"""Unread share of what is published, in percent; a smaller one may be chance within one minute's rates."""

# The slowest subscription of each topic with enough entries loses first. Delayed messages belong to another check. An
# unknown rate may be any, unless the age of the oldest entry shows that nothing can have expired.
SLOW = """
with under as (
    select t.topic, t.namespace, t.backlog_bytes, t.throughput_in_bytes, oldest_seconds, slowest_subscription,
        p.ttl_seconds, minimum_entries, warning_age_percent_of_ttl
    from topics_under_policies t join (from namespace_policies where ttl_seconds > 0) p using (namespace)
        join limits using (namespace)),
slowest as (
    select s.topic, s.subscription, s.broker, coalesce(s.consumers, 0) as consumers, s.backlog_entries,
        s.expired_rate, s.message_rate_out
    from user_subscriptions s join under using (topic)
    where s.backlog_entries >= minimum_entries
    qualify row_number() over (partition by s.topic
        order by coalesce(s.subscription = slowest_subscription, false) desc, s.backlog_entries desc, s.subscription
    ) = 1),
aged as (
    select slowest.*, under.* exclude (topic),
        coalesce(oldest_seconds::double, backlog_bytes / nullif(throughput_in_bytes, 0)) as age_seconds
    from slowest join under using (topic) anti join delayed_waiting using (topic, subscription))
select topic, subscription, namespace, broker, consumers, backlog_entries, backlog_bytes, throughput_in_bytes,
    message_rate_in, message_rate_out, expired_rate, oldest_seconds, age_seconds, ttl_seconds,
    coalesce(age_seconds * 100 >= ttl_seconds::hugeint * warning_age_percent_of_ttl, false) as aging
from aged join (select topic, message_rate_in from user_topics) using (topic)
where expired_rate > 0 or aging or (expired_rate is null and oldest_seconds is null)
"""

# A reader's cursor is moved on as well. What a reader works on is older than the TTL where more is retained than that.
# What it has lost already counts as well: how much is told by the topic's own statistics, since it was loaded.
READERS = """
with expired as (
    select topic, subscription, max(expired_messages) as expired_messages from drilled
    where expired_messages > 0 group by topic, subscription)
select t.topic, s.subscription, t.namespace, s.broker, s.backlog_entries, p.ttl_seconds, t.retention_minutes,
    t.retention_megabytes, coalesce(expired_messages, 0) as expired_messages,
    u.message_rate_in is null and not coalesce(s.expired_rate > 0, false)
        and coalesce(expired_messages, 0) < minimum_entries as unknown
from (from subscriptions where is_reader(subscription) and consumers > 0) s
    join topics_under_policies t using (topic) join user_topics u using (topic)
    left join expired using (topic, subscription)
    join (from namespace_policies where ttl_seconds > 0) p on p.namespace = t.namespace
    join limits on limits.namespace = t.namespace
where t.retention_minutes <> 0 and t.retention_megabytes <> 0
    and (t.retention_minutes < 0 or t.retention_minutes * 60 > p.ttl_seconds)
    and (coalesce(expired_messages, 0) >= minimum_entries
        or (s.backlog_entries >= minimum_entries
            and (s.expired_rate > 0 or u.message_rate_in is null or u.message_rate_in <= 0
                or s.backlog_entries * greatest(coalesce(s.messages_per_entry, 1), 1) / u.message_rate_in * 100
                    >= p.ttl_seconds::hugeint * warning_age_percent_of_ttl)))
qualify row_number() over (
    partition by t.topic order by unknown, s.backlog_entries desc, expired_messages desc, s.subscription) = 1
"""

WORST_FIRST = """
consumers > 0 desc, coalesce(expired_rate > 0, false) desc, aging desc, backlog_entries desc, topic, subscription
"""

BEFORE = """
select topic, subscription, raw_topics.backlog_bytes, raw_topics.message_rate_in, raw_subscriptions.message_rate_out,
    expired_rate
from raw_subscriptions semi join slow using (topic, subscription) join raw_topics using (topic)
"""
"""The same subscriptions in an earlier snapshot."""


class Missing(Enum):
    """What is missing to tell whether a subscription loses anything."""

    SNAPSHOT = auto()
    RATES = auto()


@dataclass(frozen=True)
class UnreadLoss:
    """Loss of a subscription to its TTL.

    Attributes:
        row: A row of `SLOW`.
        expired_per_second: Entries per second that expire; 0: none.
        told_per_second: The same as brokers report it, the mean over the snapshots of the window.
        looks: Number of these snapshots, this one included; without those that do not tell it.
        grown_per_second: Entries per second by which its backlog grows; 0: no growth, or unknown.
        seconds_left: Time until the TTL begins to delete; None: never, as the backlog does not grow.
        matters: True if something is lost now or within the hours of the policy.
        unread_percent: Unread share of what is published, if the loss was computed from it; else None.
    """

    row: Row
    expired_per_second: float
    told_per_second: float
    looks: int
    grown_per_second: float
    seconds_left: float | None
    matters: bool
    unread_percent: float | None = None

    @classmethod
    def of(cls, row: Row, limits: TtlBeforeReadPolicy, before: EarlierRows) -> UnreadLoss | Missing:
        """Computes the loss from rates and earlier snapshots, or says which of these are missing."""
        since = before.ago(limits.window_minutes)
        of_other_minutes = before.told(row, apart_seconds=min(APART_SECONDS, 60 * limits.minimum_minutes))
        older = [each for at, each in of_other_minutes if each is not None and at >= since]
        looks = [row, *older]
        rates = [each["expired_rate"] for each in looks if each["expired_rate"] is not None]
        told = sum(rates) / len(rates) if rates else 0.0
        if told > 0:
            # An expiring entry has waited for the whole TTL: in the long run, one backlog per TTL is the most that can
            # expire.
            expired = min(told, row["backlog_entries"] / row["ttl_seconds"])
            return cls(row, expired, told, len(rates), 0.0, 0.0, matters=True)
        if not row["aging"]:
            return Missing.RATES
        latest = before.ago(limits.minimum_minutes)
        if not older or older[-1]["taken_at"] > latest:
            return Missing.SNAPSHOT
        growth = min(_growth(row, older[0], before), _growth(row, older[-1], before))
        return cls._by_growth(row, growth, looks, limits)

    @classmethod
    def _by_growth(
        cls, row: Row, growth: float, looks: Sequence[Row], limits: TtlBeforeReadPolicy
    ) -> UnreadLoss | Missing:
        """The loss where nothing is told to expire, by the bytes per second by which the backlog grows."""
        published, unread = row["throughput_in_bytes"], _unread(row, looks)
        if published is None:
            return Missing.RATES
        if unread is not None and unread * published > 2 * max(0.0, growth):
            expired = unread * published * _entries_per_byte(row)
            return cls(row, expired, 0.0, len(looks), 0.0, 0.0, matters=True, unread_percent=100 * unread)
        if growth <= 0 or published <= 0:
            if unread is None or row["expired_rate"] is None:
                return Missing.RATES
            return cls(row, 0.0, 0.0, len(looks), 0.0, None, matters=False)
        # Each second, the age of the oldest entry rises by the unread share of that second.
        left = max(0.0, row["ttl_seconds"] - row["age_seconds"]) / min(1.0, growth / published)
        grown, soon = growth * _entries_per_byte(row), left <= limits.warning_hours * HOUR
        return cls(row, 0.0, 0.0, len(looks), grown, left, matters=soon)

    @property
    def age_seconds(self) -> float | None:
        """Age of the oldest entry, reported or estimated; None: neither is known."""
        age: float | None = self.row["age_seconds"]
        return age

    @property
    def entries_a_day(self) -> int:
        """Entries that are deleted unread within the next 24 hours."""
        rate = self.expired_per_second or self.grown_per_second
        return min(int(rate * max(0.0, DAY - (self.seconds_left or 0.0))), MAX_ENTRIES)

    @property
    def severity(self) -> Severity:
        """Severity; without a consumer it is information, as the TTL may do what it is meant for."""
        if not self.row["consumers"]:
            return Severity.INFO
        return Severity.CRITICAL if self.expired_per_second else Severity.WARNING

    @property
    def order(self) -> tuple[int, int, str]:
        """Sort key: the worst first."""
        return (-self.severity.rank, -self.entries_a_day, self.row["topic"])

    @property
    def figures(self) -> dict[str, int]:
        """Its figures."""
        row = self.row
        figures = {
            "backlog_bytes": row["backlog_bytes"] or 0,
            "backlog_entries": row["backlog_entries"],
            "consumers": row["consumers"],
            "lost_entries_in_24_hours": self.entries_a_day,
            "lost_entries_per_hour": min(int((self.expired_per_second or self.grown_per_second) * HOUR), MAX_ENTRIES),
            "seconds_until_loss": int(self.seconds_left or 0),
            "ttl_seconds": row["ttl_seconds"],
        }
        return figures if self.age_seconds is None else figures | {"oldest_seconds": int(self.age_seconds)}

    @property
    def evidence(self) -> str:
        """The subscription, its backlog, its loss, and who reads."""
        row, age = self.row, ""
        if self.age_seconds is not None:
            seconds = seconds_in_words(self.age_seconds, rounded=True)
            told = row["oldest_seconds"] is not None
            age = f", the oldest {seconds} old" if told else f", about {seconds} of what is published now"
        entries = counted(row["backlog_entries"], "entry", "entries")
        consumers = counted(row["consumers"], "consumer is", "consumers are")
        who = f"{consumers} connected to it, and too slow."
        if not row["consumers"]:
            who = "No consumer is connected to it: it may be that the TTL is meant to clear it."
        return (
            f"Subscription {row['subscription']} of {row['topic']} on {row['broker']} has not read {entries}"
            f" ({bytes_in_words(row['backlog_bytes'] or 0, rounded=True)}){age}; messages expire after"
            f" {seconds_in_words(row['ttl_seconds'], rounded=True)}. {self._words} {who}"
        )

    @property
    def _words(self) -> str:
        a_day = f"{counted(self.entries_a_day, 'entry is', 'entries are')} lost"
        rate = number_in_words(round(self.expired_per_second or self.grown_per_second, 2))
        if self.unread_percent is not None:
            return (
                f"Of what is published, {self.unread_percent:.0f} % is not read, and the backlog hardly grows: the TTL"
                f" deletes about {rate} entries/s unread, and {a_day} in the next 24 h."
            )
        if self.expired_per_second:
            only = "this snapshot" if self.row["expired_rate"] is not None else "an earlier snapshot"
            looks = only if self.looks == 1 else f"the mean of {counted(self.looks, 'snapshot')}"
            if self.told_per_second > self.expired_per_second:
                looks += f", where brokers tell {number_in_words(round(self.told_per_second, 2))} of single minutes"
            return f"The TTL deletes {rate} entries/s unread ({looks}): at this rate {a_day} in the next 24 h."
        left = self.seconds_left or 0
        begins = (
            f"in {seconds_in_words(left, rounded=True)} the TTL begins to delete" if round(left) else "the TTL deletes"
        )
        return f"Its backlog grows by {rate} entries/s: {begins} as many unread, and {a_day} in the next 24 h."


def _unread(row: Row, looks: Sequence[Row]) -> float | None:
    """Unread share of what is published, for an old backlog; 0: all is read, or it is not old; None: unknown."""
    if row["age_seconds"] is None or row["age_seconds"] * 100 < row["ttl_seconds"] * OLD_PERCENT:
        return 0.0
    known = [each for each in looks if None not in (each["message_rate_in"], each["message_rate_out"])]
    if not known:
        return None
    published = float(sum(each["message_rate_in"] for each in known))
    sent = float(sum(each["message_rate_out"] for each in known))
    share = 1 - sent / published if published > 0 else 0.0
    return share if share * 100 >= LEAST_UNREAD_PERCENT else 0.0


def _entries_per_byte(row: Row) -> float:
    """Entries per byte of a backlog; 0 if its size is not known."""
    size = row["backlog_bytes"] or 0
    return float(row["backlog_entries"] / size) if size > 0 else 0.0


def _growth(row: Row, older: Row, before: EarlierRows) -> float:
    """Bytes per second by which a backlog grew since an earlier snapshot; 0 if its size is not known."""
    now, then = row["backlog_bytes"] or 0, older["backlog_bytes"]
    if now <= 0 or then is None:
        return 0.0
    return float((now - then) / max(1, before.seconds_since(older["taken_at"])))


def judge(queried: Queried, context: CheckContext[TtlBeforeReadPolicy]) -> Judgement:
    """Critical if a TTL deletes unread messages of a slow consumer now; a warning if it soon will."""
    before = EarlierRows.of(queried["before"], context, window_minutes, "topic", "subscription")
    losses = [UnreadLoss.of(row, context.limits_of(row["namespace"]), before) for row in queried["slow"].rows]
    told_of = [each for each in losses if isinstance(each, UnreadLoss)]
    found = sorted((each for each in told_of if each.matters), key=lambda each: each.order)
    findings = [
        CHECK.finding(severity=each.severity, subject=each.row["topic"], evidence=each.evidence, figures=each.figures)
        for each in found
    ]
    told = {each.subject for each in findings}
    readers = [row for row in queried["readers"].rows if row["topic"] not in told]
    findings += [_of_reader(row) for row in readers if not row["unknown"]]
    if findings:
        findings.sort(key=lambda each: -each.severity.rank)
        return Judgement(findings=tuple(findings), more=queried["slow"].more + queried["readers"].more)
    too_many = f"More than {counted(MAX_ROWS, 'topic')} come near their TTL; those that were looked up lose nothing."
    near, unrated = losses.count(Missing.SNAPSHOT), losses.count(Missing.RATES) + len(readers)
    unknown = (
        f"{counted(near, 'topic comes', 'topics come')} near the TTL, and there is no earlier snapshot that shows"
        " whether the backlog grows."
    )
    no_rates = f"Of {counted(unrated, 'topic')} with a TTL, brokers do not tell what comes in, is read or expires."
    return Judgement(
        quiet=context.in_each_part(
            lambda limits: (
                f"No TTL deletes within {counted(limits.warning_hours, 'hour')} what a subscription of"
                f" {limits.minimum_entries:,} or more entries has not read."
            )
        ),
        cannot_tell=(
            nothing_read(queried)
            or unknown_defaults(queried, "ttl_seconds")
            or (too_many if queried["slow"].more else unknown if near else no_rates if unrated else None)
        ),
    )


def _of_reader(row: Row) -> Finding:
    kept = "what is retained without limit"
    if row["retention_minutes"] > 0:
        kept = f"the {seconds_in_words(row['retention_minutes'] * MINUTE, rounded=True)} that are retained"
    lost = row["expired_messages"]
    skipped = f" {counted(lost, 'message')} it was carried over unread since its topic was loaded." if lost else ""
    return CHECK.finding(
        severity=Severity.WARNING,
        subject=row["topic"],
        evidence=(
            f"Reader {row['subscription']} of {row['topic']} on {row['broker']} has"
            f" {counted(row['backlog_entries'], 'entry', 'entries')} left of {kept}; messages expire after"
            f" {seconds_in_words(row['ttl_seconds'], rounded=True)}, and that moves readers on as well: what it has"
            f" not read by then is skipped without an error.{skipped}"
        ),
        figures={
            "backlog_entries": row["backlog_entries"],
            "expired_messages": lost,
            "ttl_seconds": row["ttl_seconds"],
        },
    )


CHECK = Check(
    check_id="ttl-before-read",
    explained_by=("subscription-blocked", "subscription-stalled", "subscription-abandoned"),
    headlines={Harm.LOSING: "UNREAD MESSAGES EXPIRE", Harm.SOON: "A TTL will delete unread messages"},
    beware={Harm.LOSING: "Do not lower the TTL."},
    harm=lambda finding: Harm.SOON if finding.figures.get("seconds_until_loss") else Harm.LOSING,
    order=105,
    title="A TTL deletes what a slow subscription has not read",
    advice=(
        "Make whoever reads faster: more consumers, more partitions, or less work for each message.",
        "Raise the TTL meanwhile; the backlog grows with it: `pulsar-admin namespaces set-message-ttl NS -ttl TIME`.",
        (
            "Nothing may be lost: set a quota that holds producers:"
            " `pulsar-admin namespaces set-backlog-quota NS -l LIMIT -p producer_request_hold`."
        ),
        "For a reader of old messages: no TTL on its topic, or one longer than the history.",
        "What was deleted is acknowledged: where retention still keeps it, reset the cursor to read it again.",
    ),
    source="docs/knowledge.md B: TTL deletes what a slow subscription has not read; apache/pulsar#26504",
    scope=Scope.NAMESPACE,
    policy=TtlBeforeReadPolicy,
    shards={
        "slow": Query(SLOW, worst_first=WORST_FIRST, most=MAX_ROWS),
        "readers": Query(READERS, worst_first="backlog_entries desc, topic"),
    },
    earlier={"before": looking_back(BEFORE)},
    cluster={"read": BROKERS_READ, "defaults": DEFAULTS},
    judge=judge,
)
