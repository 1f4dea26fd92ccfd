"""One observation in one Spark application: collects a snapshot unless it exists already, and diagnoses it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pulsar_steward.collect.collecting import CollectParameters, collect
from pulsar_steward.collect.kafka.collecting import KafkaOrder, collect_kafka
from pulsar_steward.collect.kafka.reader import KafkaReader
from pulsar_steward.collect.kafka.settings import KafkaSettings
from pulsar_steward.collect.reading import TaskDivision, WrittenByTasks
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.diagnose.shards import ShardTask
from pulsar_steward.snapshots.folder import SnapshotFolder, snapshot_uri
from steward_spark.hadoop_files import files_at
from steward_spark.progress import watched
from steward_spark.reading import KeptBySpark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import SparkSession

    from pulsar_steward.collect.reading import BrokerReading
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.pulsar.settings import AdminSettings
    from pulsar_steward.runtime.parallel import MapOver


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


log = logging.getLogger(__name__)

FEWEST_TASKS = 4
"""Fewest tasks for reading brokers, if there are as many; also the fewest shards of a snapshot."""

TASKS_A_CORE = 2
"""Tasks for each core, so that a task that waits for a broker does not leave its core idle."""

ASKED_A_CORE = 4
"""Brokers read at the same time for each core: one response is decoded while others arrive. All are in memory."""


@dataclass(frozen=True, kw_only=True)
class ObservationParameters:
    """Parameters of an observation.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        out: URI of the folder of snapshots.
        taken_at: Snapshot time: when collecting began, with its time zone.
        policy: The cluster's policy.
        at_once: Brokers read at the same time, at most; None: a few for each of Spark's cores.
    """

    cluster: str
    out: str
    taken_at: datetime
    policy: Policy
    at_once: int | None = None


def observe(spark: SparkSession, settings: AdminSettings | KafkaSettings, observation: ObservationParameters) -> str:
    """Takes a snapshot, unless it exists already, and diagnoses it. Returns its URI.

    Raises:
        AdminError: If the cluster cannot be read at all.
        KafkaUnreachable: If no broker of a Kafka cluster answers.
        ConfigurationError: If the settings do not allow it, or the token would travel unencrypted to a broker.
        NobodyAnswered: If not one broker could be read.
        SnapshotError: If the snapshot cannot be written or read again.
    """
    uri = snapshot_uri(observation.out, observation.cluster, observation.taken_at)
    folder = SnapshotFolder(files_at(spark, uri), uri)
    if folder.finished():
        log.info("%s is there already", folder.name)
    elif isinstance(settings, KafkaSettings):
        collect_kafka_snapshot(settings, observation, folder)
    else:
        collect_snapshot(spark, settings, observation, folder)
    return diagnose_snapshot(spark, uri, observation.policy)


def diagnose_snapshot(spark: SparkSession, uri: str, policy: Policy) -> str:
    """Diagnoses a finished snapshot. Returns its URI.

    Raises:
        SnapshotError: If it is not finished, or cannot be read or written.
    """
    folder = SnapshotFolder(files_at(spark, uri), uri)
    log.info("looking for trouble")
    # Tasks read files of a local or shared folder themselves; others are passed to them by Spark.
    map_over: MapOver = SparkMapOverFiles(spark) if folder.staging() is None else SparkMap(spark)
    diagnose(folder, policy, map_over)
    return folder.uri


def collect_kafka_snapshot(settings: KafkaSettings, observation: ObservationParameters, folder: SnapshotFolder) -> None:
    """Takes a snapshot of a Kafka cluster, by the driver alone: few requests tell all of it."""
    limits = observation.policy.kafka
    reader = KafkaReader(settings, limits)
    order = KafkaOrder(observation.cluster, observation.taken_at, settings.servers, limits, reader.metadata())
    collect_kafka(reader, order, folder)


def collect_snapshot(
    spark: SparkSession, settings: AdminSettings, observation: ObservationParameters, folder: SnapshotFolder
) -> None:
    """Takes a snapshot, by Spark's tasks. Raises as `observe` does."""
    order = CollectParameters(
        cluster=observation.cluster, taken_at=observation.taken_at, policy=observation.policy.collect
    )
    cores = spark.sparkContext.defaultParallelism
    most = observation.at_once or ASKED_A_CORE * cores
    tasks = min(max(FEWEST_TASKS, TASKS_A_CORE * cores), most)
    division = TaskDivision(tasks, max(1, most // min(cores, tasks)))
    map_over = SparkMap(spark)
    reading: BrokerReading
    if folder.staging() is None:
        reading = KeptBySpark(spark, settings, folder, division)
    else:
        reading = WrittenByTasks(settings, folder, map_over, division)
    collect(settings, order, folder, reading, map_over)
