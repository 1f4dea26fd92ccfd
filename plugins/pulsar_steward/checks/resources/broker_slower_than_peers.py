"""Brokers much slower at publishing than the others of the cluster, for most entries and not only a few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query, brokers_of, silent_in
from pulsar_steward.checks.earlier import LOOKS, WINDOW, WINDOW_MINUTES, looking_back, of_previous, of_sources
from pulsar_steward.checks.resources.publish_causes import RESTS_ON, CausesOfSlowness
from pulsar_steward.checks.resources.slowness import OVERFLOW, PROCESSES, PUBLISHES, READ_ONLY, SLOWS_A_PROCESS, WRITES
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row

_SERIES = ", ".join(f"'{name}{end}'" for name in (PUBLISHES, WRITES) for end in ("", OVERFLOW))


def medians_of(samples: str) -> str:
    """SQL for the median of each broker's publishes and writes, between `at_least` and `at_most` milliseconds.

    Unlike a mean, a few hanging events do not change it. `at_most` is infinite if the middle event took over a second.
    """
    return f"""
    with samples as (
        select source, replace(series, '{OVERFLOW}', '') as event, value,
            if(ends_with(series, '{OVERFLOW}'), 1000, try_cast(split_part(labels_json->>'quantile', '_', 1) as double))
                as low,
            if(ends_with(series, '{OVERFLOW}'), 'infinity'::double,
                try_cast(split_part(labels_json->>'quantile', '_', 2) as double)) as high
        from {samples} where series in ({_SERIES}) and isfinite(value) and value > 0),
    buckets as (
        select source, event, low, high, sum(value order by value) as rate
        from samples where isfinite(low) and high is not null group by source, event, low, high),
    ordered as (
        select *, sum(rate) over (partition by source, event order by low, high) as rate_up_to,
            sum(rate) over (
                partition by source, event order by low, high rows between unbounded preceding and unbounded following
            ) as rate_in_all
        from buckets)
    select source, event, any_value(rate_in_all) as rate, min(low) as at_least, min(high) as at_most
    from ordered where rate_up_to * 2 >= rate_in_all group by source, event
    """


TOLD = f"select source from ledger_latencies where event = '{PUBLISHES}'"
"""Brokers that report the latency of publishing, also brokers without publishing."""

_SLOW = f"event = '{PUBLISHES}' and at_least >= $warning_milliseconds"

MEDIANS_BEFORE = f"select source from ({medians_of(of_sources(f'medians where {_SLOW}'))}) where {_SLOW}"
"""Brokers with such a median in an earlier snapshot, among the brokers that have one now."""

AGAIN = f"select source from {of_previous('medians_before')}"
"""Brokers that had one in the snapshot before."""

MIN_PEERS = 2
"""Minimum number of other brokers to compare with: of two brokers, nobody knows which one is the exception."""


class BrokerSlowerThanPeersPolicy(Section):
    """Thresholds for the median time that a broker takes to publish an entry, compared with the other brokers."""

    window_minutes: int = number(WINDOW_MINUTES, WINDOW)
    minimum_writes_per_second: int = number(10, "entries published on a broker; one with fewer is not compared")
    warning_milliseconds: int = number(50, "median of a broker, at least: below it nobody waits for long")
    warning_percent_of_peers: int = number(
        500, "its median, of the others': bounds of buckets are up to five times apart", ge=101
    )


@dataclass(frozen=True)
class Slower:
    """A broker beside its peers.

    Attributes:
        row: Its row of `MEDIANS`, of publishes.
        peers: Number of brokers that it is compared with.
        peers_at_most: Upper bound of the peers' medians in milliseconds, the middle one of these bounds.
        writes: Its row of `MEDIANS`, of writes to bookies; None: it has none.
        again: True if the snapshot before shows the same.
    """

    row: Row
    peers: int
    peers_at_most: float
    writes: Row | None
    again: bool

    @property
    def in_broker(self) -> bool:
        """True if most of the time is spent in the broker itself, not at bookies."""
        return self.writes is not None and self.writes["at_least"] * 2 < self.row["at_least"]


def judge(queried: Queried, context: CheckContext[BrokerSlowerThanPeersPolicy]) -> Judgement:
    """Information if one snapshot shows it, as that may be a hiccup; a warning if two in a row do."""
    publishes = _of_event(queried, PUBLISHES)
    enough = [row for row in publishes.values() if row["rate"] >= context.limits.minimum_writes_per_second]
    slower = _slower(enough, queried, context.limits)
    if slower:
        causes = CausesOfSlowness.among(context.results, publishes, queried)
        slower.sort(key=lambda each: (not each.again, -each.row["at_least"], each.row["source"]))
        return Judgement(findings=tuple(_finding(each, causes) for each in slower))
    missing = None
    if silent := brokers_of(queried["silent"]):
        missing = f"The snapshot has no latencies of publishing on {named(silent)}."
    elif len(enough) <= MIN_PEERS:
        least = counted(context.limits.minimum_writes_per_second, "entry", "entries")
        missing = (
            f"{counted(len(enough), 'broker publishes', 'brokers publish')} {least} a second or more; it takes"
            f" {MIN_PEERS + 1} to say which one is slower than the others."
        )
    return Judgement(
        quiet=f"Of {counted(len(enough), 'broker')} that publish enough, none is much slower than the others.",
        cannot_tell=missing,
    )


def _of_event(queried: Queried, event: str) -> Mapping[str, Row]:
    return {row["source"]: row for row in queried["medians"].rows if row["event"] == event}


def _slower(enough: Sequence[Row], queried: Queried, limits: BrokerSlowerThanPeersPolicy) -> list[Slower]:
    again = {row["source"] for row in queried["again"].rows}
    writes = _of_event(queried, WRITES)
    found = []
    for row in enough:
        peers = sorted(other["at_most"] for other in enough if other is not row)
        if len(peers) < MIN_PEERS or row["at_least"] < limits.warning_milliseconds:
            continue
        usual = peers[len(peers) // 2]
        if row["at_least"] * 100 >= usual * limits.warning_percent_of_peers:
            source = row["source"]
            found.append(Slower(row, len(peers), usual, writes.get(source), source in again))
    return found


def _finding(slower: Slower, causes: CausesOfSlowness) -> Finding:
    row = slower.row
    published = f"{counted(row['rate'], 'entry', 'entries')} a second published on broker {row['source']}"
    again = "the snapshot before shows it too" if slower.again else "no other snapshot shows it yet"
    figures = {
        "median_at_least_milliseconds": int(row["at_least"]),
        "peers": slower.peers,
        "peers_median_at_most_milliseconds": int(slower.peers_at_most),
        "publishes_per_second": int(row["rate"]),
    }
    writes = ""
    if slower.in_broker and slower.writes is not None:
        at_most = slower.writes["at_most"]
        writes = f" Half of its writes to bookies take {at_most:g} ms at most: the time passes in the broker itself."
    elif slower.writes is not None:
        at_least = slower.writes["at_least"]
        writes = f" Its writes to bookies take as long: half of them {at_least:g} ms or more."
    if slower.writes is not None:
        figures["writes_median_at_least_milliseconds"] = int(slower.writes["at_least"])
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.WARNING if slower.again else Severity.INFO,
        subject=row["source"],
        evidence=(
            f"Of {published} in the last minute, half took {row['at_least']:g} ms or more; on the {slower.peers:,}"
            f" others that publish enough, half take {slower.peers_at_most:g} ms at most; {again}.{writes}"
            f" {causes.in_words(row['source'], writes_are_quick=slower.in_broker)}"
        ),
        figures=figures,
    )


CHECK = Check(
    check_id="broker-slower-than-peers",
    harm=Harm.SLOW,
    explained_by=SLOWS_A_PROCESS,
    order=7,
    title="A broker publishes much more slowly than its peers",
    advice=(
        "Begin with the cause that is named first: its own check says what to do (`steward explain CHECK_ID`).",
        "Where its writes take as long: look at its network, and at the bookies that its topics' ledgers are on.",
        "Where they do not: compare its CPU, its neighbours on the machine, JVM options and settings with others'.",
        "Three thread dumps of it, 10 s apart, read with `steward checkup --logs`.",
    ),
    source="docs/knowledge.md F: a broker that is slower than its peers",
    policy=BrokerSlowerThanPeersPolicy,
    shards={
        "medians": Query(medians_of("metrics")),
        "told": Query(TOLD),
        "processes": Query(PROCESSES),
        "read_only": Query(READ_ONLY),
    },
    earlier={"looks": LOOKS, "medians_before": looking_back(MEDIANS_BEFORE)},
    cluster={"again": Query(AGAIN), "silent": silent_in("told")},
    judge=judge,
    rests_on=RESTS_ON,
)
