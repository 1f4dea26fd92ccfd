"""Airflow 3.1 to 3.3, each in a clean environment: DAGs installed, a cluster observed, a change approved and made.

Airflow's constraints are on a host that not everybody reaches. They are the newest releases at the time of a version's
own, so each environment is resolved as on a day soon after that.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import pytest

from lab.airflow.server import running_airflow
from lab.airflow.settings import connection_to
from lab.simulator import ClusterSpec, running_simulator
from lab.testing import need_java
from lab.waiting import wait_until
from pulsar_steward.runtime.installed_airflow import OLDEST_TRIED, TRIED
from tests.install.built import ROOT, build_wheel, clean_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.install.built import Environment

DAGS = ("pulsar_observe", "pulsar_remediate", "pulsar_rollback", "pulsar_housekeeping", "pulsar_notify")
TODAY = "2026-11-23"
"""Day of the lock: what is released later fails no test."""

OBSERVED_WITHIN_S, ASKED_WITHIN_S, ENDED_WITHIN_S = 480.0, 240.0, 480.0


class Version(NamedTuple):
    """A version of Airflow, a day soon after it was released, and whether approvals wait in its triggerer."""

    airflow: str
    day: str
    triggerer: bool


TRIED_WITH = (
    Version("3.1.8", "2026-03-20", triggerer=True),
    Version("3.2.2", "2026-06-15", triggerer=True),
    Version("3.3.2", TODAY, triggerer=False),
)
REPLACED = {"pyarrow"}
"""What a provider may have brought in a version that Steward cannot use."""

REFUSED = (("2.11.2", "2026-06-15", "no task SDK"), ("3.0.6", "2025-09-20", "no approvals"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This repository's wheel."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Spark beside Airflow's environments, as docs/start.md makes it."""
    need_java()
    installer = clean_environment(tmp_path_factory.mktemp("spark"))
    installer.run("pip", "install", "--quiet", "--no-deps", "--target", "spark", "pyspark==4.3.*")
    return installer.home / "spark" / "pyspark"


def with_airflow(folder: Path, version: str, day: str, *more: str) -> Environment:
    """An environment with a version of Airflow as it was installed on that day."""
    environment = clean_environment(folder)
    environment.run("pip", "install", "--quiet", "uv")
    environment.run("uv", "pip", "install", "--quiet", "--exclude-newer", day, f"apache-airflow=={version}", *more)
    return environment


@pytest.mark.timeout(2 * 3600)  # installs Airflow
@pytest.mark.extended(
    "tests/dags/test_dags.py", "tests/unit/runtime/test_installed_airflow.py", "tests/unit/cli/test_airflow_setup.py"
)
@pytest.mark.parametrize("version", TRIED_WITH, ids=lambda version: version.airflow)
def test_from_an_installation_to_an_approved_change(
    tmp_path: Path, wheel: Path, spark: Path, monkeypatch: pytest.MonkeyPatch, version: Version
) -> None:
    provider = "apache-airflow-providers-apache-spark"
    environment = with_airflow(tmp_path / "environment", version.airflow, version.day, provider)
    wanted = [f"apache-airflow=={version.airflow}", f"pulsar-steward[airflow] @ {wheel.as_uri()}"]
    brought = installed(environment)
    environment.run("uv", "pip", "install", "--quiet", "--exclude-newer", TODAY, *wanted)
    changed = {name for name, number in installed(environment).items() if brought.get(name, number) != number}
    assert {name for name in changed if not name.startswith("apache-airflow-providers-")} <= REPLACED
    environment.run("pip", "check")

    dags = tmp_path / "dags"
    dags.mkdir()
    environment.run("steward", "airflow", "install", str(dags))
    for name in ("PYTHONPATH", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    path = os.pathsep.join([str(spark / "bin"), str(environment.folder / "bin"), os.environ["PATH"]])
    places = {"SPARK_HOME": str(spark), "PATH": path, "STEWARD_CLUSTER": "local"}
    with (
        running_simulator(ClusterSpec(tc_owner=0)) as cluster,
        running_airflow(
            tmp_path / "airflow",
            places | connection_to(cluster),
            python=environment.python,
            dags=dags,
            triggerer=version.triggerer,
        ) as airflow,
    ):
        api = airflow.api
        assert api.get("version")["version"] == version.airflow
        for dag_id in DAGS:
            api.unpause(dag_id)
        assert api.import_errors() == []

        observing = api.trigger("pulsar_observe")
        observed = api.wait_for_run("pulsar_observe", observing, OBSERVED_WITHIN_S)
        assert observed == "success", api.log("pulsar_observe", observing, "cluster.observe", map_index=0)[-3000:]
        wait_until(lambda: len(api.waiting()) == 1, "an approval waits", ASKED_WITHIN_S, every_s=0.5)
        [asked] = api.waiting()
        assert {record.method for record in cluster.requests.all()} == {"GET"}
        assert max(cluster.tc_placement().values()) == sum(cluster.tc_placement().values())

        run = asked["task_instance"]["dag_run_id"]
        # Answered first: Airflow 3.1.8 may lose its triggerer where a task is cleared that waits in it.
        api.answer(asked, "Reject")
        assert api.wait_for_run("pulsar_remediate", run, ENDED_WITHIN_S) == "success"
        policy = airflow.spec.steward_home / "policy.yaml"
        policy.write_text("approval: {valid_minutes: 30}", encoding="utf-8")
        api.clear("pulsar_remediate", run, "batch.approve")
        assert api.wait_for_run("pulsar_remediate", run, ENDED_WITHIN_S) == "failed"
        told = api.log("pulsar_remediate", run, "batch.approve", map_index=0, attempt=2)
        assert "Airflow still shows an earlier question for this task" in told
        policy.unlink()
        api.clear("pulsar_remediate", run, "batch.approve")
        wait_until(lambda: len(api.waiting()) == 1, "the same approval waits again", ASKED_WITHIN_S, every_s=0.5)
        [again] = api.waiting()
        assert again["params"] == asked["params"]

        api.answer(again, "Approve", comment="let them spread")
        ended = api.wait_for_run("pulsar_remediate", run, ENDED_WITHIN_S)
        assert ended == "success", api.states("pulsar_remediate", run)
        placement = cluster.tc_placement().values()
        assert max(placement) - min(placement) <= 1


@pytest.mark.timeout(3600)  # as above
@pytest.mark.extended("tests/unit/runtime/test_installed_airflow.py")
@pytest.mark.parametrize(("version", "day", "reason"), REFUSED)
def test_an_airflow_that_lacks_something_is_refused(
    tmp_path: Path, wheel: Path, version: str, day: str, reason: str
) -> None:
    """Installers refuse an Airflow that is too old, and DAG files on it fail with the reason and the remedy."""
    environment = with_airflow(tmp_path, version, day)
    wanted = [f"apache-airflow=={version}", f"pulsar-steward[airflow] @ {wheel.as_uri()}"]
    resolved = environment.run("uv", "pip", "install", "--dry-run", "--exclude-newer", TODAY, *wanted, check=False)
    assert resolved.returncode != 0
    assert f"apache-airflow>={'.'.join(map(str, OLDEST_TRIED))}" in resolved.stderr
    environment.run("uv", "pip", "install", "--quiet", "--no-deps", str(wheel))
    for file in sorted((ROOT / "dags").glob("*.py")):
        read = environment.run("python", str(file), check=False)
        last = read.stderr.strip().splitlines()[-1]
        assert (reason in last, TRIED in last) == (True, True), read.stderr


def installed(environment: Environment) -> dict[str, str]:
    """Every distribution of an environment, and its version."""
    lines = environment.run("uv", "pip", "freeze", "--exclude-editable").stdout.splitlines()
    return dict(line.split("==", 1) for line in lines if "==" in line)
