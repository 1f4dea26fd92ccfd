"""Reads of a request: never a table that grows with topics, and of a snapshot that it knows nothing at all."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyarrow import dataset

from pulsar_steward.model.tables import DIAGNOSED, SHARDED, SMALL
from pulsar_steward.pages.html import make_app
from pulsar_steward.snapshots import read
from tests.unit.pages.conftest import Client
from tests.unit.pages.scenes import EVERY, sources_of

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.plan import Plan

MOST_READS = 4
"""How often a table of a snapshot is opened at most, as parts of a page need different columns of it."""


class CountingParquet:
    """Stands in for `pyarrow.parquet` in the reader of snapshots, and counts.

    Attributes:
        opened: How often each table was, by its path.
        rows: Rows that were read, by the table's name.
    """

    def __init__(self) -> None:
        self.opened: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()

    def read_table(self, path: str, **how: Any) -> Any:
        """Reads a table."""
        found = pq.read_table(path, **how)
        self.opened[path] += 1
        self.rows[path.rpartition("/")[2]] += found.num_rows
        return found

    def dataset(self, path: str, *shape: Any, **how: Any) -> Any:
        """Files of a table that queries read."""
        found = dataset.dataset(path, *shape, **how)
        self.opened[path] += 1
        self.rows[path.rpartition("/")[2]] += found.count_rows()
        return found

    def ParquetDataset(self, path: str, **how: Any) -> Any:  # noqa: N802 - the name that it stands in for
        """Reads a table's schema."""
        return pq.ParquetDataset(path, **how)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> CountingParquet:
    """Counter of all tables and rows that are read from snapshots."""
    counts = CountingParquet()
    monkeypatch.setattr(read, "pq", counts)
    monkeypatch.setattr(read, "dataset", counts)
    return counts


def paths(folder: Path, plans: dict[str, Plan]) -> list[str]:
    """A path of every route, and those that filter and turn pages."""
    parts = {"cluster": "east", "plan_id": plans["east"].plan_id, "step_id": "b1.s01", "name": "steward.css"}
    routes = make_app(sources_of(folder), lambda: None).routes
    dag_id, _, run_id = EVERY.partition("/")
    asked = {"/question": f"?dag_id={dag_id}&run_id={run_id.replace('+', '%2B')}&map_index=0"}
    every = [str(route.path) for route in routes]  # type: ignore[attr-defined]  # every kind has one
    return [
        *(f"{path.format(**parts)}{asked.get(path, '')}" for path in every),
        "/clusters/east?severity=critical&text=topic&order=oldest&page=2&brokers=all",
        "/api/clusters/east/findings?check=ack-holes&order=subject&size=500",
    ]


def test_no_request_reads_a_table_that_grows_with_topics(
    shown_folder: Path, plans: dict[str, Plan], counting: CountingParquet
) -> None:
    """No route reads a table that grows with topics, and each other table is opened a few times at most."""
    client = Client(make_app(sources_of(shown_folder), lambda: None))
    answered = {path: client.get(path).status_code for path in paths(shown_folder, plans)}
    assert {path: status for path, status in answered.items() if status not in {200, 303}} == {}
    assert counting.rows.keys() >= {"findings", "bundles", "namespaces", "brokers"}
    assert counting.rows.keys() <= {table.name for table in (*SMALL, *DIAGNOSED)} - {table.name for table in SHARDED}
    assert max(counting.opened.values()) <= MOST_READS


def test_a_snapshot_that_is_known_is_not_read_again(
    shown_folder: Path, plans: dict[str, Plan], counting: CountingParquet
) -> None:
    """A second request of any route opens no table of a known snapshot, also with another filter, order or page."""
    client = Client(make_app(sources_of(shown_folder), lambda: None))
    for path in paths(shown_folder, plans):
        client.get(path)
    assert counting.opened.total() > 0
    counting.opened.clear()
    for path in paths(shown_folder, plans):
        client.get(path)
    client.get("/clusters/east?severity=warning&text=acme&order=newest&page=3")
    assert counting.opened == Counter()


def test_pages_outlive_the_large_tables(shown_folder: Path, plans: dict[str, Plan], tmp_path: Path) -> None:
    """Pages show the same when the sharded tables of a snapshot cannot be read."""
    shutil.copytree(shown_folder, tmp_path / "copy")
    for table in SHARDED:
        for part in (tmp_path / "copy" / "snapshots").glob(f"*/*/{table.name}/*.parquet"):
            part.write_bytes(b"no parquet")
    whole, without = (
        Client(make_app(sources_of(folder), lambda: None)) for folder in (shown_folder, tmp_path / "copy")
    )
    for path in ("/", "/clusters/east", "/clusters/north", f"/plans/{plans['east'].plan_id}", "/metrics"):
        assert without.get(path).text == whole.get(path).text
