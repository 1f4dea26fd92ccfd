"""A subscription's standstill: duration, severity and evidence, by its topic's statistics or earlier snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_steward.checks.clients.consumers import named_subscription, slowest_words
from pulsar_steward.checks.clients.rates import held_words
from pulsar_steward.checks.earlier import APART_SECONDS, apart, each_since, may_expire, rests
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.units import counted, seconds_in_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.checks.check import Row
    from pulsar_steward.checks.earlier import EarlierRows


class SubscriptionStalledPolicy(Section):
    """Thresholds for subscriptions with consumers and a backlog, but without consumption."""

    minimum_due_messages: int = number(
        1000,
        "messages that are due or held: entries times messages per entry where known, an entry being one message"
        " at least; as many fit into one client's receiver queue by default",
    )
    warning_minutes: int = number(10, "since the last delivery or acknowledgement, where known; shorter: information")
    critical_minutes: int = number(60, "the same, when no pause of a healthy application explains it")
    critical_due_messages: int = number(
        1_000_000, "due messages that make a standstill critical even where its age is not known"
    )
    minimum_held_messages: int = number(
        100,
        "unacknowledged messages of one consumer that is stuck while others are not; with a smaller receiver"
        " queue one that is slow looks the same",
    )
    holding_minutes: int = number(
        30,
        "since the last delivery to and acknowledgement of a consumer that holds nearly all that waits; more than"
        " the longest message takes",
    )
    holding_percent: int = percent(90, "of the entries that wait: nearly all")
    minimum_holding_messages: int = number(10, "of one consumer; fewer are what it works on")
    warning_stuck_percent: int = percent(
        50, "consumers of a subscription that are stuck; fewer: information for longer"
    )


READ_AHEAD = 50_000
"""Delayed messages from which brokers may read no further for a subscription, as all seem to have the same delay.

Default of `delayedDeliveryFixedDelayDetectionLookahead`. What follows them counts as due, and is not
(apache/pulsar#23353).
"""

STILL, FULL, UNACKED, AGAIN, ROUND = "still", "full", "unacked", "again", "round"
"""Kinds of standstill.

`STILL`: nothing moves at all. `FULL`: consumers work on the messages that they hold. `UNACKED`: delivered messages are
not acknowledged. `AGAIN`: nor are redelivered messages. `ROUND`: hardly any redelivered message is.
"""

HARDLY_PERCENT = 1
"""Acknowledgements per hundred redelivered messages up to which the same messages go round."""

MAX_ROWS = 1000
"""Subscriptions that each query returns, the ones with most messages first."""

MAX_ENTRIES, MAX_MESSAGES_PER_ENTRY = 10**12, 10**6
"""Upper bounds of figures, so that their product fits its type."""

# Only consumers that the snapshot names. The number of consumers shows whether these are all.
_CONNECTED = """
select topic, subscription, count(connected_at) as named, min(connected_at) as first_connected,
    max(connected_at) as last_connected
from (select *, epoch(try_cast(connected_since as timestamptz)) as connected_at from {clients})
    semi join {wanted} using (topic, subscription)
group by topic, subscription
"""

# A subscription blocked for unacknowledged messages belongs to another check. An entry may be a batch of messages,
# whose size is known only from recent deliveries to consumers. Delayed messages count as backlog, are never batched,
# and are not due; if their number is unknown, all of the backlog counts as due. Brokers' count of the backlog may drift
# until the topic is loaded anew (apache/pulsar#5202): by its position a cursor may have passed everything, and an entry
# has more than one byte. On a Failover subscription one consumer gets everything; the others keep their old permits.
_DUE = f"""
with last as (
    select topic, subscription, max(last_consumed_milliseconds) as consumed, max(last_acked_milliseconds) as acked,
        min(entries_behind) as behind
    from drilled where subscription is not null group by topic, subscription),
at_rest as (
    select *, least(greatest(backlog_entries, 0), {MAX_ENTRIES}) * coalesce(
            least(greatest(messages_per_entry, 1), {MAX_MESSAGES_PER_ENTRY}), 1) as most_messages
    from user_subscriptions
    where consumers > 0 and (message_rate_out <= 0 or ack_rate * 100 <= {HARDLY_PERCENT} * coalesce(redeliver_rate, 0))
        and (backlog_entries > 0 or unacked_messages > 0)
        and not coalesce(blocked_on_unacked, false) and coalesce(consumers_blocked, 0) < consumers
        and (greatest(most_messages, unacked_messages) >= (select min(minimum_due_messages) from limits)
            or consumers_stuck > 0 or redeliver_rate > 0 or consumers_connected_recently >= consumers
            or topic in (select topic from drilled))),
slow as (
    select topic, subscription, s.namespace, broker, s.type, s.consumers,
        coalesce(least(s.backlog_entries, behind, if(t.backlog_bytes < s.backlog_entries, 0, null)), 0)
            as backlog_entries,
        least(greatest(s.messages_per_entry, 1), {MAX_MESSAGES_PER_ENTRY}) as messages_per_entry,
        greatest(coalesce(s.unacked_messages, 0), 0) as unacked, minimum_due_messages, critical_minutes,
        s.ack_rate, s.redeliver_rate, s.expired_rate, t.message_rate_in, consumed, acked,
        coalesce(s.consumers_without_permits, 0) as without_permits,
        coalesce(s.consumers_stuck >= if(s.type in ('Exclusive', 'Failover'), 1, s.consumers), false) as all_stuck,
        coalesce(s.consumers_connected_recently >= s.consumers, false) as fresh,
        case when s.ack_rate > 0 then if(s.ack_rate * 100 <= {HARDLY_PERCENT} * s.redeliver_rate, '{ROUND}', '{FULL}')
            when s.message_rate_out > 0 then if(s.redeliver_rate > 0, '{AGAIN}', '{UNACKED}')
            else '{STILL}' end as kind
    from at_rest s join limits using (namespace) left join last using (topic, subscription)
        left join (select topic, message_rate_in, backlog_bytes from topics) t using (topic)),
delayed as (
    select topic, subscription, max(told.messages) as delayed
    from clients_delayed told join slow using (topic, subscription)
    where told_by is null or told_by = broker group by topic, subscription),
connected as ({_CONNECTED.format(clients="clients", wanted="slow")}),
due as (
    select slow.*, delayed, greatest(backlog_entries - coalesce(delayed, 0), 0) as due_entries,
        greatest(least(due_entries, {MAX_ENTRIES}) * coalesce(messages_per_entry, 1), unacked) as messages,
        delayed is not null or told.broker is not null as delayed_known,
        case kind when '{STILL}' then greatest(consumed, acked) when '{FULL}' then consumed
            when '{ROUND}' then null else acked end as moved_at,
        consumed is not null or acked is not null as asked, coalesce(moved_at = 0, false) as never,
        case when moved_at > 0 then greatest(floor($now)::bigint - moved_at // 1000, 0)
            when never and first_connected is not null
            then greatest(floor($now - first_connected)::bigint, 0) end as since_seconds,
        first_connected, last_connected, named >= consumers as all_named
    from slow left join delayed using (topic, subscription) left join connected using (topic, subscription)
        left join clients_delayed_told told on told.broker = slow.broker
    where due_entries > 0 or unacked > 0)
select topic, subscription, namespace, broker, coalesce(delayed, 0) as delayed, type, consumers, backlog_entries,
    due_entries, messages, messages_per_entry, unacked, delayed_known, without_permits, all_stuck, fresh, kind,
    ack_rate, redeliver_rate, expired_rate, asked, never, since_seconds, first_connected, last_connected, all_named,
    message_rate_in
from due
"""

STANDING = f"{_DUE} where due_entries >= minimum_due_messages"
"""Subscriptions with enough due entries. Each entry is at least one message, so all of them are reported."""

POSSIBLE = f"""
{_DUE}
where due_entries < minimum_due_messages and (kind in ('{AGAIN}', '{ROUND}')
    or (kind <> '{FULL}' and (fresh or messages >= minimum_due_messages))
    or (kind = '{STILL}' and (all_stuck or since_seconds >= 60 * critical_minutes)))
"""
"""Subscriptions with enough messages only by the size of their batches, or with few messages that nobody gets.

The duration decides about these.
"""

LONGEST_FIRST = f"kind = '{STILL}' desc, messages desc, topic, subscription"

BEFORE = f"""
with wanted as (select topic, subscription from standing union select topic, subscription from possible),
connected as ({_CONNECTED.format(clients="raw_clients", wanted="wanted")})
select topic, subscription, coalesce(consumers, 0) as consumers, backlog_entries, message_rate_out, ack_rate,
    redeliver_rate, expired_rate, coalesce(consumers_connected_recently >= consumers, false) as fresh,
    first_connected, last_connected, named >= consumers as all_named, times as times_held
from raw_subscriptions semi join wanted using (topic, subscription) left join connected using (topic, subscription)
    left join dispatch_held using (topic, subscription)
where (message_rate_out <= 0 or ack_rate <= 0 or redeliver_rate > 0)
    and (backlog_entries > 0 or unacked_messages > 0)
"""
"""The same subscriptions in an earlier snapshot, where nothing was delivered or nothing acknowledged."""


_WHAT = {
    STILL: "nothing is delivered and nothing acknowledged",
    FULL: "nothing is delivered, though some of what they hold is acknowledged",
    UNACKED: "nothing is acknowledged of what is delivered",
    AGAIN: "are delivered again, the same ones, and none is acknowledged",
    ROUND: "are delivered again, the same ones, and hardly any is acknowledged",
}
_LAST = {
    STILL: "last delivery or acknowledgement",
    FULL: "last delivery",
    UNACKED: "last acknowledgement",
    AGAIN: "last acknowledgement",
}


@dataclass(frozen=True)
class Standstill:
    """A subscription that may stand still; a consumer counts as just connected for `recent_minutes`."""

    row: Row
    limits: SubscriptionStalledPolicy
    recent_minutes: int
    before: EarlierRows

    @property
    def many_entries(self) -> bool:
        """True if it has enough messages even if each entry were a single message."""
        return bool(self.row["due_entries"] >= self.limits.minimum_due_messages)

    @property
    def many(self) -> bool:
        """True if it has enough messages, by the known size of batches."""
        return bool(self.row["messages"] >= self.limits.minimum_due_messages)

    @cached_property
    def alike(self) -> list[Row]:
        """Consecutive earlier snapshots with the same kind of standstill, the newest first."""
        if self._consumed_lately and self.row["kind"] != ROUND:
            return []
        return self.before.in_a_row(self.row, _SAME[self.row["kind"]])

    @cached_property
    def returns(self) -> list[Row]:
        """Consecutive earlier snapshots after which all consumers were new and nothing was acknowledged."""
        if self._consumed_lately:
            return []
        found: list[Row] = []
        newer = later = self.row
        later_at = self.before.taken_at
        for at, older in self.before.told(self.row):
            if older is None or not rests(older, "ack_rate") or _fell(newer, older):
                break
            if older["consumers"] > 0 and _came_anew(later, older):
                found.append(older)
                later, later_at = older, at
            elif older["consumers"] > 0 and apart(later_at, at):
                break  # two snapshots close together show the same consumers, however often these reconnect
            newer = older
        return found

    @property
    def _consumed_lately(self) -> bool:
        """True if something was consumed: the backlog grew by less than was published since the last snapshot.

        The last snapshot of another minute counts. Without this, a consumer that runs every 15 minutes, like snapshots,
        would always seem to have an equal backlog.
        """
        at, older = next(self.before.told(self.row, apart_seconds=APART_SECONDS), (None, None))
        rate, size = self.row["message_rate_in"] or 0, self.row["messages_per_entry"]
        if at is None or older is None or size is None or may_expire(self.row):
            return False
        published = rate * self.before.seconds_since(at) / size
        return bool(2 * (self.row["backlog_entries"] - (older["backlog_entries"] or 0)) < published)

    @cached_property
    def since_seconds(self) -> int | None:
        """Minimum duration of the standstill: 0 if something moved in a recent snapshot; None: not known."""
        if self.row["since_seconds"] is not None:
            return int(self.row["since_seconds"])
        if self.alike:
            return self.before.lasted_seconds(self.alike)
        return 0 if self.before.looked_within(self.row, 2 * self.limits.warning_minutes) else None

    @cached_property
    def severity(self) -> Severity | None:
        """Severity; None: nothing to report, or not yet."""
        if self.row["fresh"] or self.comes_back:
            return self._of_returns()
        if self.row["kind"] == FULL or self.may_be_delayed:
            return Severity.INFO
        if self.row["kind"] in {AGAIN, ROUND}:
            return self._of_the_same_again()
        if self.row["kind"] == UNACKED:
            return self._of_unacknowledged()
        return self._of_still() if self.many else self._of_few()

    @property
    def may_be_delayed(self) -> bool:
        """True if so many messages are delayed that brokers may not have looked at the others."""
        return bool(self.row["kind"] == STILL and self.row["delayed"] >= READ_AHEAD)

    @property
    def comes_back(self) -> bool:
        """True if its consumers come and go, and none acknowledges anything in between."""
        if self.row["kind"] == FULL:
            return False
        return self.before.keep_on(self.returns, max(self.limits.warning_minutes, 2 * self.recent_minutes))

    def _of_returns(self) -> Severity | None:
        if self.comes_back:
            long = self.before.lasted_seconds(self.returns) >= 60 * self.limits.critical_minutes
            if self.many:
                return Severity.CRITICAL if long else Severity.WARNING
            if long:
                return Severity.WARNING
        return Severity.INFO if self.many_entries else None

    def _of_the_same_again(self) -> Severity | None:
        since = self.since_seconds
        if since is None:
            return Severity.INFO
        each_in_a_minute = 60 * self.row["redeliver_rate"] >= self.row["messages"]
        soon = self.many or (self.row["kind"] == ROUND and each_in_a_minute)
        if since >= 60 * (self.limits.warning_minutes if soon else self.limits.critical_minutes):
            return Severity.WARNING
        return Severity.INFO if self.many_entries or since >= 60 * self.limits.warning_minutes else None

    def _of_unacknowledged(self) -> Severity | None:
        """Severity without acknowledgements; batches take time, so few entries count only after `critical_minutes`."""
        since, told = self.since_seconds, self.row["since_seconds"] is not None
        if not self.many:
            return None
        if since is not None and since >= 60 * self.limits.critical_minutes:
            return Severity.CRITICAL if told else Severity.WARNING
        if not self.many_entries:
            return None
        return Severity.WARNING if told and (since or 0) >= 60 * self.limits.warning_minutes else Severity.INFO

    def _of_still(self) -> Severity | None:
        since = self.since_seconds
        huge = self.row["delayed_known"] and self.row["messages"] >= self.limits.critical_due_messages
        if since is None:
            if not self.many_entries:
                return Severity.INFO
            return Severity.CRITICAL if huge else Severity.WARNING
        if since >= 60 * self.limits.critical_minutes:
            return Severity.CRITICAL
        if since >= 60 * self.limits.warning_minutes:
            return Severity.CRITICAL if huge else Severity.WARNING
        return Severity.INFO if self.many_entries else None

    def _of_few(self) -> Severity | None:
        """Severity with few messages: a slow consumer with a small receiver queue looks the same for a long time."""
        since = self.since_seconds
        if since is None or since < 60 * self.limits.critical_minutes:
            return None
        return Severity.WARNING if self.row["all_stuck"] else Severity.INFO

    @property
    def evidence(self) -> str:
        """Evidence of the standstill in a sentence. Brokers count entries; the number of messages is an estimate."""
        row, kind = self.row, self.row["kind"]
        details = []
        if (row["messages_per_entry"] or 0) > 1:
            details.append(f"about {counted(row['messages'], 'message')}, at {row['messages_per_entry']:,} an entry")
        if row["unacked"]:
            details.append(f"{counted(row['unacked'], 'message is', 'messages are')} delivered and not acknowledged")
        if not row["delayed_known"]:
            details.append("how many are delayed is not known")
        known = f" ({'; '.join(details)})" if details else ""
        earlier = ""
        if self.comes_back:
            earlier = f"; other consumers than now were connected {each_since(self.returns)}: they come and go"
        elif self.alike and kind != FULL and not row["fresh"]:
            earlier = f"; it was so {each_since(self.alike)} too"
        what, named = _WHAT[kind], named_subscription(row)
        if kind in {AGAIN, ROUND}:
            what = f"{row['redeliver_rate']:,.1f} messages/s {what}"
        return (
            f"{named[0].upper()}{named[1:]} on {row['broker']} has {row['due_entries']:,}"
            f" {'entry' if row['due_entries'] == 1 else 'entries'} due{known}, but"
            f" {what} ({self._since}){earlier}; {self._limit}{self._permits}{self._doubt}; {slowest_words(row)}."
        )

    @property
    def figures(self) -> dict[str, int]:
        """Figures of the evidence."""
        row, since = self.row, self.since_seconds
        figures = {
            "consumers": row["consumers"],
            "consumers_without_permits": row["without_permits"],
            "due_entries": row["due_entries"],
            "due_messages": row["messages"],
            "unacked_messages": row["unacked"],
        }
        return figures if since is None else figures | {"since_seconds": since}

    @property
    def _since(self) -> str:
        row = self.row
        if row["kind"] == ROUND:
            return f"{row['ack_rate']:,.1f} acknowledgements/s"
        last = _LAST[row["kind"]]
        if row["never"]:
            none = f"no {last.removeprefix('last ')} since its consumers connected"
            if row["since_seconds"] is None:
                return none
            return f"{none}, {seconds_in_words(row['since_seconds'], rounded=True)} before"
        if row["since_seconds"] is None:
            return f"{last} not known{'' if row['asked'] else ', as its topic was not asked'}"
        return f"{last} {seconds_in_words(row['since_seconds'], rounded=True)} before"

    @property
    def _limit(self) -> str:
        """The dispatch rate as the first cause.

        Empty if there is none, if consumers ask for nothing, or if it held nothing back since the snapshot before.
        """
        row = self.row
        waits = row["kind"] in {STILL, FULL} and row["without_permits"] < row["consumers"]
        if row["held"] is None or not waits:
            return ""
        _, older = next(self.before.told(row, apart_seconds=APART_SECONDS), (None, None))
        if older is not None and older["times_held"] == row["held"]["times"]:
            return ""
        return f"most likely cause: {held_words(row['held'])} (limit-reached); "

    @property
    def _permits(self) -> str:
        row = self.row
        if row["fresh"]:
            return f"all its consumers connected in the last {counted(self.recent_minutes, 'minute')}"
        if row["without_permits"] >= row["consumers"]:
            return "no consumer asks for more: look at the clients"
        if row["type"] == "Failover" and row["all_stuck"]:
            return "its active consumer asks for no more: look at it, the others stand by"
        return f"{row['consumers'] - row['without_permits']:,} of its consumers ask for more"

    @property
    def _doubt(self) -> str:
        """Note on a healthy client that would look the same."""
        row = self.row
        if self.may_be_delayed:
            return "; brokers may read no further while so many messages wait for the same delay"
        if row["type"] == "Key_Shared" and row["kind"] == STILL:
            return "; it is Key_Shared: consumers that joined later get nothing that those before them hold back"
        if row["kind"] in {AGAIN, ROUND} or self.severity is Severity.CRITICAL:
            return ""
        if not self.many_entries and (row["messages_per_entry"] or 0) > 1:
            return "; a batch is acknowledged as a whole, so a slow consumer shows nothing while it works through one"
        if not self.many:
            return "; few messages that each take long would look the same"
        return ""


def _fell(newer: Row, older: Row) -> bool:
    """True if something was consumed between two snapshots: the backlog shrank, and nothing expired."""
    expired = may_expire(newer) or may_expire(older)
    return not expired and (newer["backlog_entries"] or 0) < (older["backlog_entries"] or 0)


def _unacknowledged(newer: Row, older: Row) -> bool:
    return older["consumers"] > 0 and rests(older, "ack_rate") and not _fell(newer, older)


def _came_anew(newer: Row, older: Row) -> bool:
    """True if each consumer of the newer snapshot connected after all of the older one, or all had just connected."""
    if newer["all_named"] and older["all_named"]:
        return bool(newer["first_connected"] > older["last_connected"])
    return bool(newer["fresh"] and older["fresh"])


_SAME: dict[str, Callable[[Row, Row], bool]] = {
    STILL: lambda newer, older: _unacknowledged(newer, older) and rests(older, "message_rate_out"),
    FULL: lambda newer, older: older["consumers"] > 0 and rests(older, "message_rate_out") and not _fell(newer, older),
    UNACKED: _unacknowledged,
    ROUND: lambda _newer, older: (
        older["consumers"] > 0
        and None not in (older["ack_rate"], older["redeliver_rate"])
        and 0 < 100 * older["ack_rate"] <= HARDLY_PERCENT * older["redeliver_rate"]
    ),
    AGAIN: lambda newer, older: _unacknowledged(newer, older) and (older["redeliver_rate"] or 0) > 0,
}
"""Whether an earlier snapshot shows the same kind of standstill, by kind."""
