"""Brokers that are marked as draining: what is left of them, which are empty, and which there are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement.broker_load import BROKER_DRAINING as CHECK
from pulsar_steward.model.finding import Severity
from tests.builders import a_policy
from tests.checks.conftest import judge_rows, minutes_ago, told

if TYPE_CHECKING:
    from pulsar_steward.policy.schema import Policy
    from tests.golden import Golden

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


def test_what_it_says(golden: Golden) -> None:
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
