"""Lifetime of brokers' connections: since the brokers' start, and over the snapshots of the last hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.units import counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row

ACTIVE = "pulsar_active_connections"
SUCCEEDED = "pulsar_connection_create_success_count"
FAILED = "pulsar_connection_create_fail_count"
LOOKUPS_FAILED = "pulsar_broker_lookup_failures_total"
THROTTLED = "pulsar_broker_throttled_connections"

SERIES = (STARTED, ACTIVE, SUCCEEDED)
"""Metrics without which a broker's connections cannot be judged."""

YOUNG_SECONDS = "2 * 60 * $collect__recent_minutes"
"""SQL: seconds after a broker's start in which new clients are normal."""

# Handshakes are counted, not sockets: probes of the port open sockets all the time without a handshake.
COUNTED = f"""
select source as broker, $now - max(value) filter (series = '{STARTED}') as uptime_seconds,
    max(value) filter (series = '{ACTIVE}') as active, max(value) filter (series = '{SUCCEEDED}') as succeeded,
    coalesce(max(value) filter (series = '{FAILED}'), 0.0) as failed,
    max(value) filter (series = '{LOOKUPS_FAILED}') as lookups_failed,
    max(greatest(value, 0)) filter (series = '{THROTTLED}') as throttled
from metrics
where source_kind = 'broker' and series in {(*SERIES, FAILED, LOOKUPS_FAILED, THROTTLED)} and isfinite(value)
group by source
"""
"""Counters of connections. In an earlier snapshot the uptime counts until now too, so it identifies the process."""

CONNECTIONS = """
select broker, uptime_seconds, active, failed, succeeded, lookups_failed, throttled,
    case when active is not null and succeeded is not null then greatest(succeeded - active, 0.0) end as replaced,
    replaced * 60 / nullif(uptime_seconds, 0.0) as replaced_per_minute,
    replaced * 3600 / nullif(uptime_seconds, 0.0) / greatest(active, 1.0) as turnovers_per_hour
from brokers left join counted using (broker) where read
"""
"""Connections of each broker that was read, and how many have ended since its start.

Null if the broker does not report them.
"""

# The smaller of opened and closed connections: departing clients, or clients of a restarted broker, replace none.
LATELY = """
select broker, now.active, now.failed - counted_before.failed as failed,
    now.lookups_failed - counted_before.lookups_failed as lookups_failed, now.throttled,
    $now - epoch(taken_at) as seconds,
    least(now.succeeded - counted_before.succeeded,
        now.succeeded - counted_before.succeeded - now.active + counted_before.active) as replaced,
    replaced / greatest(now.active, counted_before.active, 1.0) as turnovers
from counted now join counted_before using (broker)
where abs(now.uptime_seconds - counted_before.uptime_seconds) < 2 and now.succeeded >= counted_before.succeeded
    and now.active is not null and counted_before.active is not null and seconds > 0
"""
"""Change of each broker's connections since earlier snapshots of the same process; new processes count from 0."""

BURSTS = f"""
select broker, lately.active, lately.failed, lately.lookups_failed, lately.throttled, lately.seconds,
    lately.replaced, turnovers,
    lately.replaced * 60 / seconds as replaced_per_minute
from lately join connections using (broker)
where turnovers >= $warning_burst_turnovers and lately.replaced * 60 / seconds >= $minimum_replaced_per_minute
    and uptime_seconds >= {YOUNG_SECONDS}
qualify row_number() over (partition by broker order by turnovers / seconds desc, seconds) = 1
"""
"""The worst row of `LATELY` for each broker."""

# A storm of connections stays in the average for weeks.
SHORT_LIVED = f"""
with since as (
    select broker, max(seconds) as seconds, arg_max(turnovers * 3600 / seconds, seconds) as turnovers_per_hour
    from lately group by broker)
select connections.*,
    if(since.turnovers_per_hour < $warning_turnovers_per_hour, since.seconds, null) as calm_seconds,
    calm_seconds is null as storming
from connections anti join bursts using (broker) left join since using (broker)
where connections.turnovers_per_hour >= $warning_turnovers_per_hour
    and replaced_per_minute >= $minimum_replaced_per_minute and uptime_seconds >= {YOUNG_SECONDS}
"""

SILENT = """
select broker from connections where uptime_seconds is null or active is null or succeeded is null
"""


def of_broker(row: Row, check_id: str) -> Finding:
    """Finding for a row of `BURSTS` or of `SHORT_LIVED`."""
    burst, severity, calm = "turnovers" in row, Severity.WARNING, ""
    window = "seconds" if burst else "uptime_seconds"
    lasted, replaced, minute = seconds_in_words(row[window], rounded=True), row["replaced"], row["replaced_per_minute"]
    if burst:
        others = f"in the last {lasted} {counted(replaced, 'other was', 'others were')} replaced"
        turned = f"{row['turnovers']:,.1f} times; a deployment replaces them once"
    else:
        others = f"{counted(replaced, 'other')} came and went in the {lasted} since it started"
        turned = f"{row['turnovers_per_hour']:,.1f} times an hour"
        if not row["storming"]:
            severity = Severity.INFO
            calm = f"; but not in the last {seconds_in_words(row['calm_seconds'], rounded=True)}"
    refused = (  # other requests of clients that the broker refused or delayed, if reported
        (row["failed"], "handshake failed", "handshakes failed"),
        (row["lookups_failed"], "lookup failed", "lookups failed"),
        (row["throttled"], "connection is throttled now", "connections are throttled now"),
    )
    besides = "".join(f"; {counted(count, one, many)}" for count, one, many in refused if count and count > 0)
    figures = {
        "connections_active": row["active"],
        "connections_failed": max(0, row["failed"]),
        "connections_replaced": replaced,
        window: row[window],
    }
    told = {"connections_throttled": row["throttled"], "lookups_failed": row["lookups_failed"]}
    figures |= {name: max(0, count) for name, count in told.items() if count is not None}
    return Finding(
        check_id=check_id,
        severity=severity,
        subject=row["broker"],
        evidence=(
            f"Broker {row['broker']} has {counted(row['active'], 'connection')}, and {others}: {minute:,.0f} a minute,"
            f" all of them {turned}{besides}{calm}."
        ),
        figures={name: int(value) for name, value in figures.items()},
    )
