"""The library on its way to Spark, and the jobs that are submitted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import pulsar_steward
from pulsar_steward.collect.kafka.settings import KafkaSettings, kafka_in
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.orchestration.spark import code_archive, py_files
from tests.cases import row_by_row

ROOT = Path(__file__).resolve().parents[3]
JOB = str(ROOT / "spark_apps" / "observe.py")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of two modules and a data file, imported once."""
    made = tmp_path / "code" / "some"
    (made / "inner" / "__pycache__").mkdir(parents=True)
    (made / "__init__.py").write_text("VALUE = 1\n")
    (made / "inner" / "__init__.py").write_text("")
    (made / "inner" / "data.txt").write_text("data")
    (made / "inner" / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"compiled")
    return made


def test_the_same_code_makes_the_same_archive(package: Path, tmp_path: Path) -> None:
    first = code_archive([package], tmp_path / "one")
    written = first.stat().st_mtime_ns
    os.utime(package / "__init__.py", (1, 1))
    again, elsewhere = code_archive([package], tmp_path / "one"), code_archive([package], tmp_path / "two")
    assert again == first
    assert first.stat().st_mtime_ns == written
    assert elsewhere.name == first.name
    assert elsewhere.read_bytes() == first.read_bytes()


def test_other_code_makes_another_archive(package: Path, tmp_path: Path) -> None:
    """Changed code makes another archive, and the earlier archive stays as it is."""
    first = code_archive([package], tmp_path / "made")
    before = first.read_bytes()
    (package / "__init__.py").write_text("VALUE = 2\n")
    assert code_archive([package], tmp_path / "made") != first
    assert first.read_bytes() == before


def test_an_archive_that_was_changed_is_made_anew(package: Path, tmp_path: Path) -> None:
    """An existing archive whose content was altered is written anew under the same name."""
    archive = code_archive([package], tmp_path / "made")
    whole = archive.read_bytes()
    archive.write_bytes(whole[:100])
    assert code_archive([package], tmp_path / "made") == archive
    assert archive.read_bytes() == whole
    assert list(archive.parent.iterdir()) == [archive]


def test_an_archive_holds_sources_and_data(package: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(code_archive([package], tmp_path / "made")) as archive:
        assert archive.namelist() == ["some/__init__.py", "some/inner/__init__.py", "some/inner/data.txt"]


def test_jobs_can_be_imported_from_the_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Python that has nothing of Steward but the archive imports what executors run."""
    monkeypatch.delenv("STEWARD_PY_FILES", raising=False)
    archive = py_files(JOB, tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {archive!r})\n"
        "import steward_spark.observing, steward_spark.reading, steward_spark.shared_storage\n"
        "import pulsar_steward.collect.reading, pulsar_steward.diagnose.running\n"
        "print(steward_spark.__file__, pulsar_steward.__file__, sep='\\n')"
    )
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=known, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.split() == [f"{archive}/{name}/__init__.py" for name in ("steward_spark", "pulsar_steward")]


@pytest.mark.parametrize(
    ("chosen", "shipped"), [("", None), (" ", None), ("hdfs:///code/steward.zip", "hdfs:///code/steward.zip")]
)
def test_what_is_chosen_is_shipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chosen: str, shipped: str | None
) -> None:
    """``STEWARD_PY_FILES`` names another archive, or none where executors have the code already."""
    monkeypatch.setenv("STEWARD_PY_FILES", chosen)
    assert py_files(JOB, tmp_path / "code") == shipped
    assert not (tmp_path / "code").exists()


def test_jobs_that_lie_alone_take_the_installed_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("STEWARD_PY_FILES", raising=False)
    archive = py_files(str(tmp_path / "observe.py"), tmp_path / "code")
    assert archive is not None
    with zipfile.ZipFile(archive) as found:
        assert {name.partition("/")[0] for name in found.namelist()} == {"pulsar_steward", "steward_spark"}


def test_code_that_is_nowhere_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Missing code of the Spark jobs is reported with an error that says what to install."""
    monkeypatch.delenv("STEWARD_PY_FILES", raising=False)
    monkeypatch.setattr(sys, "path", [str(Path(pulsar_steward.__file__).parents[1])])
    for name in [name for name in sys.modules if name.partition(".")[0] == "steward_spark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path_importer_cache", {})
    with pytest.raises(ConfigurationError, match=r"neither beside .* nor installed: install Steward"):
        py_files(str(tmp_path / "observe.py"), tmp_path / "code")


TOKEN = "made.up-token"
ADMIN: dict[str, Any] = {"conn_type": "http", "host": "broker-1", "port": 8080, "schema": "http", "password": TOKEN}
ADMIN["extra"] = {"allow_unencrypted_token": True}

SUBMIT = """#!{python}
import json, os, sys
names = ("STEWARD_ADMIN_URLS", "STEWARD_ADMIN_TOKEN", "STEWARD_ADMIN_ALLOW_UNENCRYPTED_TOKEN", "STEWARD_ADMIN_KAFKA",
         "PYSPARK_PYTHON")
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
    sys.modules.update(dict.fromkeys(os.environ.get("NOT_INSTALLED", "").split()))
    task = StewardSpark(task_id="observe", application=sys.argv[2], conf={"spark.task": "own"},
                        place={"cluster": "lab", "root": "/snapshots", "taken_at": "20260301T120000Z"})
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
    "kafka": None,
    "kafka without its client": None,  # the last one: the client is not found from then on
}
KAFKA = {
    "AIRFLOW_CONN_PULSAR_ADMIN_LAB": json.dumps(
        {"conn_type": "kafka", "password": TOKEN, "login": "me", "extra": {"bootstrap.servers": "localhost:9092"}}
    )
}
SETTINGS = {
    "installed": {"STEWARD_PY_FILES": ""},
    "absent": {"PATH": "/nowhere"},
    "kafka": KAFKA | {"STEWARD_ADMIN_URLS": "http://another:8080"},
    "kafka without its client": KAFKA | {"NOT_INSTALLED": "confluent_kafka"},
}


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
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return dict(zip(CONNECTIONS, json.loads(done.stdout.splitlines()[-1]), strict=True))


def options(words: list[str], name: str) -> list[str]:
    """Every value of an option."""
    return [words[index + 1] for index, word in enumerate(words) if word == name]


@row_by_row(
    "name, master",
    ("none", "local[2]"),
    ("local", "local[4]"),
    ("standalone", "spark://master:7077"),
    ("near", "spark://localhost:7077"),
    ("yarn", "yarn"),
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
    given = options(submitted[name]["words"], "--conf")
    wanted = {"spark.executor.memory=2g", "spark.eventLog.enabled=true", "spark.executor.cores=2", "spark.task=own"}
    assert wanted <= set(given)


@pytest.mark.parametrize("name", ["standalone", "near", "yarn"])
def test_executors_elsewhere_get_the_code(submitted: dict[str, dict[str, Any]], name: str) -> None:
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


@row_by_row(
    "name, words",
    ("elsewhere", "'spark_default' says deploy-mode 'cluster'"),
    ("words", "`conf` in the extra"),
    ("others", "`conf` in the extra"),
)
def test_what_jobs_cannot_do_is_refused(submitted: dict[str, dict[str, Any]], name: str, words: str) -> None:
    """A Spark connection with settings that the jobs cannot use is refused with an error that names the setting."""
    assert submitted[name]["error"].startswith("ConfigurationError: ")
    assert words in submitted[name]["error"]


def test_an_airflow_without_spark_is_told(submitted: dict[str, dict[str, Any]]) -> None:
    assert submitted["absent"]["error"].startswith("ConfigurationError: there is no spark-submit here")
    assert "beside Airflow's environment" in submitted["absent"]["error"]


def test_a_kafka_cluster_is_observed_by_the_same_job(submitted: dict[str, dict[str, Any]]) -> None:
    """Its settings, with the password, are in the environment only, without those of a Pulsar cluster."""
    told = submitted["kafka"]
    given = kafka_in(told["environment"])
    assert given == KafkaSettings(servers="localhost:9092", properties={"sasl.username": "me", "sasl.password": TOKEN})
    assert told["environment"]["STEWARD_ADMIN_URLS"] is None
    assert TOKEN not in " ".join(told["words"])


def test_an_airflow_without_kafkas_client_is_told(submitted: dict[str, dict[str, Any]]) -> None:
    error = submitted["kafka without its client"]["error"]
    assert error.startswith("ConfigurationError: Kafka clusters are read by confluent-kafka")
    assert "pip install 'pulsar-steward[kafka]'" in error
