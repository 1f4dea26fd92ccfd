"""Some of a subscription's consumers are stuck and hold messages, while the others work."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_steward.checks.clients.consumers import consumers_words
from pulsar_steward.checks.earlier import each_since
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pulsar_steward.checks.check import Row
    from pulsar_steward.checks.clients.standstill import SubscriptionStalledPolicy
    from pulsar_steward.checks.earlier import EarlierRows

MAX_CONSUMERS = 1000
"""Number of consumers that are examined, those with most unacknowledged messages first."""

COLUMNS = ("topic", "subscription", "consumer", "address", "connected_since", "unacked_messages")
"""Columns that identify a consumer with the same messages: one that works has other ones, and seldom as many."""

# Only consumers that the snapshot names. On Exclusive and Failover subscriptions one consumer gets everything: if it is
# stuck, all stands still.
STUCK = """
select topic, subscription, consumer, address, connected_since, c.unacked_messages, s.namespace,
    coalesce(c.available_permits, 0) as permits, false as blocked, s.consumers, s.consumers_stuck,
    s.entries_since_first_gap as entries
from clients c join user_subscriptions s using (topic, subscription) join limits on limits.namespace = s.namespace
where c.unacked_messages >= minimum_held_messages and c.available_permits <= 0 and c.message_rate_out <= 0
    and c.ack_rate <= 0 and not coalesce(c.blocked, false) and s.consumers_stuck > 0 and s.consumers_stuck < s.consumers
    and coalesce(s.type, 'Shared') not in ('Exclusive', 'Failover')
"""

MOST_FIRST = "unacked_messages desc, topic, subscription, consumer, address, connected_since"

BEFORE = """
with gaps as (
    select topic, subscription, max(entries_since_first_gap) as entries
    from raw_subscriptions semi join stuck using (topic, subscription) group by topic, subscription)
select topic, subscription, consumer, address, connected_since, unacked_messages, entries
from raw_clients
    semi join stuck using (topic, subscription, consumer, address, connected_since, unacked_messages)
    left join gaps using (topic, subscription)
where available_permits <= 0 and message_rate_out <= 0 and ack_rate <= 0
"""
"""Consumers that were stuck in an earlier snapshot already, with as many messages."""


@dataclass(frozen=True)
class StuckConsumers:
    """Stuck consumers of one subscription.

    Attributes:
        rows: Rows of `STUCK`, those with most messages first.
        limits: The limits in force for it.
        before: Rows of earlier snapshots.
    """

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
        return max((self.before.in_a_row(row, _holds_back) for row in self.rows), key=len)

    @property
    def since_seconds(self) -> int | None:
        """Minimum time for which that consumer has been stuck; None: not known."""
        return self.before.lasted_seconds(self.alike) if self.alike else None

    @property
    def severity(self) -> Severity | None:
        """Severity by duration and number; None: it worked a short while ago, as when a consumer pauses."""
        since = self.since_seconds
        if since is None:
            lately = self.before.looked_within(self.rows[0], 2 * self.limits.warning_minutes)
            return None if lately else Severity.INFO
        many = self.count * 100 >= self.rows[0]["consumers"] * self.limits.warning_stuck_percent
        least = self.limits.warning_minutes if many else self.limits.critical_minutes
        return Severity.WARNING if since >= 60 * least else Severity.INFO


def by_subscription(
    rows: Iterable[Row], limits_of: Callable[[str], SubscriptionStalledPolicy], before: EarlierRows
) -> Iterator[StuckConsumers]:
    """Groups rows of `STUCK` by subscription, with the limits of its namespace."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["topic"], row["subscription"]].append(row)
    for theirs in found.values():
        yield StuckConsumers(tuple(theirs), limits_of(theirs[0]["namespace"]), before)


def evidence_of(stuck: StuckConsumers) -> str:
    """Evidence in a sentence."""
    row = stuck.rows[0]
    named = consumers_words(stuck.rows)
    are = "is" if stuck.count == 1 else "are"
    return (
        f"{stuck.count:,} of the {counted(row['consumers'], 'consumer')} of subscription {row['subscription']} of"
        f" {row['topic']} {are} stuck, holding {counted(stuck.held, 'unacknowledged message')}: no permits left,"
        f" nothing delivered and nothing acknowledged in the last minute ({_since(stuck)}): {named}."
    )


def figures_of(stuck: StuckConsumers) -> dict[str, int]:
    """Figures of the evidence."""
    figures = {
        "consumers": stuck.rows[0]["consumers"],
        "consumers_stuck": stuck.count,
        "unacked_messages": stuck.held,
    }
    return figures if stuck.since_seconds is None else figures | {"since_seconds": stuck.since_seconds}


def _since(stuck: StuckConsumers) -> str:
    if not stuck.alike:
        return "since when is not known; a pause would look the same"
    return f"with as many messages {each_since(stuck.alike)} too"


def _holds_back(newer: Row, older: Row) -> bool:
    """True if the first unacknowledged entry may be the same: the number of entries read behind it only grows."""
    return newer["entries"] is None or older["entries"] is None or newer["entries"] >= older["entries"]
