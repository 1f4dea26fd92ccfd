"""Which topics are asked for their own statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.collect.drill import Wanted
from pulsar_steward.model.bundles import position_of
from pulsar_steward.model.tables import BUNDLES, METRICS, NAMESPACES, SUBSCRIPTIONS
from steward_spark.drilling import tasks_of, wanted_of
from steward_spark.suspects import base_of, in_turn, suspects

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from pulsar_steward.model.tables import Table

    FrameOf = Callable[[Table, list[dict[str, Any]]], DataFrame]

pytestmark = pytest.mark.spark


def topic(name: str, namespace: str = "acme/orders") -> str:
    """Its full name."""
    return f"persistent://{namespace}/{name}"


def delayed(name: str, messages: float) -> dict[str, Any]:
    """A sample."""
    return {"series": "pulsar_subscription_delayed", "topic": topic(name), "subscription": "s", "value": messages}


def test_the_worst_of_each_sign_take_their_turns(frame_of: FrameOf) -> None:
    """A long backlog does not crowd out the only topic with holes; each topic is asked once."""
    rows: list[dict[str, Any]] = [
        *({"topic": topic(f"late-{n}"), "backlog_messages": 1000 - n} for n in range(4)),
        {"topic": topic("late-0"), "backlog_messages": 3, "redeliver_rate": 0.5},
        {"topic": topic("holes"), "ack_holes": 1, "backlog_messages": 1},
        {"topic": topic("slow"), "unacked_messages": 900_000},
        {"topic": topic("stuck"), "unacked_messages": 5, "consumers_blocked": 1, "blocked_on_unacked": False},
        {"topic": topic("well"), "backlog_messages": 0, "unacked_messages": 0, "ack_holes": 0},
    ]
    metrics = frame_of(METRICS, [delayed("waiting", 9.0), delayed("well", 0.0)])
    subscriptions = frame_of(SUBSCRIPTIONS, rows)

    found = suspects(subscriptions, metrics, 6)

    names = ["holes", "stuck", "late-0", "waiting", "slow", "late-1"]
    assert found == [topic(name) for name in names]
    assert suspects(subscriptions, metrics, 2) == [topic("holes"), topic("stuck")]
    assert suspects(subscriptions, metrics, 0) == []


@pytest.mark.parametrize(
    "name",
    [
        topic("__change_events"),
        topic("x", "pulsar/system"),
        "persistent://pulsar/local/127.0.0.1:8080/healthcheck",
        "non-persistent://acme/orders/t",
    ],
)
def test_pulsars_own_topics_are_no_suspects(frame_of: FrameOf, name: str) -> None:
    """Nobody could do anything about them, and what is not persistent has no backlog to look at."""
    subscriptions = frame_of(SUBSCRIPTIONS, [{"topic": name, "backlog_messages": 9, "ack_holes": 9}])

    assert suspects(subscriptions, frame_of(METRICS, []), 5) == []


def test_a_partition_is_of_its_topic() -> None:
    """Only a number at the end makes one."""
    assert base_of(topic("t-partition-12")) == topic("t")
    assert base_of(topic("t-partition-x")) == topic("t-partition-x")
    assert base_of(topic("t")) == topic("t")


def test_turns_end_with_the_budget() -> None:
    """Lists may differ in length."""
    assert in_turn([["a", "b", "c"], ["b"], []], 10) == ["a", "b", "c"]
    assert in_turn([["a", "b"], ["c"]], 2) == ["a", "c"]


def test_each_owner_is_asked_what_is_its(frame_of: FrameOf) -> None:
    """A partitioned topic's policies are asked of the owner of its first partition; what nobody owns, of nobody."""
    boundaries = ["0x00000000", "0x80000000", "0xffffffff"]
    namespaces = frame_of(NAMESPACES, [{"namespace": "acme/orders", "boundaries": boundaries}])
    lower, upper = "0x00000000_0x80000000", "0x80000000_0xffffffff"
    names = [topic(f"t-partition-{number}") for number in range(4)]
    low = {name for name in names if position_of(name) < 0x80000000}
    assert 0 < len(low) < 4

    wanted = wanted_of([*names, topic("t", "gone/gone")], namespaces)

    assert {each.topic for each in wanted if not each.policies} == set(names)
    assert [each.topic for each in wanted if each.internals] == names[:2]
    (policies,) = (each for each in wanted if each.policies)
    first = lower if names[0] in low else upper
    assert policies == Wanted(f"acme/orders/{first}", topic("t"), policies=True)

    bundles = frame_of(
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
