"""Removes old snapshots, and the bulk of less old ones.

``spark-submit housekeeping.py --cluster NAME --out URI [--policy FILE]``

Touches nothing but the cluster's folder of snapshots. The last line of the output says how many are left.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from steward_spark.command import add_policy, policy_of, run
from steward_spark.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Sequence


def parser() -> argparse.ArgumentParser:
    """Parser of the job's command line."""
    made = argparse.ArgumentParser(prog="housekeeping.py", description=__doc__.partition("\n")[0])
    made.add_argument("--cluster", required=True, help="the cluster's name in Steward's connections")
    made.add_argument("--out", required=True, metavar="URI", help="the folder of snapshots")
    add_policy(made)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job; returns the exit code."""
    arguments = parser().parse_args(argv)
    return run(lambda: _tidy(arguments))


def _tidy(arguments: argparse.Namespace) -> str:
    policy, now = policy_of(arguments), datetime.now(UTC)
    spark = spark_session(f"housekeeping {arguments.cluster}")
    from pulsar_steward.snapshots.folder import SnapshotFolder, snapshot_uri  # wrong arguments are told first
    from pulsar_steward.snapshots.housekeeping import tidy
    from steward_spark.hadoop_files import files_at

    uri = snapshot_uri(arguments.out, arguments.cluster, now)
    tidied = tidy(SnapshotFolder(files_at(spark, uri), uri), policy.housekeeping, now)
    counts = f"{len(tidied.removed)} removed, {len(tidied.compacted)} compacted, {tidied.left} left"
    return f"snapshots of {arguments.cluster}: {counts}"


if __name__ == "__main__":
    sys.exit(main())
