"""Brokers much slower at publishing than the others of the cluster, for most entries and not only a few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query, brokers_of, silent_in
from pulsar_steward.checks.earlier import LOOKS, ComparingPolicy, looking_back, of_previous, of_sources
from pulsar_steward.checks.resources.publish_causes import RESTS_ON, CausesOfSlowness
from pulsar_steward.checks.resources.slowness import (
    PROCESSES,
    PUBLISHES,
    READ_ONLY,
    SLOWS_A_PROCESS,
    WRITES,
    buckets_of,
)
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import number
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row


def medians_of(samples: str) -> str:
    """SQL for the median of each broker's publishes and writes, between `at_least` and `at_most` milliseconds.

    Unlike a mean, a few hanging events do not change it. `at_most` is infinite if the middle event took over a second.
    """
    return f"""
    with buckets as (
        select source, event, low, high, sum(b.rate order by b.rate) as rate
        from ({buckets_of(samples, (PUBLISHES, WRITES))}) b
        where b.rate > 0 and isfinite(low) and high is not null group by source, event, low, high),
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


class BrokerSlowerThanPeersPolicy(ComparingPolicy):
    """Thresholds for the median time that a broker takes to publish an entry, compared with the other brokers."""

    minimum_writes_per_second: int = number(10, "entries published on a broker; one with fewer is not compared")
    warning_milliseconds: int = number(50, "median of a broker, at least: below it nobody waits for long")
    warning_percent_of_peers: int = number(
        500, "its median, of the others': bounds of buckets are up to five times apart", ge=101
    )


def judge(queried: Queried, context: CheckContext[BrokerSlowerThanPeersPolicy]) -> Judgement:
    """Information if one snapshot shows it, as that may be a hiccup; a warning if two in a row do."""
    limits = context.limits
    publishes, writes = (
        {row["source"]: row for row in queried["medians"].rows if row["event"] == event}
        for event in (PUBLISHES, WRITES)
    )
    enough = [row for row in publishes.values() if row["rate"] >= limits.minimum_writes_per_second]
    again = {row["source"] for row in queried["again"].rows}
    causes = CausesOfSlowness.among(context.results, publishes, queried)
    found = []
    for row in sorted(enough, key=lambda row: (-row["at_least"], row["source"])):
        peers = sorted(other["at_most"] for other in enough if other is not row)
        if len(peers) < MIN_PEERS or row["at_least"] < limits.warning_milliseconds:
            continue
        usual = peers[len(peers) // 2]
        if row["at_least"] * 100 >= usual * limits.warning_percent_of_peers:
            found.append(_finding(row, peers, writes.get(row["source"]), causes, again=row["source"] in again))
    missing = None
    if silent := brokers_of(queried["silent"]):
        missing = f"The snapshot has no latencies of publishing on {named(silent)}."
    elif len(enough) <= MIN_PEERS:
        least = counted(limits.minimum_writes_per_second, "entry", "entries")
        missing = (
            f"{counted(len(enough), 'broker publishes', 'brokers publish')} {least} a second or more; it takes"
            f" {MIN_PEERS + 1} to say which one is slower than the others."
        )
    return Judgement(
        findings=tuple(found),
        quiet=f"Of {counted(len(enough), 'broker')} that publish enough, none is much slower than the others.",
        cannot_tell=missing,
    )


def _finding(
    row: Row, peers: Sequence[float], written: Row | None, causes: CausesOfSlowness, *, again: bool
) -> Finding:
    """Finding about a broker.

    Args:
        row: Its row of `medians`, of publishes.
        peers: Upper bounds of its peers' medians in milliseconds, in order; the middle one counts.
        written: Its row of `medians`, of writes to bookies; None: it has none.
        causes: What other checks found.
        again: True if the snapshot before shows the same.
    """
    usual, in_broker = peers[len(peers) // 2], False
    figures = {
        "median_at_least_milliseconds": int(row["at_least"]),
        "peers": len(peers),
        "peers_median_at_most_milliseconds": int(usual),
        "publishes_per_second": int(row["rate"]),
    }
    writes = ""
    if written is not None:
        figures["writes_median_at_least_milliseconds"] = int(written["at_least"])
        in_broker = written["at_least"] * 2 < row["at_least"]
        writes = f" Its writes to bookies take as long: half of them {written['at_least']:g} ms or more."
        if in_broker:
            most = f"{written['at_most']:g} ms at most"
            writes = f" Half of its writes to bookies take {most}: the time passes in the broker itself."
    return CHECK.finding(
        severity=Severity.WARNING if again else Severity.INFO,
        subject=row["source"],
        evidence=(
            f"Of {counted(row['rate'], 'entry', 'entries')} a second published on broker {row['source']} in the last"
            f" minute, half took {row['at_least']:g} ms or more; on the {len(peers):,} others that publish enough, half"
            f" take {usual:g} ms at most;"
            f" {'the snapshot before shows it too' if again else 'no other snapshot shows it yet'}.{writes}"
            f" {causes.in_words(row['source'], writes_are_quick=in_broker)}"
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
