"""Brokers that are marked as draining: what is left of them, which are empty, and which there are not."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement.broker_load import BROKER_DRAINING as CHECK
from pulsar_steward.model.finding import Severity
from tests.builders import NOW, a_policy
from tests.checks.conftest import judge_rows

if TYPE_CHECKING:
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import Rows
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
    """A policy that marks these brokers."""
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


def test_what_nobody_marked_is_left_alone() -> None:
    """A broker that is not marked as draining gets no finding, also when it owns bundles."""
    judgement = judge_rows(CHECK, {"brokers": brokers("a:1"), "bundles": [a_bundle()]})
    assert (judgement.findings, judgement.cannot_tell) == ((), None)


def test_a_name_that_no_broker_has_is_a_warning(golden: Golden) -> None:
    """A draining name that no broker has is a warning that lists the existing names, and comes before information."""
    rows = {"brokers": brokers("a:1", "b:1"), "bundles": [a_bundle()]}
    unknown, empty = judge_rows(CHECK, rows, draining("b:1", "a:8080")).findings
    assert (unknown.subject, unknown.severity, unknown.figures) == ("a:8080", Severity.WARNING, {"listed": 0})
    assert (empty.subject, empty.severity) == ("b:1", Severity.INFO)
    golden(unknown.evidence)


def test_a_broker_that_was_there_lately_was_shut_down(golden: Golden) -> None:
    """A draining broker that only an earlier snapshot lists is reported as shut down, as information."""
    before: Rows = {
        "snapshot": [
            {"cluster": "lab", "taken_at": NOW - timedelta(minutes=15), "unread_brokers": [], "unread_namespaces": []}
        ],
        "brokers": brokers("a:1", "b:1"),
    }
    (gone,) = judge_rows(CHECK, {"brokers": brokers("b:1")}, draining("a:1"), [before]).findings
    assert (gone.subject, gone.severity) == ("a:1", Severity.INFO)
    golden(gone.evidence)


def test_what_was_not_read_may_own_anything() -> None:
    """The check cannot tell if a draining broker was not read, and does not report it as empty."""
    judgement = judge_rows(CHECK, {"brokers": brokers("a:1", "b:1", unread="a:1")}, draining("a:1"))
    assert judgement.findings == ()
    assert judgement.cannot_tell == "What is left on a:1 could not be read."
