"""Spark carries functions out as threads do: results in order, each thing once, and the files of shards with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pulsar_steward.diagnose.shards import ShardTask
from pulsar_steward.runtime.parallel import OnThreads, on_this_thread
from steward_spark.observing import SparkMap, SparkMapOverFiles

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pulsar_steward.runtime.parallel import MapOver

pytestmark = pytest.mark.spark


@pytest.fixture(params=["this thread", "threads", "spark", "spark over files"])
def map_over(spark: SparkSession, request: pytest.FixtureRequest) -> MapOver:
    """Everyone who carries functions out."""
    made: dict[str, MapOver] = {
        "this thread": on_this_thread,
        "threads": OnThreads(3),
        "spark": SparkMap(spark),
        "spark over files": SparkMapOverFiles(spark),
    }
    return made[request.param]


def test_results_come_in_the_order_of_the_things(map_over: MapOver) -> None:
    """Results come in the order of the items, also for no items and for items that are equal."""
    assert map_over(lambda each: each * 2, [3, 1, 2, 1]) == [6, 2, 4, 2]
    assert map_over(lambda each: each, []) == []
    assert map_over(lambda each: each, [None, {"a": 1}], "things") == [None, {"a": 1}]


def test_an_error_is_told(map_over: MapOver) -> None:
    """An error that a function raises reaches the caller with its own words."""
    with pytest.raises(Exception, match="by zero"):
        map_over(lambda each: 1 // each, [1, 0])


def told(task: ShardTask) -> dict[str, list[str]]:
    """Rows that a task was given of its shard, by table."""
    return {
        name: source["topic"].to_pylist() if isinstance(source, pa.Table) else [f"unread: {each}" for each in source]
        for name, source in task.shard.items()
    }


def shard(folder: Path, number: int) -> ShardTask:
    """A task of one shard, whose topics are in two files, and which has no subscriptions' file."""
    files = []
    for part in ("a", "b"):
        file = folder / f"cluster=x/taken_at=y/topics/part-{number}{part} ü.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"topic": [f"{number}{part}"]}), file)
        files.append(str(file))
    return ShardTask({}, {"topics": files}, (), (), 1)


def test_shards_are_handed_the_content_of_their_files(spark: SparkSession, tmp_path: Path) -> None:
    """Each task gets the rows of its own files in order; a task without files and one with a table run too."""
    ready = ShardTask({}, {"topics": pa.table({"topic": ["here"]})}, (), (), 1)
    tasks = [shard(tmp_path, number) for number in range(3)]
    things = [tasks[2], ShardTask({}, {}, (), (), 1), tasks[0], ready, tasks[1]]
    assert SparkMapOverFiles(spark)(told, things) == [
        {"topics": ["2a", "2b"]},
        {},
        {"topics": ["0a", "0b"]},
        {"topics": ["here"]},
        {"topics": ["1a", "1b"]},
    ]


def test_what_is_no_shard_is_carried_out_too(spark: SparkSession) -> None:
    """The map over files also works on items that are no shards, such as namespaces and suspects."""
    assert SparkMapOverFiles(spark)(len, ["ab", "c"], "words") == [2, 1]
