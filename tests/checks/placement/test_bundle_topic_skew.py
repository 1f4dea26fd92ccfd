"""Topics that crowd in few bundles of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement import bundle_topic_skew
from pulsar_steward.model.bundles import ranges_of
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from tests.checks.conftest import JudgeRows, Rows

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


def bundle_rows(namespace: str, topics: list[int | None]) -> list[dict[str, Any]]:
    """A namespace's bundles; None: an unread broker may own it."""
    return [
        {"namespace": namespace, "bundle": text, "topics": count, "owner_known": count is not None}
        for text, count in zip(RANGES, topics, strict=False)
    ]


@pytest.mark.parametrize(("topics", "most"), CASES.values(), ids=CASES)
def test_a_namespace_is_judged(judged: JudgeRows, topics: list[int | None], most: int | None) -> None:
    """One finding a namespace, about its fullest bundle."""
    found = judged(bundle_topic_skew.CHECK, {"bundles": bundle_rows("acme/orders", topics)}).findings

    assert [finding.figures["most_topics"] for finding in found] == ([most] if most else [])


def test_the_evidence_names_the_fullest_bundle(judged: JudgeRows) -> None:
    """Of equally full bundles the lowest is named, and namespaces come in order."""
    rows = bundle_rows("b/b", [1000, 1000, 0, 0]) + bundle_rows("a/a", [5, 2000, 3, 4])

    first, second = judged(bundle_topic_skew.CHECK, {"bundles": rows}).findings

    assert (first.subject, second.subject) == ("a/a", "b/b")
    assert first.evidence == (
        "Bundle 0x40000000_0x80000000 holds 2,000 of 2,012 topics in 4 bundles; the mean is 503.0."
    )
    assert "Bundle 0x00000000_0x40000000 holds 1,000" in second.evidence


def test_namespaces_may_have_thresholds_of_their_own(judged: JudgeRows) -> None:
    """A tenant's, or those of one namespace; whose policies were not read is judged by the cluster's."""
    names = ("big/a", "big/b", "usual/c", "unread/d")
    snapshot: Rows = {
        "namespaces": [{"namespace": name} for name in names if name != "unread/d"],
        "bundles": [row for name in names for row in bundle_rows(name, [1500, 1400, 1400, 1400])],
    }
    own = {
        "tenants": {"big": {"bundle_topic_skew": {"warning_topics_per_bundle": 2000}}},
        "namespaces": {"big/b": {"bundle_topic_skew": {"warning_topics_per_bundle": 1200}}},
    }

    found = judged(bundle_topic_skew.CHECK, snapshot, Policy.model_validate(own)).findings

    assert [finding.subject for finding in found] == ["big/b", "unread/d", "usual/c"]


def test_only_the_worst_hundred_are_listed(judged: JudgeRows) -> None:
    """Those with the fullest bundles, and the rest is counted."""
    rows = [row for number in range(102) for row in bundle_rows(f"acme/n{number:03}", [1000 + number])]

    judgement = judged(bundle_topic_skew.CHECK, {"bundles": rows})

    assert (len(judgement.findings), judgement.more) == (100, 2)
    assert judgement.findings[0].subject == "acme/n002"
