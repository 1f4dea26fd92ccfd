"""Takes a snapshot of a cluster: ``spark-submit collect.py --cluster NAME --out URI --taken-at TIME``.

The admin API's addresses and the token come from the environment, as arguments and Spark's configuration can be read
by others: ``STEWARD_ADMIN_URLS`` (separated by commas), ``STEWARD_ADMIN_TOKEN``, ``STEWARD_ADMIN_CA_FILE`` and
``STEWARD_ADMIN_ALLOW_UNENCRYPTED_TOKEN``. The last line of the output is the snapshot's URI.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import datetime
from typing import TYPE_CHECKING

from pulsar_steward.admin.settings import AdminSettings
from steward_spark.command import add_policy, policy_of, run
from steward_spark.progress import told
from steward_spark.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="collect.py", description=__doc__.partition("\n")[0])
    made.add_argument("--cluster", required=True, help="the cluster's name in Steward's connections")
    made.add_argument("--out", required=True, metavar="URI", help="the folder of snapshots")
    made.add_argument("--taken-at", required=True, type=datetime.fromisoformat, metavar="TIME", help="ISO, with zone")
    made.add_argument("--parallelism", type=int, metavar="N", help="brokers asked at once (default: 4 a core)")
    made.add_argument("--diagnose", action="store_true", help="look for trouble in it at once, in the same Spark")
    add_policy(made)
    return made


def settings_of(arguments: argparse.Namespace, environment: Mapping[str, str]) -> AdminSettings:
    """How to reach the cluster.

    Raises:
        ConfigurationError: If the environment names no address, or none that can be one.
        PolicyError: If the policy does not hold up.
    """
    return AdminSettings.from_environment(environment, policy_of(arguments).admin)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job; returns the exit code."""
    arguments = parser().parse_args(argv)
    return run(lambda: _collect(arguments))


def _collect(arguments: argparse.Namespace) -> str:
    settings = settings_of(arguments, os.environ)
    spark = spark_session(f"collect {arguments.cluster}")
    from steward_spark.collecting import Order, collect  # noqa: PLC0415 - wrong arguments are told without Spark
    from steward_spark.reach import require_shared  # noqa: PLC0415 - as above

    require_shared(spark, arguments.out)
    policy = policy_of(arguments)
    order = Order(
        cluster=arguments.cluster,
        out=arguments.out,
        taken_at=arguments.taken_at,
        at_once=arguments.parallelism,
        policy=policy.collect,
    )
    uri = collect(spark, settings, order)
    if arguments.diagnose:
        from steward_spark.diagnosing import diagnose  # noqa: PLC0415 - as above

        told("looking for trouble")
        return diagnose(spark, uri, policy)
    return uri


if __name__ == "__main__":
    sys.exit(main())
