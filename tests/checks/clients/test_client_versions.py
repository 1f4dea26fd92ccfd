"""Clients of versions that something is known against."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.clients.client_numbers import CLIENT_VERSIONS
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.conftest import judge_rows

if TYPE_CHECKING:
    from tests.golden import Golden

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def clients(version: str, consumers: int = 20, broker: str = "a:1", **more: Any) -> dict[str, Any]:
    """Clients of one version of a broker's part of a namespace, with their hosts."""
    row = {"broker": broker, "namespace": "acme/orders", "client_version": version, "producers": 1}
    named = {"hosts": 2, "busiest_hosts": ["10.0.0.7", "10.0.0.8"]}
    example = {"example_topic": f"persistent://acme/orders/{broker[0]}", "example_client": "billing-0"}
    return row | {"consumers": consumers} | named | example | more


def snapshot(*rows: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """A snapshot of two brokers."""
    topics = [{"topic": "persistent://acme/orders/t", "broker": "a:1", "producers": 0, "consumers": 20}]
    return {
        "snapshot": [{"cluster": "east", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": broker, "read": True} for broker in ("a:1", "b:1")],
        "topics": topics,
        "client_versions": list(rows),
    }


def test_a_known_bug_is_a_warning(golden: Golden) -> None:
    """A version with a known bug is one warning over all brokers, with numbers, hosts, an example and the source.

    As a host may have clients on both brokers, hosts are at least as many as one broker tells.
    """
    rows = snapshot(clients("2.6.2", 5, producers=7), clients("2.6.2", 30, "b:1", hosts=3, busiest_hosts=["10.0.0.9"]))
    (finding,) = judge_rows(CLIENT_VERSIONS, rows).findings
    assert (finding.severity, finding.subject) == (Severity.WARNING, "acme/orders")
    golden(finding.evidence)
    assert finding.figures == {"clients": 43, "consumers": 35, "hosts": 3, "producers": 8}


def test_few_or_unknown_or_old_ones_are_information() -> None:
    """Unknown or old versions, and few clients with a known bug, are information and come after warnings."""
    rows = snapshot(
        clients(""),
        clients("2.6.2", 8),
        clients("2.7.0", namespace="acme/old"),
        clients("Pulsar-Go-v0.16.0", namespace="acme/go"),
        clients("Pulsar-Java-v4.0.7", hosts=None),
    )
    found = judge_rows(CLIENT_VERSIONS, rows).findings
    assert [(each.subject, each.severity) for each in found] == [
        ("acme/go", Severity.WARNING),
        ("acme/old", Severity.INFO),
        ("acme/orders", Severity.INFO),
        ("acme/orders", Severity.INFO),
    ]
    words = "of which their brokers know no version, on 2 hosts"
    assert any(words in each.evidence and "apache/pulsar-client-go#650" in each.evidence for each in found)


def test_a_namespace_may_have_its_own_threshold() -> None:
    """A known bug is only information in a namespace whose own `minimum_clients` is not reached."""
    own = {"namespaces": {"acme/orders": {"client_versions": {"minimum_clients": 50}}}}
    (finding,) = judge_rows(CLIENT_VERSIONS, snapshot(clients("2.6.2")), Policy.model_validate(own)).findings
    assert finding.severity is Severity.INFO


def test_others_are_told_where_all_is_well(golden: Golden) -> None:
    """Without findings the check lists the clients' versions with their numbers, without Pulsar's own namespaces."""
    rows = snapshot(
        clients("Pulsar-Java-v4.0.7", hosts=None),
        clients("Pulsar-Go-v0.20.0", 5, hosts=None),
        clients("2.6.2", namespace="pulsar/system"),
        clients("2.6.2", namespace="pulsar/east/a:1"),
    )
    judgement = judge_rows(CLIENT_VERSIONS, rows)
    assert judgement.findings == ()
    golden(judgement.quiet)
    assert judgement.cannot_tell is None


def test_without_clients_that_is_said() -> None:
    """The check finds nothing when no client is connected, and says so."""
    assert judge_rows(CLIENT_VERSIONS, snapshot()).quiet == "There is no client."
