"""Facts for guards: what a move would set off, what a setting would delete, and a topic's partitions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pulsar_steward.facts.backlogs import Backlog, OwnLoss, backlog_of, beyond, deleted, evicted, expired
from pulsar_steward.facts.partitions import PartitionedTopic, ordering
from pulsar_steward.facts.risks import (
    MAX_NAMED,
    KeptAcks,
    MoveRisks,
    Replicated,
    SubscriptionFigures,
    Surroundings,
    TopicFigures,
    UnsentReplication,
    kept_acks,
    move_risks_of,
)
from pulsar_steward.model.loss import InFlight, Loss, TopicLoss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName
from pulsar_steward.model.subscription import Holder
from pulsar_steward.pulsar.own_settings import StoredLedger
from tests.builders import a_policy
from tests.cases import cases, row_by_row

TOPIC = "persistent://shop/orders/basket"


def size(limit: int, action: QuotaPolicy = QuotaPolicy.HOLD) -> Surroundings:
    return Surroundings(quotas={SettingName.SIZE_QUOTA: BacklogQuota(limit_bytes=limit, policy=action)})


def age(limit: int, action: QuotaPolicy = QuotaPolicy.REFUSE) -> Surroundings:
    return Surroundings(quotas={SettingName.AGE_QUOTA: BacklogQuota(limit_seconds=limit, policy=action)})


def seen(around: Surroundings, name: str = TOPIC, **figures: Any) -> MoveRisks:
    figures = {"producers": 2, "backlog_bytes": 0, **figures}
    return move_risks_of([TopicFigures(topic=name, **figures)], around, a_policy())


HELD = {
    "far below": (size(1000), {"backlog_bytes": 899}, None),
    "within the margin": (size(1000), {"backlog_bytes": 900}, (90, "1,000 bytes, producer_request_hold")),
    "over it": (size(1000), {"backlog_bytes": 2500}, (250, "1,000 bytes, producer_request_hold")),
    "evicting takes messages, not producers": (size(1000, QuotaPolicy.EVICT), {"backlog_bytes": 5000}, None),
    "no quota": (Surroundings(), {"backlog_bytes": 10**15}, None),
    "an unlimited one": (size(-1), {"backlog_bytes": 10**15}, None),
    "a size of 0, which any backlog exceeds": (size(0), {"backlog_bytes": 7}, (100, "0 bytes, producer_request_hold")),
    "a size of 0, which an empty topic exceeds": (size(0), {}, (100, "0 bytes, producer_request_hold")),
    "a size of 0 of its own": (size(1000), {"limit_bytes": 0}, (100, "0 bytes, a quota of its own")),
    "a size of 0 that evicts": (size(0, QuotaPolicy.EVICT), {"backlog_bytes": 7}, None),
    "an age of 0, which is none": (age(0), {"age_seconds": 10**6}, None),
    "an age of 0 of its own": (age(100), {"age_seconds": 10**6, "limit_seconds": 0}, None),
    "too old": (age(100), {"age_seconds": 95}, (95, "100 s, producer_exception")),
    "young": (age(100), {"age_seconds": 5}, None),
    "of unknown age": (age(100), {}, None),
    "a tighter one of its own": (
        size(10_000),
        {"backlog_bytes": 990, "limit_bytes": 1000},
        (99, "1,000 bytes, a quota of its own"),
    ),
    "a wider one of its own": (size(1000), {"backlog_bytes": 1000, "limit_bytes": 10_000}, None),
    "none of its own": (size(1000), {"backlog_bytes": 1000, "limit_bytes": -1}, None),
    "told to be its namespace's": (size(1000, QuotaPolicy.EVICT), {"backlog_bytes": 1000, "limit_bytes": 1000}, None),
}


@pytest.mark.parametrize(("around", "figures", "held"), HELD.values(), ids=HELD)
def test_whose_producers_could_not_come_back(
    around: Surroundings, figures: dict[str, Any], held: tuple[int, str] | None
) -> None:
    """Producers count as held only by a quota that keeps them out, and a topic's own quota comes first."""
    found = seen(around, **figures)

    assert [(each.used_percent, each.limit) for each in found.held] == ([held] if held else [])
    assert found.held_count == bool(held)


def test_a_topic_that_is_not_persistent_is_under_no_quota() -> None:
    """A topic without a ledger holds no producers, though brokers tell a size quota of 0 of it."""
    name = "non-persistent://shop/orders/basket"

    assert seen(Surroundings(), name, limit_bytes=0).held == ()
    assert seen(size(0), name).held == ()


@row_by_row(
    "name, held",
    ("shop/orders/__change_events", False),
    ("shop/orders/__change_events-partition-3", False),
    ("shop/orders/__transaction_buffer_snapshot", False),
    ("shop/orders/basket-paid__transaction_pending_ack", False),
    ("shop/orders/basket-paid__transaction_pending_ack-partition-0", False),
    ("pulsar/system/__transaction_log_7", False),
    ("pulsar/system/transaction_coordinator_assign-partition-7", False),
    ("shop/orders/__transaction_log_7", True),
    ("shop/orders/__mine", True),
    ("shop/orders/__change_events_copy", True),
    ("shop/pulsar/system", True),
)
def test_brokers_hold_system_topics_to_no_quota(name: str, held: bool) -> None:
    assert bool(seen(size(1000), f"persistent://{name}", backlog_bytes=5000).held) is held


def test_the_worst_are_named_and_all_are_counted() -> None:
    topics = [TopicFigures(topic=f"t{number}", producers=1, backlog_bytes=1000 + number) for number in range(50)]

    found = move_risks_of(topics, size(100), a_policy())

    assert found.held_count == len(topics)
    assert [each.topic for each in found.held] == [f"t{number}" for number in range(49, 49 - MAX_NAMED, -1)]


ACKNOWLEDGEMENTS: dict[str, tuple[KeptAcks, dict[str, Any], int | None]] = {
    "nobody reads it, and its broker knows no batches": (KeptAcks(), {"backlog_entries": 50}, 0),
    "consumers hold batches": (KeptAcks(), {"consumers": 1, "backlog_entries": 50, "held_messages": 5_000}, 5_000),
    "brokers do not count what an exclusive consumer holds": (
        KeptAcks(),
        {"consumers": 1, "backlog_entries": 50, "messages_per_entry": 100},
        50 * 999,
    ),
    "it has read a part of its backlog": (
        KeptAcks(),
        {"consumers": 1, "backlog_entries": 50_000, "entries_since_first_gap": 2},
        2 * 999,
    ),
    "its broker counts below 0": (
        KeptAcks(knows_batches=True),
        {"consumers": 1, "backlog_entries": 50, "held_messages": -470_346},
        50 * 999,
    ),
    "its broker counts too few": (
        KeptAcks(knows_batches=True),
        {"consumers": 1, "backlog_entries": 50, "held_messages": 50},
        50 * 999,
    ),
    "the consumer left, and its broker still knows": (KeptAcks(knows_batches=True), {"backlog_entries": 50}, 50 * 999),
    "larger than said": (KeptAcks(), {"consumers": 1, "backlog_entries": 50, "messages_per_entry": 1_001}, None),
    "larger than said, and counted": (
        KeptAcks(),
        {"consumers": 1, "backlog_entries": 5, "messages_per_entry": 1_001, "held_messages": 9_000},
        9_000,
    ),
    "all is acknowledged": (KeptAcks(knows_batches=True), {"consumers": 7}, 0),
}


@pytest.mark.parametrize(("kept", "figures", "again"), ACKNOWLEDGEMENTS.values(), ids=ACKNOWLEDGEMENTS)
def test_at_most_what_batches_hold_comes_again(kept: KeptAcks, figures: dict[str, Any], again: int | None) -> None:
    """All messages of entries that may be acknowledged in part count, but for one of each, and never too few."""
    figures = {"subscription": "s", "entries_since_first_gap": 51, **figures}

    found = seen(Surroundings(kept_acks=kept), subscriptions=(SubscriptionFigures(**figures),))

    assert found.may_come_again == again
    assert [each.may_come_again for each in found.open_batches] == ([] if again == 0 else [again])


@row_by_row(
    "running, holes",
    ({}, 10_000),
    ({"managedLedgerMaxUnackedRangesToPersist": "50"}, 50),
    ({"managedLedgerPersistIndividualAckAsLongArray": "true"}, 1_000),
    (
        {
            "managedLedgerPersistIndividualAckAsLongArray": "true",
            "managedLedgerMaxUnackedRangesToPersistInMetadataStore": "10",
        },
        10,
    ),
)
def test_the_holes_that_are_kept_are_those_of_how_they_are_written(running: dict[str, str], holes: int) -> None:
    """As arrays of bits, as many holes are kept as go to the metadata store; beyond, nobody tells what is forgotten."""
    kept = kept_acks(running)
    one_more = SubscriptionFigures(subscription="s", holes=holes + 1)

    assert kept.holes == holes
    assert [each.holes for each in seen(Surroundings(kept_acks=kept), subscriptions=(one_more,)).holey] == [holes + 1]
    as_many = msgspec.structs.replace(one_more, holes=holes)
    assert seen(Surroundings(kept_acks=kept), subscriptions=(as_many,)).holey == ()


def test_readers_of_system_topics_know_where_they_are() -> None:
    """A subscription of one of Pulsar's own topics gets nothing again."""
    reader = SubscriptionFigures(subscription="reader-1", backlog_entries=9, holes=20_000)

    found = seen(
        Surroundings(kept_acks=KeptAcks(knows_batches=True)),
        "persistent://shop/orders/__change_events",
        subscriptions=(reader,),
    )

    assert found == MoveRisks()


def test_topics_that_are_not_persistent_lose_what_comes_meanwhile() -> None:
    """They are counted with their rates over the time that clients may take to return, and Pulsar's own are not."""
    topics = [
        TopicFigures(topic="non-persistent://shop/orders/ticks", producers=1, backlog_bytes=0, rate_in=10.5),
        TopicFigures(topic="non-persistent://shop/orders/quiet", producers=0, backlog_bytes=0),
        TopicFigures(topic="non-persistent://pulsar/system/load", producers=1, backlog_bytes=0, rate_in=10.0),
        TopicFigures(topic=TOPIC, producers=1, backlog_bytes=0, rate_in=10.0),
    ]

    found = move_risks_of(topics, Surroundings(), a_policy(health={"return_seconds": 10}))

    assert (found.volatile_topics, found.lost_messages) == (2, 105)
    assert found.with_room(0, consumed=True) == InFlight(volatile_topics=2, lost=10_210)
    untold = msgspec.structs.replace(topics[1], rate_in=None)
    assert move_risks_of([topics[0], untold], Surroundings(), a_policy()).lost_messages is None


@pytest.mark.parametrize(
    ("remotes", "entries", "rate_in", "unsent"),
    [
        (frozenset({"east"}), 7, 0.0, 7),
        (frozenset({"east"}), 0, 0.1, 0),
        (frozenset({"east"}), 0, None, 0),
        (frozenset({"east"}), None, 0.0, None),
        (None, 7, 0.0, 7),
        (frozenset({"east"}), 0, 0.0, ...),
        (frozenset({"east", "west"}), 7, 9.0, ...),
    ],
    ids=["it waits", "more is published", "who knows", "nobody tells", "no policies", "nothing", "the namespace's own"],
)
def test_what_a_topics_own_policy_replicates_may_be_dropped(
    remotes: frozenset[str] | None, entries: int | None, rate_in: float | None, unsent: Any
) -> None:
    """What waits for a cluster that the namespace does not name, or will wait, is in danger (apache/pulsar#22890)."""
    west = Replicated(cluster="west", entries=entries)
    found = seen(Surroundings(remotes=remotes), rate_in=rate_in, replicated=(west,))
    expected = () if unsent is ... else (UnsentReplication(topic=TOPIC, cluster="west", entries=unsent),)
    assert (found.unsent, found.unsent_count) == (expected, len(expected))


@cases("in_memory, held", ("in memory", True, 70), ("in buckets", False, 0))
def test_an_index_in_memory_is_read_again(in_memory: bool, held: int) -> None:
    assert seen(Surroundings(index_in_memory=in_memory), delayed_index_bytes=70).delayed_index_bytes == held


T = "persistent://shop/orders/t"
MIB, MINUTE = 1 << 20, 60_000
NOW = 1_000 * MINUTE
CLOSED = [StoredLedger(ledger_id=number, size=10 * MIB, timestamp=number * 100 * MINUTE) for number in (1, 5, 9)]
"""Ledgers that were closed 900, 500 and 100 minutes ago."""


def test_the_measured_eviction_of_a_replicator_is_foreseen() -> None:
    taken = evicted([backlog_of(T, 2_577_372, {}, {"away": 2500})], 500_000)
    assert taken.own == (OwnLoss(T, Holder(name="pulsar.repl.away", entries=2500)),)
    assert taken.loss.messages == 2500


def test_what_deduplication_holds_is_no_unread_message() -> None:
    taken = evicted([backlog_of(T, 1000, {"app": 500}, {}, Holder(name="pulsar.dedup", entries=1000))], 500)
    assert taken.loss == Loss(
        topics=(TopicLoss(topic=T, messages=500, bytes=1000, holder="deduplication (pulsar.dedup)"),),
        messages=500,
        bytes=1000,
    )
    assert taken.own == (OwnLoss(T, Holder(name="pulsar.dedup", entries=1000)),)


def test_a_backlog_that_nobody_is_known_to_hold_is_lost_in_a_number_that_is_not_known() -> None:
    assert (evicted([Backlog(topic=T, bytes=1000)], 500).loss.messages) is None
    assert evicted([Backlog(topic=T, bytes=449)], 500).loss == Loss(messages=0, bytes=0)


def test_a_time_to_live_takes_of_subscriptions_and_replicators() -> None:
    holders = {"app": 7, "reader-0a1b2c3d": 3, "__compaction": 9}
    taken = expired([backlog_of(T, 1000, holders, {"west": 5}), backlog_of("u", 10, {"__compaction": 1}, {})])
    assert (taken.loss.messages, taken.loss.bytes, len(taken.loss.topics)) == (7 + 3 + 5, 1000, 1)
    assert [each.holder.name for each in taken.own] == ["pulsar.repl.west"]


@row_by_row(
    "minutes, megabytes, stored, lost",
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
)
def test_what_a_retention_does_not_keep(minutes: int, megabytes: int, stored: int | None, lost: int) -> None:
    size = None if stored is None else stored * MIB
    assert beyond(CLOSED, Retention(minutes=minutes, megabytes=megabytes), NOW, size) == lost * MIB


def test_what_is_consumed_is_no_unread_message() -> None:
    assert deleted([("t", 5), ("u", 0)]).loss == Loss(
        topics=(TopicLoss(topic="t", messages=0, bytes=5),), messages=0, bytes=5
    )


@row_by_row(
    "kinds, words",
    (["Shared", "Shared"], None),
    (["Shared", "Key_Shared"], "keeps the order of keys"),
    (["Shared", "Exclusive"], "keeps the order of messages"),
    (["Shared", "None"], "nobody can tell"),
    (["Shared", "Odd"], "(Odd) is of a type that is not known"),
    ([""], "(no type) is of a type that is not known"),
    ([], "(no type) is of a type that is not known"),
)
def test_only_shared_subscriptions_keep_no_order(kinds: list[str], words: str | None) -> None:
    """Every other type, one that nobody knows as well, is a reason against more partitions."""
    reasons = list(PartitionedTopic(partitions=2, subscriptions={"app": ordering(*kinds)}).against_order())
    assert [words in each for each in reasons if words] == [True] * (words is not None)
    assert len(reasons) == (words is not None)


def test_a_subscription_that_some_partitions_lack_is_a_reason() -> None:
    """New partitions get the subscriptions of the first one alone, so that such a one may be missed."""
    shared = {"app": "Shared", "all": "Shared"}
    (reason,) = PartitionedTopic(partitions=2, subscriptions=shared, apart=("app",)).against_order()
    assert reason == "subscription app is not on every partition, and may be missed on new ones"
