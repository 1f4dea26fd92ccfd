"""The two jobs' command lines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import collect
import diagnose
from lab.simulator import ClusterSpec
from lab.simulator import running_simulator as running
from pulsar_steward.snapshots.read import open_snapshot
from steward_spark.session import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

TOKEN = "made.up-token_of-a.superuser"
JOBS = Path(collect.__file__).parent
COLLECT = ["--cluster", "lab", "--taken-at", "2026-01-31T23:59:59Z"]


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
    return subprocess.run(  # noqa: S603 - made of this file's own words
        command, env=known | environment, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.spark
def test_the_jobs_run_by_spark_submit_and_tell_no_secret(spark: SparkSession, tmp_path: Path) -> None:
    """The last line is the snapshot, and the token is in no output and no file."""
    events, out = tmp_path / "events", tmp_path / "out"
    events.mkdir()
    with running(ClusterSpec(tc_owner=0), token=TOKEN) as cluster:
        urls = ",".join(cluster.admin_urls)
        first = submitted(
            "collect.py",
            [*COLLECT, "--out", str(out)],
            events,
            STEWARD_ADMIN_URLS=urls,
            STEWARD_ADMIN_TOKEN=TOKEN,
        )
    assert first.returncode == 0, first.stderr
    uri = first.stdout.splitlines()[-1]
    second = submitted("diagnose.py", ["--snapshot", uri], events)

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
def test_what_cannot_be_collected_is_told_without_spark(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    arguments: list[str],
    environment: dict[str, str],
    words: str,
) -> None:
    """A wrong setting is one line, and exit code 1."""
    monkeypatch.delenv("STEWARD_ADMIN_URLS", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert collect.main([*COLLECT, "--out", "nowhere", *arguments]) == 1
    assert words in caplog.text


def test_a_policy_that_does_not_hold_up_stops_diagnosing(caplog: pytest.LogCaptureFixture) -> None:
    """It is told before Spark is started."""
    assert diagnose.main(["--snapshot", "nowhere", "--policy-json", '{"tc_skew": 3}']) == 1
    assert "tc_skew" in caplog.text


def test_limits_of_the_policy_reach_the_client() -> None:
    """How the admin API is called is the policy's."""
    parsed = collect.parser().parse_args(
        [*COLLECT, "--out", "x", "--policy-json", '{"admin": {"read_attempts": 7}}'],
    )

    settings = collect.settings_of(
        parsed, {"STEWARD_ADMIN_URLS": "https://a:1, https://b:1", "STEWARD_ADMIN_TOKEN": "t"}
    )

    assert settings.limits.read_attempts == 7
    assert settings.urls == ("https://a:1", "https://b:1")
    assert "'t'" not in repr(settings)


@pytest.mark.parametrize(("cluster", "attempts"), [("lab", 7), ("other", 2)])
def test_a_policy_for_several_clusters_is_that_of_the_one_collected(
    tmp_path: Path, cluster: str, attempts: int
) -> None:
    """What it says of one cluster does not reach another."""
    file = tmp_path / "policy.yaml"
    file.write_text("admin: {read_attempts: 2}\nclusters: {lab: {admin: {read_attempts: 7}}}\n")
    arguments = ["--cluster", cluster, "--taken-at", "2026-01-31T23:59:59Z", "--out", "x", "--policy", str(file)]

    settings = collect.settings_of(collect.parser().parse_args(arguments), {"STEWARD_ADMIN_URLS": "http://a:1"})

    assert settings.limits.read_attempts == attempts
