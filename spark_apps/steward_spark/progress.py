"""Says how far a Spark job is, while it runs: a log line every few seconds, for people and for Airflow's task log."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

EVERY_SECONDS = 5.0


@contextlib.contextmanager
def watched(spark: SparkSession, things: str) -> Iterator[None]:
    """Logs, while the block runs, how many tasks of the running stages are done; each task reads some of the things."""
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, things, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(spark: SparkSession, things: str, done: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not done.wait(EVERY_SECONDS):
        for number in tracker.getActiveStageIds():
            stage = tracker.getStageInfo(number)
            if stage is not None:
                log.info("reading %s: %d of %d tasks done", things, stage.numCompletedTasks, stage.numTasks)
