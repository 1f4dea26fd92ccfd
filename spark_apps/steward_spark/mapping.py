"""Implementations of `MapOver` with Spark: one function, mapped over many items, each in a task of one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pulsar_steward.diagnose.shards import ShardTask
from steward_spark.progress import watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession


T = TypeVar("T")
R = TypeVar("R")


class SparkMap:
    """Maps a function by Spark's tasks, one per item; see `pulsar_steward.runtime.parallel.MapOver`.

    The function travels inside the job, as Spark's configuration and plans may be logged. Spark would write a function
    larger than 1 MiB to disk, and it may contain the token: data of unbounded size goes into items, which hold no
    secret.

    Args:
        spark: The session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __call__(self, function: Callable[[T], R], things: Sequence[T], what: str = "shards") -> list[R]:
        """Maps the function over the items."""
        if not things:
            return []
        context = self._spark.sparkContext
        context.setJobDescription(what)
        with watched(self._spark, what):
            return context.parallelize(list(things), len(things)).map(function).collect()


class SparkMapOverFiles:
    """Maps over shards of a snapshot whose files only Hadoop can read: Spark passes their content to the tasks.

    Args:
        spark: The session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __call__(self, function: Callable[[T], R], things: Sequence[T], what: str = "shards") -> list[R]:
        """Maps the function over the items."""
        number_of = {_below(place): number for number, thing in enumerate(things) for place in _places(thing)}
        if not number_of:
            return SparkMap(self._spark)(function, things, what)
        context = self._spark.sparkContext
        context.setJobDescription(what)
        # The files are known: Spark would list many of them in a job of its own.
        self._spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", str(2**31 - 1))
        names = sorted({place for thing in things for place in _places(thing)})
        files = self._spark.read.format("binaryFile").load(names).select("path", "content").rdd
        owned = files.map(lambda row: (number_of[_below(row.path)], (_below(row.path), bytes(row.content))))
        numbered = context.parallelize(list(enumerate(things)), len(things))

        def carry_out(group: tuple[int, tuple[Iterable[T], Iterable[tuple[str, bytes]]]]) -> tuple[int, R]:
            number, ((thing, *_), contents) = group
            return number, function(_filled(thing, dict(contents)))

        with watched(self._spark, what):
            told = numbered.cogroup(owned, len(things)).map(carry_out).collect()
        return [result for _, result in sorted(told, key=lambda pair: pair[0])]


def _places(thing: object) -> list[str]:
    return thing.places() if isinstance(thing, ShardTask) else []


def _filled(thing: Any, contents: Mapping[str, bytes]) -> Any:
    if not isinstance(thing, ShardTask):
        return thing
    return thing.with_contents({place: contents[_below(place)] for place in thing.places()})


def _below(place: str) -> str:
    """Part of a path below the folder of snapshots: Hadoop may return the rest in another form than it was given."""
    return place[place.rindex("/cluster=") :]
