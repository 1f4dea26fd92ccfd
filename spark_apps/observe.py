"""Takes a snapshot of a cluster and looks for trouble in it: ``spark-submit observe.py --cluster NAME --out URI ...``.

One that was taken already is only looked at: ``--snapshot URI`` names any other one.

The admin API's addresses and the token come from the environment, as arguments and Spark's configuration can be read
by others: ``STEWARD_ADMIN_URLS`` (separated by commas), ``STEWARD_ADMIN_TOKEN`` and those that
docs/reaching-a-cluster.md lists; those of a Kafka cluster are in ``STEWARD_ADMIN_KAFKA``. The last line of the output
is the snapshot's URI.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import datetime
from typing import TYPE_CHECKING

from pulsar_steward.collect.kafka.settings import KafkaSettings, kafka_in
from pulsar_steward.pulsar.settings import AdminSettings
from steward_spark.command import add_policy, policy_of, run
from steward_spark.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def parser() -> argparse.ArgumentParser:
    """Parser of the job's command line."""
    made = argparse.ArgumentParser(prog="observe.py", description=__doc__.partition("\n")[0])
    made.add_argument("--cluster", help="the cluster's name in Steward's connections")
    made.add_argument("--out", metavar="URI", help="the folder of snapshots")
    made.add_argument("--taken-at", type=datetime.fromisoformat, metavar="TIME", help="ISO, with zone")
    made.add_argument("--parallelism", type=int, metavar="N", help="brokers asked at once (default: 4 a core)")
    made.add_argument("--snapshot", metavar="URI", help="a finished snapshot's own folder: nothing is collected")
    add_policy(made)
    return made


def settings_of(arguments: argparse.Namespace, environment: Mapping[str, str]) -> AdminSettings | KafkaSettings:
    """Addresses and credentials of the cluster.

    Raises:
        ConfigurationError: If the environment holds no address, or an invalid one.
        PolicyError: If the policy is not valid.
    """
    policy = policy_of(arguments)
    return kafka_in(environment) or AdminSettings.from_environment(environment, policy.admin)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job; returns the exit code."""
    made = parser()
    arguments = made.parse_args(argv)
    needed = {"--cluster": arguments.cluster, "--out": arguments.out, "--taken-at": arguments.taken_at}
    missing = [name for name, value in needed.items() if value is None]
    if arguments.snapshot is None and missing:
        made.error(f"the following arguments are required: {', '.join(missing)} (or --snapshot)")
    return run(lambda: _diagnose(arguments) if arguments.snapshot else _observe(arguments))


def _observe(arguments: argparse.Namespace) -> str:
    settings = settings_of(arguments, os.environ)
    spark = spark_session(f"observe {arguments.cluster}")
    from steward_spark.observing import ObservationParameters, observe  # wrong arguments are told without Spark
    from steward_spark.shared_storage import require_shared

    require_shared(spark, arguments.out)
    observation = ObservationParameters(
        cluster=arguments.cluster,
        out=arguments.out,
        taken_at=arguments.taken_at,
        at_once=arguments.parallelism,
        policy=policy_of(arguments),
    )
    return observe(spark, settings, observation)


def _diagnose(arguments: argparse.Namespace) -> str:
    policy = policy_of(arguments)
    spark = spark_session("diagnose")
    from steward_spark.observing import diagnose_snapshot  # wrong arguments are told without Spark

    return diagnose_snapshot(spark, arguments.snapshot, policy)


if __name__ == "__main__":
    sys.exit(main())
