"""What brokers answered, on its way into a snapshot: written by the tasks that ask, or through Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from pyspark import StorageLevel

from pulsar_steward.collect.arrow import LARGE_TABLES, SUSPECTS, WRITTEN, schema_of
from pulsar_steward.model.tables import BROKERS, BUNDLES
from steward_spark.gather import FEWEST_TASKS, rows_of, table_of
from steward_spark.tuning import AS_IT_IS, OF_SMALL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from steward_spark.gather import BrokerQuestions
    from steward_spark.place import SnapshotPlace


def answers_to(questions: BrokerQuestions, place: SnapshotPlace) -> BrokerAnswers:
    """The quicker way where the snapshot goes into a folder, and Spark's way where it goes anywhere else."""
    folder = place.staging()
    return _KeptBySpark(questions, place) if folder is None else _WrittenByTasks(questions, place, folder)


class BrokerAnswers(ABC):
    """What brokers answered; each of them is asked once. End it."""

    tuning: Mapping[str, str]
    """Spark's settings for what is left to it."""

    @abstractmethod
    def brokers(self) -> pa.Table:
        """Asks them all, and returns the table `brokers`."""

    @abstractmethod
    def suspects(self) -> pa.Table:
        """Rows of `SUSPECTS`, of all tasks; few."""

    @abstractmethod
    def owned(self) -> DataFrame:
        """What brokers own, columns of `bundles`."""

    @abstractmethod
    def write(self) -> None:
        """Writes `LARGE_TABLES` of the snapshot."""

    @abstractmethod
    def end(self) -> None:
        """Gives back what was kept."""


class _WrittenByTasks(BrokerAnswers):
    """In a folder that is no part of the snapshot, until all have been asked."""

    tuning = OF_SMALL

    def __init__(self, questions: BrokerQuestions, place: SnapshotPlace, folder: Path) -> None:
        self._questions = questions
        self._place = place
        self._folder = folder
        self._files: dict[str, list[str]] = {}
        self._suspects = schema_of(SUSPECTS).empty_table()

    def brokers(self) -> pa.Table:
        answers = self._questions.written(self._folder, (BUNDLES, *LARGE_TABLES)).toArrow()
        for row in table_of(answers, WRITTEN).to_pylist():
            self._files.setdefault(row["name"], []).append(row["file"])
        self._suspects = table_of(answers, SUSPECTS)
        return table_of(answers, BROKERS)

    def suspects(self) -> pa.Table:
        return self._suspects

    def owned(self) -> DataFrame:
        return self._place.staged(BUNDLES, self._files[BUNDLES.name])

    def write(self) -> None:
        for table in LARGE_TABLES:
            self._place.take_in(table, self._files[table.name])

    def end(self) -> None:
        self._place.end_staging()


class _KeptBySpark(BrokerAnswers):
    """In Spark's memory, and on its disks where that is full."""

    tuning = AS_IT_IS

    def __init__(self, questions: BrokerQuestions, place: SnapshotPlace) -> None:
        self._place = place
        self._answers = questions.answers().persist(StorageLevel.MEMORY_AND_DISK)

    def brokers(self) -> pa.Table:
        return rows_of(self._answers, BROKERS).toArrow()

    def suspects(self) -> pa.Table:
        return rows_of(self._answers, SUSPECTS).toArrow()

    def owned(self) -> DataFrame:
        return rows_of(self._answers, BUNDLES)

    def write(self) -> None:
        for table in LARGE_TABLES:
            # What diagnoses a snapshot opens each file of these a dozen times.
            self._place.write(table, rows_of(self._answers, table).coalesce(FEWEST_TASKS))

    def end(self) -> None:
        self._answers.unpersist()
