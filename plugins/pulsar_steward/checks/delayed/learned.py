"""Rate at which a cluster's brokers took topics over when one of them went away, by when clients were connected again.

A client connects as soon as its topic is loaded, so that the connection times of the first clients of topics whose
owner changed tell when each was served again. What is learned is a lower bound: some clients wait before they try
again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from pulsar_steward.checks.earlier import in_time
from pulsar_steward.model.bundles import most_of
from pulsar_steward.model.learned import Learned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.checks.check import Answers, Row
    from pulsar_steward.checks.delayed.failover import FailoverTimePolicy

PREFIX = "learned_"
LEARNED = f"""
select distinct {", ".join(f"{PREFIX}{name}" for name in Learned.__struct_fields__)} from failovers
where {PREFIX}at is not null
"""

OWNED = """
with owned as (from bundles where owner is not null and not is_heartbeat(namespace))
select broker, coalesce(read, false) as read, namespace, bundle, connected_topics,
    epoch(first_connected) - coalesce(clock_skew_milliseconds, 0) / 1000 as first_connected,
    epoch(most_connected) - coalesce(clock_skew_milliseconds, 0) / 1000 as most_connected
from brokers left join owned on owned.owner = brokers.broker
"""
"""One row per bundle with its owner, and one of a broker without any; times by the clock of who asked."""

# The start of a broker's process is known of this snapshot alone, which is its last one: it is in one of the intervals.
TAKEN_OVER = f"""
with looks as ({in_time("owned", "owned_before")}),
intervals as (
    select moment as after, lag(moment) over (order by moment) as before from (select distinct moment from looks)),
listed as (select moment, broker, bool_or(read) as read from looks group by all),
gone as (
    select intervals.*, listed.broker from intervals join listed on listed.moment = before and listed.read
        left join listed as later on later.moment = after and later.broker = listed.broker
        left join starts on starts.broker = listed.broker
    where not coalesce(later.read, false) or (started > before and started <= after)),
taken as (
    select gone.after, gone.broker as lost, now.broker as taker, now.connected_topics as topics,
        now.first_connected as first, now.most_connected as most
    from gone join looks old on old.moment = gone.before and old.broker = gone.broker
        join looks now on now.moment = gone.after and now.namespace = old.namespace and now.bundle = old.bundle
    where now.broker <> gone.broker and now.connected_topics > 0 and now.first_connected >= gone.before
        and now.most_connected is not null)
select * from taken window same as (partition by after) qualify min(lost) over same = max(lost) over same
"""
"""Bundles of a broker that went away, at the broker that has them in the next snapshot, with their clients' times.

Between two snapshots no other broker went away: else it would not be known after whose end clients came back.
"""


def learned_from(answers: Answers, policy: FailoverTimePolicy, taken_at: datetime) -> Learned | None:
    """The loss with most topics, the latest of equal ones; None: none with enough.

    In the snapshots of the window, or as one of them has it in its table `failovers`: each snapshot hands on to the
    next what was learned, until it is too old.
    """
    rows = sorted(answers["taken_over"].rows, key=lambda row: (row["after"], row["first"], row["most"]))
    found = [
        learned
        for _, of_interval in groupby(rows, key=lambda row: row["after"])
        for together in _together(list(of_interval), policy.client_backoff_seconds)
        if (learned := _learned(together)).topics >= policy.learned_from_topics
    ]
    oldest = taken_at - timedelta(days=policy.learned_for_days)
    handed_on = [known for row in answers["learned_before"].rows if (known := as_learned(row)).at >= oldest]
    return max((*found, *handed_on), key=lambda each: (each.topics, each.at), default=None)


def as_learned(row: Row) -> Learned:
    """Reads the columns ``learned_...`` of a row of the table `failovers`."""
    return Learned(**{name: row[f"{PREFIX}{name}"] for name in Learned.__struct_fields__})


def columns_of(learned: Learned | None) -> dict[str, object]:
    """Writes the columns ``learned_...`` of a row of the table `failovers`."""
    names = Learned.__struct_fields__
    return {f"{PREFIX}{name}": None if learned is None else getattr(learned, name) for name in names}


def _together(rows: Sequence[Row], apart_seconds: int) -> Iterator[list[Row]]:
    """Bundles that were served again one after the other, by their first client; the others moved at another time."""
    group: list[Row] = []
    for row in rows:
        if group and row["first"] > max(each["most"] for each in group) + apart_seconds:
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _learned(rows: Sequence[Row]) -> Learned:
    """Topics and seconds until nine in ten topics of these bundles were served; each bundle counts with nine in ten.

    A few topics may have waited for nothing but a client that came later.
    """
    needed, topics = most_of(sum(row["topics"] for row in rows)), 0
    counted_in: list[Row] = []
    for row in sorted(rows, key=lambda row: (row["most"], row["first"], row["topics"])):
        if topics >= needed:
            break
        counted_in.append(row)
        topics += row["topics"]
    first = int(min(row["first"] for row in rows) // 1)
    last = int(counted_in[-1]["most"] // 1)
    return Learned(
        lost=rows[0]["lost"],
        at=datetime.fromtimestamp(first, UTC),
        topics=sum(most_of(row["topics"]) for row in counted_in),
        seconds=last - first + 1,
        brokers=len({row["taker"] for row in counted_in}),
    )
