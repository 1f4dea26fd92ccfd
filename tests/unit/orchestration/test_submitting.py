"""Submissions of a Spark task, and its refusals: the real operator, and a program in place of spark-submit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "made.up-token"
ADMIN: dict[str, Any] = {"conn_type": "http", "host": "broker-1", "port": 8080, "schema": "http", "password": TOKEN}
ADMIN["extra"] = {"allow_unencrypted_token": True}

SUBMIT = """#!{python}
import json, os, sys
names = ("STEWARD_ADMIN_URLS", "STEWARD_ADMIN_TOKEN", "STEWARD_ADMIN_ALLOW_UNENCRYPTED_TOKEN", "PYSPARK_PYTHON")
told = {{"words": sys.argv[1:], "environment": {{name: os.environ.get(name) for name in names}}}}
open(os.environ["TOLD"], "w").write(json.dumps(told))
"""
"""Writes down how it was called."""

RUN = """
import json, os, sys
from pulsar_steward.errors import StewardError
from pulsar_steward.orchestration.spark import StewardSpark

untouched = dict(os.environ)
results = []
for settings in json.loads(sys.argv[1]):
    os.environ.clear()
    os.environ.update({**untouched, **settings})
    task = StewardSpark(task_id="observe", cluster="lab", needs_admin=True, application=sys.argv[2],
                        conf={"spark.task": "own"}, application_args=["--cluster", "lab"])
    try:
        task.execute({})
        results.append(json.load(open(os.environ["TOLD"])))
    except StewardError as error:
        results.append({"error": f"{type(error).__name__}: {error}"})
print(json.dumps(results))
"""

CONF = {"spark.executor.memory": "2g", "spark.eventLog.enabled": True, "spark.executor.cores": 2}
CONNECTIONS: dict[str, Any] = {
    "none": None,
    "local": {"host": "local[4]", "extra": {"conf": CONF}},
    "standalone": {"host": "spark://master", "port": 7077, "extra": {"conf": CONF, "deploy-mode": "client"}},
    "near": {"host": "localhost", "port": 7077},
    "installed": {"host": "spark://master", "port": 7077},
    "yarn": {"host": "yarn", "extra": {"queue": "ops"}},
    "elsewhere": {"host": "yarn", "extra": {"deploy-mode": "cluster"}},
    "words": {"host": "yarn", "extra": {"conf": "spark.executor.memory=2g"}},
    "others": {"host": "yarn", "extra": {"conf": {"executor.memory": "2g"}}},
    "absent": {"host": "local[4]"},
}
SETTINGS = {"installed": {"STEWARD_PY_FILES": ""}, "absent": {"PATH": "/nowhere"}}


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Result of each connection, in a process of its own: Airflow reads its settings once."""
    home = tmp_path_factory.mktemp("submitting")
    program = home / "bin" / "spark-submit"
    program.parent.mkdir()
    program.write_text(SUBMIT.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    cases = [
        ({"AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", **connection})} if connection else {})
        | SETTINGS.get(name, {})
        for name, connection in CONNECTIONS.items()
    ]
    ours = ("AIRFLOW", "STEWARD", "PYSPARK")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
        "PATH": os.pathsep.join([str(program.parent), os.environ.get("PATH", os.defpath)]),
        "AIRFLOW_HOME": str(home),
        "STEWARD_HOME": str(home / "steward"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_PULSAR_ADMIN_LAB": json.dumps(ADMIN),
        "TOLD": str(home / "told.json"),
    }
    command = [sys.executable, "-W", "ignore", "-c", RUN, json.dumps(cases), str(ROOT / "spark_apps" / "observe.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603 - made of this file's own words
    assert done.returncode == 0, done.stderr
    return dict(zip(CONNECTIONS, json.loads(done.stdout.splitlines()[-1]), strict=True))


def options(words: list[str], name: str) -> list[str]:
    """Every value of an option."""
    return [words[index + 1] for index, word in enumerate(words) if word == name]


@pytest.mark.parametrize(
    ("name", "master"),
    [
        ("none", "local[2]"),
        ("local", "local[4]"),
        ("standalone", "spark://master:7077"),
        ("near", "spark://localhost:7077"),
        ("yarn", "yarn"),
    ],
)
def test_the_connection_says_where(submitted: dict[str, dict[str, Any]], name: str, master: str) -> None:
    """The connection names Spark's master, the driver runs in the task, and the token is in the environment only."""
    told = submitted[name]
    assert options(told["words"], "--master") == [master]
    assert options(told["words"], "--deploy-mode") == ["client"]
    assert told["environment"]["STEWARD_ADMIN_URLS"] == "http://broker-1:8080"
    assert told["environment"]["STEWARD_ADMIN_TOKEN"] == TOKEN
    assert told["environment"]["STEWARD_ADMIN_ALLOW_UNENCRYPTED_TOKEN"] == "true"
    assert TOKEN not in " ".join(told["words"])


@pytest.mark.parametrize("name", ["local", "standalone"])
def test_the_connection_brings_settings_of_spark(submitted: dict[str, dict[str, Any]], name: str) -> None:
    """Spark settings of the connection are passed beside those of the task."""
    given = options(submitted[name]["words"], "--conf")
    wanted = {"spark.executor.memory=2g", "spark.eventLog.enabled=true", "spark.executor.cores=2", "spark.task=own"}
    assert wanted <= set(given)


@pytest.mark.parametrize("name", ["standalone", "near", "yarn"])
def test_executors_elsewhere_get_the_code(submitted: dict[str, dict[str, Any]], name: str) -> None:
    """Executors elsewhere get an archive of the code, and only the driver's Python is set."""
    told = submitted[name]
    (archive,) = options(told["words"], "--py-files")
    assert Path(archive).parent.name == "code"
    assert Path(archive).is_file()
    assert f"spark.pyspark.driver.python={sys.executable}" in options(told["words"], "--conf")
    assert told["environment"]["PYSPARK_PYTHON"] is None


@pytest.mark.parametrize("name", ["none", "local", "installed"])
def test_executors_that_have_the_code_get_none(submitted: dict[str, dict[str, Any]], name: str) -> None:
    """No archive is passed where executors run in the task or where `STEWARD_PY_FILES` is empty."""
    assert options(submitted[name]["words"], "--py-files") == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("elsewhere", "'spark_default' says deploy-mode 'cluster'"),
        ("words", "`conf` in the extra"),
        ("others", "`conf` in the extra"),
    ],
)
def test_what_jobs_cannot_do_is_refused(submitted: dict[str, dict[str, Any]], name: str, words: str) -> None:
    """A Spark connection with settings that the jobs cannot use is refused with an error that names the setting."""
    assert submitted[name]["error"].startswith("ConfigurationError: ")
    assert words in submitted[name]["error"]


def test_an_airflow_without_spark_is_told(submitted: dict[str, dict[str, Any]]) -> None:
    """A task without spark-submit fails with a configuration error that says where to install Spark."""
    assert submitted["absent"]["error"].startswith("ConfigurationError: there is no spark-submit here")
    assert "beside Airflow's environment" in submitted["absent"]["error"]
