"""Clients of versions that something is known against, and topics with very many clients."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.clients.client_numbers import CLIENT_VERSIONS, CONSUMER_FANOUT, PRODUCER_FANOUT
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.clients.conftest import Scene, by_name
from tests.checks.conftest import judge_rows, told

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Check
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


CONSUMERS, PRODUCERS = CONSUMER_FANOUT, PRODUCER_FANOUT
BOTH = pytest.mark.parametrize(
    ("check", "clients", "warning"),
    [(CONSUMERS, "consumers", 2000), (PRODUCERS, "producers", 1000)],
    ids=["consumers", "producers"],
)


@BOTH
def test_severity_follows_from_their_number(scene: Any, check: Check, clients: str, warning: int) -> None:
    """Partitions are judged by their number of clients, the fullest first, and Pulsar's own are left out."""
    numbers = {"few": warning - 1, "many": warning, "nearly": 9999, "most": 10_000, "unknown": None}
    for name, number in numbers.items():
        scene.topic(name, **{clients: number})
    scene.topic("persistent://pulsar/system/functions", **{clients: 20_000})
    found = by_name(scene.judged(check))
    assert found == {"most": Severity.CRITICAL, "nearly": Severity.WARNING, "many": Severity.WARNING}
    assert list(found) == ["most", "nearly", "many"]


@BOTH
def test_the_worst_are_listed_and_the_others_counted(scene: Any, check: Check, clients: str, warning: int) -> None:
    for number in range(MAX_FINDINGS + 2):
        scene.topic(f"t{number}", **{clients: warning + number})
    judgement = scene.judged(check)
    assert judgement.more == 2
    listed = [finding.figures[clients] for finding in judgement.findings]
    assert listed == list(range(warning + MAX_FINDINGS + 1, warning + 1, -1))  # without the two emptiest


@BOTH
def test_silence_tells_the_highest_number(scene: Any, check: Check, clients: str, warning: int, golden: Golden) -> None:
    """Without findings the check names the highest number of clients, and it cannot tell if no broker was read."""
    scene.topic("t", **{clients: warning - 1})
    golden(scene.judged(check).quiet)
    scene.rows["brokers"] = []
    assert scene.judged(check).cannot_tell == "No broker was read."


def test_what_it_says_of_fanout(golden: Golden) -> None:
    """The largest subscription is named; new producers are counted if they were read."""
    scene = Scene().topic("t", consumers=8100, producers=120, subscriptions=2)
    for name, consumers in (("small", 100), ("large", 8000)):
        row = {"topic": "persistent://t/n/t", "subscription": name, "type": "Shared"}
        scene.add("subscriptions", **row, consumers=consumers, ack_holes=77)
    new = [Scene().topic("t", producers=1200, producers_connected_recently=recent) for recent in (40, None)]
    cases = {
        "the largest subscription": scene.judged(CONSUMERS),
        "some producers are new": new[0].judged(PRODUCERS),
        "how many are new was not read": new[1].judged(PRODUCERS),
    }
    golden(told(cases))
