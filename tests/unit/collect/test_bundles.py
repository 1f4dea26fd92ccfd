"""The boundaries of namespaces joined with what brokers own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pulsar_steward.collect.bundles import all_bundles, with_positions
from pulsar_steward.model.tables import BUNDLES, NAMESPACES, Table
from pulsar_steward.snapshots.database import schema_of

LOWER, UPPER = "0x00000000_0x80000000", "0x80000000_0xffffffff"
NAMESPACE = {"namespace": "a/b", "bundles": 2, "boundaries": ["0x00000000", "0x80000000", "0xffffffff"]}


def owned(bundle: str, owner: str, namespace: str = "a/b") -> dict[str, Any]:
    """A bundle as its owner told it."""
    return {"namespace": namespace, "bundle": bundle, "owner": owner, "owner_known": True, "topics": 5}


def table(of: Table, rows: list[dict[str, Any]]) -> pa.Table:
    """A table of rows that may leave columns out."""
    return pa.Table.from_pylist(rows, schema=schema_of(of))


CASES = {
    "owned and unowned": (
        [owned(LOWER, "x:1")],
        False,
        {("a/b", LOWER): ("x:1", True, 5), ("a/b", UPPER): (None, True, 0)},
    ),
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
    """Bundles of `pulsar/system` without positions from a broker get the sorted positions of coordinators."""
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
