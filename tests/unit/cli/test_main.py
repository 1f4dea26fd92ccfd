"""Exit codes and errors of the command line."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import typer

from pulsar_steward.cli import main as cli_main
from pulsar_steward.cli.errors import in_one_line
from pulsar_steward.errors import (
    BehindFrontDoor,
    BrokenAnswer,
    ClientCertificateWanted,
    HandshakeCut,
    IssuerUnavailable,
    NoAccessToken,
    NobodyAnswered,
    NotAllowed,
    NoTls,
    OnlyFrontDoor,
    OnlyTls,
    PolicyError,
    ProxyFailed,
    ServerError,
    StewardError,
    TimedOut,
    TlsFailed,
    Unreachable,
)
from tests.cases import row_by_row

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Steward


CALL = ("GET", "/admin/v2/brokers", "b:1")


@row_by_row(
    "arguments, words",
    ([], "Usage:"),
    (["policy"], "Usage:"),
    (["ledger"], "Usage:"),
    (["chekup"], "Did you mean 'checkup'?"),
    (["checkup", "--admin-ur", "x"], "No such option: --admin-ur"),
    (["checkup", "extra"], "unexpected extra argument"),
    (["show"], "error: PLAN_ID is missing; "),
)
def test_wrong_arguments_end_with_2(steward: Steward, arguments: list[str], words: str) -> None:
    """Wrong arguments end a command with exit code 2, as 1 would stand for a finding."""
    ended = steward(*arguments)

    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err


COMMANDS = (
    "checkup", "plan", "explain", "show", "halt", "resume", "schema", "metrics", "notify", "policy", "airflow",
    "doctor", "ledger", "ledger verify", "ledger export", "ledger dry-runs", "ledger upgrade", "airflow install",
    "airflow bundle",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(steward: Steward, command: str) -> None:
    """Every command prints its usage with --help."""
    ended = steward(*command.split(), "--help")
    assert (ended.code, ended.out[:6]) == (0, "Usage:")


def test_the_version_is_told(steward: Steward) -> None:
    """By the command, and by the Python module without the installed script."""
    command = [sys.executable, "-m", "pulsar_steward.cli", "--version"]
    by_module = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert steward("--version").out == by_module
    assert by_module.startswith("steward ")


def test_a_defect_ends_with_2_and_its_trace(steward: Steward, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> int:
        raise ZeroDivisionError("made up")

    monkeypatch.setattr(cli_main, "app", broken)

    ended = steward("checkup")

    assert ended.code == 2
    assert "ZeroDivisionError: made up" in ended.err
    assert ended.err.splitlines()[-1].startswith("error: this is a defect")
    assert ended.err.splitlines()[-1].endswith("`steward --version` says to whoever runs Steward for you")


@pytest.mark.parametrize("raised", [typer.Abort(), KeyboardInterrupt()])
def test_an_interruption_ends_with_130(
    steward: Steward, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    """An interrupted command ends with exit code 130, as shells expect."""

    def interrupted(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("pulsar_steward.cli.explain.wrapped", interrupted)
    assert steward("explain").code == 130


@row_by_row(
    "error, words",
    (Unreachable(*CALL, "refused"), "check --admin-url"),
    (TlsFailed(*CALL, "TLS failed: check the certificate"), "--ca-file"),
    (ClientCertificateWanted(*CALL, "TLS failed"), "by --client-cert and --client-key"),
    (HandshakeCut(*CALL, "TLS failed"), "by --client-cert and --client-key, or name the port for https"),
    (NoTls(*CALL, "TLS failed"), "name the port for https"),
    (OnlyTls(*CALL, "TLS only"), "https://"),
    (ProxyFailed(*CALL, "no proxy"), "check --proxy"),
    (BehindFrontDoor(*CALL, "front door"), "--address-map"),
    (OnlyFrontDoor("no broker could be read"), "--address-map"),
    (NoAccessToken(*CALL, "refused"), "--oauth2-file"),
    (IssuerUnavailable(*CALL, "down"), "whoever runs the issuer"),
    (TimedOut(*CALL, "slow"), "a further --admin-url"),
    (NotAllowed(*CALL, "no", 401, "no credentials were sent"), "401 no; no credentials were sent"),
    (BrokenAnswer(*CALL, "no"), "admin port of a Pulsar broker"),
    (ServerError(*CALL, "no", 503), "that broker's log"),
    (NobodyAnswered("no broker could be read: refused"), "refused; every listed broker has to be reachable"),
    (PolicyError("a\n  b"), "a\\n  b"),
)
def test_an_error_is_one_line_with_its_remedy(error: StewardError, words: str) -> None:
    """Each error is told in one line, which says how to solve the problem."""
    line = in_one_line(error)

    assert words in line
    assert "\n" not in line


def test_a_reader_that_goes_away_is_no_defect() -> None:
    """A command whose reader goes away after the first words ends with exit code 2 and prints no trace."""
    command = [sys.executable, "-m", "pulsar_steward.cli", "policy", "show", "--describe"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # A pipe of one page: the rest of what is printed is not in it when it is closed.
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, resource.getpagesize())
        assert os.read(process.stdout.fileno(), 1)
        process.stdout.close()
        said = process.stderr.read()

    assert "Traceback" not in said
    assert process.returncode == 2


def test_the_command_line_loads_neither_airflow_nor_spark_nor_a_writer() -> None:
    """The command line imports no Airflow, Spark or writer, so it cannot change a cluster or approve a change."""
    names = (
        "import json, sys, pulsar_steward.cli.main as cli; group = cli.typer.main.get_command(cli.app);"
        " [group.get_command(None, name) for name in cli.COMMANDS]; print(json.dumps(list(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", names], check=True, capture_output=True, text=True).stdout
    loaded = set(json.loads(output.splitlines()[-1]))

    writers = {"pulsar_steward.pulsar.writer", "pulsar_steward.ledger.outbox", "pulsar_steward.ledger.write"}
    forbidden = {"airflow", "pyspark", "steward_spark", *writers}
    assert forbidden & loaded == set()


def test_the_list_of_commands_says_the_first_sentence_of_each_help() -> None:
    group = typer.main.get_command(cli_main.app)
    assert isinstance(group, cli_main.LazyCommands)
    words = {name: group.get_command(None, name).get_short_help_str(limit=1_000) for name in cli_main.COMMANDS}
    assert words == {name: listed.words for name, listed in cli_main.COMMANDS.items()}


def test_the_list_of_commands_imports_none() -> None:
    """`steward --help` imports neither a command nor a library of one."""
    run = "import sys; from pulsar_steward.cli.main import run\ntry: run(['--help'])\nfinally: print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", run], check=True, capture_output=True, text=True).stdout
    assert "Commands:" in output
    assert {"pydantic", "requests", "pulsar_steward.cli.checkup"} & set(output.splitlines()[-1].split()) == set()


def test_a_checkup_says_its_first_line_before_it_loads_what_the_report_needs() -> None:
    arguments = ["checkup", "--admin-url", "http://127.0.0.1:1"]
    code = f"import sys; from pulsar_steward.cli.main import run; run({arguments}); print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stderr.startswith("asking http://127.0.0.1:1 who is there")

    loaded = set(ended.stdout.splitlines()[-1].split())
    assert {"sqlalchemy", "alembic", "jinja2", "plotly", "rich.markdown"} & loaded == set()
    parts = ("apply", "guards", "ledger", "planners", "report.checkup.charts", "report.checkup.compose")
    assert [name for name in loaded if name.startswith(tuple(f"pulsar_steward.{part}" for part in parts))] == []
