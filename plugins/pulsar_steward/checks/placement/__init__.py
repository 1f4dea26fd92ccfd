"""Placement of coordinators, topics, bundles and load."""

from __future__ import annotations

from pulsar_steward.checks.views import SqlView

TITLE = "Where things are"
"""Title of this group of checks."""

SPLIT_AT = {
    "loadBalancerNamespaceBundleMaxSessions": "most_clients",
    "loadBalancerNamespaceBundleMaxMsgRate": "most_messages",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes": "most_mebibytes",
}
"""The broker's settings for automatic splits, by their columns in `bundle_loads`."""

_MOST = ", ".join(
    f"max(try_cast(trim(value) as double)) filter (key = '{key}') as {column}" for key, column in SPLIT_AT.items()
)

VIEWS = (
    # One row for each owned bundle, without heartbeat bundles (they belong to brokers by name). Columns: its load, the
    # mean of bundles with any load, a broker's average load, its owner's CPU and split thresholds. Null: not in the
    # snapshot. The busiest tenth is left out of the means, or a few hot bundles would hide each other. A median is no
    # alternative: it is near 0 if most bundles are nearly idle. The mean is a mean of decimals, as one of floating
    # point would depend on the order.
    SqlView(
        "bundle_loads",
        f"""
        with weighed as (
            select namespace, bundle, owner, topics, throughput_in_bytes + throughput_out_bytes as bytes,
                message_rate_in + message_rate_out as messages, producers + consumers as clients
            from bundles where owner is not null and not is_heartbeat(namespace)),
        exact as (
            select owner, clients, try_cast(if(bytes > 0, bytes, null) as decimal(38, 6)) as exactly from weighed),
        mean_of_bytes as (
            select sum(exactly)::double / count(*) as mean_bytes
            from (
                select exactly, row_number() over (order by exactly desc) as place, count(*) over () as busy
                from exact where exactly > 0)
            where place > busy // 10),
        mean_of_clients as (
            select avg(clients) as mean_clients
            from (
                select clients, row_number() over (order by clients desc) as place, count(*) over () as busy
                from exact where clients > 0)
            where place > busy // 10),
        of_brokers as (
            select sum(exactly)::double / count(distinct owner) as broker_bytes,
                (sum(clients) filter (clients > 0))::double / count(distinct owner) as broker_clients
            from exact),
        most as (select broker as owner, {_MOST} from configuration group by broker)
        select weighed.*, mean_bytes, mean_clients, broker_bytes, broker_clients, cpu_percent, most_clients,
            most_messages, most_mebibytes
        from weighed cross join mean_of_bytes cross join mean_of_clients cross join of_brokers
            left join (select broker as owner, cpu_percent from brokers) using (owner)
            left join most using (owner)
        """,
    ),
)
