"""Clients of versions that something is known against."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.clients.client_numbers import CLIENT_VERSIONS
from pulsar_steward.policy.schema import Policy
from tests.checks.conftest import judge_rows, told

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
    topics = [{"topic": "persistent://acme/orders/t", "broker": "a:1", "producers": 0, "consumers": 20}]
    return {
        "snapshot": [{"cluster": "east", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": broker, "read": True} for broker in ("a:1", "b:1")],
        "topics": topics,
        "client_versions": list(rows),
    }


def test_what_it_says(golden: Golden) -> None:
    """A version with a known bug is one warning over all brokers, with an example; other old ones are information.

    As a host may have clients on both brokers, hosts are at least as many as one broker tells.
    """
    own = {"namespaces": {"acme/orders": {"client_versions": {"minimum_clients": 50}}}}
    busy = clients("2.6.2", 30, "b:1", hosts=3, busiest_hosts=["10.0.0.9"])
    few = clients(""), clients("2.6.2", 8), clients("2.7.0", namespace="acme/old")
    go = clients("Pulsar-Go-v0.16.0", namespace="acme/go"), clients("Pulsar-Java-v4.0.7", hosts=None)
    pulsars_own = [clients("2.6.2", namespace=name) for name in ("pulsar/system", "pulsar/east/a:1")]
    new = clients("Pulsar-Java-v4.0.7", hosts=None), clients("Pulsar-Go-v0.20.0", 5, hosts=None)
    cases: dict[str, tuple[Any, ...]] = {
        "a known bug": (snapshot(clients("2.6.2", 5, producers=7), busy),),
        "an unknown and an old version": (snapshot(clients(""), few[2]),),
        "few clients with a known bug": (snapshot(few[1]),),
        "few clients with a known bug come after many": (snapshot(*few, *go),),
        "fewer than the namespace's own threshold": (snapshot(clients("2.6.2")), Policy.model_validate(own)),
        "all is well, without Pulsar's own namespaces": (snapshot(*new, *pulsars_own),),
        "no client is connected": (snapshot(),),
    }
    golden(told({rule: judge_rows(CLIENT_VERSIONS, *case) for rule, case in cases.items()}))
