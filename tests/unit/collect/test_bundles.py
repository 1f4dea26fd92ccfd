"""The boundaries of namespaces joined with what brokers own, and versions of clients as they are counted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from pulsar_steward.collect.bundles import all_bundles, with_positions
from pulsar_steward.collect.pending import Recent
from pulsar_steward.collect.topics import MAX_HOSTS, MAX_VERSIONS, OTHER, ClientFigures, ClientVersions
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.pulsar_versions import TROUBLES, is_suspicious, trouble_of
from pulsar_steward.model.tables import BUNDLES, NAMESPACES, Table
from pulsar_steward.pulsar.statistics import (
    ConsumerStatistics,
    PublisherStatistics,
    SubscriptionStatistics,
    TopicStatistics,
)
from pulsar_steward.snapshots.database import schema_of
from tests.cases import row_by_row

LOWER, UPPER = "0x00000000_0x80000000", "0x80000000_0xffffffff"
NAMESPACE = {"namespace": "a/b", "bundles": 2, "boundaries": ["0x00000000", "0x80000000", "0xffffffff"]}


def owned(bundle: str, owner: str, namespace: str = "a/b") -> dict[str, Any]:
    return {"namespace": namespace, "bundle": bundle, "owner": owner, "owner_known": True, "topics": 5}


def table(of: Table, rows: list[dict[str, Any]]) -> pa.Table:
    """A table of rows that may leave columns out."""
    return pa.Table.from_pylist(rows, schema=schema_of(of))


CASES = {
    "one owned": ([owned(LOWER, "x:1")], False, {("a/b", LOWER): ("x:1", True, 5), ("a/b", UPPER): (None, True, 0)}),
    "an unread broker may own the rest": (
        [owned(LOWER, "x:1")],
        True,
        {("a/b", LOWER): ("x:1", True, 5), ("a/b", UPPER): (None, False, None)},
    ),
    "two that name the same bundle": (
        [owned(LOWER, "x:1"), owned(LOWER, "y:1"), owned(UPPER, "y:1")],
        False,
        {("a/b", LOWER): (None, False, 5), ("a/b", UPPER): ("y:1", True, 5)},
    ),
    "one that no boundaries make": (
        [owned(LOWER, "x:1"), owned(UPPER, "x:1"), owned("0x00000000_0xffffffff", "x:1", "pulsar/x:1")],
        False,
        {
            ("a/b", LOWER): ("x:1", True, 5),
            ("a/b", UPPER): ("x:1", True, 5),
            ("pulsar/x:1", "0x00000000_0xffffffff"): ("x:1", True, 5),
        },
    ),
}


@pytest.mark.parametrize(("told", "partial", "expected"), CASES.values(), ids=CASES)
def test_all_bundles(
    told: list[dict[str, Any]], partial: bool, expected: dict[tuple[str, str], tuple[str | None, bool, int | None]]
) -> None:
    """The table has every bundle once and in order, with its owner if that is certain."""
    made = all_bundles(table(NAMESPACES, [NAMESPACE]), table(BUNDLES, told), partial=partial)

    assert made.schema == schema_of(BUNDLES)
    rows = made.to_pylist()
    assert [(row["namespace"], row["bundle"]) for row in rows] == sorted(expected)
    assert {
        (row["namespace"], row["bundle"]): (row["owner"], row["owner_known"], row["topics"]) for row in rows
    } == expected


def test_a_cluster_without_namespaces_has_no_bundles() -> None:
    """A cluster whose namespaces and brokers could not be read has no bundles."""
    assert all_bundles(table(NAMESPACES, []), table(BUNDLES, []), partial=True).num_rows == 0


def test_positions_that_nobody_told_are_those_of_coordinators() -> None:
    bundles = table(
        BUNDLES,
        [
            owned(LOWER, "x:1", "pulsar/system") | {"positions": [5]},
            owned(UPPER, "x:1", "pulsar/system"),
            owned(UPPER, "x:1"),
        ],
    )

    made = with_positions(bundles, {LOWER: [1], UPPER: [9, 7]})

    assert made["positions"].to_pylist() == [[5], [7, 9], None]
    assert made.schema == schema_of(BUNDLES)
    assert with_positions(bundles, {}) is bundles


OLD, NEW = "2.6.2", "Pulsar-Java-v4.0.7"


def consumer(version: str | None, host: str = "10.0.0.1", name: str = "c") -> ConsumerStatistics:
    """A consumer; without a version it is left out, as brokers do."""
    if version is None:
        return ConsumerStatistics(address=f"/{host}:4000", consumer_name=name)
    return ConsumerStatistics(address=f"/{host}:4000", consumer_name=name, client_version=version)


def producer(version: str | None, host: str = "10.0.0.1") -> PublisherStatistics:
    return PublisherStatistics(address=f"/{host}:4001", producer_name="p", client_version=version)


def rows_of(topics: dict[str, TopicStatistics], namespace: str = "a/b") -> list[dict[str, object]]:
    versions = ClientVersions("x:8080")
    versions.add(namespace, topics, ClientFigures(topics, Recent(datetime(2026, 1, 1, tzinfo=UTC), 10)))
    return [row for piece in versions.rows() for row in piece.rows.to_pylist()]


def topic(*consumers: ConsumerStatistics, publishers: tuple[PublisherStatistics, ...] = ()) -> TopicStatistics:
    return TopicStatistics(
        publishers=list(publishers),
        subscriptions={"s": SubscriptionStatistics(list(consumers), "Shared", 0)},
        replication={},
        producer_count=len(publishers),
    )


def test_clients_are_counted_by_version() -> None:
    """Clients are counted by version; a version with a known trouble has hosts and an example, others no hosts."""
    found = rows_of(
        {
            "persistent://a/b/z": topic(consumer(OLD, "10.0.0.2", "z"), consumer(NEW), publishers=(producer(NEW),)),
            "persistent://a/b/c": topic(consumer(OLD), consumer(OLD, "10.0.0.2"), publishers=(producer(OLD, "::1"),)),
            "persistent://a/b/__change_events": topic(consumer(OLD)),
        }
    )

    new = {"client_version": NEW, "producers": 1, "consumers": 1, "hosts": None, "busiest_hosts": []}
    old = {"client_version": OLD, "producers": 1, "consumers": 3, "hosts": 3}
    old |= {"busiest_hosts": ["10.0.0.2", "10.0.0.1", "::1"], "example_topic": "persistent://a/b/c"}
    assert [{name: row[name] for name in (old if row["client_version"] == OLD else new)} for row in found] == [old, new]
    assert {(row["broker"], row["namespace"]) for row in found} == {("x:8080", "a/b")}


def test_clients_without_a_version_are_counted_too() -> None:
    (row,) = rows_of({"persistent://a/b/c": topic(consumer(None), publishers=(producer(None), producer("")))})

    assert (row["client_version"], row["producers"], row["consumers"], row["hosts"]) == ("", 2, 1, 1)


def test_what_clients_say_is_bounded() -> None:
    """The number and length of versions and the number of hosts are bounded, and every consumer is counted."""
    many = [consumer(f"x{number}" + "y" * 1000) for number in range(MAX_VERSIONS * 3)]
    hosts = [consumer(OLD, f"10.0.{number >> 8}.{number & 255}") for number in range(MAX_HOSTS + 500)]
    found = rows_of({"persistent://a/b/c": topic(*hosts, *many)})

    assert len(found) == MAX_VERSIONS + 1
    assert sum(row["consumers"] for row in found) == len(many) + len(hosts)  # type: ignore[misc]  # rows have values of any type
    by_version = {row["client_version"]: row for row in found}
    assert by_version[OLD]["hosts"] == MAX_HOSTS
    assert OTHER in by_version
    assert max(map(len, by_version)) <= 100  # type: ignore[arg-type]  # rows have values of any type


@row_by_row(
    "version, severity",
    ("2.6.2", Severity.WARNING),
    ("2.6.3", Severity.INFO),
    ("2.7.2", Severity.WARNING),
    ("2.7", Severity.INFO),
    ("2.8.0", None),
    ("2.10.4", None),
    ("Pulsar-Java-v2.6.2", None),
    ("Pulsar-Java-v4.0.7-billing", None),
    ("Pulsar-CPP-v4.2.0", None),
    ("Pulsar-Go-v0.17.0", Severity.WARNING),
    ("Pulsar-Go-v0.18.0", Severity.INFO),
    ("Pulsar-Go-v0.19.0-0.20260101", Severity.INFO),
    ("Pulsar-Go-v0.20.0", None),
    ("Pulsar-Rust-v6.3.0", None),
    ("", None),
    ("2.6.2.1x", Severity.WARNING),
    ("9" * 400, None),
    ("\u0662.6.2", None),
    ("none", None),
)
def test_what_is_known_of_a_version(version: str, severity: Severity | None) -> None:
    """A client's known trouble follows from the number of its version, and a missing version is suspicious."""
    known = trouble_of(version)

    assert (known.severity if known else None) == severity
    assert is_suspicious(version) is (severity is not None or not version)


def test_every_trouble_can_be_met() -> None:
    """Each known trouble is found for the last version that has it, and names its source."""
    for known in TROUBLES:
        major, minor, patch = known.cured
        number = f"{major}.{minor}.{patch - 1}" if patch else f"{major}.{minor - 1}.999"
        assert trouble_of(f"Pulsar-{known.language}-v{number}" if known.language else number) == known
        assert known.source
