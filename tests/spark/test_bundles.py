"""The boundaries of namespaces joined with what brokers own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.model.tables import BUNDLES, NAMESPACES
from steward_spark.bundles import all_bundles

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

LOWER, UPPER = "0x00000000_0x80000000", "0x80000000_0xffffffff"
NAMESPACE = {"namespace": "a/b", "bundles": 2, "boundaries": ["0x00000000", "0x80000000", "0xffffffff"]}


def owned(bundle: str, owner: str, namespace: str = "a/b") -> dict[str, Any]:
    """A bundle as its owner told it."""
    return {"namespace": namespace, "bundle": bundle, "owner": owner, "owner_known": True, "topics": 5}


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
    frame_of: Callable[..., DataFrame],
    told: list[dict[str, Any]],
    partial: bool,
    expected: dict[tuple[str, str], tuple[str | None, bool, int | None]],
) -> None:
    """Every bundle is there once, with its owner where that is certain."""
    made = all_bundles(frame_of(NAMESPACES, [NAMESPACE]), frame_of(BUNDLES, told), partial=partial).collect()

    assert len(made) == len(expected)
    assert {
        (row["namespace"], row["bundle"]): (row["owner"], row["owner_known"], row["topics"]) for row in made
    } == expected
