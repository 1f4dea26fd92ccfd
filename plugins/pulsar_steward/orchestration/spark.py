"""Spark jobs as Airflow tasks: the provider's operator, with the cluster's addresses and token kept out of sight."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""Java options of a driver that does the whole work itself: measured, they halve its processor time."""

LOCAL_SPARK = '{"conn_type": "spark", "host": "local[2]"}'
"""What ``spark_default`` means where nobody defined it: Spark in the task, on two local cores."""


class StewardSpark(SparkSubmitOperator):
    """Submits one of Steward's Spark applications for a cluster.

    Args:
        cluster: The cluster's name in Steward's connections; templated.
        needs_admin: Whether the job reads the cluster, and so needs its addresses and token.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "cluster")

    def __init__(self, *, cluster: str, needs_admin: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cluster = cluster
        self.needs_admin = needs_admin

    def execute(self, context: Context) -> None:
        """Hands the secrets over in this process's environment, and submits."""
        from pulsar_steward.orchestration import connections, home  # noqa: PLC0415 - keeps parsing DAG files light
        from pulsar_steward.policy.load import load_policy  # noqa: PLC0415 - as above

        policy = load_policy(home.policy_file(self.cluster)).for_cluster(self.cluster)
        if self.needs_admin:
            connections.spark_environment(connections.admin_settings(self.cluster, policy))
        self.application_args = [*(self.application_args or []), "--policy-json", policy.model_dump_json()]
        if not connections.spark_is_defined():
            os.environ["AIRFLOW_CONN_SPARK_DEFAULT"] = LOCAL_SPARK
        if connections.spark_is_local():
            self.conf = {"spark.driver.extraJavaOptions": QUICK_JAVA, **(self.conf or {})}
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        super().execute(context)
