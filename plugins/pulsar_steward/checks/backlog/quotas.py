"""What checks of quotas share: whether settings were read, and report text about a quota and its usage.

Whatever the settings, brokers measure a backlog from the mark-delete position of the slowest cursor.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.checks.check import Query
from pulsar_steward.checks.clients.consumers import to_the_second
from pulsar_steward.checks.clients.rates import SUBSCRIPTIONS_HELD, held_words
from pulsar_steward.decoding import convert
from pulsar_steward.model.broker_defaults import default_number
from pulsar_steward.model.finding import QuotaFigures
from pulsar_steward.model.subscription import Holder, unexplained
from pulsar_steward.model.units import bytes_in_words, counted, epoch_in_words, named, seconds_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, QueryRows, Reason, Row
    from pulsar_steward.model.finding import Finding

INTERVAL = "backlogQuotaCheckIntervalInSeconds"
PRECISE, ROLLOVER = "preciseTimeBasedBacklogQuotaCheck", "managedLedgerMaxLedgerRolloverTimeMinutes"
"""Names of settings in ``broker.conf``."""

DEFAULTS = Query("select * from broker_defaults cross join defaults_that_differ")
"""Query for `unknown_defaults`."""


def unknown_defaults(queried: Queried, *names: str) -> str | None:
    """Reason why namespaces that use these defaults cannot be judged, by the query `defaults`; None: all are known."""
    defaults = queried["defaults"].one
    missing = [name for name in names if defaults[name] is None]
    if missing:
        return f"Brokers' defaults were not read: {', '.join(missing)}."
    differing = [name for name in names if name in defaults["differing"]]
    if not differing:
        return None
    return (
        f"Brokers have different defaults ({', '.join(differing)}): the most common one was used, though each topic"
        " follows its own broker."
    )


def defaults_known(*names: str) -> Reason:
    """Reason by `unknown_defaults`, for checks made of rows."""
    return lambda queried, _context: unknown_defaults(queried, *names)


def holds_producers(policy: str) -> str:
    """SQL: true if a column's policy blocks producers; `producer_request_hold` and `producer_exception` both do."""
    return f"coalesce(starts_with({policy}, 'producer_'), false)"


def ages_not_read(of: str = "true") -> Query:
    """Query for `unknown_ages`: number of topics with a backlog and an age quota whose age was not read.

    Args:
        of: SQL condition: the topics that matter.
    """
    return Query(f"""
        select count(*) as topics, min(topic) as topic from ages_not_read where backlog_bytes > 0 and {of}
    """)


def unknown_ages(queried: Queried, _context: CheckContext[Any] | None = None) -> str | None:
    """Reason why silence about age quotas proves nothing, by the query `ages_unread`; None: all ages were read."""
    one, many = "topic with an age quota has", "topics with an age quota have"
    return _not_asked(
        queried["ages_unread"], one, many, "a backlog whose age was not read (brokers before 3.0 report none)"
    )


def policies_not_read(percent: str) -> Query:
    """Query for `unknown_policies`: number of topics near a quota with an unknown policy.

    Args:
        percent: SQL: the share of a quota from which its policy matters.
    """
    return Query(f"""
        select count(*) as topics, min(topic) as topic from pressed join limits using (namespace)
        where (bytes_policy is null and bytes_percent >= {percent})
            or (seconds_policy is null and seconds_percent >= {percent})
    """)


def unknown_policies(queried: Queried, _context: CheckContext[Any]) -> str | None:
    """Reason why silence about a quota's effect proves nothing, by `policies_unread`; None: all are known."""
    what = "near a quota whose policy was not read"
    return _not_asked(queried["policies_unread"], "topic is", "topics are", what)


def _not_asked(selected: QueryRows, one: str, many: str, what: str) -> str | None:
    """Sentence about the topics of all shards together, with the first by name; None if there is none."""
    rows = [row for row in selected.rows if row["topics"]]
    topics, first = sum(row["topics"] for row in rows), min((row["topic"] for row in rows), default="")
    words = f"{counted(topics, one, many)} {what}, such as {first} (collect.drilled_topics bounds how many are asked)."
    return words if rows else None


# A ledger that was closed before a cursor was made has only messages that were stored before.
CULPRITS = f"""
with began as (
    select topic, subscription as holder,
        max(epoch_ms(try_cast(cursor_json->>'created' as timestamptz))) as made_milliseconds
    from (from drilled where json_valid(cursor_json))
    where unread_closed_milliseconds < epoch_ms(try_cast(cursor_json->>'created' as timestamptz))
    group by all),
slowest as (
    select topic, list({{
            'name': c.holder, 'entries': c.entries, 'messages_per_entry': coalesce(s.messages_per_entry, 0),
            'consumers': coalesce(s.consumers, 0), 'began_later_milliseconds': made_milliseconds}}
        order by coalesce(c.holder = w.slowest_subscription, false) desc, is_reader(c.holder), c.entries desc,
            c.holder desc)[1] as slowest
    from backlogs c join worst w using (topic) left join subscriptions s on s.topic = c.topic
        and s.subscription = c.holder left join began b on b.topic = c.topic and b.holder = c.holder
    group by topic),
consumers as (
    select topic, list({{
            'consumer': c.consumer, 'address': c.address, 'connected_since': c.connected_since,
            'unacked_messages': coalesce(c.unacked_messages, 0), 'blocked': coalesce(c.blocked, false)}}
        order by coalesce(c.unacked_messages, 0) desc, c.consumer desc, c.address desc, c.connected_since desc
        )[1] as slowest_consumer
    from clients c join slowest s using (topic) where c.subscription = s.slowest.name group by topic)
select worst.*, slowest, slowest_consumer, held,
    slowest is null and worst.backlog_bytes > 0 and coalesce(deduplicated, true) as held_by_deduplication
from worst left join slowest using (topic) left join consumers using (topic)
    left join {SUBSCRIPTIONS_HELD} h on h.topic = worst.topic and h.subscription = slowest.name
    left join deduplication d on d.namespace = worst.namespace
"""
"""Adds `slowest`, `slowest_consumer`, `held` and `held_by_deduplication` to rows with `topic`, `namespace`,
`backlog_bytes` and `slowest_subscription`.

`slowest` is the cursor that holds the backlog: `slowest_subscription` if that has entries left, else the cursor with
most of them, of whatever kind. It is null where no known cursor has any, and `slowest_consumer` where it is no
subscription, or none of its consumers is in the snapshot. `held` is the dispatch rate that holds it back, if any.
"""


HELD_BY_NONE = (
    "No subscription and no replicator has anything left: deduplication's cursor (pulsar.dedup), which statistics do"
    f" not show, may hold it; if so, {unexplained().remedy}."
)
"""Sentence on a backlog without a known holder."""


def slowest_words(row: Row) -> str:
    """Further sentence, for example `` Slowest is subscription s with 12 entries; no consumer is connected to it.``."""
    slowest, consumer = row["slowest"], row["slowest_consumer"]
    if slowest is None:
        return f" {HELD_BY_NONE}" if row["held_by_deduplication"] else ""
    holder = Holder(name=slowest["name"], entries=slowest["entries"])
    if holder.is_own:
        entries = counted(slowest["entries"], "entry", "entries")
        return f" It is held by {holder.words}, with {entries} left: {holder.remedy}."
    # Brokers count entries, and a batch of messages is one.
    entries, batch = counted(slowest["entries"], "entry", "entries"), slowest["messages_per_entry"]
    batches = f" (lately of up to {counted(batch, 'message')} each)" if batch > 1 else ""
    words, began = f" Slowest is {holder.words} with {entries}{batches}", ""
    if slowest["began_later_milliseconds"] is not None:  # it is younger than what it has not read
        made = epoch_in_words(slowest["began_later_milliseconds"])
        began = f" It was made {made}, after its first unread message was stored: it began in what was kept,"
        began += " or was reset."
    if slowest["consumers"] == 0:
        return f"{words}; no consumer is connected to it.{began}"
    if row["held"] is not None:
        words += f"; most likely cause: {held_words(row['held'])} (limit-reached)"
    if consumer is None:
        return f"{words}.{began}"
    whose = "its only consumer" if slowest["consumers"] == 1 else f"of its {counted(slowest['consumers'], 'consumer')}"
    since = f", connected since {to_the_second(consumer['connected_since'])}," if consumer["connected_since"] else ""
    return (
        f"{words}; {whose}, {consumer['consumer'] or '(without a name)'} at"
        f" {consumer['address'] or '(address not told)'}{since} holds {max(consumer['unacked_messages'], 0):,}"
        f" unacknowledged{', blocked' if consumer['blocked'] else ''}.{began}"
    )


_SLOWEST = re.compile(r" Slowest is subscription ([^\s-]\S*) with [\d,]+ entr(?:y|ies)\b")


def slowest_in(evidence: str) -> str | None:
    """The subscription that `slowest_words` named; None: it named none, or a name that could be read as another one."""
    found = _SLOWEST.findall(evidence)
    return found[0] if len(found) == len(re.findall(r" with [\d,]+ entr(?:y|ies)\b", evidence)) == 1 else None


KEEPS_A_BACKLOG = (
    "quota-stuck",
    "replication-stopped",
    "subscription-blocked",
    "subscription-stalled",
    "subscription-abandoned",
    "compaction-over-quota",
)
"""Checks that find why a topic keeps a backlog, the likeliest cause first."""

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


def quota_used(row: Row, *, by_size: bool) -> str:
    """Usage of the size or of the age quota, for the beginning of a sentence; a quota of 0 bytes is impossible."""
    if not by_size:
        return (
            f"The oldest message of the backlog is {seconds_in_words(row['oldest_seconds'], rounded=True)} old,"
            f" {row['seconds_percent']:,} % of the age quota of {seconds_in_words(row['limit_seconds'], rounded=True)}"
        )
    backlog = f"The backlog is {bytes_in_words(row['backlog_bytes'], rounded=True)}"
    if row["limit_bytes"] == 0:
        return f"{backlog}, and a size quota of 0 bytes is exceeded by any"
    limit = bytes_in_words(row["limit_bytes"], rounded=True)
    return f"{backlog}, {row['bytes_percent']:,} % of the size quota of {limit}"


def figures(row: Row) -> dict[str, int]:
    """Figures of a row of `quotas_in_force`, as far as they are known."""
    return convert({**row, "oldest_backlog_age_seconds": row["oldest_seconds"]}, QuotaFigures).by_name


def set_by(who: str) -> str:
    """Place where a value is set: topic, namespace or default."""
    return "the brokers' default" if who == "default" else f"set by the {who}"


def delayed_words(row: Row) -> str:
    """Further sentence about delayed messages; empty if there are none, or it is not known."""
    count = row["delayed_messages"]
    return f" {counted(count, 'delayed message')} {'counts' if count == 1 else 'count'} as backlog." if count else ""


FILTERS, EXPOSED = "entryFilterNames", "exposePreciseBacklogInPrometheus"
NO_FILTERS = ("", "[]")
DEFAULT_SECONDS = default_number(INTERVAL)

PRECISION = Query(f"""
select
    (select coalesce(list(distinct trim(value) order by trim(value)), []) from setting('{FILTERS}')
        where trim(value) not in {NO_FILTERS}) as filters,
    (select max(try_cast(trim(value) as double))::bigint from setting('{INTERVAL}')) as seconds,
    coalesce((select bool_or(lower(trim(value)) = 'false') from setting('{EXPOSED}')), false) as imprecise
""")
"""Query for `told_once`."""


def told_once(findings: Sequence[Finding], selected: QueryRows) -> tuple[Finding, ...]:
    """Appends the caveats to the evidence of the first finding, which is also the check's verdict."""
    row, said = selected.one, []
    if row["filters"]:
        said.append(f"What entry filters keep from consumers counts as backlog ({FILTERS}: {named(row['filters'])}).")
    if (row["seconds"] or 0) > DEFAULT_SECONDS:
        every = seconds_in_words(row["seconds"])
        said.append(f"Brokers compare backlogs with their quotas only every {every} ({INTERVAL}).")
    if row["imprecise"]:
        said.append(f"Prometheus may tell other counts of entries than these ({EXPOSED} is off).")
    if not findings:
        return ()
    first, *others = findings
    return msgspec.structs.replace(first, evidence=" ".join([first.evidence, *said])), *others
