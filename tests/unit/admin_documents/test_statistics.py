"""Reading ``broker-stats/topics``."""

from __future__ import annotations

import json

import pytest

from pulsar_steward.errors import BrokenAnswer
from pulsar_steward.pulsar.statistics import bundles_in, clients_by_bundle

FULL = {
    "publishers": [{"producerId": 3, "metadata": {}}],
    "replication": {},
    "subscriptions": {
        "s1": {
            "consumers": [{"consumerName": "a"}, {"consumerName": "b"}],
            "msgBacklog": 17,
            "unackedMessages": 5,
            "blockedSubscriptionOnUnackedMsgs": True,
            "totalNonContiguousDeletedMessagesRange": 2,
            "type": "Shared",
            "msgRateOut": 0.9,
        },
        "__compaction": {"consumers": [], "msgBacklog": 0, "type": "None"},
    },
    "producerCount": 1,
    "msgRateIn": 0.9,
    "msgThroughputIn": 121.0,
    "storageSize": 2210,
    "backlogSize": 110,
}
VOLATILE = {"publishers": [], "replication": {}, "subscriptions": {}, "producerCount": 4}
DOCUMENT = {
    "acme/orders": {
        "0x00000000_0x80000000": {
            "persistent": {"persistent://acme/orders/a": FULL},
            "non-persistent": {"non-persistent://acme/orders/n": VOLATILE},
        },
        "0x80000000_0xffffffff": {},
    }
}


def test_topics_of_every_domain_are_read() -> None:
    """Persistent and non-persistent topics of a bundle are read together; figures that not all have may be missing."""
    first, second = bundles_in(json.dumps(DOCUMENT).encode(), "b:1")

    topic = first.topics["persistent://acme/orders/a"]
    assert (first.namespace, first.bundle) == ("acme/orders", "0x00000000_0x80000000")
    assert (topic.producer_count, topic.consumer_count, topic.backlog_size) == (1, 2, 110)
    assert topic.subscriptions["s1"].total_non_contiguous_deleted_messages_range == 2
    assert topic.subscriptions["__compaction"].unacked_messages is None
    assert first.topics["non-persistent://acme/orders/n"].producer_count == 4
    assert second.topics == {}


def test_a_very_large_bundle_comes_in_parts() -> None:
    """The topics of a bundle in a large document come in parts of at most 1,000, and all of them are there."""
    topics = {f"persistent://acme/orders/{number}": FULL for number in range(2_500)}
    document = {"acme/orders": {"0x00000000_0xffffffff": {"persistent": topics}}}

    whole = list(bundles_in(json.dumps(document).encode(), "b:1"))
    parts = list(bundles_in(json.dumps(document).encode(), "b:1", large=1_000_000))

    assert [len(part.topics) for part in whole] == [2_500]
    assert [len(part.topics) for part in parts] == [1_000, 1_000, 500]
    assert {part.bundle for part in parts} == {"0x00000000_0xffffffff"}
    assert {name: topic for part in parts for name, topic in part.topics.items()} == whole[0].topics


def test_clients_are_counted_by_bundle() -> None:
    """The clients of a bundle are the producers and consumers of all its topics."""
    clients = clients_by_bundle(json.dumps(DOCUMENT).encode())

    assert clients == {"acme/orders/0x00000000_0x80000000": 7, "acme/orders/0x80000000_0xffffffff": 0}


@pytest.mark.parametrize(
    "document",
    [b"", b"<html>", json.dumps(DOCUMENT).encode()[:-40], b'{"a/b":{"0x0_0x1":{"persistent":{"t":[]}}}}', b"\xff"],
)
def test_a_document_that_cannot_be_read_is_an_error(document: bytes) -> None:
    """Statistics that cannot be read raise `BrokenAnswer`, which names the broker that sent them."""
    with pytest.raises(BrokenAnswer, match="broker-stats/topics at b:1"):
        list(bundles_in(document, "b:1"))


NO_NUMBERS = [b"NaN", b"Infinity", b"-Infinity", b'"NaN"', b'"-Infinity"', b"9223372036854775807.9223372036854775807"]


@pytest.mark.parametrize("figure", NO_NUMBERS)
@pytest.mark.parametrize("large", [1, 32 << 20])
def test_a_figure_that_is_no_number_costs_itself_alone(figure: bytes, large: int) -> None:
    """It is not told; all else of the broker is read, whether a bundle is decoded at once or in parts."""
    document = json.dumps(DOCUMENT).encode().replace(b'"msgRateIn": 0.9', b'"msgRateIn": ' + figure)
    first = next(bundles_in(document, "b:1", large=large))

    topic = first.topics["persistent://acme/orders/a"]
    assert topic.msg_rate_in is None
    assert (topic.msg_throughput_in, topic.subscriptions["s1"].msg_backlog) == (121.0, 17)
    assert clients_by_bundle(document)["acme/orders/0x00000000_0x80000000"] == 7


def test_a_name_like_such_a_figure_stays_what_it_is() -> None:
    """Names are kept as they are, also in a document with such a figure."""
    named = {**FULL, "subscriptions": {"a:NaN,": FULL["subscriptions"]["s1"]}}  # type: ignore[index]  # FULL is a document
    document = {"acme/orders": {"0x00000000_0xffffffff": {"persistent": {'"x":NaN,': named}}}}
    (only,) = bundles_in(json.dumps(document).encode().replace(b'"msgRateIn": 0.9', b'"msgRateIn":NaN'), "b:1")
    ((name, topic),) = only.topics.items()
    assert (name, list(topic.subscriptions), topic.msg_rate_in) == ('"x":NaN,', ["a:NaN,"], None)
