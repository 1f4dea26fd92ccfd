"""Topics that moved to another broker while brokers were read: both may report one, and it must count once.

Each broker reports the bundles that it owns when it is read. Where two of them report the same bundle, or overlapping
bundles as one was split, it moved in between. Then both may report its topics, or only the former owner: the new
owner's statistics are up to a minute old. So ownership does not decide whose rows count, or topics that only the other
one reports would be lost; the broker that reports more of a topic does. That is decided for the whole snapshot, as the
two may be in one shard or in two, and only where the small table `bundles` has such bundles. Usually it has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pulsar_steward.diagnose.database import connect
from pulsar_steward.model.tables import CLIENTS, METRICS, SUBSCRIPTIONS, TOPICS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

MOVING_BUNDLES = """
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
"""Bundles reported by two brokers (no known owner, though with topics), and overlapping ranges of two brokers.

Boundaries have eight hexadecimal digits, so that text sorts as numbers do.
"""

BUNDLES_GIVEN = "moving_bundles"
"""Name under which `ROWS` find the rows of `MOVING_BUNDLES`."""

_TOPICS = f"select * from raw_topics semi join {BUNDLES_GIVEN} using (namespace, bundle)"

ROWS: Mapping[str, str] = {
    TOPICS.name: _TOPICS,
    SUBSCRIPTIONS.name: f"select * from raw_subscriptions semi join ({_TOPICS}) using (topic)",
    CLIENTS.name: f"select * from raw_clients semi join ({_TOPICS}) using (topic)",
}
"""Queries, by table, for a shard's rows of topics in moving bundles."""

# Rows other than those of topics do not name their broker. The choice depends only on the rows' content, so that it
# is the same whatever shards they are in. A topic has fewer rows where its clients have yet to reconnect.
_CHOSEN = {
    TOPICS.name: "partition by topic order by subscriptions desc, consumers desc, producers desc, broker, bundle",
    SUBSCRIPTIONS.name: f"partition by topic, subscription order by consumers desc, backlog_entries desc,"
    f" told_{SUBSCRIPTIONS.name}",
    CLIENTS.name: f"partition by topic, subscription, consumer, address order by told_{CLIENTS.name}",
}

MOVING = "moving"
"""Name of the table of all these topics, each with the broker whose rows count."""

IN_PLACE: Mapping[str, str] = {
    table: f"""
        select * from told_{table} anti join {MOVING} using (topic)
        union all by name select * from settled_{table}
    """
    for table in ROWS
} | {
    # A sample of the other broker no longer has a value, but still shows that it exports the series.
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


def settled_of(told: Sequence[Mapping[str, pa.Table]]) -> list[Mapping[str, pa.Table]]:
    """Chooses the rows that count; returns each shard's tables of `ROWS` and `MOVING`.

    Every topic is in one shard: that of the broker whose rows count.

    Args:
        told: Rows of moving topics of each shard, by table.
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
    """Rows that count of one shard's topics."""
    here = f"(from settled_{TOPICS.name} where shard = {number})"
    selects = {table: f"from settled_{table} semi join {here} using (topic)" for table in ROWS}
    selects[TOPICS.name] = f"select * exclude (shard) from {here}"
    return {table: connection.sql(select).to_arrow_table() for table, select in selects.items()}
