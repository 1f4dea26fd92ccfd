"""Airflow's own processes, to be killed: the one of a task, a scheduler, and whatever a scheduler started."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import psutil

from lab.process import condition
from lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from lab.airflow.server import Airflow

GONE_WITHIN_S = 20.0
STARTED_WITHIN_S = 90.0


def task_process(airflow: Airflow, run: str, task_id: str) -> psutil.Process:
    """The process that runs the code of a mapped task's first instance now; Airflow's supervisor of it is another."""
    place = f"dags/pulsar_remediate/dagRuns/{run}/taskInstances/{task_id}/0"
    found = psutil.Process(airflow.api.get(place)["pid"])
    scheduler = airflow.part("scheduler").pid
    assert scheduler in {parent.pid for parent in found.parents()}, f"{found} is no task of scheduler {scheduler}"
    return found


def kill(processes: Collection[psutil.Process]) -> None:
    """SIGKILL, and waits until they are gone."""
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    _, alive = psutil.wait_procs(processes, GONE_WITHIN_S)
    assert not alive


@contextlib.contextmanager
def scheduler_killed(airflow: Airflow, *, alone: bool) -> Iterator[None]:
    """The scheduler gets SIGKILL, alone or with all that it started; what is left of that ends with the block."""
    scheduler = psutil.Process(airflow.part("scheduler").pid)
    started = scheduler.children(recursive=True)
    kill([scheduler] if alone else [scheduler, *started])
    try:
        yield
    finally:
        kill(started)
        if condition(airflow.part("scheduler")) == "gone":
            started_scheduler(airflow)


def started_scheduler(airflow: Airflow, name: str = "scheduler", **settings: str) -> None:
    """Starts a scheduler, and waits until Airflow's database knows it."""
    before = _schedulers(airflow)
    airflow.start_scheduler(name, **settings)
    wait_until(lambda: len(_schedulers(airflow) - before) == 1, "the scheduler works", STARTED_WITHIN_S, every_s=0.3)


@contextlib.contextmanager
def another_scheduler(airflow: Airflow, **settings: str) -> Iterator[None]:
    """One more scheduler for the length of a block, with these environment variables."""
    name = "another-scheduler"
    started_scheduler(airflow, name, **settings)
    try:
        yield
    finally:
        airflow.end_part(name)


def _schedulers(airflow: Airflow) -> set[int]:
    """Ids of all schedulers that ever worked."""
    return {job["id"] for job in airflow.api.get("jobs", job_type="SchedulerJob", limit=100)["jobs"]}
