"""Loss of what a subscription has not read by the time that its TTL deletes it: what expires now, or a forecast.

Brokers know the age of a backlog only where an age quota has them look. Elsewhere it is how long what is published now
takes to make a backlog of that size. A backlog that grows is read slower than it is written, by just its growth: once
its oldest entry is as old as the TTL, as much is deleted as it would grow by.

Brokers delete every five minutes and tell the rate of one: it is 0 in most minutes, and too high in the others. So what
they tell is bounded by what waits, and what is neither read nor makes an old backlog grow is deleted as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.earlier import APART_SECONDS, WINDOW_MINUTES
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import DAY, HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import Row
    from pulsar_steward.checks.earlier import EarlierRows


class TtlBeforeReadPolicy(Section):
    """Thresholds for times to live that delete what a slow subscription has not read."""

    window_minutes: int = Field(
        WINDOW_MINUTES, ge=1, description="earlier snapshots that show how a backlog grows, and what expired"
    )
    minimum_minutes: int = Field(10, ge=1, description="over which a backlog has to have grown")
    minimum_entries: int = Field(
        100, ge=1, description="of backlog; what waits on a topic that is read at once is less"
    )
    warning_age_percent_of_ttl: int = Field(
        50,
        ge=1,
        le=100,
        description="age of the oldest entry: below it, whoever reads may still catch up",
    )
    warning_hours: int = Field(12, ge=1, description="until entries are deleted unread: time to act in daylight")


MAX_ROWS = 1000
"""Most topics that are looked up in earlier snapshots."""

MAX_ENTRIES = 1 << 53
"""Most entries that are told: what comes to more is a figure that is wrong."""

OLD_PERCENT = 90
"""Age of the oldest entry, in percent of the TTL, from which on entries may be deleted: ages are estimates mostly."""

LEAST_UNREAD_PERCENT = 5
"""Share of what is published that is not read; below it, the rates of the same minute may differ by chance."""

# Of each topic the slowest subscription with enough entries, which loses first. Delayed messages are another check's.
SLOW = """
with under as (
    select t.topic, t.namespace, t.backlog_bytes, t.throughput_in_bytes, oldest_seconds, slowest_subscription,
        p.ttl_seconds, minimum_entries, warning_age_percent_of_ttl
    from topics_under_policies t join (from namespace_policies where ttl_seconds > 0) p using (namespace)
        join limits using (namespace)),
slowest as (
    select s.topic, s.subscription, s.broker, coalesce(s.consumers, 0) as consumers, s.backlog_entries,
        coalesce(s.expired_rate, 0) as expired_rate, s.message_rate_out
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
    message_rate_in, message_rate_out, expired_rate, oldest_seconds, age_seconds, ttl_seconds
from aged join (select topic, message_rate_in from user_topics) using (topic)
where expired_rate > 0 or coalesce(age_seconds * 100 >= ttl_seconds::hugeint * warning_age_percent_of_ttl, false)
"""

WORST_FIRST = "consumers > 0 desc, expired_rate > 0 desc, backlog_entries desc, topic, subscription"

BEFORE = """
select topic, subscription, raw_topics.backlog_bytes, raw_topics.message_rate_in, raw_subscriptions.message_rate_out,
    coalesce(expired_rate, 0) as expired_rate
from raw_subscriptions semi join slow using (topic, subscription) join raw_topics using (topic)
"""
"""The same subscriptions in an earlier snapshot."""


@dataclass(frozen=True)
class UnreadLoss:
    """Loss of a subscription to its TTL.

    Attributes:
        row: A row of `SLOW`.
        expired_per_second: Entries a second that expire; 0: none do.
        told_per_second: What brokers tell of it, the mean of the snapshots of the window.
        looks: Number of these snapshots, this one included.
        grown_per_second: Entries a second by which its backlog grows; 0: it does not, or nobody knows.
        seconds_left: Time until the TTL begins to delete; None: it will not, as the backlog does not grow.
        matters: True if something is lost now or within the hours of the policy.
        unread_percent: Share of what is published that is not read, if what expires follows from it; else None.
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
    def of(cls, row: Row, limits: TtlBeforeReadPolicy, before: EarlierRows) -> UnreadLoss | None:
        """Computes the loss from earlier snapshots; None if there is none that shows how the backlog grows."""
        since = before.ago(limits.window_minutes)
        of_other_minutes = before.told(row, apart_seconds=min(APART_SECONDS, 60 * limits.minimum_minutes))
        older = [each for at, each in of_other_minutes if each is not None and at >= since]
        looks = [row, *older]
        told = sum(each["expired_rate"] for each in looks) / len(looks)
        if told > 0:
            # Each entry that expires has waited for the TTL: in the long run no more do than that makes wait.
            expired = min(told, row["backlog_entries"] / row["ttl_seconds"])
            return cls(row, expired, told, len(looks), 0.0, 0.0, matters=True)
        latest = before.ago(limits.minimum_minutes)
        if not older or older[-1]["taken_at"] > latest:
            return None
        growth = min(_growth(row, older[0], before), _growth(row, older[-1], before))
        published = row["throughput_in_bytes"] or 0
        unread = _unread(row, looks)
        if unread * published > 2 * max(0.0, growth):
            expired = unread * published * _entries_per_byte(row)
            return cls(row, expired, told, len(looks), 0.0, 0.0, matters=True, unread_percent=100 * unread)
        if growth <= 0 or published <= 0:
            return cls(row, 0.0, told, len(looks), 0.0, None, matters=False)
        # The oldest entry grows older by the share of each second that is not read.
        left = max(0.0, row["ttl_seconds"] - row["age_seconds"]) / min(1.0, growth / published)
        grown, soon = growth * _entries_per_byte(row), left <= limits.warning_hours * HOUR
        return cls(row, 0.0, told, len(looks), grown, left, matters=soon)

    @property
    def age_seconds(self) -> float | None:
        """Age of the oldest entry, as told or estimated; None: neither is known."""
        age: float | None = self.row["age_seconds"]
        return age

    @property
    def entries_a_day(self) -> int:
        """Entries that are deleted unread within the next 24 hours."""
        rate = self.expired_per_second or self.grown_per_second
        return min(int(rate * max(0.0, DAY - (self.seconds_left or 0.0))), MAX_ENTRIES)

    @property
    def severity(self) -> Severity:
        """Severity of it: without a consumer, a TTL may do just what it is for."""
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


def _unread(row: Row, looks: Sequence[Row]) -> float:
    """Share of what is published that is not read, of an old backlog; 0: it is read, or nobody knows."""
    if row["age_seconds"] is None or row["age_seconds"] * 100 < row["ttl_seconds"] * OLD_PERCENT:
        return 0.0
    known = [each for each in looks if None not in (each["message_rate_in"], each["message_rate_out"])]
    published = float(sum(each["message_rate_in"] for each in known))
    sent = float(sum(each["message_rate_out"] for each in known))
    share = 1 - sent / published if published > 0 else 0.0
    return share if share * 100 >= LEAST_UNREAD_PERCENT else 0.0


def _entries_per_byte(row: Row) -> float:
    """Entries of a backlog by its bytes; 0 where its size is not known."""
    size = row["backlog_bytes"] or 0
    return float(row["backlog_entries"] / size) if size > 0 else 0.0


def _growth(row: Row, older: Row, before: EarlierRows) -> float:
    """Bytes a second by which a backlog grew since an earlier snapshot; 0 where its size is not known."""
    now, then = row["backlog_bytes"] or 0, older["backlog_bytes"]
    if now <= 0 or then is None:
        return 0.0
    return float((now - then) / max(1, before.seconds_since(older["taken_at"])))
