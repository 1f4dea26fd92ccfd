"""Files that Steward keeps are its owner's alone, and no secret stands among a process's arguments."""

from __future__ import annotations

import logging
import os
import stat
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.cli import main
from pulsar_steward.cli.output import written_whole
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.orchestration import home, spark
from pulsar_steward.orchestration.connections import ledger_url
from pulsar_steward.policy.files import policy_file
from tests.builders import NOW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UMASKS = [0o000, 0o002, 0o022, 0o277]
"""From open to all, to one that takes the owner's rights as well."""

OTHER = 65534
"""A user who is not the one that runs the tests, by number."""


@pytest.fixture(params=UMASKS, ids=lambda mask: f"umask {mask:03o}")
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Permissions that this process leaves out when it makes files."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``STEWARD_HOME``, which is not there yet."""
    folder = tmp_path / "steward"
    monkeypatch.setenv("STEWARD_HOME", str(folder))
    monkeypatch.delenv("STEWARD_SNAPSHOTS", raising=False)
    return folder


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):o}"


def modes(folder: Path) -> dict[str, str]:
    return {file.name: mode(file) for file in folder.iterdir() if file.is_file()}


# The folder


@pytest.mark.parametrize("way", [home.home, home.snapshots_uri, ledger_url], ids=lambda way: way.__name__)
def test_the_folder_is_its_owners_alone_from_its_beginning(way: object, place: Path, umask: int) -> None:
    """The folder is made with mode 700 under every umask, by each function that needs it."""
    assert callable(way)
    way()
    assert mode(place) == "700"


@pytest.mark.parametrize("loose", [0o755, 0o770, 0o707, 0o777, 0o750])
def test_a_folder_that_is_open_to_others_is_closed(place: Path, caplog: pytest.LogCaptureFixture, loose: int) -> None:
    """A folder that is open to others gets mode 700, and one warning is logged about it."""
    place.mkdir()
    place.chmod(loose)
    home.home()
    home.home()
    assert mode(place) == "700"
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert str(place) in record.message
    assert "open to others" in record.message


def test_a_folder_that_everybody_shares_is_refused_and_left_as_it_is(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder that everybody may write to, as ``/tmp``, is refused and keeps its mode."""
    place.mkdir()
    place.chmod(0o1777)
    with pytest.raises(ConfigurationError, match=r"everybody may write to .*steward .*a folder of Steward's own"):
        home.home()
    assert mode(place) == "1777"
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("loose", "refused"), [(0o755, False), (0o770, False), (0o700, False), (0o777, True), (0o703, True)]
)
def test_what_another_user_owns_is_left_to_them(
    place: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, loose: int, *, refused: bool
) -> None:
    """A folder of another user keeps its mode; it is refused if all may write to it, or warned of if it is open."""
    place.mkdir()
    place.chmod(loose)
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    for _ in range(3):
        if refused:
            with pytest.raises(ConfigurationError, match="name another one, or have its owner"):
                home.home()
        else:
            home.home()
    assert mode(place) == f"{loose:o}"
    assert len(caplog.messages) == (0 if refused or loose == 0o700 else 1)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that cannot be made is reported as a configuration error with the cause."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path / "file" / "steward"))
    with pytest.raises(ConfigurationError, match="cannot be made or looked at: Not a directory"):
        home.home()


def test_a_file_is_no_folder(place: Path) -> None:
    """A file in place of the folder is refused and keeps its mode."""
    place.touch(0o644)
    with pytest.raises(ConfigurationError, match="is no folder"):
        home.home()
    assert mode(place) == "644"


def test_what_leads_to_the_folder_is_made_as_closed(place: Path, monkeypatch: pytest.MonkeyPatch, umask: int) -> None:
    """Missing folders above the folder are made with mode 700, and one that exists keeps its mode."""
    monkeypatch.setenv("STEWARD_HOME", str(place / "a" / "b"))
    place.mkdir()
    place.chmod(0o755)
    home.home()
    assert [mode(place), mode(place / "a"), mode(place / "a" / "b")] == ["755", "700", "700"]


def test_what_cannot_be_closed_is_warned_of(
    place: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that cannot be closed is used all the same, and one line is logged about it."""

    def refused(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    place.mkdir()
    place.chmod(0o755)
    monkeypatch.setattr("pathlib.Path.chmod", refused)
    home.home()
    (line,) = caplog.messages
    assert "not ours to close" in line


def test_code_for_executors_is_made_and_read_below_a_closed_folder(place: Path) -> None:
    """The archive of code is made below a folder of mode 700, and its owner can read it."""
    package = place.parent / "package"
    package.mkdir()
    (package / "module.py").write_text("", encoding="utf-8")
    archive = spark.code_archive([package], home.home() / "code")
    assert mode(place) == "700"
    assert archive.read_bytes()


# The ledger


def test_a_new_ledger_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    """A new ledger and the files beside it have mode 600 while it is open, under every umask."""
    engine = open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    say(engine, Halt(cluster="east", at=NOW, halted=True, said_by="x", reason="x"))
    found = modes(tmp_path)
    engine.dispose()
    assert found == {"ledger.db": "600", "ledger.db-wal": "600", "ledger.db-shm": "600"}


def test_a_ledger_is_never_open_to_others_while_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new ledger file has mode 600 before its tables are made, even under a umask of 0."""
    seen = []

    def watched(*_: object, **__: object) -> None:
        seen.append(modes(tmp_path))

    monkeypatch.setattr("pulsar_steward.ledger.store._prepare", watched)
    before = os.umask(0)
    try:
        open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}").dispose()
    finally:
        os.umask(before)
    assert seen == [{"ledger.db": "600"}]


@pytest.mark.parametrize("url", ["sqlite:///{}", "sqlite+pysqlite:///{}", "sqlite:///file:{}?uri=true"])
def test_a_ledger_that_is_open_to_others_is_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture, url: str) -> None:
    """A ledger that is open to others gets mode 600, as do the files beside it, with a log line for each."""
    place = url.format(tmp_path / "ledger.db")
    keeping = open_ledger(place)
    say(keeping, Halt(cluster="east", at=NOW, halted=True, said_by="x", reason="x"))
    for file in tmp_path.iterdir():
        file.chmod(0o664)
    caplog.clear()
    open_ledger(place).dispose()
    found = modes(tmp_path)
    keeping.dispose()
    assert found == {"ledger.db": "600", "ledger.db-wal": "600", "ledger.db-shm": "600"}
    assert len(caplog.messages) == 3


@pytest.mark.parametrize("command", [["ledger", "verify"], ["halt"], ["ledger", "upgrade"]])
def test_commands_close_it_too(tmp_path: Path, command: list[str]) -> None:
    """Commands give mode 600 to a ledger that is open to others."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    open_ledger(url).dispose()
    (tmp_path / "ledger.db").chmod(0o644)
    assert main.run([*command, "--ledger", url]) == 0
    assert mode(tmp_path / "ledger.db") == "600"


def test_what_its_owner_may_not_do_either_stays_so(tmp_path: Path) -> None:
    """A read-only ledger that is open to others is closed, and does not become writable."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    open_ledger(url).dispose()
    (tmp_path / "ledger.db").chmod(0o444)
    main.run(["ledger", "verify", "--ledger", url])  # whether SQLite can read it then depends on who runs the tests
    assert mode(tmp_path / "ledger.db") == "400"


@pytest.mark.parametrize(("loose", "refused"), [(0o644, False), (0o666, True)])
def test_a_ledger_of_another_user_counts_only_where_not_everybody_can_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], loose: int, *, refused: bool
) -> None:
    """A ledger of another user is refused if everybody may write to it, and its mode stays as it is."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    open_ledger(url).dispose()
    (tmp_path / "ledger.db").chmod(loose)
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    assert main.run(["ledger", "verify", "--ledger", url]) == (2 if refused else 0)
    assert ("everybody may write to" in capsys.readouterr().err) is refused
    assert mode(tmp_path / "ledger.db") == f"{loose:o}"


@pytest.mark.parametrize(
    "url",
    ["sqlite://", "sqlite:///:memory:", "sqlite:///file::memory:?uri=true", "sqlite:///file:x.db?mode=memory&uri=true"],
)
@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning")
def test_a_ledger_in_memory_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """A ledger in memory makes no file."""
    monkeypatch.chdir(tmp_path)
    open_ledger(url).dispose()
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_that_is_only_read_is_not_touched(tmp_path: Path) -> None:
    """A ledger whose URL opens it read-only keeps its mode."""
    open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}").dispose()
    (tmp_path / "ledger.db").chmod(0o640)
    open_ledger(f"sqlite:///file:{tmp_path / 'ledger.db'}?immutable=1&mode=ro&uri=true", make=False).dispose()
    assert mode(tmp_path / "ledger.db") == "640"


# What others may look at


def test_a_policy_that_may_not_be_looked_at_is_an_error_with_its_remedy(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A policy that may not be looked at is an error, which says that it is for the user that runs Airflow."""

    def shut(path: Path) -> Iterator[Path]:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.iterdir", shut)
    with pytest.raises(ConfigurationError, match="for the user that runs Airflow"):
        policy_file("east")
    assert main.run(["policy", "show", "east"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


# Secrets among arguments

WITH_PASSWORDS = [
    "postgresql+psycopg://u:hush@h/d",
    "postgresql+psycopg://u@h/d?password=hush",
    "postgresql+psycopg://u@h/d?application_name=x&password=hush",
    "postgresql+psycopg://u@h/d?PASSWORD=hush",
    "postgresql+psycopg://u@h/d?sslpassword=hush",
    "postgresql+psycopg://u@h/d?passwd=hush",
    "mssql+pyodbc:///?odbc_connect=DRIVER%3D%7Bx%7D%3BUID%3Du%3BPWD%3Dhush",
]
LEDGER_COMMANDS = ["ledger verify", "ledger export", "ledger dry-runs x", "ledger upgrade"]
QUESTION_COMMANDS = ["questions silent", "questions ask-again 1 --reason x"]
COMMANDS = ["show x", "plan --snapshot x", "halt", "resume east", *QUESTION_COMMANDS, *LEDGER_COMMANDS]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("url", WITH_PASSWORDS)
def test_no_password_is_taken_from_the_arguments(
    command: str, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ledger URL with a password is refused as an argument; the error names the remedy, not the password."""
    monkeypatch.delenv("STEWARD_LEDGER", raising=False)
    assert main.run([*command.split(), "--ledger", url]) == 2
    said = capsys.readouterr()
    assert "hush" not in said.out + said.err
    assert "set STEWARD_LEDGER instead" in said.err
    assert ".pgpass" in said.err


@pytest.mark.parametrize("url", ["postgresql+psycopg://u@127.0.0.1:1/d?passfile=/home/u/.pgpass", "sqlite:///none.db"])
def test_a_url_without_a_password_may_be_an_argument(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A ledger URL that has no password is not refused for having one."""
    assert main.run(["halt", "--ledger", url]) == 2
    assert "holds a password" not in capsys.readouterr().err


def test_a_url_from_the_environment_may_hold_a_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ledger URL with a password is accepted from the environment, and the password is not printed."""
    monkeypatch.setenv("STEWARD_LEDGER", "postgresql+psycopg://u:hush@127.0.0.1:1/d")
    assert main.run(["halt"]) == 2
    said = capsys.readouterr().err
    assert "holds a password" not in said
    assert "the ledger at postgresql" in said
    assert "hush" not in said


def written(file: Path, mode: int | None = None) -> None:
    with written_whole(file, named="it", mode=mode) as target:
        target.write(b"new")


def test_a_file_that_replaces_another_keeps_its_mode(tmp_path: Path) -> None:
    """A file that a command writes anew keeps its permissions, and a new one has those that the umask leaves."""
    file, fresh = tmp_path / "a", tmp_path / "b"
    file.touch(0o640)
    file.chmod(0o640)
    written(file)
    before = os.umask(0o027)
    written(fresh)
    os.umask(before)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (file, fresh)] == [0o640, 0o640]


def test_a_link_stays_a_link_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    """A file that is named by a link is written, and the link stays one."""
    file, link = tmp_path / "a", tmp_path / "link"
    link.symlink_to(file)
    written(link)
    assert (link.is_symlink(), file.read_bytes()) == (True, b"new")


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """A pipe is written to and stays a pipe, as does a device such as `/dev/null`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    written(pipe, 0o644)
    assert os.read(reader, 9) == b"new"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
