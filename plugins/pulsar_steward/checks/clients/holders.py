"""Consumers that hold nearly all that waits and do nothing, by their topic's own times: also at the first look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import grouped
from pulsar_steward.checks.clients.consumers import MAX_NAMED, named_subscription, to_the_second
from pulsar_steward.model.units import counted, seconds_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.checks.check import Row

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

LONGEST_FIRST = "held desc, topic, subscription, unacked_messages desc, consumer, address, connected_since"


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
