"""Runs a Spark job in a subprocess, and always ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pulsar_steward.cli.errors import JobFailed, job_failure
from pulsar_steward.model.job_log import AS_RECORDS, job_record
from pulsar_steward.pulsar.settings import secrets_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pulsar_steward.cli.output import Say

_LAST_LINES = 3
_PATIENCE_SECONDS = 10


def run_job(script: Path, arguments: Sequence[str], environment: Mapping[str, str], say: Say) -> str:
    """Runs a job and returns the last line of its output.

    Args:
        script: The job.
        arguments: Its arguments; they must not contain a secret, as others can read them.
        environment: Its whole environment, where secrets belong.
        say: Called with progress messages.

    Raises:
        JobFailed: If it did not end successfully.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        command = [sys.executable, str(script), *arguments]
        with _started(command, environment, output.fileno()) as process:
            told = _followed(process.stderr or (), say)
            code = process.wait()
        output.seek(0)
        made = output.read().split("\n")
    if code:
        raise JobFailed(_hidden(_failure(script, code, told), environment))
    return next(line for line in reversed(made) if line)


@contextmanager
def _started(command: Sequence[str], environment: Mapping[str, str], output: int) -> Iterator[subprocess.Popen[str]]:
    """Starts a process in a group of its own, as Spark starts Java as a child; ends the whole group."""
    process = subprocess.Popen(  # noqa: S603 - Python itself, with arguments made here
        command,
        env={**environment, AS_RECORDS: "1"},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                _ended(process)


def _ended(process: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_SECONDS)
            return


def _followed(lines: Iterable[str], say: Say) -> list[str]:
    """Reads the log until it ends; returns the error that the job logged, or else the last lines."""
    errors: list[str] = []
    last: deque[str] = deque(maxlen=_LAST_LINES)
    for line in map(str.rstrip, lines):
        record = job_record(line)
        if record is None:
            last.extend([line] if line else [])
            continue
        if record.progress:
            say(record.words)
        if record.error is not None:
            errors.append(job_failure(record.words, record.error))
        last.extend(record.words.splitlines())
    return errors[-1:] or list(last)


def _failure(script: Path, code: int, told: Sequence[str]) -> str:
    return f"{script.name} ended with {code}: {' / '.join(told) or 'it said nothing'}"


def _hidden(words: str, environment: Mapping[str, str]) -> str:
    for secret in secrets_in(environment):
        words = words.replace(secret, "***")
    return words
