"""Which topics are asked for their own statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from pulsar_steward.collect.arrow import Piece
from pulsar_steward.collect.suspects import Worst, base_of, in_turn, worst_of
from pulsar_steward.model.tables import METRICS, SUBSCRIPTIONS, TOPICS
from pulsar_steward.snapshots.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.model.tables import Table


def topic(name: str, namespace: str = "acme/orders") -> str:
    """Its full name."""
    return f"persistent://{namespace}/{name}"


def delayed(name: str, messages: float) -> dict[str, Any]:
    """A sample."""
    return {"series": "pulsar_subscription_delayed", "topic": topic(name), "subscription": "s", "value": messages}


def piece(table: Table, rows: Sequence[dict[str, Any]]) -> Piece:
    """Rows that may leave columns out."""
    return Piece(table, pa.RecordBatch.from_pylist(list(rows), schema=schema_of(table)))


def suspects(most: int, *tasks: Sequence[Piece]) -> list[str]:
    """The worst of what several tasks read."""
    found = []
    for pieces in tasks:
        worst = Worst(most)
        for each in pieces:
            worst.sees(each)
        found += [each.rows for each in worst.found()]
    return worst_of(pa.Table.from_batches(found, schema=found[0].schema), most) if found else []


ROWS: list[dict[str, Any]] = [
    *({"topic": topic(f"late-{n}"), "backlog_messages": 1000 - n} for n in range(4)),
    {"topic": topic("late-0"), "backlog_messages": 3, "redeliver_rate": 0.5},
    {"topic": topic("holes"), "ack_holes": 1, "backlog_messages": 1},
    {"topic": topic("slow"), "unacked_messages": 900_000},
    {"topic": topic("stuck"), "unacked_messages": 5, "consumers_blocked": 1, "blocked_on_unacked": False},
    {"topic": topic("well"), "backlog_messages": 0, "unacked_messages": 0, "ack_holes": 0},
]
SAMPLES = [delayed("waiting", 9.0), delayed("well", 0.0), {"series": "other", "topic": topic("well"), "value": 9.0}]


@pytest.mark.parametrize("divided", [1, 2, 9])
def test_the_worst_of_each_sign_take_their_turns(divided: int) -> None:
    """A long backlog does not crowd out the only topic with holes; however the rows are divided among tasks."""
    tasks = [[piece(SUBSCRIPTIONS, ROWS[number::divided])] for number in range(divided)]
    tasks[-1] += [piece(METRICS, SAMPLES), piece(TOPICS, [{"topic": topic("well")}])]

    names = ["holes", "stuck", "late-0", "waiting", "slow", "late-1"]
    assert suspects(6, *tasks) == [topic(name) for name in names]
    assert suspects(2, *tasks) == [topic("holes"), topic("stuck")]
    assert suspects(0, *tasks) == []


def test_of_many_the_worst_are_kept() -> None:
    """However many come, and of topics that are equally bad the first by name."""
    rows = [{"topic": topic(f"t-{number:06d}"), "backlog_messages": number // 2} for number in range(120_000)]
    pieces = [piece(SUBSCRIPTIONS, rows[first : first + 10_000]) for first in range(0, len(rows), 10_000)]

    assert suspects(3, pieces) == [topic("t-119998"), topic("t-119999"), topic("t-119996")]


@pytest.mark.parametrize(
    "name",
    [
        topic("__change_events"),
        topic("x", "pulsar/system"),
        "persistent://pulsar/local/127.0.0.1:8080/healthcheck",
        "non-persistent://acme/orders/t",
    ],
)
def test_pulsars_own_topics_are_no_suspects(name: str) -> None:
    """Nobody could do anything about them, and what is not persistent has no backlog to look at."""
    assert suspects(5, [piece(SUBSCRIPTIONS, [{"topic": name, "backlog_messages": 9, "ack_holes": 9}])]) == []


def test_a_partition_is_of_its_topic() -> None:
    """Only a number at the end makes one."""
    assert base_of(topic("t-partition-12")) == topic("t")
    assert base_of(topic("t-partition-x")) == topic("t-partition-x")
    assert base_of(topic("t")) == topic("t")


def test_turns_end_with_the_budget() -> None:
    """Lists may differ in length."""
    assert in_turn([["a", "b", "c"], ["b"], []], 10) == ["a", "b", "c"]
    assert in_turn([["a", "b"], ["c"]], 2) == ["a", "c"]
