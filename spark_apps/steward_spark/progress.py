"""Progress of a running Spark job: a bar in a terminal, a log line every few seconds anywhere else."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

EVERY_SECONDS = 5.0
FRAME_SECONDS = 0.2


def told(words: str) -> None:
    """Logs what begins now."""
    log.info("%s", words)


@contextlib.contextmanager
def watched(spark: SparkSession, things: str) -> Iterator[None]:
    """Shows, while the block runs, how many tasks of the running stages are done; `things` names what they read."""
    done = threading.Event()
    watch = _show if sys.stderr.isatty() else _log
    watcher = threading.Thread(target=watch, args=(spark, things, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _log(spark: SparkSession, things: str, done: threading.Event) -> None:
    while not done.wait(EVERY_SECONDS):
        for completed, tasks in _stages(spark):
            log.info("reading %s: %d of %d tasks done", things, completed, tasks)


def _show(spark: SparkSession, things: str, done: threading.Event) -> None:
    from rich.console import Console  # Airflow's tasks have no terminal, and do not need it
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(f"reading {things}", total=None)
        while not done.wait(FRAME_SECONDS):
            for completed, tasks in _stages(spark):
                progress.update(bar, completed=completed, total=tasks)


def _stages(spark: SparkSession) -> Iterator[tuple[int, int]]:
    """Yields the finished and the total number of tasks of each running stage."""
    tracker = spark.sparkContext.statusTracker()
    for number in tracker.getActiveStageIds():
        stage = tracker.getStageInfo(number)
        if stage is not None:
            yield stage.numCompletedTasks, stage.numTasks
