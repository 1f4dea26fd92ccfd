"""Spark jobs as Airflow tasks: the provider's operator, with the cluster's addresses and token kept secret."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowSkipException

import pulsar_steward
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.cluster import change_connection
from pulsar_steward.runtime.installed_files import document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow.sdk import Context

    from pulsar_steward.collect.kafka.settings import KafkaSettings
    from pulsar_steward.pulsar.settings import AdminSettings

LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""Time of all files in the archive, the earliest possible, so that the archive depends on their content alone."""

SPARK = "spark_default"
CHANGE_VARIABLES = f"AIRFLOW_CONN_{change_connection('').upper()}"

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java options of a driver that does all the work itself: measured, they halve its CPU time."""

LOCAL_SPARK = '{"conn_type": "spark", "host": "local[2]"}'
"""Value of ``spark_default`` if nobody defined it: Spark in the task, on two local cores."""


class StewardSpark(SparkSubmitOperator):
    """Submits one of Steward's Spark applications for a cluster.

    The driver always runs in the task. Executors run where ``spark_default`` sets it; on other machines they get
    Steward's code from here.

    Args:
        place: The cluster's name in Steward's connections (``cluster``), the folder of snapshots (``root``), and the
            time of the snapshot that the job takes (``taken_at``), if it takes one: then the job reads the cluster, and
            needs its addresses and token.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "place")

    def __init__(self, *, place: Mapping[str, str], **kwargs: Any) -> None:
        # Explicit, as spark-defaults.conf may set another mode: a driver elsewhere would have no address and token.
        super().__init__(deploy_mode="client", **kwargs)
        self.place = place

    def execute(self, context: Context) -> None:
        """Submits the application; one that observes is skipped while an earlier run still observes the cluster.

        Raises:
            AirflowSkipException: If an earlier run does.
        """
        from pulsar_steward.orchestration import home

        if "taken_at" not in self.place:
            self._submit(context)
            return
        with home.observed_alone(self.place["cluster"]) as alone:
            if not alone:
                raise AirflowSkipException(f"an earlier run still observes {self.place['cluster']}")
            self._submit(context)

    def _submit(self, context: Context) -> None:
        """Passes the secrets in this process's environment, and submits the application."""
        from pulsar_steward.collect.kafka.reader import require_client
        from pulsar_steward.collect.kafka.settings import KafkaSettings
        from pulsar_steward.orchestration import connections
        from pulsar_steward.policy.files import policy_file
        from pulsar_steward.policy.load import load_policy

        cluster, taken_at = self.place["cluster"], self.place.get("taken_at")
        policy = load_policy(policy_file(cluster)).for_cluster(cluster)
        _require_spark_submit()
        if connections.connection_named(SPARK) is None:
            os.environ["AIRFLOW_CONN_SPARK_DEFAULT"] = LOCAL_SPARK
        self._settle(configured_place())
        self.application_args = ["--cluster", cluster, "--out", self.place["root"]]
        if taken_at is not None:
            settings = connections.observed_settings(cluster, policy)
            if isinstance(settings, KafkaSettings):
                require_client()
            pass_settings(settings)
            self.application_args += ["--taken-at", taken_at]
        self.application_args += ["--policy-json", policy.model_dump_json()]
        super().execute(context)

    def _settle(self, place: SparkPlace) -> None:
        """Sets the files and settings that the driver and its executors need there."""
        given = {**place.conf, **(self.conf or {})}
        if place.local:
            self.conf = {"spark.driver.extraJavaOptions": QUICK_JAVA, **given}
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            return
        from pulsar_steward.orchestration import home

        # Only executors may have another Python: the driver uses this task's, with all of Airflow's packages.
        self.conf = {"spark.pyspark.driver.python": sys.executable, **given}
        own = py_files(self.application, home.home() / "code")
        self.py_files = ",".join(filter(None, [self.py_files, own])) or None


def _require_spark_submit() -> None:
    if shutil.which("spark-submit") is None:
        raise ConfigurationError(
            "there is no spark-submit here: Airflow's Spark provider brings none. Install Spark 4.3 beside Airflow's"
            f" environment, and put its `bin` on the PATH of Airflow's workers ({document('start.md')})"
        )


def py_files(application: str, folder: Path) -> str | None:
    """Archive from which executors import Steward: ``STEWARD_PY_FILES``, or one made of the present code.

    Args:
        application: The Spark job's file.
        folder: Folder of archives, one for each state of the code.

    Returns:
        Paths or URIs as ``spark-submit --py-files`` takes them; None if executors need nothing.

    Raises:
        ConfigurationError: If a part of the code cannot be found.
    """
    chosen = os.environ.get("STEWARD_PY_FILES")
    if chosen is not None:
        return chosen.strip() or None
    library = Path(pulsar_steward.__file__).parent
    return str(code_archive([library, _jobs(application)], folder))


def code_archive(packages: Sequence[Path], folder: Path) -> Path:
    """Archive of packages, named by its content; an existing one is left as it is.

    Args:
        packages: Folders of Python packages.
        folder: Folder of archives.
    """
    content = _zipped(packages)
    archive = folder / f"steward-{hashlib.sha256(content).hexdigest()[:16]}.zip"
    if not (archive.is_file() and archive.read_bytes() == content):
        folder.mkdir(parents=True, exist_ok=True)
        # Renamed once complete: other tasks may be about to ship it.
        with NamedTemporaryFile(dir=folder, delete=False) as unfinished:
            unfinished.write(content)
        Path(unfinished.name).chmod(0o644)
        Path(unfinished.name).replace(archive)
    return archive


def _zipped(packages: Sequence[Path]) -> bytes:
    """Zips packages without compression, as compressed bytes differ between versions of a compressor."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for package in packages:
            for file in _files(package):
                place = f"{package.name}/{file.relative_to(package).as_posix()}"
                archive.writestr(zipfile.ZipInfo(place, LONG_AGO), file.read_bytes())
    return made.getvalue()


def _files(package: Path) -> Iterator[Path]:
    for file in sorted(package.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file


def _jobs(application: str) -> Path:
    """Package of jobs: the one beside a job's file, which the job imports first, or else the installed one."""
    beside = Path(application).parent / "steward_spark"
    if beside.is_dir():
        return beside
    found = find_spec("steward_spark")
    if found is None or found.origin is None:
        raise ConfigurationError(
            f"the package steward_spark is neither beside {application} nor installed: install Steward where Airflow"
            " runs, or name what executors shall import in STEWARD_PY_FILES"
        )
    return Path(found.origin).parent


class SparkPlace(NamedTuple):
    """Spark of the connection ``spark_default``.

    Attributes:
        local: True if executors run in the task itself.
        conf: Spark's settings from the connection's extra.
    """

    local: bool
    conf: dict[str, str]


def configured_place() -> SparkPlace:
    """Spark's place and settings: the object ``conf`` in the connection's extra.

    Raises:
        ConfigurationError: If the connection has settings that Steward's jobs do not support.
    """
    from pulsar_steward.orchestration import connections

    connection = connections.connection_named(SPARK)
    if connection is None:
        return SparkPlace(local=True, conf={})
    extra = connection.extra_dejson
    if (mode := extra.get("deploy-mode") or "client") != "client":
        raise ConfigurationError(
            f"the connection {SPARK!r} says deploy-mode {mode!r}: a driver outside of the task would get neither the"
            " cluster's addresses nor its token. Take deploy-mode out: only executors have to be in the cluster"
        )
    local = re.fullmatch(r"local(\[.*\])?", connection.host or "") is not None
    return SparkPlace(local=local, conf=_spark_conf(extra.get("conf") or {}))


def _spark_conf(given: object) -> dict[str, str]:
    if not isinstance(given, dict) or not all(str(key).startswith("spark.") for key in given):
        raise ConfigurationError(
            f"`conf` in the extra of the connection {SPARK!r} has to be an object of Spark's settings, such as"
            ' {"spark.executor.memory": "2g"}'
        )
    return {str(key): json.dumps(value) if isinstance(value, bool) else str(value) for key, value in given.items()}


def pass_settings(settings: AdminSettings | KafkaSettings) -> None:
    """Puts addresses and credentials into this process's environment, for the Spark process that it will start.

    They are not in the operator's ``env_vars``, as Airflow shows these in its pages. Connections for changing a cluster
    that are defined by environment variables are removed: a Spark job only reads.
    """
    written = settings.in_environment(os.environ)
    written = {name: value for name, value in written.items() if not name.startswith(CHANGE_VARIABLES)}
    for name in os.environ.keys() - written.keys():
        del os.environ[name]
    os.environ.update(written)
