"""Unevenly spread transaction coordinators, and too few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement import coordinators
from pulsar_steward.checks.placement.coordinators import TC_COUNT as CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.builders import NOW
from tests.checks.conftest import judge_rows, severity_of, told

if TYPE_CHECKING:
    from tests.golden import Golden

Counts = dict[str, int | None]
"""Coordinators by broker; None: it could not be read."""

DRAINED = "c:8080"


def rows(held: Counts, unowned: int = 0, bundle: str = "", **meta: Any) -> dict[str, list[dict[str, Any]]]:
    """A snapshot in which brokers hold that many coordinators, all in one bundle or each in its own."""
    holders = [broker for broker, count in held.items() for _ in range(count or 0)] + [None] * unowned
    unread = [broker for broker, count in held.items() if count is None]
    about = {
        "cluster": "lab",
        "taken_at": NOW,
        "coordinators": len(holders),
        "unread_brokers": unread,
        "unread_namespaces": [],
    }
    return {
        "snapshot": [about | meta],
        "brokers": [{"broker": broker, "read": count is not None} for broker, count in held.items()],
        "transaction_coordinators": [
            {"coordinator": number, "broker": broker, "bundle": bundle or f"bundle of {number}"}
            for number, broker in enumerate(holders)
        ],
    }


def alike(brokers: str, count: int) -> Counts:
    """Returns the same number of coordinators for each of these brokers."""
    return dict.fromkeys(brokers, count)


CASES: dict[str, tuple[Counts, int, Severity | None]] = {
    "a fresh cluster is fine": ({"a": 6, "b": 6, "c": 4}, 0, None),
    "a spread of three is looked at": ({"a": 7, "b": 5, "c": 4}, 0, Severity.WARNING),
    "a new broker without any counts": ({"a": 5, "b": 5, "c": 6, "d": 0}, 0, Severity.WARNING),
    "all on one broker is critical": ({"a": 16, "b": 0, "c": 0}, 0, Severity.CRITICAL),
    "three quarters on one broker are critical": ({"a": 12, "b": 2, "c": 2}, 0, Severity.CRITICAL),
    "less than three quarters are not": ({"a": 11, "b": 3, "c": 2}, 0, Severity.WARNING),
    "the only broker has to hold all": ({"a": 16}, 0, None),
    "shares are of all, unowned ones too": ({"a": 10, "b": 0}, 6, Severity.WARNING),
    "none that anybody owns are no skew": ({"a": 0, "b": 0}, 16, None),
    "nobody knows what an unread broker holds": ({"a": 8, "b": None}, 8, None),
    "a skew among those read stands": ({"a": 9, "b": 2, "c": None}, 5, Severity.WARNING),
    "a broker that holds nearly all stands": ({"a": 14, "b": None}, 2, Severity.CRITICAL),
    "half on each of two of twenty brokers": (alike("ab", 8) | alike("cdefghijklmnopqrst", 0), 0, Severity.WARNING),
    "fewer than brokers, one on each": (alike("abcdefghijklmnop", 1) | alike("qrst", 0), 0, None),
    "fewer than brokers, three on one": (alike("a", 3) | alike("bcdef", 1) | alike("g", 0), 0, Severity.WARNING),
    "a single one cannot be spread": ({"a": 1, "b": 0, "c": 0}, 0, None),
    "two on one of three can": ({"a": 2, "b": 0, "c": 0}, 0, Severity.CRITICAL),
}


@pytest.mark.parametrize(("held", "unowned", "severity"), CASES.values(), ids=CASES)
def test_a_placement_is_judged(held: Counts, unowned: int, severity: Severity | None) -> None:
    """Only brokers that were read are judged; without a finding, coordinators elsewhere leave the result unknown."""
    judgement = judge_rows(coordinators.TC_SKEW, rows(held, unowned))
    assert severity_of(judgement) is severity
    assert (judgement.cannot_tell is not None) is (severity is None and unowned > 0)


@pytest.mark.parametrize(
    ("most", "severity"),
    [(4, None), (5, Severity.WARNING), (12, Severity.CRITICAL)],
    ids=["few", "worth a split", "nearly all"],
)
def test_few_coordinators_in_one_bundle_are_left_there(most: int, severity: Severity | None) -> None:
    """A few coordinators in a single bundle are not found, as moving the bundle would not lower the maximum."""
    held = rows({"a": most, "b": 0, "c": 0}, unowned=16 - most, bundle="0x00000000_0x10000000")
    assert severity_of(judge_rows(coordinators.TC_SKEW, held)) is severity


@pytest.mark.parametrize(
    ("held", "found"),
    [({"a": 8, "b": 8, DRAINED: 0}, False), ({"a": 8, "b": 2, DRAINED: 6}, True)],
    ids=["empty", "holds some"],
)
@pytest.mark.parametrize("draining", [True, False], ids=["draining", "isolated"])
def test_a_broker_that_is_to_have_none_is_not_the_emptiest(held: Counts, *, found: bool, draining: bool) -> None:
    """A draining or isolated broker does not count as the emptiest, since no coordinator can be moved to it."""
    system = {"namespace": "pulsar/system", "allowed_brokers": None if draining else ["a", "b"]}
    policy = Policy.model_validate({"brokers": {"draining": [DRAINED] if draining else []}})
    assert bool(judge_rows(coordinators.TC_SKEW, rows(held) | {"namespaces": [system]}, policy).findings) is found


def test_without_transactions_nothing_is_judged() -> None:
    judgement = judge_rows(coordinators.TC_SKEW, rows({"a": 16, "b": 0}, coordinators=0))
    assert (judgement.findings, judgement.cannot_tell) == ((), None)


def elected(rows: dict[str, list[dict[str, Any]]], value: str = "true") -> dict[str, list[dict[str, Any]]]:
    """The same snapshot of brokers of Pulsar 5."""
    setting = {"key": coordinators.ELECTED_IN, "value": value}
    return rows | {"configuration": [setting | {"broker": each["broker"]} for each in rows["brokers"]]}


@pytest.mark.parametrize("value", ["true", "false"])
def test_those_that_bundles_place_are_judged_on_pulsar_5_as_well(value: str) -> None:
    """Elected ones leave open whether all is well; those that bundles place are found uneven all the same."""
    uneven = judge_rows(coordinators.TC_SKEW, elected(rows({"a": 16, "b": 0}), value))
    assert (severity_of(uneven), uneven.cannot_tell) == (Severity.CRITICAL, None)
    even = judge_rows(coordinators.TC_SKEW, elected(rows({"a": 8, "b": 8}), value))
    assert not even.findings
    assert (even.cannot_tell is not None) is (value == "true")


def test_what_it_says(golden: Golden) -> None:
    """The spread is that of a broker whose bundles can be moved; who was not read may hold what nobody else does."""
    loose = Policy.model_validate({"tc_skew": {"warning_spread_coordinators": 11, "critical_share_percent": 90}})
    settled = rows({"a": 4, "b": 0, "c": 0}, bundle="0x00000000_0x10000000", coordinators=16)
    settled["transaction_coordinators"] += rows({"b": 3})["transaction_coordinators"]
    unread = rows({"a": 5, "b": 5, "c": None}, unowned=6)
    for number, row in enumerate(unread["transaction_coordinators"]):
        row["broker_known"] = number < 14
    cases: dict[str, tuple[Any, ...]] = {
        "one can be relieved, beside one whose bundle holds more": (settled,),
        "most and fewest, and two on no broker": (rows({"b": 9, "a": 0, "c": 9}, unowned=2),),
        "nobody has some, and an unread broker may have others": (unread,),
        "less than the policy's thresholds": (rows({"a": 12, "b": 2, "c": 2}), loose),
        "further ones are elected": (elected(rows({"a": 8, "b": 8})),),
        "no broker was read": (rows({"a": None}, unowned=16),),
    }
    golden(told({rule: judge_rows(coordinators.TC_SKEW, *case) for rule, case in cases.items()}))


def count_rows(coordinators: int, brokers: int, **meta: Any) -> dict[str, list[dict[str, Any]]]:
    """A snapshot of so many brokers and coordinators, the first broker of which could not be read."""
    about = {"cluster": "lab", "taken_at": NOW, "coordinators": coordinators}
    return {
        "snapshot": [about | {"unread_brokers": [], "unread_namespaces": []} | meta],
        "brokers": [{"broker": f"b{number}:8080", "read": number > 0} for number in range(brokers)],
    }


COUNT_CASES: list[tuple[int, int, Severity | None]] = [
    (1, 1, None),
    (16, 1, None),
    (16, 3, None),
    (16, 64, None),
    (16, 65, Severity.INFO),
    (1, 2, Severity.WARNING),
    (3, 3, None),
    (3, 4, Severity.WARNING),
    (4, 5, None),
    (4, 16, None),
    (4, 17, Severity.INFO),
    (300, 3, None),
    (301, 3, Severity.WARNING),
    (1000, 100, None),
]


@pytest.mark.parametrize(("coordinators", "brokers", "severity"), COUNT_CASES)
def test_the_number_is_held_against_the_brokers(coordinators: int, brokers: int, severity: Severity | None) -> None:
    """The number of coordinators is judged by the number of listed brokers, whether they were read or not."""
    found = judge_rows(CHECK, count_rows(coordinators, brokers)).findings
    assert [each.severity for each in found] == ([severity] if severity else [])


def test_what_it_says_of_their_number(golden: Golden) -> None:
    """Brokers that take none do not count."""
    draining = Policy.model_validate({"brokers": {"draining": ["b1:8080"]}})
    apart = {"namespaces": [{"namespace": "pulsar/system", "allowed_brokers": ["b0:8080", "b1:8080", "b2:8080"]}]}
    cases: dict[str, tuple[Any, ...]] = {
        "one drains": (count_rows(3, 4), draining),
        "one is kept out by isolation": (count_rows(3, 4) | apart,),
        "too few": (count_rows(1, 2),),
        "too many": (count_rows(400, 3),),
        "fewer than brokers": (count_rows(16, 100),),
        "they suit": (count_rows(16, 3),),
        "transactions are off": (count_rows(0, 3),),
        "no broker is listed": (count_rows(16, 0),),
    }
    golden(told({rule: judge_rows(CHECK, *case) for rule, case in cases.items()}))
