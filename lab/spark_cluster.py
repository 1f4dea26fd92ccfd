"""A Spark cluster of processes of our own: a standalone master and its workers on loopback, ended with the block."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from lab import ports, process
from lab.errors import NotReachedError, PartFailedError, PrerequisiteMissingError
from lab.waiting import wait_until

if TYPE_CHECKING:
    from lab.model import ProcessId

READY_WITHIN_S = 60.0
GRACE_S = 10.0
OURS = ("AIRFLOW", "PYSPARK", "PYTHON", "SPARK", "STEWARD")
"""Beginnings of variables that the cluster's processes must not inherit: executors pass them on to Python."""


class SparkCluster:
    """A running cluster.

    Attributes:
        home: Holds everything of it: logs, and each worker's folder of what its executors write.
        host: Where it listens.
        port: Where applications are submitted.
        page: URL of the master's page.
    """

    host = ports.LOOPBACK

    def __init__(self, home: Path) -> None:
        free = ports.Ports(None)
        self.home = home
        self.port = free.take(self.host, "Spark's master")
        self._page_port = free.take(self.host, "the master's page")
        self.page = f"http://{self.host}:{self._page_port}"
        self._processes: dict[str, ProcessId] = {}

    @property
    def url(self) -> str:
        """Address for ``spark-submit --master``."""
        return f"spark://{self.host}:{self.port}"

    def state(self) -> dict[str, Any]:
        """The master's own account: its workers, its applications that run and that are over."""
        answer = httpx.get(f"{self.page}/json/", timeout=10)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def worker_pages(self) -> list[str]:
        """URLs of the workers' pages."""
        return [str(worker["webuiaddress"]) for worker in self.state()["workers"]]

    def work(self, worker: int) -> Path:
        """Folder of a worker, counted from 1, in which its executors have a folder for each application."""
        return self.home / f"worker-{worker}"

    def start(self, workers: int, cores: int, memory_mb: int) -> None:
        """Starts the master and its workers, and returns once the master counts on all of them.

        Raises:
            PartFailedError: A process did not come up; the end of its log is in the message.
        """
        self._spawn("master", "master.Master", "--host", self.host, "--port", f"{self.port}", *self._page(master=True))
        for number in range(1, workers + 1):
            folder = self.work(number)
            options = ["--cores", f"{cores}", "--memory", f"{memory_mb}m", "--work-dir", str(folder)]
            self._spawn(f"worker-{number}", "worker.Worker", "--host", self.host, *options, *self._page(), self.url)
        try:
            wait_until(lambda: self._alive() == workers, "Spark's master lists its workers", READY_WITHIN_S)
        except NotReachedError as error:
            raise PartFailedError(f"{error}:\n{process.tail(self._log('master'))}") from error

    def stop(self) -> None:
        """Ends every process, executors too."""
        process.end(self._processes.values(), GRACE_S)
        self._processes.clear()

    def _page(self, *, master: bool = False) -> list[str]:
        return ["--webui-port", f"{self._page_port if master else 0}"]

    def _spawn(self, name: str, main: str, *words: str) -> None:
        spark = spark_home()
        command = [str(spark / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", *words]
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(OURS)},
            "SPARK_HOME": str(spark),
            "SPARK_LOCAL_IP": self.host,
            "SPARK_LOCAL_DIRS": str(self.home / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dspark.master.rest.enabled=false",
        }
        with process.uninterrupted():
            self._processes[name] = process.spawn(command, self._log(name), tied=True, env=environment)

    def _log(self, name: str) -> Path:
        return self.home / f"{name}.log"

    def _alive(self) -> int:
        for name, started in self._processes.items():
            if process.condition(started) == "gone":
                raise PartFailedError(f"Spark's {name} ended:\n{process.tail(self._log(name))}")
        with contextlib.suppress(httpx.HTTPError, ValueError):
            return sum(worker["state"] == "ALIVE" for worker in self.state()["workers"])
        return 0


def spark_home() -> Path:
    """The folder of the Spark that is installed with its Python package.

    Raises:
        PrerequisiteMissingError: There is none.
    """
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise PrerequisiteMissingError("no Spark in this Python: install the package pyspark")
    return Path(found.origin).parent


@contextlib.contextmanager
def running_spark(home: Path, *, workers: int = 2, cores: int = 1, memory_mb: int = 1024) -> Iterator[SparkCluster]:
    """A standalone cluster for the length of a ``with`` block.

    Args:
        home: A folder for everything of it.
        workers: How many; each of them can have an executor.
        cores: Cores that each worker says it has.
        memory_mb: Memory that each worker says it has, MiB.

    Raises:
        PartFailedError: It did not come up; nothing of it runs then.
    """
    home = home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    cluster = SparkCluster(home)
    try:
        cluster.start(workers, cores, memory_mb)
        yield cluster
    finally:
        cluster.stop()


def connection_to_spark(cluster: SparkCluster, conf: Mapping[str, str]) -> dict[str, str]:
    """The variable that holds the Airflow connection ``spark_default`` to a cluster, with Spark's settings for jobs."""
    host = f"spark://{cluster.host}"
    connection = {"conn_type": "spark", "host": host, "port": cluster.port, "extra": {"conf": dict(conf)}}
    return {"AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection)}
