"""Brokers that carry far more than others, or next to nothing; drained ones; and groups of brokers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement import broker_load
from pulsar_steward.checks.placement.broker_groups import CHECK as GROUPS_CHECK
from pulsar_steward.checks.placement.broker_load import BROKER_DRAINING as CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.builders import NOW, a_policy
from tests.checks.conftest import judge_rows, minutes_ago, told

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


def test_what_it_says(golden: Golden) -> None:
    """The full broker comes first, with all that it has too much of; a draining one is meant to be empty."""
    policy = Policy.model_validate({"brokers": {"draining": ["c:8080"]}})
    three = [
        broker("a:1", topics=3000, producers=900, consumers=2100, cpu_percent=60.0),
        broker("b:1", topics=800, producers=500, cpu_percent=20.0),
        broker("c:1", topics=0, bundles=2, cpu_percent=1.0),
    ]
    many = [broker(f"b{number:03}", topics=0 if number < 104 else 2_000_000) for number in range(106)]
    cases: dict[str, tuple[Any, ...]] = {
        "one drains": ([*brokers_with("topics", 1500, 1000), broker("c:8080", topics=0)], policy),
        "a full and an empty one": (three,),
        "more than a hundred": (many,),
    }
    golden(
        told(
            {
                rule: judge_rows(broker_load.BROKER_LOAD_SKEW, {"brokers": rows}, *own)
                for rule, (rows, *own) in cases.items()
            }
        )
    )


HEARTBEATS = ("pulsar/a:1", "pulsar/east/a:1", "sla-monitor/east/a:1")


def brokers(*names: str, unread: str = "") -> list[dict[str, Any]]:
    """Brokers of these names; one of them was perhaps not read."""
    return [{"broker": name, "read": name != unread} for name in names]


def a_bundle(namespace: str = "shop/orders", **columns: Any) -> dict[str, Any]:
    """A bundle of broker a with two topics and five clients."""
    usual = {"namespace": namespace, "bundle": "0x00000000_0xffffffff", "owner": "a:1", "owner_known": True}
    return usual | {"topics": 2, "producers": 2, "consumers": 3} | columns


def draining(*names: str) -> Policy:
    return a_policy(brokers={"draining": names})


HELD: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], Severity]] = {
    "bundles": ([a_bundle(), a_bundle("shop/carts")], [], Severity.WARNING),
    "bundles of Pulsar's own": ([a_bundle("pulsar/system", producers=None, consumers=None)], [], Severity.WARNING),
    "a coordinator": ([], [{"coordinator": 3, "broker": "a:1", "broker_known": True}], Severity.WARNING),
    "nothing": ([a_bundle(owner="b:1"), a_bundle("shop/carts", owner=None)], [], Severity.INFO),
    "heartbeats alone": ([a_bundle(name) for name in HEARTBEATS], [], Severity.INFO),
    "a bundle without a topic": ([a_bundle(topics=0, producers=0, consumers=0)], [], Severity.INFO),
}


@pytest.mark.parametrize(("bundles", "coordinators", "severity"), HELD.values(), ids=HELD)
def test_what_is_left_of_a_draining_broker(
    golden: Golden, bundles: list[dict[str, Any]], coordinators: list[dict[str, Any]], severity: Severity
) -> None:
    """A draining broker with loaded topics or coordinators is a warning, and an empty one is information."""
    rows = {"brokers": brokers("a:1", "b:1"), "bundles": bundles, "transaction_coordinators": coordinators}
    (finding,) = judge_rows(CHECK, rows, draining("a:1")).findings
    assert (finding.subject, finding.severity) == ("a:1", severity)
    golden(finding.evidence)


def test_what_it_says_of_draining(golden: Golden) -> None:
    """A name that no broker has is a warning and comes before information; what was not read may own anything."""
    two = {"brokers": brokers("a:1", "b:1"), "bundles": [a_bundle()]}
    cases: dict[str, tuple[Any, ...]] = {
        "nobody is marked": ({"brokers": brokers("a:1"), "bundles": [a_bundle()]},),
        "a name that no broker has, and an empty broker": (two, draining("b:1", "a:8080")),
        "it was there lately": (
            {"brokers": brokers("b:1")},
            draining("a:1"),
            [minutes_ago(15, {"brokers": brokers("a:1", "b:1")})],
        ),
        "it was not read": ({"brokers": brokers("a:1", "b:1", unread="a:1")}, draining("a:1")),
    }
    golden(told({rule: judge_rows(CHECK, *case) for rule, case in cases.items()}))


LIMITS = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "80"}}
SHOP = {"namespaces": ["shop/.*"], "primary": ["a", "b"], "secondary": [], "auto_failover_policy": LIMITS}


def cluster(policies: dict[str, Any] | None, *owners: str) -> dict[str, list[dict[str, Any]]]:
    """Three brokers, and a bundle of `shop/orders` with topics on each of these."""
    about = {"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}
    bundles = [
        {"namespace": "shop/orders", "bundle": f"0x{number}", "owner": owner, "owner_known": True, "topics": 2}
        for number, owner in enumerate(owners)
    ]
    idle = {"namespace": "shop/orders", "bundle": "idle", "owner": "c:1", "owner_known": True, "topics": 0}
    return {
        "snapshot": [about | {"isolation_json": None if policies is None else json.dumps(policies)}],
        "brokers": [{"broker": name, "read": True} for name in ("a:1", "b:1", "c:1")],
        "namespaces": [{"namespace": "shop/orders", "bundles": 4, "allowed_brokers": ["a:1", "b:1"]}],
        "bundles": [*bundles, idle],
    }


def wanting(*primary: str) -> Policy:
    return a_policy(brokers={"groups": [{"name": "shop", "namespaces": ["shop/.*"], "primary": list(primary)}]})


def test_what_it_says_of_groups(golden: Golden) -> None:
    """Each way in which a group is not as wanted is a warning; idle bundles and an order of patterns are none."""
    cases: dict[str, tuple[Any, ...]] = {
        "nobody wants a group": (cluster({}),),
        "there is no policy": (cluster({}, "a:1"), wanting("a", "b")),
        "it is as wanted": (cluster({"shop": SHOP}, "a:1", "b:1"), wanting("b", "a")),
        "it has other brokers": (cluster({"shop": SHOP}, "a:1"), wanting("a", "c")),
        "bundles are outside": (cluster({"shop": SHOP}, "a:1", "c:1", "c:1"), wanting("a", "b")),
        "policies could not be read": (cluster(None, "c:1"), wanting("a", "b")),
    }
    golden(told({rule: judge_rows(GROUPS_CHECK, *case) for rule, case in cases.items()}))
