"""Looks for trouble in a snapshot: ``spark-submit diagnose.py --snapshot URI [--policy FILE | --policy-json JSON]``.

Reads nothing but the snapshot. The last line of the output is the snapshot's URI.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from steward_spark.command import add_policy, policy_of, run
from steward_spark.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Sequence


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="diagnose.py", description=__doc__.partition("\n")[0])
    made.add_argument("--snapshot", required=True, metavar="URI", help="the snapshot's own folder")
    add_policy(made)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job; returns the exit code."""
    arguments = parser().parse_args(argv)
    return run(lambda: _diagnose(arguments))


def _diagnose(arguments: argparse.Namespace) -> str:
    policy = policy_of(arguments)
    spark = spark_session("diagnose")
    from steward_spark.diagnosing import diagnose  # noqa: PLC0415 - wrong arguments are told without Spark

    return diagnose(spark, arguments.snapshot, policy)


if __name__ == "__main__":
    sys.exit(main())
