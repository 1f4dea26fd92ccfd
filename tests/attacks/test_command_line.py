"""Arguments that no person means are refused in one line, and files that are not Steward's stay as they are."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.cli.ledgers import LEDGER
from pulsar_steward.cli.main import run
from pulsar_steward.ledger.halts import halts_in_force
from tests.builders import CLUSTER
from tests.ledgers import ledger_at
from tests.unit.report_checkup.snapshots import skewed, written

if TYPE_CHECKING:
    from collections.abc import Callable

AT = "http://127.0.0.1:1"
NO_TEXT = os.fsdecode(b"ea\xffst")


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty ledger, which commands use."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger_at(url).dispose()
    monkeypatch.setenv(LEDGER, url)
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
    return url


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command says that is refused, in one line."""
    assert run(list(arguments)) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert said.startswith("error: ")
    return said


@pytest.mark.parametrize("reason", [["--reason", os.fsdecode(b"a\xff")], [os.fsdecode(b"--reason=a\xff")]])
def test_a_halt_is_kept_whatever_bytes_its_reason_holds(
    ledger: str, reason: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A halt is kept if its reason, or the name of who halts, holds bytes that are no UTF-8, and shows them escaped."""
    monkeypatch.setenv("LOGNAME", NO_TEXT)
    assert run(["halt", "east", *reason]) == 0
    engine = ledger_at(ledger)
    (halt,) = halts_in_force(engine)
    engine.dispose()
    assert halt.reason == r"a\udcff"
    assert halt.said_by.startswith(r"ea\udcffst at ")


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize(
    "arguments", [("halt", NO_TEXT, "--reason", "x"), ("show", NO_TEXT), ("metrics", f"--cluster={NO_TEXT}")]
)
def test_a_name_of_bytes_that_are_no_text_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    """A name that is no UTF-8 is refused, with its odd bytes escaped."""
    assert r"ea\udcffst is not valid UTF-8" in refused(capsys, *arguments)


@pytest.mark.usefixtures("ledger")
def test_a_number_that_no_row_can_have_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A number that is too high for a database is refused as an argument."""
    assert "has to be 2147483647 or less" in refused(capsys, "questions", "ask-again", "9" * 26, "--reason", "x")


@pytest.mark.parametrize("more", [(), ("--force",)])
def test_a_name_that_the_ledger_cannot_hold_is_not_halted(
    ledger: str, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    """A cluster's name that is longer than any ledger holds is refused, and nothing is halted."""
    assert "has 5,000 characters, and 200 is the most" in refused(capsys, "halt", "x" * 5000, "--reason", "y", *more)
    assert are_halted(ledger) == []


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("arguments", [("policy", "show"), ("policy", "check")])
def test_a_name_that_no_file_can_have_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    """A name that is too long for a file is refused, and named."""
    assert "x is too long for the name of a file" in refused(capsys, *arguments, "x" * 300)


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("airflow", "install", ""), "an argument"),
        (("policy", "check", ""), "an argument"),
        (("policy", "show", "--policy", ""), "--policy"),
        (("checkup", "--admin-url", "http://127.0.0.1:1", "--keep", ""), "--keep"),
        (("checkup", "--admin-url", "http://127.0.0.1:1", "--keep="), "--keep"),
        (("ledger", "export", "--output", ""), "--output"),
    ],
)
def test_an_empty_path_is_not_the_current_folder(
    capsys: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    named: str,
) -> None:
    """An empty path is refused, and nothing is written into the current folder."""
    folder = tmp_path_factory.mktemp("current")
    monkeypatch.chdir(folder)
    assert f"{named} is empty" in refused(capsys, *arguments)
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("cluster", ["west", "nosuch", CLUSTER.upper(), "a b/.."])
@pytest.mark.parametrize("command", ["plan", "checkup"])
def test_a_cluster_that_is_not_the_snapshots_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str, cluster: str
) -> None:
    """A name beside a snapshot of another cluster is refused: what a policy has for that name would not hold."""
    snapshot = written(tmp_path / "snapshot", **skewed())
    said = refused(capsys, command, "--snapshot", snapshot, "--cluster", cluster)
    assert f"--cluster {cluster!r}" in said
    assert f"is of the cluster {CLUSTER!r}" in said
    assert run([command, "--snapshot", snapshot, "--cluster", CLUSTER]) < 2


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "--snapshot", "s", "--keep", "k"), "--keep is about looking at a cluster"),
        (("plan", "--snapshot", "s", "--master", "local"), "--master is about looking at a cluster"),
        (("checkup", "--snapshot", "s", "--front-door"), "--front-door is about looking at a cluster"),
        (("checkup", "--snapshot", "s", "--address-map", f"*:8080={AT}"), "--address-map is about looking at a"),
        (("doctor", "--cluster", "east"), "--cluster is about a cluster, and none is asked"),
        (("doctor", "--token-file", "t"), "--token-file is about a cluster"),
        (("doctor", "--ca-file", "c"), "--ca-file is about a cluster"),
        (("doctor", "--change-client-key", "c"), "--change-client-key is about a cluster"),
        (("doctor", "--change-admin-url", AT), "--change-admin-url is about a cluster"),
        (("halt", "--force"), "which cluster?"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    """An option that a command would not use as it is called is refused, and named."""
    assert words in refused(capsys, *arguments)


def another_database(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")


def some_text(file: Path) -> None:
    file.write_text("root:x:0:0", encoding="utf-8")


@pytest.mark.parametrize("make", [another_database, some_text])
@pytest.mark.parametrize("command", [("ledger", "verify"), ("ledger", "export"), ("show", "p"), ("halt",)])
def test_a_file_that_is_no_ledger_stays_as_it_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, make: Callable[[Path], None], command: tuple[str, ...]
) -> None:
    """A command that is pointed to a file that is no ledger changes neither the file nor its mode."""
    file = tmp_path / "another.db"
    make(file)
    file.chmod(0o644)
    before = (file.read_bytes(), file.stat().st_mode)
    refused(capsys, *command, "--ledger", f"sqlite:///{file}")
    assert (file.read_bytes(), file.stat().st_mode) == before
    assert list(tmp_path.iterdir()) == [file]


def steward(*arguments: str, **streams: Any) -> subprocess.CompletedProcess[str]:
    """A command as a process of its own, with these streams in place of pipes."""
    kept = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run([sys.executable, "-m", "pulsar_steward.cli", *arguments], check=False, text=True, **kept)


def are_halted(ledger: str) -> list[str]:
    engine = ledger_at(ledger)
    halts = halts_in_force(engine)
    engine.dispose()
    return [each.cluster for each in halts]


@pytest.mark.parametrize(
    "arguments",
    [("policy", "show"), ("ledger", "verify"), ("ledger", "export"), ("explain",), ("doctor",), ("schema",)],
)
@pytest.mark.usefixtures("ledger")
def test_a_full_disk_behind_standard_output_is_said_in_one_line(arguments: tuple[str, ...]) -> None:
    """A command whose output cannot be written ends with exit code 2, and one line says so."""
    assert run(["halt", "east", "--reason", "x"]) == 0
    with Path("/dev/full").open("w") as full:
        ended = steward(*arguments, stdout=full)
    assert ended.returncode == 2
    assert ended.stderr == "error: standard output cannot be written: No space left on device\n"


def test_an_error_of_the_output_says_what_was_done(ledger: str) -> None:
    """A halt that is kept, and one that is ended, is said on standard error where standard output cannot be written."""
    with Path("/dev/full").open("w") as full:
        halted = steward("halt", "east", "--reason", "x", stdout=full)
        assert are_halted(ledger) == ["east"]
        resumed = steward("resume", "east", stdout=full)
    assert are_halted(ledger) == []
    assert (halted.returncode, resumed.returncode) == (2, 2)
    assert "this was done all the same: cluster east was halted by" in halted.stderr.splitlines()[-1]
    assert "this was done all the same: the halt of cluster east is over" in resumed.stderr


def test_nothing_is_done_where_standard_output_is_closed(ledger: str) -> None:
    """A command whose standard output is closed says so and does nothing."""
    ended = steward("halt", "east", "--reason", "x", preexec_fn=lambda: os.close(1), stdout=None)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: standard output is closed, and nothing was done")
    assert are_halted(ledger) == []


def test_a_halt_is_told_where_standard_error_cannot_be_written(ledger: str) -> None:
    """A command does not fail by a standard error that cannot be written."""
    with Path("/dev/full").open("w") as full:
        ended = steward("halt", "east", "--reason", "x", stderr=full)
    assert (ended.returncode, are_halted(ledger)) == (0, ["east"])
    assert ended.stdout.startswith("cluster east was halted by")
