"""Brokers that share a host are lost together; brokers that did not answer are neither there nor gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.delayed import cluster_placement, failover_time
from pulsar_steward.model.finding import Severity
from tests.checks.delayed.conftest import cluster

if TYPE_CHECKING:
    from tests.checks.conftest import Rows
    from tests.golden import Golden


def on(host: str, *topics: int | None, first_port: int = 8080) -> list[dict[str, Any]]:
    """Brokers of a host; None: it could not be read."""
    return [
        {"broker": f"{host}:{first_port + number}", "read": count is not None, "topics": count, "bundles": 10}
        | {"cpu_percent": 10.0}
        for number, count in enumerate(topics)
    ]


def telling(brokers: list[dict[str, Any]]) -> Rows:
    """These brokers, each of which tells that nothing is delayed."""
    sample = {"source_kind": "broker", "series": "pulsar_subscription_delayed", "value": 0.0}
    return {"brokers": brokers, "metrics": [{"source": row["broker"]} | sample for row in brokers], "topics": []}


FAILOVERS: dict[str, tuple[list[dict[str, Any]], dict[str, Severity]]] = {
    # Of the two that are left, each loads 100 topics a second; 30.4 s are fixed for a broker; clients wait a minute.
    "each broker alone is short of the limit, their host is not": (
        on("x", 12_000, 12_000) + on("y", 100) + on("z", 100),
        {"x": Severity.WARNING},
    ),
    "on hosts of their own": (on("w", 12_000) + on("x", 12_000) + on("y", 100) + on("z", 100), {}),
    "their host is short of it too": (on("x", 5_500, 5_500) + on("y", 100) + on("z", 100), {}),
    "a broker is found anyway": (on("x", 30_000, 100) + on("y", 100) + on("z", 100), {"x:8080": Severity.WARNING}),
    "all on one host": (on("x", 12_000, 12_000, 100, 100), {}),
}


@pytest.mark.parametrize(("brokers", "expected"), FAILOVERS.values(), ids=FAILOVERS)
def test_a_host_with_several_brokers_may_be_lost(brokers: list[dict[str, Any]], expected: dict[str, Severity]) -> None:
    """The loss of one of several hosts is found if its failover takes too long and no single broker is found."""
    judgement = cluster(instead=telling(brokers)).judged(failover_time.CHECK)
    assert {finding.subject: finding.severity for finding in judgement.findings} == expected
    assert judgement.cannot_tell is None


@pytest.mark.parametrize("check", [failover_time.CHECK, cluster_placement.CHECK])
def test_one_host_for_all_is_said(check: Any, golden: Golden) -> None:
    """A cluster with all brokers on one host is no finding, but the healthy result says so."""
    one = cluster(instead=telling(on("x", 100, 100))).judged(check)
    two = cluster(instead=telling(on("x", 100) + on("y", 100))).judged(check)
    golden(one.quiet)
    assert "on one host" not in two.quiet
    assert one.findings == two.findings == ()


LOSSES: dict[str, tuple[list[dict[str, Any]], Severity | None]] = {
    "what is left of four has room": (on("x", 20_000, 20_000) + on("y", 20_000, 20_000), None),
    "two of four have not": (on("x", 25_000, 25_000) + on("y", 25_000, 25_000), Severity.WARNING),
    "three of four have": (on("w", 25_000) + on("x", 25_000) + on("y", 25_000) + on("z", 25_000), None),
    "not even after the loss of one": (on("x", 38_000, 38_000) + on("y", 38_000, 38_000), Severity.CRITICAL),
}


@pytest.mark.parametrize(("brokers", "severity"), LOSSES.values(), ids=LOSSES)
def test_the_others_have_to_carry_the_loss_of_a_host(brokers: list[dict[str, Any]], severity: Severity | None) -> None:
    """Too little room after the loss of a host is a warning, and after the loss of one broker it is critical."""
    findings = cluster(instead={"brokers": brokers}).judged(cluster_placement.CHECK).findings
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])


def isolated(*brokers: str) -> list[dict[str, Any]]:
    """A namespace that may be on these only."""
    return [{"namespace": "t/paying", "bundles": 4, "allowed_brokers": list(brokers)}]


GROUPS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], Severity | None, str]] = {
    # brokers, namespaces, what is found, what is said
    "a group on one host": (on("x", 1, 1) + on("y", 1), isolated("x:8080", "x:8081"), Severity.WARNING, "one host"),
    "a group on two": (on("x", 1, 1) + on("y", 1), isolated("x:8080", "y:8080"), None, ""),
    "the cluster has no other host": (on("x", 1, 1, 1), isolated("x:8080", "x:8081"), None, ""),
    "one of two did not answer": (
        on("x", 1, None) + on("y", 1),
        isolated("x:8080", "x:8081"),
        Severity.WARNING,
        "only x:8080 answered, and not x:8081",
    ),
    "none did": (on("x", 1, 1) + on("y", None), isolated("y:8080"), Severity.WARNING, "of these none answered"),
    "there is none": (on("x", 1, 1) + on("y", None), isolated(), Severity.CRITICAL, "no broker that is there"),
}


@pytest.mark.parametrize(("brokers", "namespaces", "severity", "words"), GROUPS.values(), ids=GROUPS)
def test_isolation_groups_and_their_hosts(
    brokers: list[dict[str, Any]], namespaces: list[dict[str, Any]], severity: Severity | None, words: str
) -> None:
    """An isolation group on one of several hosts is a warning, and an unread broker does not count as absent."""
    findings = cluster(instead={"brokers": brokers, "namespaces": namespaces}).judged(cluster_placement.CHECK).findings
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])
    assert all(words in finding.evidence for finding in findings)


def test_the_only_broker_that_answered_is_not_the_only_one() -> None:
    """The check cannot tell what a loss would leave when only one of the brokers was read."""
    judgement = cluster(instead={"brokers": on("x", 1) + on("y", None)}).judged(cluster_placement.CHECK)
    assert judgement.findings == ()
    assert (judgement.cannot_tell or "").startswith("Only x:8080 was read")
