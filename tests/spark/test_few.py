"""Rows that are hardly ever many: where they are kept, and that it does not matter to what is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.policy.schema import Policy
from steward_spark.checks.delayed import delayed_index_memory, delayed_index_multiplied
from steward_spark.checks.delayed._waiting import DELAYED_SERIES
from steward_spark.frames import Frames
from steward_spark.local import FEW, few_on_driver

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pyspark.sql import DataFrame, SparkSession


@pytest.mark.parametrize(("rows", "local"), [(0, True), (FEW, True), (FEW + 1, False)])
def test_only_few_rows_are_read_into_the_driver(spark: SparkSession, rows: int, local: bool) -> None:
    """As many rows as a plan can hold are read, with their columns; one more, and none of them is."""
    few = few_on_driver(spark.range(rows).select("id"))
    assert (few is not None) == local
    assert few is None or (few.columns, few.count()) == (["id"], rows)


def test_many_rows_are_held(spark: SparkSession) -> None:
    """What turns out to be many is handed on to be held, as it is."""
    held: list[DataFrame] = []

    def hold(frame: DataFrame) -> DataFrame:
        held.append(frame)
        return frame

    many = spark.range(FEW + 1)
    assert Frames(lambda _: many, hold=hold).few(many) is many
    assert held == [many]


def test_a_topic_that_two_brokers_tell_is_indexed_once(frames_of: Callable[[dict[str, Any]], Frames]) -> None:
    """While a topic moves, both brokers have its rows: its delayed messages are not taken for those of two."""
    topic, many = "persistent://t/n/moving", 5_000_000
    rows = [{"broker": broker, "topic": topic, "subscriptions": 1} for broker in ("a:1", "b:1")]
    sample = {"source_kind": "broker", "series": DELAYED_SERIES, "topic": topic, "subscription": "s", "value": many}
    frames = frames_of(
        {
            "snapshot": [{"cluster": "c", "unread_brokers": [], "unread_namespaces": []}],
            "brokers": [{"broker": row["broker"], "read": True, "topics": 1} for row in rows],
            "topics": rows,
            "subscriptions": [{"topic": topic, "subscription": "s"}] * 2,
            "metrics": [{**sample, "source": row["broker"]} for row in rows],
        }
    )
    judged = delayed_index_multiplied.CHECK.judge(frames, Policy())
    assert judged.findings == ()
    assert f"{many:,} index entries of 1 subscriptions" in judged.quiet
    by_broker = delayed_index_memory.delayed_by_broker(frames).collect()
    assert {row["broker"]: row["messages"] for row in by_broker} == {"a:1": many, "b:1": many}
