"""SQL for subscriptions that may stand still, and their rows of earlier snapshots."""

from __future__ import annotations

STILL, FULL, UNACKED, AGAIN = "still", "full", "unacked", "again"
"""Kinds of standstill.

Nothing moves at all; consumers work on what they hold; what is delivered is not acknowledged; nor is what is
delivered again.
"""

MAX_ROWS = 1000
"""Subscriptions of each question that are examined, those with most messages first."""

MAX_ENTRIES, MAX_MESSAGES_PER_ENTRY = 10**12, 10**6
"""Upper bounds of figures, so that their product fits its type."""

# Only consumers that the snapshot names; their number shows whether these are all.
_CONNECTED = """
select topic, subscription, count(connected_at) as named, min(connected_at) as first_connected,
    max(connected_at) as last_connected
from (select *, epoch(try_cast(connected_since as timestamptz)) as connected_at from {clients})
    semi join {wanted} using (topic, subscription)
group by topic, subscription
"""

# A subscription that is blocked for unacknowledged messages is left to the check for it. An entry may be a batch of
# messages, whose size is known only from what consumers got lately. Delayed messages count as backlog, are never
# batched, and are not due; where their number is not known, all of the backlog counts as due. On a Failover
# subscription one consumer gets everything; the others keep the permits that they once gave.
_DUE = f"""
with last as (
    select topic, subscription, max(last_consumed_milliseconds) as consumed, max(last_acked_milliseconds) as acked
    from drilled where subscription is not null group by topic, subscription),
at_rest as (
    select *, least(greatest(backlog_entries, 0), {MAX_ENTRIES}) * coalesce(
            least(greatest(messages_per_entry, 1), {MAX_MESSAGES_PER_ENTRY}), 1) as most_messages
    from user_subscriptions
    where consumers > 0 and (message_rate_out <= 0 or ack_rate <= 0) and (backlog_entries > 0 or unacked_messages > 0)
        and not coalesce(blocked_on_unacked, false) and coalesce(consumers_blocked, 0) < consumers
        and (greatest(most_messages, unacked_messages) >= (select min(minimum_due_messages) from limits)
            or consumers_stuck > 0 or redeliver_rate > 0 or consumers_connected_recently >= consumers
            or topic in (select topic from drilled))),
slow as (
    select topic, subscription, s.namespace, broker, s.type, s.consumers,
        coalesce(s.backlog_entries, 0) as backlog_entries,
        least(greatest(s.messages_per_entry, 1), {MAX_MESSAGES_PER_ENTRY}) as messages_per_entry,
        greatest(coalesce(s.unacked_messages, 0), 0) as unacked, minimum_due_messages, critical_minutes,
        s.redeliver_rate, s.expired_rate, consumed, acked,
        coalesce(s.consumers_without_permits, 0) as without_permits,
        coalesce(s.consumers_stuck >= if(s.type in ('Exclusive', 'Failover'), 1, s.consumers), false) as all_stuck,
        coalesce(s.consumers_connected_recently >= s.consumers, false) as fresh,
        case when s.ack_rate > 0 then '{FULL}'
            when s.message_rate_out > 0 then if(s.redeliver_rate > 0, '{AGAIN}', '{UNACKED}')
            else '{STILL}' end as kind
    from at_rest s join limits using (namespace) left join last using (topic, subscription)),
delayed as (
    select topic, subscription, max(told.messages) as delayed
    from clients_delayed told join slow using (topic, subscription)
    where told_by is null or told_by = broker group by topic, subscription),
connected as ({_CONNECTED.format(clients="clients", wanted="slow")}),
published as (select topic, message_rate_in from topics semi join slow using (topic)),
due as (
    select slow.*, greatest(backlog_entries - coalesce(delayed, 0), 0) as due_entries,
        greatest(least(due_entries, {MAX_ENTRIES}) * coalesce(messages_per_entry, 1), unacked) as messages,
        delayed is not null or told.broker is not null as delayed_known,
        case kind when '{STILL}' then greatest(consumed, acked) when '{FULL}' then consumed else acked end as moved_at,
        consumed is not null or acked is not null as asked, coalesce(moved_at = 0, false) as never,
        case when moved_at > 0 then greatest(floor($now)::bigint - moved_at // 1000, 0)
            when never and first_connected is not null
            then greatest(floor($now - first_connected)::bigint, 0) end as since_seconds,
        first_connected, last_connected, named >= consumers as all_named, message_rate_in
    from slow left join delayed using (topic, subscription) left join connected using (topic, subscription)
        left join published using (topic)
        left join clients_delayed_told told on told.broker = slow.broker
    where due_entries > 0 or unacked > 0)
select topic, subscription, namespace, type, consumers, backlog_entries, due_entries, messages, messages_per_entry,
    unacked, delayed_known, without_permits, all_stuck, fresh, kind, redeliver_rate, expired_rate, asked, never,
    since_seconds, first_connected, last_connected, all_named, message_rate_in
from due
"""

STANDING = f"{_DUE} where due_entries >= minimum_due_messages"
"""Subscriptions with enough due entries, each of which is at least one message: all of them are reported."""

POSSIBLE = f"""
{_DUE}
where due_entries < minimum_due_messages and (kind = '{AGAIN}'
    or (kind <> '{FULL}' and (fresh or messages >= minimum_due_messages))
    or (kind = '{STILL}' and (all_stuck or since_seconds >= 60 * critical_minutes)))
"""
"""Subscriptions that have as many messages only by the size of their batches, or few that nobody gets.

The duration decides about these.
"""

LONGEST_FIRST = f"kind = '{STILL}' desc, messages desc, topic, subscription"

BEFORE = f"""
with wanted as (select topic, subscription from standing union select topic, subscription from possible),
connected as ({_CONNECTED.format(clients="raw_clients", wanted="wanted")})
select topic, subscription, coalesce(consumers, 0) as consumers, backlog_entries, message_rate_out, ack_rate,
    redeliver_rate, expired_rate, coalesce(consumers_connected_recently >= consumers, false) as fresh,
    first_connected, last_connected, named >= consumers as all_named
from raw_subscriptions semi join wanted using (topic, subscription) left join connected using (topic, subscription)
where (message_rate_out <= 0 or ack_rate <= 0) and (backlog_entries > 0 or unacked_messages > 0)
"""
"""The same subscriptions in an earlier snapshot, where nothing was delivered or nothing acknowledged."""
