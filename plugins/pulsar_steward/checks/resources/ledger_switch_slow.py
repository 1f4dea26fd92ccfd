"""Time that brokers take to switch to a new ledger; all writes to the topic wait for it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query, RowCheck, if_any, if_none, ranked, silent_in
from pulsar_steward.checks.earlier import (
    LOOKS,
    WINDOW,
    WINDOW_MINUTES,
    looking_back,
    of_previous,
    of_sources,
)
from pulsar_steward.checks.resources.slowness import SWITCHES, latencies_of
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


class LedgerSwitchSlowPolicy(Section):
    """Thresholds for the time that switches to a new ledger take."""

    UNORDERED = frozenset({"share_percent"})

    window_minutes: int = number(WINDOW_MINUTES, WINDOW)
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
