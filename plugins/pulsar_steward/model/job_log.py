"""Log of a Spark job for the command line that started it: a line of JSON a record, on its standard error.

Java and Spark write to the same stream, in lines of their own; these are no such documents. Started by anybody else, as
by Airflow, a job logs plain lines.
"""

from __future__ import annotations

import msgspec

AS_RECORDS = "STEWARD_JOB_RECORDS"
"""The variable of the environment that has a job log records, where it is set."""

TELLS_HOW_FAR = ("pulsar_steward.collect", "steward_spark")
"""Loggers whose records, and those of the loggers below them, are about how far a job is."""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True, tag="job", tag_field="steward", forbid_unknown_fields=True):
    """One log record of a job.

    Attributes:
        words: What is said.
        progress: Whether it says how far the job is.
        error: Where it is the expected error that ended the job, the name of its class.
    """

    words: str
    progress: bool = False
    error: str | None = None


def is_progress(logger: str) -> bool:
    """True if a logger's records are about a job's progress."""
    return any(logger == name or logger.startswith(f"{name}.") for name in TELLS_HOW_FAR)


def job_record(line: str) -> JobRecord | None:
    """The record that a line of a job's standard error is; None where something else wrote it."""
    try:
        return msgspec.json.decode(line, type=JobRecord)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
