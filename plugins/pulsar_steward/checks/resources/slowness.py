"""Views of processes' metrics and of ledger latencies, and the queries that judge which latencies are slow.

All samples of a process are in one shard. Sums are still ordered first, as sums of floating point depend on the order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query, RowCheck, if_any, if_none, ranked, silent_in
from pulsar_steward.checks.earlier import LOOKS, ComparingPolicy, looking_back, of_previous, of_sources
from pulsar_steward.checks.views import SqlView
from pulsar_steward.model.measures import BOOKIE_STATUS
from pulsar_steward.model.section import number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row

SWITCHES = "pulsar_ml_LedgerSwitchLatencyBuckets"
WRITES = "pulsar_ml_LedgerAddEntryLatencyBuckets"
PUBLISHES = "pulsar_ml_AddEntryLatencyBuckets"
"""Series of ledgers' latencies by namespace.

Each bucket is a rate: events per second over the last statistics period (`managedLedgerStatsPeriodSeconds`, 60 by
default). Publishing an entry consists of the wait for a ledger and the write to bookies. The label `quantile` has the
bounds in milliseconds (``200.0_1000.0``); events over a second have a series of their own, ``..._OVERFLOW``. Measured
on 4.0.7.
"""

OVERFLOW = "_OVERFLOW"
SLOW_MILLISECONDS = 200
"""Bound in milliseconds from which an event is slow."""

_OF_TOPICS = ("pulsar_delayed_message_index_", "pulsar_storage_", "pulsar_subscription_")
"""Prefixes of series that may have a sample for each topic."""

_SERIES = ", ".join(f"'{name}{end}'" for name in (SWITCHES, WRITES, PUBLISHES) for end in ("", OVERFLOW))


def buckets_of(samples: str, events: tuple[str, ...] = (SWITCHES, WRITES, PUBLISHES)) -> str:
    """SQL for the buckets of ledgers' latencies: `event`, namespace, rate and bounds in milliseconds.

    Events over a second (`stalled`) have no upper bound.
    """
    series = ", ".join(f"'{name}{end}'" for name in events for end in ("", OVERFLOW))
    return f"""
    select source, replace(series, '{OVERFLOW}', '') as event, labels_json->>'namespace' as namespace, value as rate,
        ends_with(series, '{OVERFLOW}') as stalled,
        if(stalled, 1000, try_cast(split_part(labels_json->>'quantile', '_', 1) as double)) as low,
        if(stalled, 'infinity', try_cast(split_part(labels_json->>'quantile', '_', 2) as double)) as high
    from {samples} where series in ({series}) and isfinite(value)
    """


def latencies_of(samples: str) -> str:
    """SQL for the latencies of ledgers, by broker and event (`SWITCHES`, `WRITES` or `PUBLISHES`).

    The rows have events per second, those over 200 ms (slow) and over a second (stalled), and the namespace with most
    slow ones and their rate. `lost_percent`: the minimum share of the writers' waiting time lost in events over a
    second. These count as a second each, all others as the upper bound of their bucket. A writer that waits for each
    write writes little during a stall, so shares of the number of events would hide it.
    """
    return f"""
    with buckets as ({buckets_of(samples)}),
    of_namespaces as (
        select event, source, namespace, sum(b.rate order by b.rate) as rate,
            coalesce(sum(b.rate order by b.rate) filter (low >= {SLOW_MILLISECONDS}), 0) as slow,
            coalesce(sum(b.rate order by b.rate) filter (b.stalled), 0) as stalled,
            coalesce(sum(b.rate * high order by b.rate * high) filter (not b.stalled), 0) as others_waited
        from buckets b group by event, source, namespace),
    of_brokers as (
        select event, source, sum(rate order by rate) as rate, sum(slow order by slow) as slow_rate,
            sum(stalled order by stalled) as stalled_rate, max(slow) as namespace_rate,
            sum(others_waited order by others_waited) as others_waited,
            first(namespace order by slow desc, namespace desc nulls last) as namespace
        from of_namespaces group by event, source)
    select * exclude (others_waited), if(rate > 0, slow_rate * 100 / rate, 0) as slow_percent,
        if(rate > 0, stalled_rate * 100 / rate, 0) as stalled_percent,
        if(stalled_rate > 0, stalled_rate * 100000 / (stalled_rate * 1000 + greatest(others_waited, 0)), 0)
            as lost_percent
    from of_brokers
    """


def of_event(event: str) -> str:
    """SQL for the latencies of an event, such as `WRITES`, by broker."""
    return f"select * from ledger_latencies where event = '{event}'"


def slow_before(now: str, event: str) -> str:
    """SQL for earlier latencies of brokers with a slow event in the result `now` of `of_event`, often none."""
    return f"""
    select source, rate, slow_percent, stalled_rate, lost_percent
    from ({latencies_of(of_sources(f"{now} where slow_rate > 0"))}) where event = '{event}' and slow_rate > 0
    """


class SlowEventsPolicy(ComparingPolicy):
    """Thresholds for entries that are published, or written to bookies, slowly, as brokers measure both."""

    minimum_writes_per_second: int = number(10, "entries of a broker; the share of slow ones among fewer is not judged")
    single_look_writes_per_second: int = number(
        100,
        "the same; of fewer, a single hiccup is a large share, so it is information until two snapshots in a row show"
        " it, as it is of more where hardly any took over a second; from critical_slow_percent on it is a warning then",
    )
    warning_slow_percent: int = percent(5, "entries over 200 ms; an overloaded test machine shows 1")
    critical_slow_percent: int = percent(25, "the same, when producers time out")
    minimum_stalled_writes_per_minute: int = number(3, "entries over a second; fewer are left alone")
    warning_lost_percent: int = percent(
        5,
        "time in entries over a second, of all the time that entries took: information, and a warning where two"
        " snapshots in a row show it",
    )
    critical_lost_percent: int = percent(50, "the same: producers stand still more than not")


_MANY = "rate >= $minimum_writes_per_second and slow_percent >= $warning_slow_percent"
_STALLED = """
round(stalled_rate * 60) >= $minimum_stalled_writes_per_minute and lost_percent >= $warning_lost_percent
"""


def slow_of(now: str, before: str) -> str:
    """SQL for the brokers with a slow event, by `SlowEventsPolicy`, and the check's `of_event` and `slow_before`.

    `rank`: 2 critical, 1 warning, 0 information, as one minute may be a single hiccup.
    """
    return f"""
    with before as (
        select source, {_MANY} as many_before, {_STALLED} as stalled_before, lost_percent as lost_percent_before
        from {of_previous(before)}),
    judged as (
        select {now}.*, {_MANY} as many, {_STALLED} as stalled, coalesce(many_before, false) as many_again,
            coalesce(stalled_before, false) as stalled_again, lost_percent_before
        from {now} left join before using (source))
    select *, many_again or stalled_again as again, case
        when many and slow_percent >= $critical_slow_percent
            and (many_again or stalled and rate >= $single_look_writes_per_second) then 2
        when stalled and stalled_again and least(lost_percent, lost_percent_before) >= $critical_lost_percent then 2
        when many and rate >= $single_look_writes_per_second
            and (stalled or slow_percent >= $critical_slow_percent) then 1
        when many and many_again then 1
        when stalled and stalled_again then 1
        else 0 end as rank
    from judged where many or stalled
    """


SLOWS_A_PROCESS = ("io-threads-stuck", "heap-pressure", "gc-pressure", "cpu-busy", "direct-memory-pressure")
"""Checks that find why a process is slow, the likeliest cause first."""

STALLED = "over_second_per_minute"
"""Figure of slow events: those over a second, per minute."""


def slow_words(row: Row, events: str, what: str) -> str:
    """Clause about so many `events` of a row of `slow_of`, and whether the snapshot before shows the same."""
    lost = f", {row['lost_percent']:.0f} % of the time that {what} took at least" if row["stalled_rate"] else ""
    again = "; the snapshot before shows it too" if row["again"] else "; no other snapshot shows it yet"
    return (
        f"Of {events} in the last minute, {row['slow_percent']:.0f} % took over 200 ms and"
        f" {row['stalled_percent']:.1f} % over a second{lost}{again}"
    )


def slow_figures(row: Row, rate: str) -> dict[str, int]:
    """Figures of a row of `slow_of`; `rate` is the name of the events per second."""
    return {
        "lost_percent": int(row["lost_percent"]),
        "over_200_milliseconds_percent": int(row["slow_percent"]),
        STALLED: round(row["stalled_rate"] * 60),
        "over_second_percent": int(row["stalled_percent"]),
        rate: int(row["rate"]),
    }


READ_ONLY = f"select distinct source from process_samples where series = '{BOOKIE_STATUS}' and value <= 0"
"""Bookies that take no writes, by their own metrics (docs/pulsar-behaviour.md)."""

PROCESSES = "select distinct source, source_kind from process_samples where source_kind <> 'broker'"
"""Bookies and ZooKeeper servers that report their metrics."""

VIEWS = (
    # Finite samples, without those of topics and namespaces, which are nearly all.
    SqlView(
        "process_samples",
        f"""
        select source, source_kind, series, labels_json, value from metrics
        where isfinite(value) and series not in ({_SERIES})
            and not ({" or ".join(f"starts_with(series, '{each}')" for each in _OF_TOPICS)})
        """,
        kept=True,
    ),
    # The result of `latencies_of` for each broker of the shard.
    SqlView("ledger_latencies", latencies_of("metrics"), kept=True),
)


class LedgerSwitchSlowPolicy(ComparingPolicy):
    """Thresholds for the time that switches to a new ledger take."""

    UNORDERED = frozenset({"share_percent"})

    minimum_switches_per_minute: int = number(
        5, "slow switches of a broker in the last statistics period, as a rate; fewer are information"
    )
    warning_share_percent: int = percent(20, "switches over 200 ms; usual are 10 to 100 ms each")
    critical_share_percent: int = percent(20, "switches over a second")
    warning_lost_percent: int = percent(
        50,
        "time in switches over a second, of all the time that switches took, where two snapshots in a row"
        " show it: among thousands of quick ones, slow ones are a small share of the number",
    )


OF_BROKERS = f"select * from ledger_latencies where event = '{SWITCHES}'"

STALLED_BEFORE = f"""
select source, stalled_rate, lost_percent
from ({latencies_of(of_sources("switches where stalled_rate > 0"))}) where event = '{SWITCHES}' and stalled_rate > 0
"""

_LOST = "round(stalled_rate * 60) >= $minimum_switches_per_minute and lost_percent >= $warning_lost_percent"

FOUND = f"""
with before as (select source, {_LOST} as lost_before from {of_previous("stalled_before")}),
judged as (
    select switches.*, {_LOST} and coalesce(lost_before, false) as lost
    from switches left join before using (source)),
ranked as (
    select *, case
        when round(stalled_rate * 60) >= $minimum_switches_per_minute and stalled_percent >= $critical_share_percent
            then 2
        when round(slow_rate * 60) >= $minimum_switches_per_minute and slow_percent >= $warning_share_percent then 1
        when lost then 1
        when stalled_rate > 0 then 0 end as rank
    from judged)
select * from ranked where rank is not null
"""
"""Brokers with slow switches; `rank`: 2 critical, 1 warning, 0 information (any switch over a second)."""


def _quiet(queried: Queried, _context: CheckContext[LedgerSwitchSlowPolicy]) -> str:
    switches = queried["switches"].rows
    if not switches:
        return "Nothing was judged."
    rate, most = math.fsum(row["rate"] for row in switches), max(row["slow_percent"] for row in switches)
    return (
        f"About {counted(rate * 60, 'ledger was', 'ledgers were')} switched in the last minute;"
        f" at most {most:.0f} % on any broker took over 200 ms."
    )


def _evidence(row: Row) -> str:
    a_minute = {name: row[f"{name}rate"] * 60 for name in ("", "slow_", "stalled_", "namespace_")}
    lost = f", {row['lost_percent']:.0f} % of the time that topics waited at least" if row["stalled_rate"] else ""
    again = ", as in the snapshot before" if lost and row["lost"] else ""
    return (
        f"Of about {a_minute['']:,.0f} ledger switches a minute on broker {row['source']}, {a_minute['slow_']:,.0f}"
        f" took over 200 ms ({row['slow_percent']:.0f} %) and {a_minute['stalled_']:,.0f} over a second"
        f"{lost}{again}; most of the slow ones in {row['namespace']} ({a_minute['namespace_']:,.0f})."
    )


# Judges by the share of a broker's switches that are slow, and by the share of time lost in the slowest.
CHECK = RowCheck(
    check_id="ledger-switch-slow",
    harm=Harm.SLOW,
    order=40,
    title="Switching to a new ledger is slow: producers wait meanwhile",
    advice=(
        "Look at the metadata store first (check metadata-latency): a switch is mostly writes to it.",
        "Look at the bookies' health and their number: a new ledger needs a whole ensemble.",
        "Make ledgers last longer: `managedLedgerMaxEntriesPerLedger`, `managedLedgerMinLedgerRolloverTimeMinutes`.",
    ),
    source="docs/knowledge.md C: slow ledger switch",
    policy=LedgerSwitchSlowPolicy,
    shards={"switches": Query(OF_BROKERS)},
    earlier={"looks": LOOKS, "stalled_before": looking_back(STALLED_BEFORE)},
    cluster={
        "found": Query(FOUND, worst_first="rank desc, stalled_rate desc, slow_rate desc, source"),
        "silent": silent_in("switches"),
        "switched": Query("select source from switches where rate > 0"),
    },
    severity=ranked,
    subject="source",
    evidence=_evidence,
    figures=lambda row: {
        "lost_percent": row["lost_percent"],
        "over_200_milliseconds_per_minute": round(row["slow_rate"] * 60),
        "over_second_per_minute": round(row["stalled_rate"] * 60),
        "switches_per_minute": round(row["rate"] * 60),
    },
    missing=(
        if_any("silent", "The snapshot has no ledger switch latencies of {names}."),
        if_none("switched", "No ledger was switched in the last minute, so nothing is known of how long it takes."),
    ),
    quiet=_quiet,
)
