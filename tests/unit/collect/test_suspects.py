"""Which topics are looked at closely, and what is read of them."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lab.simulator import ClusterSpec, running_simulator
from pulsar_steward.collect import pending as module
from pulsar_steward.collect.arrow import OWN_POLICIES, TableBatch
from pulsar_steward.collect.broker import BrokerTask, ReadScope, read_brokers
from pulsar_steward.collect.drill import DetailRequest
from pulsar_steward.collect.pending import PendingBrokers
from pulsar_steward.collect.suspects import (
    SuspectCollector,
    drilled_of,
    held_by_rates,
    in_turn,
    tasks_of,
    wanted_of,
    worst_of,
)
from pulsar_steward.model.bundles import position_of
from pulsar_steward.model.measures import DELAYED_BUCKETS, DISPATCHING_LIMITED
from pulsar_steward.model.tables import (
    BROKERS,
    BUNDLES,
    CLIENTS,
    DRILLED,
    METRICS,
    NAMESPACES,
    SUBSCRIPTIONS,
    TOPICS,
    Table,
)
from pulsar_steward.policy.schema import AdminPolicy, CollectPolicy
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.snapshots.database import schema_of
from tests.cases import row_by_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def topic(name: str, namespace: str = "acme/orders") -> str:
    return f"persistent://{namespace}/{name}"


def delayed(name: str, messages: float) -> dict[str, Any]:
    """A sample."""
    return {"series": "pulsar_subscription_delayed", "topic": topic(name), "subscription": "s", "value": messages}


def told(name: str, figure: str, value: float) -> dict[str, Any]:
    """A sample of a topic's backlog."""
    return {"series": f"pulsar_storage_backlog_{figure}", "topic": topic(name), "value": value}


def piece(table: Table, rows: Sequence[dict[str, Any]]) -> TableBatch:
    """Rows that may leave columns out."""
    return TableBatch(table, pa.RecordBatch.from_pylist(list(rows), schema=schema_of(table)))


def suspects(most: int, *tasks: Sequence[TableBatch]) -> list[str]:
    """The worst of what several tasks read."""
    found = []
    for pieces in tasks:
        worst = SuspectCollector(most, from_consumed_bytes=10**9)
        for each in pieces:
            worst.sees(each)
        found += [each.rows for each in worst.found()]
    return worst_of(pa.Table.from_batches(found, schema=found[0].schema), most) if found else []


ROWS: list[dict[str, Any]] = [
    *({"topic": topic(f"late-{n}"), "backlog_entries": 1000 - n} for n in range(4)),
    {"topic": topic("late-0"), "backlog_entries": 3, "redeliver_rate": 0.5},
    {"topic": topic("holes"), "ack_holes": 1, "backlog_entries": 1},
    {"topic": topic("slow"), "unacked_messages": 900_000},
    {"topic": topic("stuck"), "unacked_messages": 5, "consumers_blocked": 1, "blocked_on_unacked": False},
    {"topic": topic("well"), "backlog_entries": 0, "unacked_messages": 0, "ack_holes": 0},
]
SAMPLES = [delayed("waiting", 9.0), delayed("well", 0.0), {"series": "other", "topic": topic("well"), "value": 9.0}]


@pytest.mark.parametrize("divided", [1, 2, 9])
def test_the_worst_of_each_sign_take_their_turns(divided: int) -> None:
    """The worst topics of each sign are suspects in turn, however the rows are divided among tasks."""
    tasks = [[piece(SUBSCRIPTIONS, ROWS[number::divided])] for number in range(divided)]
    tasks[-1] += [piece(METRICS, SAMPLES), piece(TOPICS, [{"topic": topic("well")}])]

    names = ["holes", "stuck", "late-0", "waiting", "slow", "late-1"]
    assert suspects(6, *tasks) == [topic(name) for name in names]
    assert suspects(2, *tasks) == [topic("holes"), topic("stuck")]
    assert suspects(0, *tasks) == []


def test_a_consumer_that_holds_messages_and_does_nothing_is_a_sign() -> None:
    rates = [(0.0, 0.0, 3), (0.0, 0.0, 24), (5.0, 0.0, 90), (0.0, 0.1, 80), (None, 0.0, 70), (0.0, 0.0, 0)]
    clients = [
        {"topic": topic(f"t{number}"), "message_rate_out": out, "ack_rate": acks, "unacked_messages": held}
        for number, (out, acks, held) in enumerate(rates)
    ]
    assert suspects(9, [piece(CLIENTS, clients)]) == [topic("t1"), topic("t0")]


def test_what_is_consumed_and_still_stored_is_a_suspect() -> None:
    """A topic is a suspect when it has a backlog, or when it stores far more than its backlog."""
    rows = [("kept", 10**12, 5), ("told-no-backlog", 10**10, None), ("waits", 10**11, 10**11 - 1), ("little", 10**8, 0)]
    topics = [
        {"topic": topic(name), "storage_bytes": stored, "backlog_bytes": backlog} for name, stored, backlog in rows
    ]

    assert suspects(9, [piece(TOPICS, topics)]) == [topic(name) for name in ("waits", "kept", "told-no-backlog")]


def test_the_largest_backlogs_in_bytes_are_suspects() -> None:
    rows = [("few-large", 10**12), ("many-small", 10**6), ("empty", 0), ("silent", None)]
    topics = piece(TOPICS, [{"topic": topic(name), "backlog_bytes": size} for name, size in rows])
    entries = piece(SUBSCRIPTIONS, [{"topic": topic("many-small"), "backlog_entries": 10**6}])

    assert suspects(9, [topics, entries]) == [topic("many-small"), topic("few-large")]


def of_broker(*backlogs: tuple[str, int], samples: Sequence[dict[str, Any]] = ()) -> list[TableBatch]:
    """Result of one broker, itself last."""
    return [
        piece(TOPICS, [{"topic": topic(name), "backlog_bytes": size} for name, size in backlogs]),
        piece(METRICS, samples),
        piece(BROKERS, [{"broker": "a:8080"}]),
    ]


@pytest.mark.parametrize("divided", [True, False])
def test_a_small_quota_that_is_nearly_full_makes_a_suspect(divided: bool) -> None:
    """A topic that uses half of its small quota is a suspect as well as topics with much larger backlogs."""
    large = [(f"large-{number}", 10**12 + number) for number in range(7)]
    limits = [told(name, "quota_limit", 1e13) for name, _ in large]
    one = of_broker(*large, ("free", 10**9), samples=[*limits, told("free", "quota_limit", -1.0)])
    small = [("nearly-full", 95), ("over", 120), ("half-full", 50), ("half-empty", 49)]
    other = of_broker(*small, samples=[told(name, "quota_limit", 100.0) for name, _ in small])

    names = ["over", "large-6", "nearly-full", "large-5", "half-full", "large-4", "large-3"]
    tasks = [one, other] if divided else [[*one, *other]]
    assert suspects(7, *tasks) == [topic(name) for name in names]
    assert set(suspects(99, one, other)) == {topic(name) for name, _ in (*large, ("free", 0), *small)}


def test_an_old_backlog_under_a_quota_makes_a_suspect() -> None:
    """Topics near their age quota are suspects, the nearest first, but not young, unlimited or Pulsar's own ones."""
    names = ("old", "older", "young", "unlimited", "__change_events")
    ages = [told(name, "age_seconds", age) for name, age in zip(names, (80, 90, 4, 90, 99), strict=True)]
    limits = [
        told(name, "quota_limit_time", limit) for name, limit in zip(names, (100, 100, 100, -1, 100), strict=True)
    ]

    assert suspects(9, of_broker(samples=[*ages, *limits])) == [topic("older"), topic("old")]


def test_of_many_the_worst_are_kept() -> None:
    """The worst of very many topics are kept as suspects, and equally bad ones are ordered by name."""
    rows = [{"topic": topic(f"t-{number:06d}"), "backlog_entries": number // 2} for number in range(120_000)]
    pieces = [piece(SUBSCRIPTIONS, rows[first : first + 10_000]) for first in range(0, len(rows), 10_000)]

    assert suspects(3, pieces) == [topic("t-119998"), topic("t-119999"), topic("t-119996")]


@row_by_row(
    "name",
    topic("__change_events"),
    topic("x", "pulsar/system"),
    "persistent://pulsar/local/127.0.0.1:8080/healthcheck",
    "non-persistent://acme/orders/t",
)
def test_pulsars_own_topics_are_no_suspects(name: str) -> None:
    assert suspects(5, [piece(SUBSCRIPTIONS, [{"topic": name, "backlog_entries": 9, "ack_holes": 9}])]) == []


def test_what_a_rate_held_back_may_have_set_that_rate_itself() -> None:
    """Its topic is a suspect, and those of its own rates are asked for that may be the one."""
    counts = {"pulsar_publish_rate_limit_times": ("a-partition-1", "b"), DISPATCHING_LIMITED[1]: ("b", "c")}
    samples = [
        {"series": series, "topic": topic(name), "value": 9.0} for series, names in counts.items() for name in names
    ]
    collector = SuspectCollector(10, from_consumed_bytes=10**9)
    collector.sees(piece(METRICS, [*samples, {"series": DISPATCHING_LIMITED[1], "topic": topic("d"), "value": 0.0}]))
    found = pa.Table.from_batches([each.rows for each in collector.found()])
    dispatching = ("dispatchRate", "subscriptionDispatchRate")
    assert sorted(worst_of(found, 10)) == [topic(name) for name in ("a-partition-1", "b", "c")]
    assert held_by_rates(found) == {
        topic("a"): ("publishRate",),
        topic("b"): (*dispatching[:1], "publishRate", *dispatching[1:]),
        topic("c"): dispatching,
    }


def test_turns_end_with_the_budget() -> None:
    """Lists of different lengths take turns without repetition, until the budget is used up."""
    assert in_turn([["a", "b", "c"], ["b"], []], 10) == ["a", "b", "c"]
    assert in_turn([["a", "b"], ["c"]], 2) == ["a", "c"]


def table(of: Table, rows: list[dict[str, Any]]) -> pa.Table:
    """A table of rows that may leave columns out."""
    return pa.Table.from_pylist(rows, schema=schema_of(of))


def test_each_owner_is_asked_what_is_its() -> None:
    """Suspects are asked of their bundle's owner, and a topic's policies of the owner of its first partition.

    Topics of unknown namespaces and of bundles without an owner are not asked for.
    """
    boundaries = ["0x00000000", "0x80000000", "0xffffffff"]
    namespaces = table(NAMESPACES, [{"namespace": "acme/orders", "boundaries": boundaries}])
    lower, upper = "0x00000000_0x80000000", "0x80000000_0xffffffff"
    names = [topic(f"t-partition-{number}") for number in range(4)]
    low = {name for name in names if position_of(name) < 0x80000000}
    assert 0 < len(low) < 4

    wanted = wanted_of([*names, topic("t", "gone/gone")], namespaces)

    assert {each.topic for each in wanted if not each.policies} == set(names)
    assert [each.topic for each in wanted if each.internals] == names[:2]
    (policies,) = (each for each in wanted if each.policies)
    first = lower if names[0] in low else upper
    assert policies == DetailRequest(f"acme/orders/{first}", topic("t"), policies=True)
    asked = wanted_of([*names], namespaces, rates={topic("t"): ("publishRate",)})
    assert [each.rates for each in asked if each.policies] == [("publishRate",)]

    bundles = table(
        BUNDLES,
        [
            {"namespace": "acme/orders", "bundle": lower, "owner": "a:1"},
            {"namespace": "acme/orders", "bundle": upper, "owner": None},
            {"namespace": "acme/other", "bundle": lower, "owner": "b:1"},
        ],
    )
    (task,) = tasks_of(wanted, bundles, "local")
    assert (task.broker, task.pulsar_cluster) == ("a:1", "local")
    assert {each.topic for each in task.wanted if not each.policies} == low


def test_a_topic_stands_beside_its_policies_and_its_buckets() -> None:
    one, other = topic("t-partition-0"), topic("u")
    answers = table(
        DRILLED,
        [
            {"topic": other, "namespace": "acme/orders", "subscription": None, "ledgers": 3},
            {"topic": one, "namespace": "acme/orders", "subscription": "s", "delayed_messages": 2},
        ],
    )
    own = {"topic_quota_json": "{}", "topic_retention_json": '{"a":1}', "topic_rates_json": '{"b":2}'}
    policies = table(OWN_POLICIES, [{"base": topic("t"), **own}])
    sample = {"source": "a:1", "series": DELAYED_BUCKETS, "topic": one, "subscription": "s"}
    buckets = table(
        METRICS,
        [
            sample | {"value": 3.0},
            sample | {"value": 4.0},
            sample | {"subscription": None, "value": 9.0},
            sample | {"topic": other, "value": float("inf")},
        ],
    )

    made = drilled_of(answers, policies, buckets)

    assert made.schema == schema_of(DRILLED)
    first, second = made.to_pylist()
    assert (first["topic"], first["topic_quota_json"], first["topic_retention_json"]) == (one, "{}", '{"a":1}')
    assert first["topic_rates_json"] == '{"b":2}'
    assert (first["delayed_buckets"], first["delayed_messages"]) == (4, 2)
    assert (second["topic"], second["ledgers"], second["topic_quota_json"], second["delayed_buckets"]) == (
        other,
        3,
        None,
        None,
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Clock that only the test moves."""
    made = SimpleNamespace(now=100.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


class Noted(PendingBrokers):
    """Remembers who was waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    @contextmanager
    def on(self, broker: str) -> Iterator[None]:
        """Remembers the broker, and does what `PendingBrokers.on` does."""
        self.names.append(broker)
        with super().on(broker):
            yield


def test_who_is_waited_for_longest_is_told(clock: SimpleNamespace) -> None:
    """The broker that has been asked for the longest time is reported as slowest until it answers."""
    pending = PendingBrokers()
    assert pending.slowest() is None

    with pending.on("b:1"):
        clock.now += 2
        with pending.on("a:1"):
            clock.now += 3
            assert pending.slowest() == ("b:1", 5.0)
        assert pending.slowest() == ("b:1", 5.0)
    assert pending.slowest() is None


def test_the_next_one_is_told_when_the_longest_has_ended(clock: SimpleNamespace) -> None:
    pending = PendingBrokers()
    first, second = pending.on("b:1"), pending.on("a:1")
    first.__enter__()
    clock.now += 2
    second.__enter__()
    clock.now += 3

    first.__exit__(None, None, None)

    assert pending.slowest() == ("a:1", 3.0)
    second.__exit__(None, None, None)
    with pytest.raises(OSError, match="nobody there"), pending.on("b:1"):
        raise OSError("nobody there")
    assert pending.slowest() is None


def test_of_those_that_are_asked_at_once_the_first_name_is_told(clock: SimpleNamespace) -> None:
    """The first name is reported as slowest when several brokers are asked at the same time."""
    pending = PendingBrokers()

    with pending.on("b:1"), pending.on("a:1"):
        assert pending.slowest() == ("a:1", 0.0)


def test_who_has_answered_is_counted() -> None:
    """Brokers that have answered are counted separately from brokers that are waited for."""
    pending = PendingBrokers()
    with pending.on("a:1"):
        assert pending.done == 0
    assert pending.done == 0

    pending.has_answered()
    pending.has_answered()

    assert pending.done == 2


def test_all_brokers_that_are_read_are_waited_for_and_counted() -> None:
    """A broker that is read is asked twice. It counts as done, and so does a broker that cannot be reached."""
    pending = Noted()
    with running_simulator(ClusterSpec(brokers=2), session_s=3600) as cluster:
        here, gone = cluster.active_brokers()
        cluster.kill_broker(gone)
        settings = AdminSettings(urls=cluster.admin_urls, limits=AdminPolicy(read_attempts=1))
        tasks = [BrokerTask(broker, cluster.cluster, leader=False) for broker in (here, gone)]
        scope = ReadScope(datetime.now(UTC), CollectPolicy())

        pieces = list(read_brokers(settings, tasks, scope, 2, pending))

    assert pieces
    assert sorted(pending.names) == sorted([here, here, gone])
    assert pending.done == 2
    assert pending.slowest() is None
