"""Rates that are no numbers, in a broker's statistics."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from pulsar_steward.apply.live_topics import _figures
from pulsar_steward.collect.pending import Recent
from pulsar_steward.collect.topics import TopicRows
from pulsar_steward.pulsar.statistics import bundles_in

ALL = "0x00000000_0xffffffff"
NAN = float("nan")
CONSUMER = {"consumerName": "c", "availablePermits": 0, "unackedMessages": 5, "msgRateOut": NAN, "messageAckRate": 0.0}
SUBSCRIPTION: dict[str, Any] = {"consumers": [CONSUMER], "type": "Shared", "msgBacklog": 9, "msgRateOut": NAN}
TOPIC: dict[str, Any] = {"publishers": [], "replication": {}, "producerCount": 2, "msgRateIn": NAN}
TOPICS = {
    "persistent://a/b/c": {**TOPIC, "subscriptions": {"s": SUBSCRIPTION}},
    "persistent://a/b/d": {**TOPIC, "subscriptions": {}, "msgRateIn": 7.0},
}
DOCUMENT = json.dumps({"a/b": {ALL: {"persistent": TOPICS}}}).encode()


def test_a_rate_that_is_no_number_is_null_and_adds_nothing() -> None:
    """All other figures are kept; a consumer without a known rate is not stuck; its bundle has the others' rates."""
    rows = TopicRows("x:8080", Recent(datetime(2026, 1, 1, tzinfo=UTC), 10), 3)
    for each in bundles_in(DOCUMENT, "x:8080"):
        rows.add(each.namespace, each.bundle, each.topics)

    told = {batch.table.name: batch.rows.to_pylist() for batch in rows.rest()}

    assert [row["message_rate_in"] for row in told["topics"]] == [None, 7.0]
    (subscription,), (client,) = told["subscriptions"], told["clients"]
    assert (subscription["message_rate_out"], subscription["backlog_entries"]) == (None, 9)
    assert (subscription["consumers_without_permits"], subscription["consumers_stuck"]) == (1, 0)
    assert (client["message_rate_out"], client["unacked_messages"]) == (None, 5)
    assert (rows.sums["a/b", ALL].rate_in, rows.sums["a/b", ALL].producers) == (7.0, 4)


def test_a_rate_that_is_no_number_is_not_known_for_a_move() -> None:
    """It is neither 0, as then nothing would be lost, nor any other number that somebody could approve."""
    (bundle,) = bundles_in(DOCUMENT, "x:8080")
    assert [_figures(name, each, {}).rate_in for name, each in bundle.topics.items()] == [None, 7.0]
