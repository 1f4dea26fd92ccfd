"""Topics that moved to another broker while brokers were read: both brokers may report them, but they count once.

Each broker reports its bundles when it is read. If two brokers report the same bundle, or overlapping ones after a
split, it moved in between. Then both may report its topics, or only the former owner: the new owner's statistics are up
to 1 min old. If only the owner's rows counted, topics that only the other broker reports would be lost. So the broker
that reports more of a topic counts. The choice is made for the whole snapshot, as the brokers may be in different
shards, and only if the small table `bundles` has such bundles. Usually it has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pulsar_steward.model.tables import BUNDLES, CLIENTS, METRICS, SUBSCRIPTIONS, TOPICS
from pulsar_steward.snapshots.database import add_table, connect, is_empty

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from pulsar_steward.snapshots.database import Source

_MOVING_BUNDLES = """
with told as (
    select namespace, bundle, owner, split_part(bundle, '_', 1) as low, split_part(bundle, '_', 2) as high
    from bundles where topics > 0 and (owner is not null or not owner_known)),
reached as (
    select namespace, low, lag(high) over (partition by namespace order by low, high desc) as high from told),
overlapping as (select * from told semi join (from reached where low < high) using (namespace))
select namespace, bundle from told where owner is null
union
select one.namespace, one.bundle from overlapping one join overlapping other using (namespace)
where one.bundle <> other.bundle and one.low < other.high and other.low < one.high
    and one.owner is distinct from other.owner
"""
"""Bundles reported by two brokers (with topics but no known owner), and overlapping ranges of two brokers.

Boundaries have eight hexadecimal digits, so text sorts like numbers.
"""

BUNDLES_GIVEN = "moving_bundles"
"""Name of the rows of `moving_bundles` in the queries of `ROWS`."""

_TOPICS = f"select * from raw_topics semi join {BUNDLES_GIVEN} using (namespace, bundle)"

ROWS: Mapping[str, str] = {
    TOPICS.name: _TOPICS,
    SUBSCRIPTIONS.name: f"select * from raw_subscriptions semi join ({_TOPICS}) using (topic)",
    CLIENTS.name: f"select * from raw_clients semi join ({_TOPICS}) using (topic)",
}
"""Queries, by table, for a shard's rows of topics in moving bundles."""

# Only rows of topics name their broker. The choice depends on the rows' content alone, so it is the same for any
# division into shards. On the broker where clients have yet to reconnect, a topic has fewer rows.
_CHOSEN = {
    TOPICS.name: "partition by topic order by subscriptions desc, consumers desc, producers desc, broker, bundle",
    SUBSCRIPTIONS.name: f"partition by topic, subscription order by consumers desc, backlog_entries desc,"
    f" told_{SUBSCRIPTIONS.name}",
    CLIENTS.name: f"partition by topic, subscription, consumer, address order by told_{CLIENTS.name}",
}

MOVING = "moving"
"""Name of the table of moving topics, each with the broker that counts."""

IN_PLACE: Mapping[str, str] = {
    table: f"""
        select * from told_{table} anti join {MOVING} using (topic)
        union all by name select * from settled_{table}
    """
    for table in ROWS
} | {
    # Samples of the other broker lose their value, but still show that the broker exports the series.
    METRICS.name: f"""
        select told.* replace (
            case when m.broker <> source then null else told.topic end as topic,
            case when m.broker <> source then null else subscription end as subscription,
            case when m.broker <> source then '{{}}' else labels_json end as labels_json,
            case when m.broker <> source then null else value end as value)
        from told_{METRICS.name} told left join {MOVING} m on m.topic = told.topic
    """
}
"""Replacement for each table, selected from ``told_<table>``, ``settled_<table>`` and `MOVING`."""


def moving_bundles(source: Source | None) -> pa.Table | None:
    """Bundles that moved while brokers were read, from the rows of the table `bundles`; None: there are none."""
    if is_empty(source):
        return None
    with connect(1) as connection:
        add_table(connection, BUNDLES, source, BUNDLES.name)
        moving = connection.sql(_MOVING_BUNDLES).to_arrow_table()
    return moving if moving.num_rows else None


def settled_of(told: Sequence[Mapping[str, pa.Table]]) -> list[Mapping[str, pa.Table]]:
    """Chooses the rows that count; returns each shard's tables of `ROWS` and `MOVING`.

    Afterwards every topic is in one shard: that of the chosen broker.

    Args:
        told: Rows of moving topics in each shard, by table.
    """
    with connect(1) as connection:
        for table in ROWS:
            parts = [
                each[table].append_column("shard", pa.array([number] * each[table].num_rows, pa.int32()))
                for number, each in enumerate(told)
            ]
            rows = pa.concat_tables(parts)
            rows = rows if table == TOPICS.name else rows.drop_columns(["shard"])
            connection.from_arrow(rows).create_view(f"told_{table}")
            connection.execute(f"""
                create temp table settled_{table} as select * from told_{table}
                qualify row_number() over ({_CHOSEN[table]}) = 1
            """)
        moving = connection.sql(f"select topic, broker from settled_{TOPICS.name}").to_arrow_table()
        if not moving.num_rows:
            return [{} for _ in told]
        return [{MOVING: moving} | _of_shard(connection, number) for number in range(len(told))]


def _of_shard(connection: duckdb.DuckDBPyConnection, number: int) -> dict[str, pa.Table]:
    """Chosen rows of one shard's topics."""
    here = f"(from settled_{TOPICS.name} where shard = {number})"
    selects = {table: f"from settled_{table} semi join {here} using (topic)" for table in ROWS}
    selects[TOPICS.name] = f"select * exclude (shard) from {here}"
    return {table: connection.sql(select).to_arrow_table() for table, select in selects.items()}
