"""Topics that crowd in few bundles of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.model.bundles import ranges_of
from pulsar_steward.policy.schema import Policy
from steward_spark.checks.placement import bundle_topic_skew

if TYPE_CHECKING:
    from collections.abc import Callable

    from steward_spark.frames import Frames

pytestmark = pytest.mark.spark

RANGES = [str(each) for each in ranges_of(["0x0", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"])]

CASES: dict[str, tuple[list[int | None], int | None]] = {
    "even topics are fine": ([100, 100, 100, 100], None),
    "three times the mean is found": ([300, 50, 30, 20], 300),
    "less than that is not": ([299, 51, 30, 20], None),
    "few topics are left alone": ([99, 0, 0, 0], None),
    "the fullest may be any bundle": ([0, 0, 10, 300], 300),
    "a thousand in one bundle are too many": ([1000, 999, 999, 999], 1000),
    "a single bundle has no mean": ([999], None),
    "a single bundle has a limit": ([1000], 1000),
    "without all bundles the mean says nothing": ([300, None, None, 0], None),
    "without all bundles the limit stands": ([1000, None, None, 0], 1000),
}


def bundle_rows(namespace: str, topics: list[int | None]) -> list[dict[str, object]]:
    """A namespace's bundles; None: an unread broker may own it."""
    return [
        {"namespace": namespace, "bundle": text, "topics": count, "owner_known": count is not None}
        for text, count in zip(RANGES, topics, strict=False)
    ]


@pytest.mark.parametrize(("topics", "most"), CASES.values(), ids=CASES)
def test_a_namespace_is_judged(frames_of: Callable[..., Frames], topics: list[int | None], most: int | None) -> None:
    """One finding a namespace, about its fullest bundle."""
    frames = frames_of({"bundles": bundle_rows("acme/orders", topics)})

    found = bundle_topic_skew.CHECK.judge(frames, Policy()).findings

    assert [finding.figures["most_topics"] for finding in found] == ([most] if most else [])


def test_the_evidence_names_the_fullest_bundle(frames_of: Callable[..., Frames]) -> None:
    """Of equally full bundles the lowest is named, and namespaces come in order."""
    rows = bundle_rows("b/b", [1000, 1000, 0, 0]) + bundle_rows("a/a", [5, 2000, 3, 4])

    first, second = bundle_topic_skew.CHECK.judge(frames_of({"bundles": rows}), Policy()).findings

    assert (first.subject, second.subject) == ("a/a", "b/b")
    assert first.evidence == (
        "Bundle 0x40000000_0x80000000 holds 2,000 of 2,012 topics in 4 bundles; the mean is 503.0."
    )
    assert "Bundle 0x00000000_0x40000000 holds 1,000" in second.evidence
