"""The jobs' command lines."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

import housekeeping
import observe
from lab.simulator import ClusterSpec
from lab.simulator import running_simulator as running
from pulsar_steward.collect.kafka.settings import KafkaSettings
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri
from pulsar_steward.snapshots.read import open_snapshot
from steward_spark.session import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

TOKEN = "made.up-token_of-a.superuser"
JOBS = Path(observe.__file__).parent
OBSERVE = ["--cluster", "lab", "--taken-at", "2026-01-31T23:59:59Z"]


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails a test in which a job starts Spark."""

    def start(name: str) -> NoReturn:
        pytest.fail(f"Spark was started for {name}")

    for job in (observe, housekeeping):
        monkeypatch.setattr(job, "spark_session", start)


def submitted(job: str, arguments: Sequence[str], events: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a job by spark-submit, with an event log asked for."""
    command = [
        str(Path(sys.executable).parent / "spark-submit"),
        *("--master", "local[2]", "--driver-java-options", DEFAULTS["spark.driver.extraJavaOptions"]),
        *("--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={events}"),
        *("--conf", "spark.eventLog.compress=false"),
        str(JOBS / job),
        *arguments,
    ]
    known = {name: value for name, value in os.environ.items() if not name.startswith("STEWARD_")}
    known |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, env=known | environment, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.spark
def test_the_jobs_run_by_spark_submit_and_tell_no_secret(spark: SparkSession, tmp_path: Path) -> None:
    events, out = tmp_path / "events", tmp_path / "out"
    events.mkdir()
    with running(ClusterSpec(tc_owner=0), token=TOKEN) as cluster:
        urls = ",".join(cluster.admin_urls)
        first = submitted(
            "observe.py", [*OBSERVE, "--out", str(out)], events, STEWARD_ADMIN_URLS=urls, STEWARD_ADMIN_TOKEN=TOKEN
        )
    assert first.returncode == 0, first.stderr
    uri = first.stdout.splitlines()[-1]
    second = submitted("observe.py", ["--snapshot", uri], events)
    assert second.returncode == 0, second.stderr
    assert second.stdout.splitlines()[-1] == uri
    assert [finding.check_id for finding in open_snapshot(uri).findings()] == ["tc-skew"]
    assert "collected 3/3 brokers" in first.stdout
    assert TOKEN not in first.stdout + first.stderr + second.stdout + second.stderr
    logs = [file.read_text(encoding="utf-8") for file in events.rglob("*") if file.name.startswith("events")]
    assert ['"spark.master":"local[2]"' in log for log in logs] == [True, True]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        ([], {}, "STEWARD_ADMIN_URLS is not set"),
        ([], {"STEWARD_ADMIN_URLS": " , "}, "STEWARD_ADMIN_URLS is not set"),
        ([], {"STEWARD_ADMIN_URLS": "broker:8080"}, "is not an admin URL"),
        (["--policy-json", "{"], {"STEWARD_ADMIN_URLS": "http://b:1"}, "--policy-json: not JSON"),
        (["--policy-json", '{"admn": {}}'], {"STEWARD_ADMIN_URLS": "http://b:1"}, "did you mean admin?"),
        (["--policy", "no/such.yaml"], {"STEWARD_ADMIN_URLS": "http://b:1"}, "no/such.yaml: no such file"),
    ],
)
def test_what_cannot_be_observed_is_told_without_spark(
    no_spark: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    arguments: list[str],
    environment: dict[str, str],
    words: str,
) -> None:
    """A wrong or missing setting ends the job with exit code 1 and an error about it, before Spark is started."""
    monkeypatch.delenv("STEWARD_ADMIN_URLS", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert observe.main([*OBSERVE, "--out", "nowhere", *arguments]) == 1
    assert words in caplog.text


def test_a_policy_that_does_not_hold_up_stops_diagnosing(no_spark: None, caplog: pytest.LogCaptureFixture) -> None:
    """An invalid policy ends a diagnosis with exit code 1 and the wrong key's name, before Spark is started."""
    assert observe.main(["--snapshot", "nowhere", "--policy-json", '{"tc_skew": 3}']) == 1
    assert "tc_skew" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ([], "--cluster, --out, --taken-at (or --snapshot)"),
        (["--cluster", "lab", "--out", "x"], "--taken-at (or --snapshot)"),
    ],
)
def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str], arguments: list[str], missing: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        observe.main(arguments)
    assert f"the following arguments are required: {missing}" in capsys.readouterr().err


@pytest.mark.spark
def test_a_snapshot_that_is_none_is_told_in_one_line(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder that is no finished snapshot ends the job with exit code 1 and an error of one line."""
    assert observe.main(["--snapshot", str(tmp_path)]) == 1
    (told,) = (record for record in caplog.records if record.levelname == "ERROR")
    assert told.getMessage().startswith("SnapshotError: ")
    assert "holds no _SUCCESS" in told.getMessage()
    assert "\n" not in told.getMessage()
    assert "Traceback" not in caplog.text


@pytest.mark.spark
@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--cluster", "../up"], "cluster name"), (["--taken-at", "2026-01-01T00:00:00"], "time zone")],
)
def test_what_makes_no_path_is_told_in_one_line(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.setenv("STEWARD_ADMIN_URLS", "http://127.0.0.1:1")
    assert observe.main([*OBSERVE, "--out", str(tmp_path), *arguments]) == 1
    assert words in caplog.text
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_housekeeping_says_how_many_are_left(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for days in (400, 401):
        uri = snapshot_uri(str(tmp_path), "east", datetime.now(UTC) - timedelta(days=days))
        SnapshotFolder(LocalFiles(), uri).finish()
    policy = '{"housekeeping": {"keep_snapshots_least": 1}}'
    assert housekeeping.main(["--cluster", "east", "--out", str(tmp_path), "--policy-json", policy]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "snapshots of east: 1 removed, 0 compacted, 1 left"


def test_housekeeping_tells_a_wrong_policy_without_spark(no_spark: None, caplog: pytest.LogCaptureFixture) -> None:
    """A policy that is not JSON ends housekeeping with exit code 1 and an error, before Spark is started."""
    assert housekeeping.main(["--cluster", "east", "--out", "nowhere", "--policy-json", "{"]) == 1
    assert "--policy-json: not JSON" in caplog.text


def test_limits_of_the_policy_reach_the_client() -> None:
    parsed = observe.parser().parse_args([*OBSERVE, "--out", "x", "--policy-json", '{"admin": {"read_attempts": 7}}'])
    settings = observe.settings_of(
        parsed, {"STEWARD_ADMIN_URLS": "https://a:1, https://b:1", "STEWARD_ADMIN_TOKEN": "t"}
    )
    assert isinstance(settings, AdminSettings)
    assert settings.limits.read_attempts == 7
    assert settings.urls == ("https://a:1", "https://b:1")
    assert "'t'" not in repr(settings)


def test_a_kafka_cluster_is_observed_by_its_own_settings() -> None:
    kafka = KafkaSettings(servers="kafka:9092")
    parsed = observe.parser().parse_args([*OBSERVE, "--out", "x"])
    assert observe.settings_of(parsed, kafka.in_environment({"STEWARD_ADMIN_URLS": "https://a:1"})) == kafka


@pytest.mark.parametrize(("cluster", "attempts"), [("lab", 7), ("other", 2)])
def test_a_policy_for_several_clusters_is_that_of_the_one_collected(
    tmp_path: Path, cluster: str, attempts: int
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("admin: {read_attempts: 2}\nclusters: {lab: {admin: {read_attempts: 7}}}\n")
    arguments = ["--cluster", cluster, "--taken-at", "2026-01-31T23:59:59Z", "--out", "x", "--policy", str(file)]
    settings = observe.settings_of(observe.parser().parse_args(arguments), {"STEWARD_ADMIN_URLS": "http://a:1"})
    assert isinstance(settings, AdminSettings)
    assert settings.limits.read_attempts == attempts
