"""Replication of topics to other clusters, as brokers tell it and as a snapshot keeps it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from lab.simulator import ReplicatorSpec
from lab.simulator.stats import replicator
from pulsar_steward.collect.pending import Recent
from pulsar_steward.collect.topics import TopicRows
from pulsar_steward.pulsar.statistics import bundles_in

ALL = "0x00000000_0xffffffff"


def kept(**replication: object) -> list[str | None]:
    """Column `replication_json` of two topics, of which the second is replicated like this."""
    topic = {"publishers": [], "subscriptions": {}, "replication": {}, "producerCount": 0}
    topics = {"persistent://a/b/c": topic, "persistent://a/b/d": {**topic, "replication": replication}}
    document = json.dumps({"a/b": {ALL: {"persistent": topics}}}).encode()
    rows = TopicRows("x:8080", Recent(datetime(2026, 1, 1, tzinfo=UTC), 10), 3)
    for each in bundles_in(document, "x:8080"):
        rows.add(each.namespace, each.bundle, each.topics)
    told = [row for batch in rows.rest() if batch.table.name == "topics" for row in batch.rows.to_pylist()]
    return [row["replication_json"] for row in told]


def test_what_brokers_tell_of_each_remote_cluster_is_kept() -> None:
    """Replication is kept for each remote cluster in the order of their names, and is null for a topic without any."""
    specs = (ReplicatorSpec("west", 7, connected=False), ReplicatorSpec("east", 0, rate_out=2.5, expired_rate=1.0))
    none, both = kept(**{each.cluster: replicator(each) for each in specs})

    assert none is None
    names = ("cluster", "connected", "backlog_entries", "message_rate_out", "expired_rate")
    assert [tuple(each[name] for name in names) for each in json.loads(both or "")] == [
        ("east", True, 0, 2.5, 1.0),
        ("west", False, 7, 0.0, 0.0),
    ]


def test_what_a_broker_leaves_out_is_no_trouble() -> None:
    """Rates that a broker leaves out are 0, and the state of the connection is unknown."""
    _, told = kept(west={"replicationBacklog": 7})
    assert json.loads(told or "")[0] == {
        "cluster": "west",
        "connected": None,
        "backlog_entries": 7,
        "message_rate_out": 0.0,
        "expired_rate": 0.0,
    }
