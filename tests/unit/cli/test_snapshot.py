"""Looking at a made-up cluster in this process; and around the Spark job, with small scripts in its place."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import psutil
import pytest

from lab.simulator import (
    Answer,
    ClusterSpec,
    Delay,
    Fault,
    NamespaceSpec,
    Simulator,
    SubscriptionSpec,
    TopicSpec,
    running_simulator,
)
from pulsar_steward.cli import snapshot
from pulsar_steward.cli.errors import JobFailed
from pulsar_steward.cli.jobs import run_job
from pulsar_steward.cli.output import progress
from pulsar_steward.cli.paths import need_java, page_of, project_files, spark_apps
from pulsar_steward.cli.snapshot import Target, look, settings_of
from pulsar_steward.collect.pending import PendingBrokers
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.job_log import JobRecord
from pulsar_steward.policy.schema import Policy
from pulsar_steward.snapshots.read import open_snapshot
from tests.unit.report_checkup.snapshots import skewed, written

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Ended

    Steward = Callable[..., Ended]

TOKEN = "made.up-token_of-a.superuser"


def record(words: str, **more: object) -> str:
    """A line of a job's log, as Python's source."""
    return repr(msgspec.json.encode(JobRecord(words=words, **more)).decode())  # type: ignore[arg-type]  # by name


def a_script(folder: Path, text: str, name: str = "job.py") -> Path:
    """A job of a few lines."""
    script = folder / name
    script.write_text(f"import os, sys, time\n{text}\n", encoding="utf-8")
    return script


def test_the_last_line_of_a_job_is_what_it_made(tmp_path: Path) -> None:
    """Its progress is told while it runs; everything else that it logs is not."""
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"print({record('GET /x: 401', error='NotAllowed')}, file=sys.stderr); sys.exit(1)",
            "job.py ended with 1: GET /x: 401; give a superuser's token by --token-file",
        ),
        ("print('one\\ntwo', file=sys.stderr); sys.exit(3)", "job.py ended with 3: one / two"),
        (f"print({record('broken')}, file=sys.stderr); sys.exit(3)", "job.py ended with 3: broken"),
        (f"print({record('new', error='Newer')}, file=sys.stderr); sys.exit(1)", "job.py ended with 1: new"),
        ("sys.exit(4)", "job.py ended with 4: it said nothing"),
        ("print(os.environ['STEWARD_ADMIN_TOKEN'], file=sys.stderr); sys.exit(5)", "job.py ended with 5: ***"),
    ],
)
def test_a_job_that_fails_says_why_and_no_secret(tmp_path: Path, text: str, words: str) -> None:
    """An error of its own with a remedy, or else its last lines."""
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
    """An interruption leaves nothing running, not even what the job started."""
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


def test_secrets_go_by_the_environment_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job gets addresses and token there, and nothing that another shell left."""
    monkeypatch.setenv("STEWARD_ADMIN_CA_FILE", "/of/another/cluster")
    monkeypatch.setenv("STEWARD_ADMIN_TOKEN", "of-another-cluster")
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="utf-8")
    target = Target(urls=("https://a:1", "https://b:1"), token_file=file, policy=Policy())

    given = settings_of(target).in_environment(os.environ)

    assert {name: value for name, value in given.items() if name.startswith("STEWARD_ADMIN")} == {
        "STEWARD_ADMIN_URLS": "https://a:1,https://b:1",
        "STEWARD_ADMIN_TOKEN": TOKEN,
    }


@pytest.mark.parametrize(
    ("variable", "content", "token"),
    [("", None, None), ("from-the-variable", None, "from-the-variable"), ("x", "from-the-file \n", "from-the-file")],
)
def test_where_the_token_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, content: str | None, token: str | None
) -> None:
    """The file goes before the variable; none is fine too."""
    monkeypatch.setenv("STEWARD_ADMIN_TOKEN", variable)
    file = None
    if content is not None:
        file = tmp_path / "token"
        file.write_text(content, encoding="utf-8")

    settings = settings_of(Target(urls=("https://a:1",), token_file=file, policy=Policy()))

    assert (settings.token and settings.token.get_secret_value()) == token


def test_how_the_cluster_is_reached_is_as_the_options_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate's place holds for whoever runs elsewhere; limits are those of the cluster where it is named."""
    monkeypatch.chdir(tmp_path)
    policy = Policy.model_validate({"clusters": {"west": {"admin": {"read_attempts": 7}}}})
    usual = Target(urls=("http://a:1",), policy=policy)
    named = Target(
        urls=("http://a:1",), policy=policy, cluster="west", ca_file=Path("ca.pem"), allow_unencrypted_token=True
    )

    first, second = settings_of(usual), settings_of(named)

    assert (first.ca_file, second.ca_file) == (None, str(tmp_path / "ca.pem"))
    assert (first.allow_unencrypted_token, second.allow_unencrypted_token) == (False, True)
    assert (first.limits.read_attempts, second.limits.read_attempts) == (3, 7)


def test_an_empty_token_file_is_told(tmp_path: Path) -> None:
    """It would let nobody in."""
    file = tmp_path / "token"
    file.touch()

    with pytest.raises(ConfigurationError, match="the admin token is empty"):
        settings_of(Target(urls=("http://a:1",), token_file=file, policy=Policy()))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--admin-url", "http://127.0.0.1:1"], "no connection: refused"),
        (["--admin-url", "URL"], "give a superuser's token by --token-file"),
    ],
)
def test_who_does_not_let_us_in_is_told(steward: Steward, arguments: list[str], words: str) -> None:
    """No such address, or no token: one line after what was tried."""
    with running_simulator(ClusterSpec(brokers=1), token=TOKEN) as cluster:
        ended = steward("checkup", *(each.replace("URL", cluster.admin_urls[0]) for each in arguments))

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[0].endswith("who is there")
    assert ended.err.splitlines()[1].startswith("error: GET /admin/v2/brokers/configuration/runtime at 127.0.0.1:")
    assert words in ended.err


def urls_of(cluster: Simulator) -> list[str]:
    """Its addresses as options."""
    return [word for url in cluster.admin_urls for word in ("--admin-url", url)]


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither by its variable nor on the path, and no Spark jobs."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where temporary folders go."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


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


def test_looking_takes_neither_java_nor_a_process_of_its_own(
    steward: Steward, no_java: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It tells how far it is, changes nothing, and keeps the snapshot where that was asked for, the token nowhere."""
    monkeypatch.setattr(subprocess, "Popen", None)
    (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
    given = ["--token-file", tmp_path / "token", "--keep", tmp_path / "new" / "kept"]
    with running_simulator(ClusterSpec(tc_owner=0), token=TOKEN) as cluster:
        ended = steward("checkup", *urls_of(cluster), *given)
        asked = cluster.requests.all()

    said = ended.err.splitlines()
    assert said[:2] == [f"asking {cluster.admin_urls[0]} who is there", "collecting from the brokers of local"]
    assert said[2].startswith("collected 3/3 brokers, ")
    (kept,) = (tmp_path / "new" / "kept").glob("cluster=local/taken_at=*")
    assert said[-2:] == ["looking for trouble", f"the snapshot is kept at {kept}"]
    assert ended.code == 1
    assert "RESULT: 1 finding to look at" in ended.out
    assert {each.method for each in asked} == {"GET"}
    assert open_snapshot(str(kept)).meta().cluster == "local"
    files = [path for path in kept.rglob("*") if path.is_file()]
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []


def test_the_name_that_was_given_is_the_one_that_counts(steward: Steward, temporary: Path) -> None:
    """For the policy and in the report; how much is looked at is the policy's too; what was read is removed."""
    policy = temporary.parent / "policy.yaml"
    text = "{collect: {drilled_topics: 1}, backlog_quota_missing: {warning_backlog_bytes: 1}}"
    policy.write_text(f"clusters: {{west: {text}}}", encoding="utf-8")
    holes = SubscriptionSpec("s", consumers=1, backlog=9_000, ack_holes=9_000)
    names = NamespaceSpec("acme/orders", topics=(TopicSpec("t", partitions=3, subscriptions=(holes,)),))
    with running_simulator(ClusterSpec(namespaces=(names,))) as cluster:
        ended = steward("checkup", *urls_of(cluster), "--cluster", "west", "--policy", policy)

    assert "Check-up of west (calls itself local)" in ended.out
    assert "WARNING   No backlog quota bounds" in ended.out
    assert "1 suspects on 1 brokers are asked about" in ended.err.splitlines()
    assert "kept at" not in ended.err
    assert list(temporary.iterdir()) == []


def test_the_first_words_do_not_wait_for_an_answer(tmp_path: Path) -> None:
    """Somebody who has just hit enter sees that it began, and whom it asks."""
    said: list[tuple[float, str]] = []
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        cluster.faults.add(Fault(Delay(1.2), path="configuration/runtime"))
        target = Target(urls=cluster.admin_urls, cluster="../up", policy=Policy())
        began = time.monotonic()
        with pytest.raises(ConfigurationError):
            look(target, tmp_path, lambda words: said.append((time.monotonic() - began, words)))
        took = time.monotonic() - began

    assert said[0][1] == f"asking {cluster.admin_urls[0]} who is there"
    assert said[0][0] < 1 < took


def test_who_is_slow_is_told_while_it_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By name, with how long an answer may take by the policy of the cluster, and how many others have answered."""
    monkeypatch.setattr(snapshot, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(snapshot, "diagnose", lambda *_: None)
    policy = Policy.model_validate({"clusters": {"local": {"admin": {"total_timeout_seconds": 77}}}})
    said: list[str] = []
    with running_simulator(ClusterSpec()) as cluster:
        slow = cluster.active_brokers()[1]
        cluster.faults.add(Fault(Delay(2), path="broker-stats", broker_id=slow))
        look(Target(urls=cluster.admin_urls, policy=policy), tmp_path, said.append)

    told = [words for words in said if words.startswith("waiting for ")]
    assert re.fullmatch(rf"waiting for {slow} for \d+ s, an answer may take 77 s; 2 brokers read so far", told[-1])
    assert said.index(told[-1]) < said.index("looking for trouble")


@pytest.mark.parametrize(
    ("slowest", "words"),
    [
        (None, None),
        (("b:1", 0.04), None),
        (("b:1", 0.05), "waiting for b:1 for 0 s, an answer may take 9 s; 1 broker read so far"),
        (("b:1", 61.6), "waiting for b:1 for 62 s, an answer may take 9 s; 1 broker read so far"),
    ],
    ids=["nobody", "quick", "just slow", "slow"],
)
def test_who_is_quick_is_not_told(
    monkeypatch: pytest.MonkeyPatch, slowest: tuple[str, float] | None, words: str | None
) -> None:
    """Who is slow is told again and again; watching ends with what is watched, also where that fails."""
    monkeypatch.setattr(snapshot, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(PendingBrokers, "slowest", lambda _: slowest)
    said: list[str] = []
    waiting, before = PendingBrokers(), threading.active_count()
    waiting.has_answered()

    with suppress(ConfigurationError), snapshot._waiting_told(waiting, 9, said.append):
        time.sleep(0.4)
        raise ConfigurationError("made up")

    assert threading.active_count() == before
    assert set(said) == ({words} if words else set())
    assert (len(said) > 1) is (words is not None)


def test_a_broker_that_is_gone_makes_it_partial(steward: Steward, temporary: Path) -> None:
    """It is told at once, in plain words whatever it is called, and once; warnings of Python's own are not."""
    with running_simulator(ClusterSpec(tc_owner=0), session_s=3600) as cluster:
        gone = cluster.active_brokers()[-1]
        cluster.kill_broker(gone)
        cluster.faults.add(Fault(Answer(403, "no\x1b[2J"), path="/admin/v2/namespaces/public$", times=None))
        ended = steward("checkup", "--admin-url", next(url for url in cluster.admin_urls if gone not in url))

    assert ended.code in {1, 2}
    assert f"broker {gone}: " in ended.out
    assert "PARTIAL: 2 of what the cluster lists could not be read" in ended.out
    assert "Clear (" not in ended.out
    told = [line for line in ended.err.splitlines() if "so the snapshot is partial: " in line]
    assert len(told) == 2
    assert told[0].startswith("public/*: not read, ")
    assert told[0].endswith(": 403 no\\x1b[2J")
    assert gone in told[1]
    assert "\x1b" not in ended.err
    assert logging.getLogger("pulsar_steward.collect").handlers == []
    assert logging.getLogger("pulsar_steward.collect").level == logging.NOTSET


def test_a_cluster_none_of_whose_brokers_can_be_read(steward: Steward, temporary: Path) -> None:
    """Nothing is reported; what to do is, and nothing stays behind."""
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        cluster.faults.add(Fault(Answer(403), path="broker-stats", times=None))
        ended = steward("checkup", *urls_of(cluster))

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].startswith("error: no broker of local could be read: ")
    assert ended.err.splitlines()[-1].endswith("check names, firewalls and the token")
    assert list(temporary.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_told(steward: Steward, tmp_path: Path) -> None:
    """It is no defect of Steward."""
    (tmp_path / "cluster=local").touch()
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        ended = steward("checkup", *urls_of(cluster), "--keep", tmp_path)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].startswith(f"error: {tmp_path}/cluster=local/taken_at=")
    assert ended.err.splitlines()[-1].endswith(": no snapshot can be written there: Not a directory")
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("command", ["checkup", "plan"])
def test_a_spark_looks_where_its_master_is_named(steward: Steward, job: Path, tmp_path: Path, command: str) -> None:
    """The cluster goes by its own name, the policy as JSON, the master to Spark, the token not among the arguments."""
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
    """Who named a master is told in one line what is missing here."""
    if missing == "java":
        monkeypatch.delenv("JAVA_HOME")
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        monkeypatch.setenv("STEWARD_SPARK_APPS", str(tmp_path / "nowhere"))

    ended = steward("checkup", "--admin-url", "http://127.0.0.1:1", "--master", "local[1]")

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert words in ended.err


def test_a_name_that_can_be_no_folder_is_refused() -> None:
    """Before anything is collected."""
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        target = Target(urls=cluster.admin_urls, cluster="../up", policy=Policy())
        with pytest.raises(ConfigurationError, match="--cluster"):
            look(target, Path("nowhere"), lambda _: None)


def test_jobs_that_are_not_there_are_told(tmp_path: Path) -> None:
    """With the variable to set; a checkout has them."""
    assert spark_apps({}) == project_files() / "spark_apps"
    with pytest.raises(ConfigurationError, match=r"has no observe.py: set STEWARD_SPARK_APPS"):
        spark_apps({"STEWARD_SPARK_APPS": str(tmp_path)})


def test_a_machine_without_java_is_told(tmp_path: Path) -> None:
    """In a sentence, not in Spark's words; JAVA_HOME will do."""
    need_java({"JAVA_HOME": "/made/up"})
    with pytest.raises(ConfigurationError, match="version 17"):
        need_java({"PATH": str(tmp_path)})


def test_a_check_without_a_page_has_none() -> None:
    """Whatever is asked for."""
    assert page_of("no-such-check") is None


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_goes_to_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    """Plain lines without a terminal; behind a spinner in one."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")

    with progress() as say:
        say("asking\x1b[2J")

    said = capsys.readouterr()
    assert said.out == ""
    assert ("\x1b[?25l" in said.err) is terminal
    assert (said.err == "asking\\x1b[2J\n") is not terminal


def test_keeping_a_snapshot_needs_a_folder(steward: Steward, tmp_path: Path) -> None:
    """A file in its place is told before anything is asked."""
    (tmp_path / "file").touch()

    ended = steward("checkup", "--admin-url", "http://127.0.0.1:1", "--keep", tmp_path / "file" / "below")

    assert ended.code == 2
    assert "this folder cannot be made" in ended.err


def test_the_module_can_be_run() -> None:
    """Where the script is not installed."""
    command = [sys.executable, "-m", "pulsar_steward.cli", "--version"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - fixed

    assert said.startswith("steward ")
