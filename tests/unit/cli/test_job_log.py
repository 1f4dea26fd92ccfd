"""Log of a Spark job on the command line: records, written and read by the two sides as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import steward_spark
from pulsar_steward.model.job_log import AS_RECORDS, JobRecord, is_progress, job_record

JOB = """
import logging, sys
from pulsar_steward.errors import NotAllowed
from steward_spark.command import run

def job():
    logging.getLogger("steward_spark.progress").info("reading %d", 3)
    logging.getLogger("pulsar_steward.collect.broker").warning("not read")
    logging.getLogger("pulsar_steward.diagnose.runner").info("tc-skew: clear")
    raise NotAllowed("GET", "/x", "b:1", "no superuser", 401)

sys.exit(run(job))
"""


def logged(**environment: str) -> list[str]:
    """The lines that the job logs, started with these variables beside those of this process."""
    paths = [str(Path(steward_spark.__file__).parents[1]), *sys.path]
    known = {name: value for name, value in os.environ.items() if name != AS_RECORDS}
    ended = subprocess.run(  # noqa: S603 - Python itself, with this file's own words
        [sys.executable, "-c", JOB],
        env={**known, "PYTHONPATH": os.pathsep.join(paths), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    return ended.stderr.splitlines()


def test_a_job_tells_records_to_the_command_line() -> None:
    """A job of the command line logs records: its progress, its other messages, and the error that ended it."""
    assert [job_record(line) for line in logged(**{AS_RECORDS: "1"})] == [
        JobRecord(words="reading 3", progress=True),
        JobRecord(words="not read", progress=True),
        JobRecord(words="tc-skew: clear"),
        JobRecord(words="GET /x at b:1: 401 no superuser", error="NotAllowed"),
    ]


def test_a_job_logs_plain_lines_to_anybody_else() -> None:
    """A job that the command line did not start logs plain lines, such as Airflow's log of a task shows."""
    lines = logged()
    assert [job_record(line) for line in lines] == [None] * 4
    assert [line.split(" ", 2)[2] for line in lines] == [
        "INFO steward_spark.progress reading 3",
        "WARNING pulsar_steward.collect.broker not read",
        "INFO pulsar_steward.diagnose.runner tc-skew: clear",
        "ERROR steward_spark NotAllowed: GET /x at b:1: 401 no superuser",
    ]


def test_what_is_no_record() -> None:
    """Lines of Java's log and JSON of another form are not read as records."""
    others = ("{}", "[1]", '{"msg":"x"}', '{"words":"x","level":"INFO"}', '{"steward":"other","words":"x"}')
    for line in ("26/01/01 WARN Utils: x", "", "\udc80", *others):
        assert job_record(line) is None


def test_whose_words_tell_how_far_it_is() -> None:
    """A log message is about progress by its logger's place in the hierarchy, not by the start of its name."""
    assert is_progress("steward_spark")
    assert is_progress("pulsar_steward.collect.broker")
    assert not is_progress("pulsar_steward.collecting")
