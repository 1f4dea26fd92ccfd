"""A diagnosed snapshot on disk, made by hand: three brokers, one of which holds every transaction coordinator."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_steward.model import tables
from pulsar_steward.snapshots.database import schema_of
from tests.builders import broker, hashed_tc_bundles

if TYPE_CHECKING:
    from pathlib import Path

Rows = list[dict[str, Any]]

NASTY = 'acme/<script>alert("x")</script>'
"""A name that no page may take for its own words."""

META: dict[str, Any] = {
    "snapshot_id": "east-20260301T120000Z",
    "cluster": "east",
    "pulsar_cluster": "local",
    "taken_at": datetime(2026, 3, 1, 12, tzinfo=UTC),
    "pulsar_version": "4.0.7",
    "load_manager": "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
    "unread_brokers": [],
    "unread_namespaces": [],
    "coordinators": 16,
}

CALM = {"loadManagerClassName": META["load_manager"], "loadBalancerSheddingEnabled": "false"}
"""Settings of brokers that move nothing by themselves."""


def a_finding(severity: str = "critical", check_id: str = "tc-skew", **fields: Any) -> dict[str, Any]:
    """A row of the findings; `fields` are its columns."""
    usual = {
        "check_id": check_id,
        "severity": severity,
        "subject": "east",
        "evidence": "broker-00:8080 has 16 of 16 transaction coordinators, broker-01:8080 has none.",
        "figures_json": '{"most_coordinators":16}',
        "snapshots_in_a_row": 1,
    }
    return usual | fields


def a_verdict(
    check_id: str, outlook: str, reason: str = "as it was looked at.", more: int = 0, **graded: dict[str, int]
) -> dict[str, Any]:
    """A row of the verdicts; `graded`: by severity, numbers of what is not listed by namespace."""
    return {"check_id": check_id, "outlook": outlook, "reason": reason, "more": more, "more_json": json.dumps(graded)}


def written(folder: Path, **changed: Rows) -> str:
    """Writes the snapshot, some of its tables with other rows, and returns its place; of Kafka's those with rows."""
    rows = _usual() | changed
    for table in (*tables.COLLECTED, *(each for each in tables.KAFKA_TABLES if each.name in rows), *tables.DIAGNOSED):
        (folder / table.name).mkdir(parents=True)
        (folder / table.name / "part-0.parquet").write_bytes(_parquet(table, rows.get(table.name, [])))
    (folder / "_SUCCESS").touch()
    return str(folder)


def _parquet(table: tables.Table, rows: Rows) -> bytes:
    """Content of a file with these rows, made once: most tables are the same in all snapshots."""
    key = table.name, repr(rows)
    if key not in _FILES:
        file = BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=schema_of(table)), file)
        _FILES[key] = file.getvalue()
    return _FILES[key]


_FILES: dict[tuple[str, str], bytes] = {}


def meta(**fields: Any) -> Rows:
    """The row of the table `snapshot`; `fields` are its columns."""
    return [META | fields]


def skewed() -> dict[str, Rows]:
    """Diagnosis of coordinators that are piled up."""
    verdicts = [a_verdict("tc-skew", "found", a_finding()["evidence"]), a_verdict("bundle-topic-skew", "clear")]
    return {"findings": [a_finding()], "verdicts": verdicts}


def _usual() -> dict[str, Rows]:
    held = hashed_tc_bundles([broker(0)] * 16, 16)
    return {
        "snapshot": meta(),
        "brokers": [
            {"broker": broker(number), "read": True, "leader": number == 0, "topics": 10 * number}
            | {"pulsar_version": "4.0.7", "read_milliseconds": 3}
            for number in range(3)
        ],
        "configuration": [
            {"broker": broker(number), "key": key, "value": value}
            for number in range(3)
            for key, value in {
                "loadManagerClassName": META["load_manager"],
                "loadBalancerSheddingEnabled": "false",
            }.items()
        ],
        "bundles": [
            *(
                {"namespace": "pulsar/system", "bundle": each.bundle, "owner": broker(0), "owner_known": True}
                | {"positions": list(each.positions), "topics": len(each.coordinators)}
                for each in held
            ),
            {"namespace": NASTY, "bundle": "0x00000000_0x80000000", "owner_known": True, "topics": 900}
            | {"backlog_bytes": 3 * 1024**3},
            {"namespace": NASTY, "bundle": "0x80000000_0xffffffff", "owner_known": True, "topics": 1},
        ],
        "transaction_coordinators": [
            {"coordinator": each, "position": 0, "bundle": bundle.bundle, "broker": broker(0), "broker_known": True}
            for bundle in held
            for each in bundle.coordinators
        ],
        "namespaces": [
            {"namespace": "pulsar/system", "bundles": 16, "boundaries": []},
            {"namespace": NASTY, "bundles": 2, "boundaries": []},
        ],
        "findings": [],
        "verdicts": [
            a_verdict("tc-skew", "clear", "All brokers hold as many."),
            a_verdict("bundle-topic-skew", "clear"),
        ],
    }
