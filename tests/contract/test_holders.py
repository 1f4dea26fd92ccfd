"""Who holds what of a topic: which documents show a subscription, a reader, a replicator, compaction, deduplication."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import msgspec
import pulsar
import pytest

from lab.cluster import Lab
from lab.faults.real.ground import connected
from lab.faults.real.operator import operator_of
from lab.faults.real.traffic import publish
from lab.model import VERSIONS
from lab.simulator import ReplicatorSpec, Simulator, SubscriptionSpec, TopicSpec
from lab.waiting import wait_until
from pulsar_steward.model.subscription import HolderKind, kind_of_cursor
from pulsar_steward.pulsar.owner import InternalDetail

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contract.api import Api

AWAY, ENTRIES, BYTES = "away", 900, 1_000
APP, COMPACTION, DEDUPLICATION, REPLICATOR = "app", "__compaction", "pulsar.dedup", "pulsar.repl.away"
DURABLE = {APP, COMPACTION, DEDUPLICATION, REPLICATOR}
"""Cursors that hold all 900 entries of the topic here."""

SHOWN_WITHIN_S = 40.0


@pytest.fixture(scope="module")
def topic(api: Api) -> Iterator[str]:
    """``tenant/ns/topic`` with 900 entries that each kind of cursor has yet to consume, and a reader that has, too."""
    if api.version != VERSIONS[0]:
        pytest.skip(f"tried on {VERSIONS[0]} alone")
    name = f"{api.new_namespace(1)}/topic"
    with contextlib.ExitStack() as stack:
        if isinstance(api.target, Simulator):
            _made_up(api.target, name)
        else:
            assert isinstance(api.target, Lab)
            api.final("PUT", f"/admin/v2/namespaces/{name.rpartition('/')[0]}/compactionThreshold", json=1 << 30)
            stack.enter_context(operator_of(api.target).cluster_that_is_away(AWAY))
            stack.enter_context(_published(api.target, name))
        api.look_up(name)
        yield name


def _made_up(target: Simulator, name: str) -> None:
    subscriptions = (
        SubscriptionSpec(APP, kind="Exclusive", backlog=ENTRIES),
        SubscriptionSpec(COMPACTION, kind="None", backlog=ENTRIES),
        SubscriptionSpec("reader-0a1b2c3d4e", kind="Exclusive", consumers=1, backlog=ENTRIES, durable=False),
    )
    spec = TopicSpec(
        "topic",
        subscriptions=subscriptions,
        message_bytes=BYTES,
        replicators=(ReplicatorSpec(AWAY, ENTRIES, connected=False),),
        dedup_behind=ENTRIES,
    )
    target.add_topic(name.rpartition("/")[0], spec)


@contextlib.contextmanager
def _published(lab: Lab, name: str) -> Iterator[None]:
    admin, namespace, full = operator_of(lab), name.rpartition("/")[0], f"persistent://{name}"
    admin.set_policy(namespace, "replication", [lab.cluster, AWAY])
    admin.set_policy(namespace, "deduplication", document=True)
    admin.create_topic(full)
    client = connected(lab)
    try:
        client.subscribe(full, APP, receiver_queue_size=0)
        wait_until(lambda: _has_all(admin.statistics(full)), "the topic has all of its cursors", SHOWN_WITHIN_S, 0.2)
        producer = client.create_producer(full, batching_enabled=False)
        publish(producer, ENTRIES, BYTES)
        producer.close()
        client.create_reader(full, pulsar.MessageId.earliest, receiver_queue_size=0)
        yield
    finally:
        client.close()
        admin.set_policy(namespace, "replication", [lab.cluster])


def _has_all(topic: dict[str, Any]) -> bool:
    dedup: bool = topic["deduplicationStatus"] == "Enabled"
    return {APP, COMPACTION} <= topic["subscriptions"].keys() and AWAY in topic["replication"] and dedup


def test_each_kind_of_cursor_is_where_steward_looks_for_it(api: Api, topic: str) -> None:
    own, path = api.get(f"/admin/v2/persistent/{topic}/stats"), f"/admin/v2/persistent/{topic}/internalStats"
    internals, info = api.get(path), api.get(f"/admin/v2/persistent/{topic}/internal-info")
    of_all = _of_all(api, topic)
    for document in (own, of_all):
        backlogs = {name: each["msgBacklog"] for name, each in document["subscriptions"].items()}
        (reader,) = backlogs.keys() - {APP, COMPACTION}
        assert kind_of_cursor(reader) is HolderKind.READER
        assert (backlogs[APP], backlogs[COMPACTION]) == (ENTRIES, ENTRIES)
        assert document["replication"].keys() == {AWAY}
        assert document["replication"][AWAY]["replicationBacklog"] == ENTRIES
        assert document["backlogSize"] >= ENTRIES * BYTES
    durable = {name for name, each in own["subscriptions"].items() if each["isDurable"]}
    assert durable == {APP, COMPACTION}
    assert not any("isDurable" in each for each in of_all["subscriptions"].values())
    assert internals["cursors"].keys() == {*DURABLE, reader}
    assert info["cursors"].keys() == DURABLE


def _of_all(api: Api, topic: str) -> dict[str, Any]:
    """The topic in its owner's statistics of all topics, once these show it."""
    namespace, found = topic.rpartition("/")[0], dict[str, Any]()

    def shown() -> bool:
        document = api.get("/admin/v2/broker-stats/topics", api.look_up(topic))
        held = [each for bundle in document.get(namespace, {}).values() for each in bundle["persistent"].items()]
        found.update(
            {key: value for name, each in held if name == f"persistent://{topic}" for key, value in each.items()}
        )
        behind = found.get("replication", {}).get(AWAY, {}).get("replicationBacklog")
        return behind == ENTRIES and len(found["subscriptions"]) == len((APP, COMPACTION, "the reader"))

    wait_until(shown, "statistics of all topics show it", SHOWN_WITHIN_S, 0.5)
    return found


def test_steward_counts_what_each_cursor_has_yet_to_consume(api: Api, topic: str) -> None:
    internals = msgspec.convert(api.get(f"/admin/v2/persistent/{topic}/internalStats"), InternalDetail)
    assert {name: internals.entries_behind(name) for name in DURABLE} == dict.fromkeys(DURABLE, ENTRIES)
    assert internals.bytes_behind(APP) == api.get(f"/admin/v2/persistent/{topic}/stats")["backlogSize"]
    first = {internals.first_unread_ledger(name) for name in DURABLE}
    assert first == {internals.ledgers[0].ledger_id}
