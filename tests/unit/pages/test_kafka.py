"""A Kafka cluster on the pages, beside Pulsar clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.collect.kafka.reader import KafkaPartition
from tests.builders import NOW
from tests.ledgers import ledger_at
from tests.unit.collect.made_up_kafka import Cluster, taken
from tests.unit.pages.conftest import pages_of
from tests.unit.pages.scenes import observed
from tests.unit.pages.test_pages import words

if TYPE_CHECKING:
    from pathlib import Path


def test_a_kafka_cluster_has_its_place_among_the_others(tmp_path: Path) -> None:
    """By its health; its page has brokers, findings and troubles, and nothing that Kafka has not got."""
    ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}").dispose()
    observed(tmp_path / "snapshots", "east", NOW)
    taken(Cluster({"app": {KafkaPartition("orders", 0): 0}}), tmp_path / "snapshots")
    client = pages_of(tmp_path)
    read = words(client, "/")
    assert read.index("k Kafka, calls itself abc") < read.index("east Pulsar")
    assert "1/3 brokers 5 partitions with a leader only looked at" in read
    (first, _) = client.get("/api/clusters").json()
    assert (first["cluster"], first["health"], first["seen"]["system"]) == ("k", "critical", "kafka")

    read = words(client, "/clusters/k")
    for said in (
        "k Kafka, seen",
        "Guide in the order in which trouble is best looked for",
        "Partitions led broker 1 3",
        "broker 3 unread it holds replicas, yet the cluster does not list it: it is down",
        "Plans the newest Steward only looks at Kafka clusters: there is nothing to change",
    ):
        assert said in read
    for strange in ("Pulsar 4", "Bundles", "Delayed", "Restarts", "Trends", "TCs"):
        assert strange not in read
    for trouble in client.get("/api/clusters/k/troubles").json():
        assert "No plan: people have to act." in words(client, f"/clusters/k/troubles/{trouble['trouble_id']}")
    for part in ("checks", "findings", "brokers", "bundles", "failovers", "backlogs", "trends", "plans"):
        assert client.get(f"/api/clusters/k/{part}").status_code == 200, part
    assert 'steward_findings{check="kafka-group-lag",cluster="k"' in client.get("/metrics").text
