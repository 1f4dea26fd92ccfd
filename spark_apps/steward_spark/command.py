"""Common parts of both jobs' command lines: arguments, the policy, logging and error messages."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import PolicyError, StewardError
from pulsar_steward.model.job_log import AS_RECORDS, JobRecord, is_progress
from pulsar_steward.policy.load import load_policy, parse_policy

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from pulsar_steward.policy.schema import Policy

log = logging.getLogger("steward_spark")


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Adds the two options that give a policy."""
    policy = parser.add_mutually_exclusive_group()
    policy.add_argument("--policy", type=Path, metavar="FILE", help="the cluster's policy, YAML (default: none)")
    policy.add_argument("--policy-json", metavar="JSON", help="the same as one JSON document")


def policy_of(arguments: argparse.Namespace) -> Policy:
    """Policy from the arguments; for the cluster that they name, if they do.

    Raises:
        PolicyError: If it is not valid, or its file is missing.
    """
    policy = _written(arguments)
    return policy.for_cluster(arguments.cluster) if "cluster" in arguments else policy


def _written(arguments: argparse.Namespace) -> Policy:
    if arguments.policy_json is not None:
        try:
            return parse_policy(json.loads(arguments.policy_json), name="--policy-json")
        except json.JSONDecodeError as error:
            raise PolicyError(f"--policy-json: not JSON: {error}") from error
    return load_policy(arguments.policy)


class _AsRecords(logging.Formatter):
    """Log records as the command line reads them."""

    def format(self, record: logging.LogRecord) -> str:
        error: StewardError | None = getattr(record, "ended_by", None)
        told = JobRecord(
            words=super().format(record) if error is None else str(error),
            progress=error is None and is_progress(record.name),
            error=None if error is None else type(error).__name__,
        )
        return msgspec.json.encode(told).decode()


def run(job: Callable[[], str]) -> int:
    """Runs a job, prints its result as the last line, and logs an expected error in one line; returns the exit code."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    if os.environ.get(AS_RECORDS):
        for handler in logging.getLogger().handlers:
            handler.setFormatter(_AsRecords())
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        made = job()
    except StewardError as error:
        # An expected error needs no stack trace.
        log.error("%s: %s", type(error).__name__, error, extra={"ended_by": error})  # noqa: TRY400 - as above
        return 1
    sys.stdout.write(f"{made}\n")
    sys.stdout.flush()
    return 0
