"""Commands that run jobs and keep their logs, and the command that writes metrics."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

import steward_spark
from lab.simulator import ClusterSpec, running_simulator
from pulsar_steward.cli.errors import JobFailed
from pulsar_steward.cli.paths import need_java, spark_apps
from pulsar_steward.cli.snapshot import run_job
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.job_log import AS_RECORDS, JobRecord, is_progress, job_record
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.installed_files import project_files
from tests.builders import NOW
from tests.cases import row_by_row
from tests.ledgers import ledger_at
from tests.unit.cli.conftest import Steward, urls_of
from tests.unit.cli.recorded import record_move
from tests.unit.report_checkup.snapshots import skewed, written

TOKEN = "made.up-token_of-a.superuser"


def record(words: str, **more: Any) -> str:
    """A line of a job's log, as Python's source."""
    return repr(msgspec.json.encode(JobRecord(words=words, **more)).decode())


def a_script(folder: Path, text: str, name: str = "job.py") -> Path:
    """A job of a few lines."""
    script = folder / name
    script.write_text(f"import os, sys, time\n{text}\n", encoding="utf-8")
    return script


def test_the_last_line_of_a_job_is_what_it_made(tmp_path: Path) -> None:
    script = a_script(
        tmp_path,
        "print('earlier'); print('made'); print()\n"
        f"print({record('reading brokers: 1 of 3 tasks done', progress=True)}, file=sys.stderr)\n"
        f"print({record('looking for trouble', progress=True)}, file=sys.stderr)\n"
        f"print({record('tc-skew: clear')}, file=sys.stderr)\n"
        "print('WARNING: of Java', file=sys.stderr)",
    )
    said: list[str] = []

    assert run_job(script, [], os.environ, said.append) == "made"
    assert said == ["reading brokers: 1 of 3 tasks done", "looking for trouble"]


@row_by_row(
    "text, words",
    (
        f"print({record('GET /x: no connection', error='OnlyTls')}, file=sys.stderr); sys.exit(1)",
        "job.py ended with 1: GET /x: no connection; name the address as https://",
    ),
    ("print('one\\ntwo', file=sys.stderr); sys.exit(3)", "job.py ended with 3: one / two"),
    (f"print({record('broken')}, file=sys.stderr); sys.exit(3)", "job.py ended with 3: broken"),
    (f"print({record('new', error='Newer')}, file=sys.stderr); sys.exit(1)", "job.py ended with 1: new"),
    ("sys.exit(4)", "job.py ended with 4: it said nothing"),
    ("print(os.environ['STEWARD_ADMIN_TOKEN'], file=sys.stderr); sys.exit(5)", "job.py ended with 5: ***"),
)
def test_a_job_that_fails_says_why_and_no_secret(tmp_path: Path, text: str, words: str) -> None:
    """The error about a failed job has the job's own error or its last lines, and no secret."""
    with pytest.raises(JobFailed) as caught:
        run_job(a_script(tmp_path, text), [], os.environ | {"STEWARD_ADMIN_TOKEN": TOKEN}, lambda _: None)

    assert str(caught.value) == words


def runs(process: psutil.Process) -> bool:
    """Whether it is there, and not only waits for somebody to take note of its end."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_a_job_ends_when_the_command_does(tmp_path: Path) -> None:
    script = a_script(
        tmp_path,
        "import subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "words = f'{os.getpid()} {child.pid}'\n"
        'print(\'{"steward":"job","words":"\' + words + \'","progress":true}\', file=sys.stderr, flush=True)\n'
        "time.sleep(600)",
    )
    processes: list[psutil.Process] = []

    def interrupted(words: str) -> None:
        processes.extend(psutil.Process(int(word)) for word in words.split())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(script, [], os.environ, interrupted)

    assert len(processes) == 2
    deadline = time.monotonic() + 20
    while any(runs(process) for process in processes):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Has a script in place of the Spark job, which notes its arguments and variables and names a snapshot."""
    made = written(tmp_path / "made", **skewed())
    variables = "{name: os.environ.get(name) for name in ('PYSPARK_SUBMIT_ARGS', 'STEWARD_ADMIN_URLS')}"
    text = f"import json; json.dump([sys.argv[1:], {variables}], open(r'{tmp_path}/noted', 'w')); print(r'{made}')"
    a_script(tmp_path, text, "observe.py")
    monkeypatch.setenv("STEWARD_SPARK_APPS", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "/made/up")
    return tmp_path / "noted"


@pytest.mark.parametrize("command", ["checkup", "plan"])
def test_a_spark_looks_where_its_master_is_named(steward: Steward, job: Path, tmp_path: Path, command: str) -> None:
    """The job gets the cluster's own name, the policy as JSON and Spark's master, and no token as an argument."""
    (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
    (tmp_path / "policy").write_text("clusters: {west: {admin: {read_attempts: 7}}}", encoding="utf-8")
    given = ["--token-file", tmp_path / "token", "--policy", tmp_path / "policy", "--keep", tmp_path / "out"]
    with running_simulator(ClusterSpec(brokers=1, cluster="west"), token=TOKEN) as cluster:
        ended = steward(command, *urls_of(cluster), *given, "--master", "spark://a b:7077")
        asked = cluster.requests.all()

    arguments, variables = json.loads(job.read_text(encoding="utf-8"))
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    policy = Policy.model_validate_json(options.pop("--policy-json"))
    taken_at = datetime.fromisoformat(options.pop("--taken-at"))
    assert options == {"--cluster": "west", "--out": str(tmp_path / "out")}
    assert (policy.admin.read_attempts, policy.clusters) == (7, {})
    assert taken_at.microsecond == 0
    assert abs(datetime.now(UTC) - taken_at) < timedelta(minutes=5)
    assert variables == {
        "PYSPARK_SUBMIT_ARGS": "--master 'spark://a b:7077' pyspark-shell",
        "STEWARD_ADMIN_URLS": cluster.admin_urls[0],
    }
    assert TOKEN not in job.read_text(encoding="utf-8")
    assert len(asked) == 1, "this process asked more than who is there"
    assert ended.err.splitlines()[1:] == [
        "collecting from the brokers of west",
        f"the snapshot is kept at {tmp_path / 'made'}",
    ]
    assert ended.code == {"checkup": 1, "plan": 0}[command]
    assert "Even out 16 transaction coordinators" in ended.out


@pytest.mark.parametrize(("missing", "words"), [("java", "version 17"), ("jobs", "set STEWARD_SPARK_APPS")])
def test_what_spark_needs_is_asked_for_before_the_cluster_is(
    steward: Steward, job: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str, words: str
) -> None:
    """With a master named, missing Java or missing jobs are reported in one line before the cluster is asked."""
    if missing == "java":
        monkeypatch.delenv("JAVA_HOME")
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        monkeypatch.setenv("STEWARD_SPARK_APPS", str(tmp_path / "nowhere"))

    ended = steward("checkup", "--admin-url", "http://127.0.0.1:1", "--master", "local[1]")

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert words in ended.err


def test_jobs_that_are_not_there_are_told(tmp_path: Path) -> None:
    """The jobs are found in a checkout, and the error about missing jobs names the variable to set."""
    assert spark_apps({}) == project_files() / "spark_apps"
    with pytest.raises(ConfigurationError, match=r"has no observe.py: set STEWARD_SPARK_APPS"):
        spark_apps({"STEWARD_SPARK_APPS": str(tmp_path)})


def test_a_machine_without_java_is_told(tmp_path: Path) -> None:
    """The error about missing Java names the version that is needed, and `JAVA_HOME` satisfies the check."""
    need_java({"JAVA_HOME": "/made/up"})
    with pytest.raises(ConfigurationError, match="version 17"):
        need_java({"PATH": str(tmp_path)})


@pytest.fixture
def options(tmp_path: Path) -> tuple[str, ...]:
    """A ledger and a folder of snapshots of the cluster east."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = ledger_at(url)
    record_move(engine, "0x00000000_0x10000000", NOW)
    engine.dispose()
    written(tmp_path / "snapshots" / "cluster=east" / "taken_at=20260301T120000Z", **skewed())
    return ("--ledger", url, "--snapshots", str(tmp_path / "snapshots"))


def test_metrics_of_ledger_and_snapshot(steward: Steward, options: tuple[str, ...]) -> None:
    """The metrics count each cluster's findings in its snapshot and its calls without an outcome in the ledger."""
    ended = steward("metrics", *options)
    assert (ended.code, ended.err) == (0, "")
    assert 'steward_findings{check="tc-skew",cluster="east",severity="critical"} 1.0' in ended.out
    assert 'steward_calls_without_outcome{cluster="east"} 1.0' in ended.out
    assert ended.out.endswith("\n")
    assert steward("metrics", *options, "--openmetrics").out.endswith("# EOF\n")


def test_only_the_cluster_that_is_named(steward: Steward, options: tuple[str, ...]) -> None:
    """Only the named cluster has metrics, and an unknown cluster has no readable snapshot."""
    ended = steward("metrics", *options, "--cluster", "west")
    assert 'cluster="east"' not in ended.out
    assert 'steward_snapshot_readable{cluster="west"} 0.0' in ended.out


def test_a_file_is_replaced_as_a_whole(steward: Steward, options: tuple[str, ...], tmp_path: Path) -> None:
    """The file of metrics is replaced, other users may read it, and no other file is left beside it."""
    folder = tmp_path / "collected"
    folder.mkdir()
    file = folder / "steward.prom"
    file.write_text("old")
    ended = steward("metrics", *options, "--output", file)
    assert (ended.code, ended.out) == (0, "")
    assert file.read_text().startswith("# HELP steward_")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(folder.iterdir()) == [file]


def test_a_file_that_cannot_be_written(steward: Steward, options: tuple[str, ...], tmp_path: Path) -> None:
    """A file that cannot be written ends the command with exit code 2, and the error names it."""
    ended = steward("metrics", *options, "--output", tmp_path / "missing" / "steward.prom")
    assert ended.code == 2
    assert "missing/steward.prom cannot be written" in ended.err


def test_a_broken_snapshot_is_said_and_counted(steward: Steward, options: tuple[str, ...], tmp_path: Path) -> None:
    """A broken snapshot is reported and counted as not readable, and the other metrics are printed."""
    (part,) = (tmp_path / "snapshots").glob("*/*/findings/*.parquet")
    part.write_bytes(b"no parquet")
    ended = steward("metrics", *options)
    assert ended.code == 0
    assert "east: " in ended.err
    assert 'steward_snapshot_readable{cluster="east"} 0.0' in ended.out
    assert 'steward_plans_total{cluster="east"} 1.0' in ended.out


JOB = """
import logging, sys
from pulsar_steward.errors import NotAllowed
from steward_spark.command import run

def job():
    logging.getLogger("steward_spark.progress").info("reading %d", 3)
    logging.getLogger("pulsar_steward.collect.broker").warning("not read")
    logging.getLogger("pulsar_steward.diagnose.runner").info("tc-skew: clear")
    raise NotAllowed("GET", "/x", "b:1", "no superuser", 401)

sys.exit(run(job))
"""


def logged(**environment: str) -> list[str]:
    """The lines that the job logs, started with these variables beside those of this process."""
    paths = [str(Path(steward_spark.__file__).parents[1]), *sys.path]
    known = {name: value for name, value in os.environ.items() if name != AS_RECORDS}
    ended = subprocess.run(
        [sys.executable, "-c", JOB],
        env={**known, "PYTHONPATH": os.pathsep.join(paths), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    return ended.stderr.splitlines()


def test_a_job_tells_records_to_the_command_line() -> None:
    assert [job_record(line) for line in logged(**{AS_RECORDS: "1"})] == [
        JobRecord(words="reading 3", progress=True),
        JobRecord(words="not read", progress=True),
        JobRecord(words="tc-skew: clear"),
        JobRecord(words="GET /x at b:1: 401 no superuser", error="NotAllowed"),
    ]


def test_a_job_logs_plain_lines_to_anybody_else() -> None:
    """A job that the command line did not start logs plain lines, such as Airflow's log of a task shows."""
    lines = logged()
    assert [job_record(line) for line in lines] == [None] * 4
    assert [line.split(" ", 2)[2] for line in lines] == [
        "INFO steward_spark.progress reading 3",
        "WARNING pulsar_steward.collect.broker not read",
        "INFO pulsar_steward.diagnose.runner tc-skew: clear",
        "ERROR steward_spark NotAllowed: GET /x at b:1: 401 no superuser",
    ]


def test_what_is_no_record() -> None:
    """Lines of Java's log and JSON of another form are not read as records."""
    others = ("{}", "[1]", '{"msg":"x"}', '{"words":"x","level":"INFO"}', '{"steward":"other","words":"x"}')
    for line in ("26/01/01 WARN Utils: x", "", "\udc80", *others):
        assert job_record(line) is None


def test_whose_words_tell_how_far_it_is() -> None:
    """A log message is about progress by its logger's place in the hierarchy, not by the start of its name."""
    assert is_progress("steward_spark")
    assert is_progress("pulsar_steward.collect.broker")
    assert not is_progress("pulsar_steward.collecting")
