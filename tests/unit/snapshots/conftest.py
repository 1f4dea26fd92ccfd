"""A small snapshot on disk, as `collect` and `diagnose` leave it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pulsar_steward.model import tables
from pulsar_steward.snapshots.database import schema_of

if TYPE_CHECKING:
    from pathlib import Path

META = {
    "snapshot_id": "lab-20260101T000000Z",
    "cluster": "lab",
    "pulsar_cluster": "local",
    "taken_at": datetime(2026, 1, 1, tzinfo=UTC),
    "pulsar_version": "4.0.7",
    "load_manager": "Modular",
    "unread_brokers": ["c:1"],
    "unread_namespaces": [],
    "coordinators": 3,
}
FINDING = {"check_id": "tc-skew", "subject": "lab", "evidence": "x", "figures_json": '{"most_coordinators":2}'}
SYSTEM = {"namespace": "pulsar/system", "owner_known": True}
ROWS: dict[str, list[dict[str, Any]]] = {
    "snapshot": [META],
    "brokers": [
        {"broker": "b:1", "read": True, "leader": False, "topics": 4, "read_milliseconds": 3},
        {"broker": "a:1", "read": True, "leader": True, "pulsar_version": "4.0.7", "topics": 5, "read_milliseconds": 3},
        {"broker": "c:1", "read": False, "leader": False, "failure": "refused", "read_milliseconds": 3},
    ],
    "bundles": [
        {"namespace": "acme/orders", "bundle": "0x00000000_0xffffffff", "owner": "a:1", "owner_known": True},
        SYSTEM | {"bundle": "0x80000000_0xffffffff", "owner_known": False, "positions": [0x90000000]},
        SYSTEM | {"bundle": "0x40000000_0x80000000", "owner": "b:1", "positions": []},
        SYSTEM
        | {"bundle": "0x00000000_0x40000000", "owner": "a:1", "producers": 1, "consumers": 2, "positions": [7, 9, 11]},
    ],
    "transaction_coordinators": [
        {"coordinator": 2, "position": 9, "bundle": "0x00000000_0x40000000", "broker": "a:1", "broker_known": True},
        {"coordinator": 0, "position": 7, "bundle": "0x00000000_0x40000000", "broker": "a:1", "broker_known": True},
        {"coordinator": 1, "position": 0x90000000, "bundle": "0x80000000_0xffffffff", "broker_known": False},
    ],
    "namespaces": [
        {"namespace": "pulsar/system", "bundles": 3, "boundaries": [], "allowed_brokers": ["a:1", "b:1"]},
        {"namespace": "acme/orders", "bundles": 1, "boundaries": []},
    ],
    "findings": [
        FINDING | {"severity": "info", "subject": "z"},
        FINDING | {"severity": "critical"},
        FINDING | {"severity": "info", "subject": "a"},
    ],
    "verdicts": [{"check_id": "tc-skew", "outlook": "found", "more": 0, "reason": "x"}],
    "trends": [
        {"measure": "topics", "subject": "lab", "taken_at": datetime(2026, 1, 1, tzinfo=UTC), "value": 9.0},
        {"measure": "topics", "subject": "lab", "taken_at": datetime(2025, 12, 31, tzinfo=UTC), "value": 8.0},
        {"measure": "broker_topics", "subject": "a:1", "taken_at": datetime(2026, 1, 1, tzinfo=UTC), "value": 5.0},
    ],
}


def write(folder: Path, table: tables.Table, rows: list[dict[str, Any]]) -> None:
    (folder / table.name).mkdir(parents=True, exist_ok=True)
    for number, part in enumerate((rows[:1], rows[1:])):
        pq.write_table(
            pa.Table.from_pylist(part, schema=schema_of(table)), folder / table.name / f"part-{number}.parquet"
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The snapshot's own folder."""
    folder = tmp_path / "cluster=lab" / "taken_at=20260101T000000Z"
    for table in (*tables.COLLECTED, *tables.DIAGNOSED):
        write(folder, table, ROWS.get(table.name, []))
    (folder / "_SUCCESS").touch()
    return folder
