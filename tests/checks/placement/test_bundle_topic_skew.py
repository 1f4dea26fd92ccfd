"""Topics that crowd in few bundles of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement import bundle_load
from pulsar_steward.model.bundles import ranges_of
from pulsar_steward.policy.schema import Policy
from tests.checks.conftest import judge_rows

if TYPE_CHECKING:
    from tests.checks.conftest import Rows
    from tests.golden import Golden

BOUNDARIES = ["0x0", "0x40000000", "0x80000000", "0xc0000000", "0xe0000000", "0xffffffff"]
RANGES = [str(each) for each in ranges_of(BOUNDARIES)]

CASES: dict[str, tuple[list[int | None], int | None]] = {
    "even topics are fine": ([100, 100, 100, 100], None),
    "half of the topics in one of four is three times the others": ([200, 80, 70, 50], 200),
    "less than that is not": ([199, 81, 70, 50], None),
    "three quarters in one of two are": ([75, 25], 75),
    "fewer in one of two are not": ([74, 26], None),
    "of three, it takes more than half": ([60, 20, 20], 60),
    "of more than four, the mean of all counts": ([120, 20, 20, 20, 20], 120),
    "which takes more of them": ([119, 21, 20, 20, 20], None),
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
def test_a_namespace_is_judged(topics: list[int | None], most: int | None) -> None:
    """A namespace has at most one finding, which is about its fullest bundle."""
    found = judge_rows(bundle_load.BUNDLE_TOPIC_SKEW, {"bundles": bundle_rows("acme/orders", topics)}).findings
    assert [finding.figures["most_topics"] for finding in found] == ([most] if most else [])


def test_the_evidence_names_the_fullest_bundle(golden: Golden) -> None:
    """The evidence names the lowest of equally full bundles, and namespaces are listed in order."""
    rows = bundle_rows("b/b", [1000, 1000, 0, 0]) + bundle_rows("a/a", [5, 2000, 3, 4])
    first, second = judge_rows(bundle_load.BUNDLE_TOPIC_SKEW, {"bundles": rows}).findings
    assert (first.subject, second.subject) == ("a/a", "b/b")
    golden(first.evidence)
    assert "Bundle 0x00000000_0x40000000 holds 1,000" in second.evidence


def test_namespaces_may_have_thresholds_of_their_own() -> None:
    """A tenant or a namespace may have its own thresholds, and an unread namespace is judged by the cluster's."""
    names = ("big/a", "big/b", "usual/c", "unread/d")
    snapshot: Rows = {
        "namespaces": [{"namespace": name} for name in names if name != "unread/d"],
        "bundles": [row for name in names for row in bundle_rows(name, [1500, 1400, 1400, 1400])],
    }
    own = {
        "tenants": {"big": {"bundle_topic_skew": {"warning_topics_per_bundle": 2000}}},
        "namespaces": {"big/b": {"bundle_topic_skew": {"warning_topics_per_bundle": 1200}}},
    }
    found = judge_rows(bundle_load.BUNDLE_TOPIC_SKEW, snapshot, Policy.model_validate(own)).findings
    assert [finding.subject for finding in found] == ["big/b", "unread/d", "usual/c"]


@pytest.mark.parametrize(("most", "found"), [(49, False), (50, True)])
def test_a_few_topics_are_no_crowd(most: int, *, found: bool) -> None:
    """A bundle with fewer than 50 topics is not found, even if the mean of the others is far lower."""
    rows = [
        {
            "namespace": "acme/orders",
            "bundle": f"0x{number:08x}_0x{number + 1:08x}",
            "topics": count,
            "owner_known": True,
        }
        for number, count in enumerate([most, *[1] * 63])
    ]
    assert bool(judge_rows(bundle_load.BUNDLE_TOPIC_SKEW, {"bundles": rows}).findings) is found


def test_only_the_worst_hundred_are_listed() -> None:
    """At most 100 namespaces are listed, those with the fullest bundles, and the rest is counted."""
    rows = [row for number in range(102) for row in bundle_rows(f"acme/n{number:03}", [1000 + number])]
    judgement = judge_rows(bundle_load.BUNDLE_TOPIC_SKEW, {"bundles": rows})
    assert (len(judgement.findings), judgement.more) == (100, 2)
    assert judgement.findings[0].subject == "acme/n002"
