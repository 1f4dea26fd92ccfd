"""Log of a Spark job for the command line that started it: one line of JSON per record, on its standard error.

Java and Spark write to the same stream, but not in such JSON lines. A job that anybody else started, for example
Airflow, logs plain lines.
"""

from __future__ import annotations

import msgspec

from pulsar_steward.decoding import decode

AS_RECORDS = "STEWARD_JOB_RECORDS"
"""Environment variable that, if set, makes a job log records."""

TELLS_HOW_FAR = ("pulsar_steward.collect", "steward_spark")
"""Loggers whose records, and those of the loggers below them, report a job's progress."""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True, tag="job", tag_field="steward", forbid_unknown_fields=True):
    """One log record of a job.

    Attributes:
        words: The message.
        progress: True if it reports the job's progress.
        error: Class name of the expected error that ended the job, if there was one.
    """

    words: str
    progress: bool = False
    error: str | None = None


def is_progress(logger: str) -> bool:
    """True if a logger's records are about a job's progress."""
    return any(logger == name or logger.startswith(f"{name}.") for name in TELLS_HOW_FAR)


def job_record(line: str) -> JobRecord | None:
    """The record in a line of a job's standard error; None if something else wrote the line."""
    try:
        return decode(line, JobRecord)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
