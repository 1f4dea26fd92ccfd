"""Report text and figures about a quota: its usage, the effect of exceeding it, and what makes its figures approximate.

Whatever the settings, brokers measure a backlog from the mark-delete position of the slowest cursor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.backlog.quota_check_disabled import INTERVAL
from pulsar_steward.checks.check import Query
from pulsar_steward.decoding import convert
from pulsar_steward.model.finding import QuotaFigures
from pulsar_steward.model.units import bytes_in_words, counted, named, seconds_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import QueryRows, Row
    from pulsar_steward.model.finding import Finding


CULPRITS = """
with slowest as (
    select topic, list({
            'subscription': s.subscription, 'entries': coalesce(s.backlog_entries, 0),
            'messages_per_entry': coalesce(s.messages_per_entry, 0), 'consumers': coalesce(s.consumers, 0)}
        order by coalesce(s.subscription = w.slowest_subscription, false) desc, coalesce(s.backlog_entries, 0) desc,
            s.subscription desc)[1] as slowest
    from subscriptions s join worst w using (topic) group by topic),
consumers as (
    select topic, list({
            'consumer': c.consumer, 'address': c.address, 'connected_since': c.connected_since,
            'unacked_messages': coalesce(c.unacked_messages, 0), 'blocked': coalesce(c.blocked, false)}
        order by coalesce(c.unacked_messages, 0) desc, c.consumer desc, c.address desc, c.connected_since desc
        )[1] as slowest_consumer
    from clients c join slowest s using (topic) where c.subscription = s.slowest.subscription group by topic)
select worst.*, slowest, slowest_consumer from worst left join slowest using (topic) left join consumers using (topic)
"""
"""Adds `slowest` and `slowest_consumer` to rows with `topic` and `slowest_subscription`.

Where `slowest_subscription` is null, the one with the largest backlog is used. `slowest` is null where the topic has no
subscription, and `slowest_consumer` where none of its consumers is in the snapshot.
"""


def slowest_words(row: Row) -> str:
    """Further sentence, for example `` Slowest is subscription s with 12 entries; no consumer is connected to it.``."""
    slowest, consumer = row["slowest"], row["slowest_consumer"]
    if slowest is None:
        return ""
    words = f"Slowest is subscription {slowest['subscription']} with {_backlog_words(slowest)}"
    if slowest["consumers"] == 0:
        return f" {words}; no consumer is connected to it."
    if consumer is None:
        return f" {words}."
    whose = "its only consumer" if slowest["consumers"] == 1 else f"of its {counted(slowest['consumers'], 'consumer')}"
    return f" {words}; {whose}, {_in_words(consumer)}."


def _backlog_words(slowest: Row) -> str:
    """Size of the backlog as text: brokers count entries, and a batch of messages is one."""
    entries, batch = counted(slowest["entries"], "entry", "entries"), slowest["messages_per_entry"]
    return f"{entries} (lately of up to {counted(batch, 'message')} each)" if batch > 1 else entries


def _in_words(consumer: Row) -> str:
    since = f", connected since {consumer['connected_since']}," if consumer["connected_since"] else ""
    blocked = ", blocked" if consumer["blocked"] else ""
    return (
        f"{consumer['consumer'] or '(without a name)'} at {consumer['address'] or '(address not told)'}{since}"
        f" holds {consumer['unacked_messages']:,} unacknowledged{blocked}"
    )


_CONSEQUENCES = {
    "producer_request_hold": "all producers are cut off and new ones are refused until the backlog is below it",
    "producer_exception": "all producers are cut off and new ones are refused with an exception",
    "consumer_backlog_eviction": "the oldest messages that nobody has consumed are dropped",
}


def consequence(policy: str | None) -> str:
    """Effect of that policy on a topic over its quota."""
    return _CONSEQUENCES.get(policy or "", "what happens is not known, as its policy was not read")


def in_brackets(policy: str | None) -> str:
    """Name of the policy in brackets, after a space; empty: it was not read."""
    return f" ({policy})" if policy else ""


def size_quota(row: Row) -> str:
    """Usage of the size quota; a quota of 0 bytes is called impossible."""
    if row["limit_bytes"] == 0:
        return (
            f"the backlog is {bytes_in_words(row['backlog_bytes'], rounded=True)}, and a size quota of 0 bytes is"
            f" exceeded by any"
        )
    return (
        f"the backlog is {bytes_in_words(row['backlog_bytes'], rounded=True)}, {row['bytes_percent']:,} % of the size"
        f" quota of {bytes_in_words(row['limit_bytes'], rounded=True)}"
    )


def age_quota(row: Row) -> str:
    """Usage of the age quota."""
    return (
        f"the oldest message of the backlog is {seconds_in_words(row['oldest_seconds'], rounded=True)} old,"
        f" {row['seconds_percent']:,} % of the age quota of {seconds_in_words(row['limit_seconds'], rounded=True)}"
    )


def figures(row: Row) -> dict[str, int]:
    """Figures of a row of `quotas_in_force`, as far as they are known."""
    return convert({**row, "oldest_backlog_age_seconds": row["oldest_seconds"]}, QuotaFigures).by_name


def capitalised(sentence: str) -> str:
    """The sentence with a capital first letter; the rest is unchanged."""
    return sentence[:1].upper() + sentence[1:]


def set_by(who: str) -> str:
    """Place where a value is set: topic, namespace or default."""
    return "the brokers' default" if who == "default" else f"set by the {who}"


def delayed_words(row: Row) -> str:
    """Further sentence about delayed messages; empty if there are none, or it is not known."""
    count = row["delayed_messages"]
    return f" {counted(count, 'delayed message')} {'counts' if count == 1 else 'count'} as backlog." if count else ""


FILTERS, PRECISE = "entryFilterNames", "exposePreciseBacklogInPrometheus"
NO_FILTERS = ("", "[]")
DEFAULT_SECONDS = 60

PRECISION = Query(f"""
select
    (select coalesce(list(distinct trim(value) order by trim(value)), []) from setting('{FILTERS}')
        where trim(value) not in {NO_FILTERS}) as filters,
    (select max(try_cast(trim(value) as double))::bigint from setting('{INTERVAL}')) as seconds,
    coalesce((select bool_or(lower(trim(value)) = 'false') from setting('{PRECISE}')), false) as imprecise
""")
"""Query for `told_once`."""


def told_once(findings: Sequence[Finding], selected: QueryRows) -> tuple[Finding, ...]:
    """Appends the caveats to the evidence of the first finding, which is also the check's verdict."""
    caveats = _caveats(selected)
    if not findings or not caveats:
        return tuple(findings)
    first, *others = findings
    return msgspec.structs.replace(first, evidence=" ".join([first.evidence, *caveats])), *others


def _caveats(selected: QueryRows) -> list[str]:
    row = selected.one
    said = []
    if row["filters"]:
        said.append(f"What entry filters keep from consumers counts as backlog ({FILTERS}: {named(row['filters'])}).")
    if (row["seconds"] or 0) > DEFAULT_SECONDS:
        every = seconds_in_words(row["seconds"])
        said.append(f"Brokers compare backlogs with their quotas only every {every} ({INTERVAL}).")
    if row["imprecise"]:
        said.append(f"Prometheus may tell other counts of entries than these ({PRECISE} is off).")
    return said
