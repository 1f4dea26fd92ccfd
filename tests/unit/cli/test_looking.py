"""What happens before and around the Spark job, with small scripts in its place."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from lab.simulator import ClusterSpec, running_simulator
from pulsar_steward.cli.failing import JobFailed
from pulsar_steward.cli.jobs import run_job
from pulsar_steward.cli.looking import Target, look, settings_of
from pulsar_steward.cli.places import checkout, need_java, page_of, spark_apps
from pulsar_steward.cli.saying import progress
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Ended

    Steward = Callable[..., Ended]

TOKEN = "made.up-token_of-a.superuser"
LOG = "2026-01-01 00:00:00,000"


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
        f"print('{LOG} INFO steward_spark.progress reading brokers: 1 of 3 tasks done', file=sys.stderr)\n"
        f"print('{LOG} INFO steward_spark.diagnosing tc-skew: clear', file=sys.stderr)\n"
        "print('WARNING: of Java', file=sys.stderr)",
    )
    said: list[str] = []

    assert run_job(script, [], os.environ, said.append) == "made"
    assert said == ["reading brokers: 1 of 3 tasks done"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"print('{LOG} ERROR steward_spark NotAllowed: GET /x: 401', file=sys.stderr); sys.exit(1)",
            "job.py ended with 1: GET /x: 401; give a superuser's token by --token-file",
        ),
        ("print('one\\ntwo', file=sys.stderr); sys.exit(3)", "job.py ended with 3: one / two"),
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
        f"print('{LOG} INFO steward_spark.progress', os.getpid(), child.pid, file=sys.stderr, flush=True)\n"
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
def test_who_does_not_let_us_in_is_told_before_spark_starts(steward: Steward, arguments: list[str], words: str) -> None:
    """No such address, or no token: one line after what was tried."""
    with running_simulator(ClusterSpec(brokers=1), token=TOKEN) as cluster:
        ended = steward("checkup", *(each.replace("URL", cluster.admin_urls[0]) for each in arguments))

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[0].endswith("who is there")
    assert ended.err.splitlines()[1].startswith("error: GET /admin/v2/brokers/configuration/runtime at 127.0.0.1:")
    assert words in ended.err


def test_the_job_is_given_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster goes by its own name, the policy as JSON, the token not among the arguments."""
    a_script(tmp_path, f"open(r'{tmp_path}/said', 'w').write(repr(sys.argv[1:])); print('a/place')", "collect.py")
    monkeypatch.setenv("STEWARD_SPARK_APPS", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "/made/up")
    token = tmp_path / "token"
    token.write_text(TOKEN, encoding="utf-8")
    said: list[str] = []
    with running_simulator(ClusterSpec(brokers=1, cluster="west"), token=TOKEN) as cluster:
        target = Target(urls=cluster.admin_urls, token_file=token, policy=Policy())
        assert look(target, tmp_path / "out", said.append) == "a/place"

    given = (tmp_path / "said").read_text(encoding="utf-8")
    assert f"'--cluster', 'west', '--out', '{tmp_path / 'out'}', '--taken-at', '" in given
    assert "'--diagnose', '--policy-json', '{" in given
    assert TOKEN not in given
    assert said[1:] == ["collecting from the brokers of west"]


def test_a_name_that_can_be_no_folder_is_refused() -> None:
    """Before anything is collected."""
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        target = Target(urls=cluster.admin_urls, cluster="../up", policy=Policy())
        with pytest.raises(ConfigurationError, match="--cluster"):
            look(target, Path("nowhere"), lambda _: None)


def test_jobs_that_are_not_there_are_told(tmp_path: Path) -> None:
    """With the variable to set; a checkout has them."""
    assert spark_apps({}) == checkout() / "spark_apps"
    with pytest.raises(ConfigurationError, match=r"has no collect.py: set STEWARD_SPARK_APPS"):
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
