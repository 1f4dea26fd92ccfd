"""Spark jobs as Airflow tasks: the provider's operator, with the cluster's addresses and token kept secret."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.runtime.installed_files import document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from pulsar_steward.orchestration.spark_place import SparkPlace

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java options of a driver that does all the work itself: measured, they halve its CPU time."""

LOCAL_SPARK = '{"conn_type": "spark", "host": "local[2]"}'
"""Value of ``spark_default`` if nobody defined it: Spark in the task, on two local cores."""


class StewardSpark(SparkSubmitOperator):
    """Submits one of Steward's Spark applications for a cluster.

    The driver always runs in the task. Executors run where ``spark_default`` sets it; on other machines they get
    Steward's code from here.

    Args:
        cluster: The cluster's name in Steward's connections; templated.
        needs_admin: True if the job reads the cluster, and so needs its addresses and token.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "cluster")

    def __init__(self, *, cluster: str, needs_admin: bool = False, **kwargs: Any) -> None:
        # Explicit, as spark-defaults.conf may set another mode: a driver elsewhere would have no address and token.
        super().__init__(deploy_mode="client", **kwargs)
        self.cluster = cluster
        self.needs_admin = needs_admin

    def execute(self, context: Context) -> None:
        """Passes the secrets in this process's environment, and submits the application."""
        from pulsar_steward.orchestration import connections, spark_place  # noqa: PLC0415 - keeps parsing light
        from pulsar_steward.policy.files import policy_file  # noqa: PLC0415 - as above
        from pulsar_steward.policy.load import load_policy  # noqa: PLC0415 - as above

        policy = load_policy(policy_file(self.cluster)).for_cluster(self.cluster)
        _require_spark_submit()
        if not spark_place.is_defined():
            os.environ["AIRFLOW_CONN_SPARK_DEFAULT"] = LOCAL_SPARK
        self._settle(spark_place.configured_place())
        if self.needs_admin:
            spark_place.pass_settings(connections.admin_settings(self.cluster, policy))
        self.application_args = [*(self.application_args or []), "--policy-json", policy.model_dump_json()]
        super().execute(context)

    def _settle(self, place: SparkPlace) -> None:
        """Sets the files and settings that the driver and its executors need there."""
        given = {**place.conf, **(self.conf or {})}
        if place.local:
            self.conf = {"spark.driver.extraJavaOptions": QUICK_JAVA, **given}
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            return
        from pulsar_steward.orchestration import home, shipping  # noqa: PLC0415 - keeps parsing DAG files light

        # Only executors may have another Python: the driver uses this task's, with all of Airflow's packages.
        self.conf = {"spark.pyspark.driver.python": sys.executable, **given}
        own = shipping.py_files(self.application, home.home() / "code")
        self.py_files = ",".join(filter(None, [self.py_files, own])) or None


def _require_spark_submit() -> None:
    if shutil.which("spark-submit") is None:
        raise ConfigurationError(
            "there is no spark-submit here: Airflow's Spark provider brings none. Install Spark 4.3 beside Airflow's"
            f" environment, and put its `bin` on the PATH of Airflow's workers ({document('start.md')})"
        )
