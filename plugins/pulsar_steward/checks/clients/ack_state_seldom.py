"""Cursors that are written so rarely that consumers get many messages again if a broker dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Query, RowCheck
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


class AckStateSeldomPolicy(Section):
    """Thresholds for the time between two writes of a cursor."""

    information_seconds: int = Field(
        10, ge=1, description="between two writes of what a subscription has acknowledged, or more; brokers wait for 1"
    )
    warning_messages: int = Field(
        10_000, ge=1, description="that consumers get again where brokers die, at the rate of now; fewer: information"
    )


DEFAULT = "managedLedgerDefaultMarkDeleteRateLimit"

# Decimals make the sum independent of order; many subscriptions with less than one message per second add up.
DELIVERED = """
select namespace, sum(coalesce(try_cast(message_rate_out as decimal(18, 6)), 0)) as messages_per_second
from user_subscriptions group by namespace
"""

# A namespace's setting goes before the brokers' default. 0 or below is no limit: each acknowledgement is written.
FOUND = f"""
with own as (
    select namespace, mark_deletes_per_second as writes_per_second from persistence
    where mark_deletes_per_second is not null),
rates as (
    select namespace, sum(messages_per_second) as messages_per_second from delivered group by namespace),
judged as (
    select own.namespace, writes_per_second, coalesce(messages_per_second, 0) as messages_per_second
    from own left join rates using (namespace)
    union all
    select null, min(try_cast(value as double)) filter (where try_cast(value as double) > 0),
        (select coalesce(sum(messages_per_second), 0) from rates anti join own using (namespace))
    from setting('{DEFAULT}'))
select namespace, writes_per_second, round(messages_per_second)::bigint as messages_per_second,
    1 / writes_per_second as seconds, messages_per_second::double / writes_per_second as messages,
    round_even(messages, 0) >= $warning_messages as warning
from judged where writes_per_second > 0 and 1 / writes_per_second >= $information_seconds
"""
READ = f"select count(*) as brokers from setting('{DEFAULT}') where try_cast(value as double) is not null"


def _evidence(row: Row) -> str:
    every = seconds_in_words(row["seconds"], rounded=True)
    who = (
        f"where a namespace sets nothing else ({DEFAULT})"
        if row["namespace"] is None
        else "by the namespace's own policy"
    )
    return (
        f"What a subscription has acknowledged is written once in {every} {who}."
        f" Consumers get {counted(row['messages_per_second'], 'message')} a second there: where their brokers die,"
        f" up to {counted(round(row['messages']), 'message')} come again."
    )


# A finding for each namespace with such a rate, and one for the brokers' default.
CHECK = RowCheck(
    check_id="ack-state-seldom",
    order=45,
    title="What is acknowledged is written seldom",
    advice=(
        "Of a namespace: pulsar-admin namespaces set-persistence -r 1 (its -e -w -a as they are): once a second.",
        f"Of all others: `{DEFAULT}=1` in broker.conf, its default; brokers restart for it.",
        "0 writes each acknowledgement by itself: bookies have to bear that for every subscription.",
        "Until then, have consumers bear messages that come again, and end brokers orderly: then nothing does.",
    ),
    source="docs/knowledge.md C: ack state written too often or too seldom; apache/pulsar#393, #180",
    policy=AckStateSeldomPolicy,
    shards={"delivered": Query(DELIVERED)},
    cluster={
        "found": Query(FOUND, worst_first="messages desc, seconds desc, namespace"),
        "read": Query(READ),
    },
    severity=lambda row: Severity.WARNING if row["warning"] else Severity.INFO,
    subject="namespace",
    evidence=_evidence,
    figures=lambda row: {"messages": round(row["messages"]), "seconds": round(row["seconds"])},
    missing=lambda queried, _context: (
        None if queried["read"].one["brokers"] else f"{DEFAULT} was not read of any broker."
    ),
    quiet=lambda _answers, context: (
        f"What is acknowledged is written before {counted(context.limits.information_seconds, 'second')} are over,"
        " whatever a broker then does."
    ),
)
