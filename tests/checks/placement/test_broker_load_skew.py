"""Brokers that carry far more than the others, or next to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement import broker_load
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.conftest import as_text, judge_rows

if TYPE_CHECKING:
    from tests.golden import Golden

ZERO = {
    "topics": 0,
    "bundles": 0,
    "producers": 0,
    "consumers": 0,
    "throughput_in_bytes": 0.0,
    "throughput_out_bytes": 0.0,
}


def broker(name: str, **columns: Any) -> dict[str, Any]:
    """A broker that was read, with nothing on it unless said."""
    return {"broker": name, "read": True} | ZERO | columns


def brokers_with(column: str, *values: float) -> list[dict[str, Any]]:
    """Brokers a, b, c... that differ in one column."""
    return [broker(chr(ord("a") + number), **{column: value}) for number, value in enumerate(values)]


CASES: dict[str, tuple[list[dict[str, Any]], list[tuple[str, Severity]]]] = {
    "a fresh cluster": (brokers_with("topics", 3, 1, 0), []),
    "even and busy": (brokers_with("topics", 9000, 8000, 10_000), []),
    "nearly twice the others": (brokers_with("topics", 1999, 1000, 1000), []),
    "twice the others": (brokers_with("topics", 2000, 1000, 1000), [("a", Severity.WARNING)]),
    "few are never too many": (brokers_with("topics", 499, 200, 10), []),
    "one of two": (brokers_with("topics", 450, 1000), [("b", Severity.WARNING)]),
    "bundles": (brokers_with("bundles", 20, 125, 20), [("b", Severity.WARNING)]),
    "fewer bundles": (brokers_with("bundles", 20, 124, 20), []),
    "bytes": (brokers_with("throughput_in_bytes", 5e6, 5e6, 20e6), [("c", Severity.WARNING)]),
    "fewer bytes": (brokers_with("throughput_out_bytes", 5e6, 5e6, 19e6), []),
    "clients": (brokers_with("consumers", 1000, 100, 100), [("a", Severity.WARNING)]),
    "fewer clients": (brokers_with("producers", 999, 100, 100), []),
    "a new broker": (brokers_with("topics", 1000, 1000, 50), [("c", Severity.WARNING)]),
    "a broker that is filling": (brokers_with("topics", 1000, 1000, 51), []),
    "a newcomer does not make the others full": (
        brokers_with("topics", 1000, 1000, 1000, 0, 0),
        [("d", Severity.WARNING), ("e", Severity.WARNING)],
    ),
    "full brokers do not hide each other": (
        brokers_with("throughput_in_bytes", 60e6, 60e6, 60e6, 25e6, 25e6, 25e6),
        [(name, Severity.WARNING) for name in "abc"],
    ),
    "nor do they where the others carry half": (
        brokers_with("throughput_in_bytes", 60e6, 60e6, 60e6, 31e6, 31e6, 31e6),
        [],
    ),
    "half of the brokers idle": (brokers_with("topics", 600, 600, 0, 0), [(name, Severity.WARNING) for name in "abcd"]),
    "half of a small cluster idle": (brokers_with("topics", 400, 400, 0, 0), []),
    "what is not known is left out": ([broker("a", topics=None), *brokers_with("topics", 900, 1000)[1:]], []),
    "full and hot": (
        [broker("a", topics=5000, cpu_percent=85.0), broker("b", topics=600, cpu_percent=90.0)],
        [("a", Severity.CRITICAL)],
    ),
    "full and at ease": (
        [broker("a", topics=5000, cpu_percent=84.0), broker("b", topics=600, cpu_percent=90.0)],
        [("a", Severity.WARNING)],
    ),
}


@pytest.mark.parametrize(("brokers", "expected"), CASES.values(), ids=CASES)
def test_brokers_are_compared(brokers: list[dict[str, Any]], expected: list[tuple[str, Severity]]) -> None:
    """Each kind of load of a broker is compared by itself with the median of the other brokers."""
    judgement = judge_rows(broker_load.BROKER_LOAD_SKEW, {"brokers": brokers})
    assert [(finding.subject, finding.severity) for finding in judgement.findings] == expected
    assert judgement.cannot_tell is None


def test_a_draining_broker_is_meant_to_be_empty(golden: Golden) -> None:
    """A draining broker is no finding and is left out of the comparison with the others."""
    policy = Policy.model_validate({"brokers": {"draining": ["c:8080"]}})
    brokers = [*brokers_with("topics", 1500, 1000), broker("c:8080", topics=0)]
    judgement = judge_rows(broker_load.BROKER_LOAD_SKEW, {"brokers": brokers}, policy)
    assert not judgement.findings
    golden(judgement.quiet)


@pytest.mark.parametrize(
    ("brokers", "unknown"),
    [
        ([broker("a", topics=9000)], False),
        ([broker("a", topics=9000), {"broker": "b", "read": False}], True),
        ([{"broker": "b", "read": False}], True),
        ([], True),
    ],
    ids=["the only broker", "the only one that was read", "none read", "none at all"],
)
def test_without_others_there_is_nothing_to_compare(brokers: list[dict[str, Any]], unknown: bool) -> None:
    """A single broker is no finding, and the check cannot tell if the others were not read."""
    judgement = judge_rows(broker_load.BROKER_LOAD_SKEW, {"brokers": brokers})
    assert not judgement.findings
    assert (judgement.cannot_tell is not None) is unknown


def test_the_evidence_has_the_numbers(golden: Golden) -> None:
    """The full broker comes first, with every kind of load that it has too much of, and the empty broker after it."""
    brokers = [
        broker("a:1", topics=3000, producers=900, consumers=2100, cpu_percent=60.0),
        broker("b:1", topics=800, producers=500, cpu_percent=20.0),
        broker("c:1", topics=0, bundles=2, cpu_percent=1.0),
    ]
    full, empty = judge_rows(broker_load.BROKER_LOAD_SKEW, {"brokers": brokers}).findings
    golden(full.evidence)
    golden(as_text(full.figures))
    golden(empty.evidence)


def test_only_the_worst_hundred_are_listed() -> None:
    """At most a hundred findings are listed, and the others are counted."""
    brokers = [broker(f"b{number:03}", topics=0 if number < 104 else 2_000_000) for number in range(106)]
    judgement = judge_rows(broker_load.BROKER_LOAD_SKEW, {"brokers": brokers})
    assert (len(judgement.findings), judgement.more) == (100, 6)
