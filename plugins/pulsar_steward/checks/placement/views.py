"""What each bundle weighs that a broker carries."""

from __future__ import annotations

from pulsar_steward.checks.views import View

SPLIT_AT = {
    "loadBalancerNamespaceBundleMaxSessions": "most_clients",
    "loadBalancerNamespaceBundleMaxMsgRate": "most_messages",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes": "most_mebibytes",
}
"""The settings that say what a broker splits, by their columns in `bundle_loads`."""

_MOST = ", ".join(
    f"max(try_cast(trim(value) as double)) filter (key = '{key}') as {column}" for key, column in SPLIT_AT.items()
)

VIEWS = (
    # Of each owned bundle, without the brokers' heartbeats, which belong to them by name: what it carries, the means of
    # those that carry anything, its owner's CPU, and what the owner would split. Null: the snapshot does not have it.
    # A mean of floating point would depend on the order, so it is one of decimals.
    View(
        "bundle_loads",
        f"""
        with weighed as (
            select namespace, bundle, owner, topics, throughput_in_bytes + throughput_out_bytes as bytes,
                message_rate_in + message_rate_out as messages, producers + consumers as clients
            from bundles where owner is not null and not is_heartbeat(namespace)),
        means as (
            select sum(exactly)::double / count(exactly) as mean_bytes,
                avg(clients) filter (clients > 0) as mean_clients
            from (select clients, try_cast(if(bytes > 0, bytes, null) as decimal(38, 6)) as exactly from weighed)),
        most as (select broker as owner, {_MOST} from configuration group by broker)
        select weighed.*, mean_bytes, mean_clients, cpu_percent, most_clients, most_messages, most_mebibytes
        from weighed cross join means
            left join (select broker as owner, cpu_percent from brokers) using (owner)
            left join most using (owner)
        """,
    ),
)
