"""Steward on a Spark cluster: a real master and two workers, and nothing but the connection ``spark_default`` differs.

The workers' Python cannot import Steward by itself: executors have its code from what the task ships.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from pydantic import SecretStr

from lab import ports
from lab.airflow.server import running_airflow
from lab.airflow.settings import connection_to
from lab.simulator import ClusterSpec, running_simulator
from lab.simulator.spec import NamespaceSpec, SubscriptionSpec, TopicSpec
from lab.spark_cluster import SparkCluster, connection_to_spark, running_spark, spark_home
from lab.testing import need_java
from pulsar_steward.model.tables import COLLECTED, FINDINGS, VERDICTS
from pulsar_steward.orchestration import spark
from pulsar_steward.orchestration.spark import QUICK_JAVA
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.snapshots.folder import SUCCESS, SnapshotFolder
from pulsar_steward.snapshots.housekeeping import tidy
from pulsar_steward.snapshots.read import open_snapshot
from steward_spark.hadoop_files import files_at
from steward_spark.observing import ObservationParameters, observe
from tests.live.bare_python import bare_python, imports
from tests.live.onlooker import EXECUTOR, Seen, events_in, looking_on, pages_of, shows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from lab.simulator import Simulator
    from pulsar_steward.model.tables import Table
    from pulsar_steward.snapshots.read import Snapshot

pytestmark = [
    pytest.mark.spark,
    pytest.mark.extended(
        "tests/live/test_healing.py", "tests/unit/orchestration/test_shipping.py", "tests/spark/test_equal.py"
    ),
]

TOKEN = "made.up-token_of-a.superuser-on.Spark"
NAME = "sim"
WORKERS = 2
OBSERVED_WITHIN_S = 480.0
JOB = Path(__file__).resolve().parents[2] / "spark_apps" / "observe.py"
SMALL = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.driver.extraJavaOptions": QUICK_JAVA,
}
OF_THE_MOMENT = {
    *("taken_at", "snapshot_id", "first_seen", "read_milliseconds", "clock_skew_milliseconds"),
    *("read_from", "read_until", "oldest_ledger_milliseconds", "unread_closed_milliseconds"),
    *("process_cpu_seconds_total", "clock-skew"),
}
"""Columns, a series of the metrics and a check that tell of time."""
UI = ("environment", "jobs", "stages", "executors", "SQL", "SQL/execution/?id=0")


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    """A made-up cluster that asks for a token, with topics, and with all transaction coordinators on one broker."""
    subscription = SubscriptionSpec("billing", consumers=1, backlog=10, rate_out=2.0)
    topic = TopicSpec("orders", partitions=8, producers=1, subscriptions=(subscription,), rate_in=2.0)
    spec = ClusterSpec(tc_owner=0, namespaces=(NamespaceSpec("public/shop", topics=(topic,)),))
    with running_simulator(spec, token=TOKEN) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A master and two workers."""
    need_java()
    with running_spark(tmp_path_factory.mktemp("spark-cluster"), workers=WORKERS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def workers_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Python that executors run code with."""
    return bare_python(tmp_path_factory.mktemp("bare-python"))


@pytest.fixture(scope="module")
def conf(workers_python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Spark's settings as whoever runs the cluster may like them: all that could tell a secret is switched on."""
    events = tmp_path_factory.mktemp("events")
    return {
        "spark.pyspark.python": workers_python,
        **SMALL,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.ui.enabled": "true",
        "spark.ui.port": str(ports.Ports(None).take(ports.LOOPBACK, "the driver's page")),
        # Begins when both executors are there, so that each of them gets its share.
        "spark.cores.max": str(WORKERS),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }


@dataclass(frozen=True)
class Observed:
    """One run of ``pulsar_observe``, and what came of it."""

    states: Mapping[str, str | None]
    snapshot: Snapshot
    seen: Seen
    home: Path


@pytest.fixture(scope="module")
def observed(
    simulator: Simulator, cluster: SparkCluster, conf: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Observed:
    """``pulsar_observe`` in a real Airflow whose ``spark_default`` is the cluster, watched while it runs."""
    home = tmp_path_factory.mktemp("airflow-on-spark")
    settings = {**connection_to(simulator, NAME), **connection_to_spark(cluster, conf), "SPARK_LOCAL_IP": cluster.host}
    driver = f"http://{cluster.host}:{conf['spark.ui.port']}"
    with running_airflow(home, settings) as airflow:
        airflow.api.unpause("pulsar_observe")
        with looking_on(TOKEN, lambda: [*pages_of(cluster), *(f"{driver}/{page}" for page in UI)]) as seen:
            run = airflow.api.trigger("pulsar_observe", {"cluster": NAME})
            airflow.api.wait_for_run("pulsar_observe", run, OBSERVED_WITHIN_S)
        states = airflow.api.states("pulsar_observe", run)
        (folder,) = (airflow.spec.steward_home / "snapshots" / f"cluster={NAME}").iterdir()
        return Observed(states, open_snapshot(str(folder)), seen, airflow.spec.home)


def log_folder(conf: Mapping[str, str]) -> Path:
    return Path(conf["spark.eventLog.dir"].removeprefix("file://"))


def rows(snapshot: Snapshot, table: Table) -> list[str]:
    """A table's rows in an order of their own, without what differs from one look to the next."""
    columns = [name for name in table.names if name not in OF_THE_MOMENT]
    found = snapshot.table(table, columns).to_pylist()
    return sorted(json.dumps(row, default=str) for row in found if OF_THE_MOMENT.isdisjoint(map(str, row.values())))


def test_the_workers_python_has_no_steward(workers_python: str) -> None:
    names = ("pyarrow", "msgspec", "duckdb", "pulsar_steward", "steward_spark")
    assert {name: imports(workers_python, name) for name in names} == {
        "pyarrow": True,
        "msgspec": True,
        "duckdb": True,
        "pulsar_steward": False,
        "steward_spark": False,
    }


@pytest.mark.airflow
def test_the_run_succeeds_on_the_cluster(observed: Observed, cluster: SparkCluster) -> None:
    assert {observed.states[task] for task in ("prepare", "cluster.observe[0]", "cluster.plan[0]")} == {"success"}
    state = cluster.state()
    (application,) = state["completedapps"]
    assert (application["name"], application["state"]) == (f"observe {NAME}", "FINISHED")
    page = httpx.get(f"{cluster.page}/app/?appId={application['id']}", timeout=10).text
    workers = [worker["id"] for worker in state["workers"]]
    assert len(workers) == WORKERS
    assert all(worker in page for worker in workers)


@pytest.mark.airflow
def test_both_executors_did_a_share(observed: Observed, conf: dict[str, str]) -> None:
    (events,) = (log for log in events_in(log_folder(conf)).values() if f"observe {NAME}" in json.dumps(log[:5]))
    ended = [event["Task Info"]["Executor ID"] for event in events if event["Event"] == "SparkListenerTaskEnd"]
    assert set(ended) == {"0", "1"}


@pytest.mark.airflow
def test_executors_were_given_the_code(observed: Observed, cluster: SparkCluster) -> None:
    (made,) = (observed.home / "steward" / "code").glob("steward-*.zip")
    for worker in range(1, WORKERS + 1):
        given = list(cluster.work(worker).rglob("steward-*.zip"))
        assert {archive.name for archive in given} == {made.name}
        assert {archive.read_bytes() for archive in given} == {made.read_bytes()}


@pytest.mark.airflow
def test_the_snapshot_is_that_of_one_machine(
    observed: Observed, simulator: Simulator, spark: SparkSession, tmp_path: Path
) -> None:
    policy, now = Policy(), datetime.now(UTC)
    mount = f"fs.viewfs.mounttable.{NAME}.link./snapshots"
    spark.sparkContext._jsc.hadoopConfiguration().set(mount, tmp_path.as_uri())
    observation = ObservationParameters(cluster=NAME, out=f"viewfs://{NAME}/snapshots", taken_at=now, policy=policy)
    uri = observe(spark, AdminSettings(urls=simulator.admin_urls, token=SecretStr(TOKEN)), observation)
    (folder,) = (tmp_path / f"cluster={NAME}").iterdir()
    assert uri == f"viewfs://{NAME}/snapshots/cluster={NAME}/{folder.name}"
    here = open_snapshot(str(folder))
    for table in (*COLLECTED, FINDINGS, VERDICTS):
        assert rows(observed.snapshot, table) == rows(here, table), table.name
    assert {finding.check_id for finding in observed.snapshot.findings()} == {"tc-skew", "backlog-quota-missing"}
    (folder / SUCCESS).unlink()
    tidied = tidy(SnapshotFolder(files_at(spark, uri), uri), policy.housekeeping, now + timedelta(days=400))
    assert (tidied.removed, tidied.left) == ((uri,), 0)
    assert not folder.exists()


@pytest.mark.airflow
def test_nobody_who_looks_on_sees_the_token(observed: Observed, conf: dict[str, str]) -> None:
    """The token is in no command line, in no executor's environment, and on no page of the cluster or the driver."""
    seen = observed.seen
    assert any(EXECUTOR in command for command in seen.commands)
    assert any("observe.py" in command for command in seen.commands)
    looked_at = {url.rpartition(f":{conf['spark.ui.port']}/")[2] for url in seen.pages}
    assert looked_at >= set(UI)
    assert any("/app/?appId=" in url for url in seen.pages)
    assert seen.told == set()


@pytest.mark.airflow
def test_nothing_that_is_left_behind_holds_the_token(
    observed: Observed, cluster: SparkCluster, conf: dict[str, str]
) -> None:
    logs = log_folder(conf)
    places = [logs, cluster.home, observed.home / "logs", observed.home / "steward"]
    files = [file for place in places for file in place.rglob("*") if file.is_file()]
    assert {"stderr", "stdout", "master.log"} <= {file.name for file in files}
    assert any(logs in file.parents for file in files)
    assert [file for file in files if shows(TOKEN, file.read_bytes().decode("latin-1"))] == []


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="no path means another folder to each process here")
def test_a_folder_that_executors_do_not_share_is_refused(
    simulator: Simulator, cluster: SparkCluster, workers_python: str, tmp_path: Path
) -> None:
    simulator.requests.clear()
    settings = {**SMALL, "spark.pyspark.python": workers_python, "spark.pyspark.driver.python": sys.executable}
    command = [
        str(spark_home() / "bin" / "spark-submit"),
        *("--master", cluster.url, "--py-files", str(spark.py_files(str(JOB), tmp_path / "code"))),
        *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}")),
        *(str(JOB), "--cluster", NAME, "--taken-at", "2026-01-31T23:59:59Z", "--out", "/proc/self/cwd/snapshots"),
    ]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("STEWARD", "PYSPARK"))},
        "STEWARD_ADMIN_URLS": ",".join(simulator.admin_urls),
        "STEWARD_ADMIN_TOKEN": TOKEN,
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": cluster.host,
    }
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 1
    assert "ConfigurationError: /proc/self/cwd/snapshots is another folder on" in done.stdout
    assert list((tmp_path / "snapshots").iterdir()) == []
    assert simulator.requests.all() == ()
