"""Databases of one process: apart from one another, also at the same time, and gone when they are done with."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import duckdb
import pyarrow as pa
import pytest

from pulsar_steward.model.tables import BROKERS
from pulsar_steward.snapshots.database import add_table, connect


def databases() -> set[str]:
    """Names of those that the engine holds, but for that of who asks."""
    with connect(1) as connection:
        (own,) = connection.execute("select current_database()").fetchone() or ("",)
        found = connection.execute("select database_name from duckdb_databases()").fetchall()
    return {name for (name,) in found} - {own}


def test_each_has_its_own_tables_also_at_the_same_time() -> None:
    """Connections at the same time have separate tables of the same names, and all use UTC."""

    def seen(number: int) -> tuple[str, int, str]:
        with connect(1) as connection:
            add_table(connection, BROKERS, pa.table({"broker": [f"b{number}:8080"]}), "brokers")
            connection.execute("create temp table kept as select broker from brokers")
            broker, count = connection.execute("select min(broker), count(*) from kept").fetchone() or ("", 0)
            zone = connection.execute("select current_setting('TimeZone')").fetchone() or ("",)
            return broker, count, zone[0]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(seen, range(100)))
    assert found == [(f"b{number}:8080", 1, "UTC") for number in range(100)]


def test_columns_that_were_not_collected_are_null_and_others_are_not_seen() -> None:
    """Columns that were not collected are null, and columns that the table does not define are left out."""
    with connect(1) as connection:
        add_table(connection, BROKERS, pa.table({"later": [1], "broker": ["b:8080"]}), "brokers")
        rows = connection.sql("select * from brokers").to_arrow_table()
    assert tuple(rows.column_names) == BROKERS.names
    assert rows.select(["broker", "topics"]).to_pylist() == [{"broker": "b:8080", "topics": None}]


def test_nothing_stays_behind() -> None:
    """A database is removed after use, also when a query in it failed."""
    before = databases()
    with pytest.raises(duckdb.CatalogException), connect(1) as connection:
        connection.execute("create table t as select * from nowhere")
    assert databases() == before
