"""What brokers delete at once, at most, and of whose cursors."""

from __future__ import annotations

import pytest

from pulsar_steward.facts.backlogs import Backlog, OwnLoss, backlog_of, beyond, deleted, evicted, expired
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.setting import Retention
from pulsar_steward.model.subscription import Holder
from pulsar_steward.pulsar.own_settings import StoredLedger

TOPIC = "persistent://shop/orders/t"
MIB, MINUTE = 1 << 20, 60_000
NOW = 1_000 * MINUTE
CLOSED = [StoredLedger(ledger_id=number, size=10 * MIB, timestamp=number * 100 * MINUTE) for number in (1, 5, 9)]
"""Ledgers that were closed 900, 500 and 100 minutes ago."""


def test_the_measured_eviction_of_a_replicator_is_foreseen() -> None:
    taken = evicted([backlog_of(TOPIC, 2_577_372, {}, {"away": 2500})], 500_000)
    assert taken.own == (OwnLoss(TOPIC, Holder(name="pulsar.repl.away", entries=2500)),)
    assert taken.loss.messages == 2500


def test_what_deduplication_holds_is_no_unread_message() -> None:
    taken = evicted([backlog_of(TOPIC, 1000, {"app": 500}, {}, Holder(name="pulsar.dedup", entries=1000))], 500)
    assert taken.loss == Loss(
        topics=(TopicLoss(topic=TOPIC, messages=500, bytes=1000, holder="deduplication (pulsar.dedup)"),),
        messages=500,
        bytes=1000,
    )
    assert taken.own == (OwnLoss(TOPIC, Holder(name="pulsar.dedup", entries=1000)),)


def test_a_backlog_that_nobody_is_known_to_hold_is_lost_in_a_number_that_is_not_known() -> None:
    assert (evicted([Backlog(topic=TOPIC, bytes=1000)], 500).loss.messages) is None
    assert evicted([Backlog(topic=TOPIC, bytes=449)], 500).loss == Loss(messages=0, bytes=0)


def test_a_time_to_live_takes_of_subscriptions_and_replicators() -> None:
    holders = {"app": 7, "reader-0a1b2c3d": 3, "__compaction": 9}
    taken = expired([backlog_of(TOPIC, 1000, holders, {"west": 5}), backlog_of("u", 10, {"__compaction": 1}, {})])
    assert (taken.loss.messages, taken.loss.bytes, len(taken.loss.topics)) == (7 + 3 + 5, 1000, 1)
    assert [each.holder.name for each in taken.own] == ["pulsar.repl.west"]


@pytest.mark.parametrize(
    ("minutes", "megabytes", "stored", "lost"),
    [
        (-1, -1, 40, 0),
        (500, -1, 40, 20),
        (510, -1, 40, 20),
        (511, -1, 40, 10),
        (1000, -1, None, 0),
        (-1, 25, 40, 15),
        (-1, 50, 40, 0),
        (-1, 1, 40, 30),
        (500, 30, 40, 20),
        (911, 30, 40, 10),
        (-1, 25, None, 30),
        (-1, 5000, None, 30),
        (0, 0, None, 30),
        (0, 0, 40, 40),
    ],
)
def test_what_a_retention_does_not_keep(minutes: int, megabytes: int, stored: int | None, lost: int) -> None:
    size = None if stored is None else stored * MIB
    assert beyond(CLOSED, Retention(minutes=minutes, megabytes=megabytes), NOW, size) == lost * MIB


def test_what_is_consumed_is_no_unread_message() -> None:
    assert deleted([("t", 5), ("u", 0)]).loss == Loss(
        topics=(TopicLoss(topic="t", messages=0, bytes=5),), messages=0, bytes=5
    )
