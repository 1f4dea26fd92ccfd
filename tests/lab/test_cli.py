"""The command line, as whoever types it sees it."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from lab import cli, plan
from lab.cli import app
from lab.errors import UnknownLabError
from lab.model import LabSpec, LabState, ProcessId
from lab.store import StateFile


class Ended(NamedTuple):
    """Exit code and output of a command that ended."""

    code: object
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs ``python -m lab`` with these arguments in this process, the labs being in ``tmp_path / "labs"``."""
    for name, value in (("STEWARD_LAB_HOME", str(tmp_path / "labs")), ("NO_COLOR", "1"), ("COLUMNS", "200")):
        monkeypatch.setenv(name, value)

    def ended(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as end:
            cli.run(list(arguments))
        said = capsys.readouterr()
        return Ended(end.value.code, said.out, said.err)

    return ended


@pytest.fixture
def ended(tmp_path: Path) -> None:
    """The lab ``lab``, all of whose processes have ended without anybody writing that down."""
    home = tmp_path / "labs" / "lab"
    home.mkdir(parents=True)
    StateFile(home / "state.json").write(plan.new_state(LabSpec(name="lab")))


def test_help_lists_the_commands(command: Command) -> None:
    listed = command("--help").out.partition(" Commands ")[2]
    registered = {
        each.name or each.callback.__name__.replace("_", "-") for each in app.registered_commands if each.callback
    }
    assert set(re.findall(r"^\W ([a-z-]+) ", listed, re.MULTILINE)) == registered
    assert {"start", "stop", "status", "pile-up-tcs", "simulate"} <= registered


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["status"], "no lab 'lab' in "),
        (["stop", "--name", "other"], "no lab 'other' in "),
        (["start", "--setting", "novalue"], "--setting 'novalue': write KEY=VALUE"),
        (["start", "--broker-version", "4.0.7"], "--broker-version '4.0.7': write NUMBER=VERSION"),
        (["start", "--pulsar-version", "1.0"], "choose one of 4.0.7, 4.2.4, 5.0.1, 3.3.2, 3.0.7, 2.10.4"),
        (["start", "--name", "a/b"], "lab name 'a/b'"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_1(command: Command, arguments: list[str], message: str) -> None:
    ran = command(*arguments)
    assert ran.code == 1
    assert ran.err.startswith("error: ")
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["start", "--auth", "password"], ["start", "--brokers", "0"], ["mend"]])
def test_what_is_mistyped_is_exit_code_2(command: Command, arguments: list[str]) -> None:
    assert command(*arguments).code == 2


def test_missing_programs_are_named(no_programs: None, command: Command) -> None:
    ran = command("start")
    assert ran.code == 1
    assert "`java` is not on the PATH" in ran.err
    assert "`mvn` is not on the PATH" in ran.err


def test_a_lab_that_died_can_still_be_looked_at(ended: None, command: Command) -> None:
    seen = json.loads(command("status", "--json").out)
    assert [part["state"] for part in seen["parts"]] == ["gone"] * 5
    assert [part["name"] for part in seen["parts"]][:3] == ["zookeeper", "bookie", "broker-1"]
    assert {part["bundles"] for part in seen["parts"][2:]} == {None}
    assert "broker-3" in command("status").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kill-broker", "broker-1"], "broker-1 (127.0.0.1:"),
        (["kill-broker", "broker-9"], "no broker 'broker-9' in lab 'lab': it has 127.0.0.1:"),
        (["resume-broker", "broker-2"], "is gone, not paused"),
        (["pile-up-tcs"], "no broker of lab 'lab' is running"),
    ],
)
def test_a_broker_in_the_wrong_state_is_named(
    ended: None, command: Command, arguments: list[str], message: str
) -> None:
    ran = command(*arguments)
    assert ran.code == 1
    assert message in ran.err


def test_a_lab_that_died_can_be_stopped(ended: None, command: Command, tmp_path: Path) -> None:
    """A lab whose processes died can be stopped, and is no longer known afterwards."""
    assert command("stop").code == 0
    assert "no lab 'lab'" in command("status").err


@pytest.fixture
def state() -> LabState:
    """A lab of six brokers that does not run."""
    return plan.new_state(
        LabSpec(name="a", brokers=6, auth="token", broker_settings={"key": "value"}, broker_versions={2: "5.0.1"})
    )


@pytest.fixture
def store(tmp_path: Path, state: LabState) -> StateFile:
    """State file of the lab, already written."""
    store = StateFile(tmp_path / "state.json")
    store.write(state)
    return store


def test_what_was_written_is_read(store: StateFile, state: LabState) -> None:
    assert store.read() == state


def test_changes_made_at_once_are_all_kept(store: StateFile, state: LabState) -> None:
    def started(number: int) -> None:
        store.change(lambda state: state.with_process(f"broker-{number}", ProcessId(number, "then")))

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(started, range(1, 7)))
    assert [broker.process for broker in store.read().brokers] == [ProcessId(n, "then") for n in range(1, 7)]


@pytest.mark.parametrize("name", ["zookeeper", "bookie", "broker-2"])
def test_a_part_is_changed_alone(state: LabState, name: str) -> None:
    changed = state.with_process(name, ProcessId(1, "then"))
    assert [part.name for part in changed.parts if part.process is not None] == [name]


def test_no_file_is_no_lab(tmp_path: Path) -> None:
    with pytest.raises(UnknownLabError, match=r"no lab 'b' in .*`python -m lab start` starts one"):
        StateFile(tmp_path / "b" / "state.json").read()


@pytest.mark.parametrize("content", ["", "{}", '{"spec": 1}', "not json"])
def test_a_file_that_is_no_state_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UnknownLabError, match=r"state\.json cannot be read .*remove it"):
        StateFile(path).read()


def test_a_removed_state_leaves_nothing(store: StateFile, tmp_path: Path) -> None:
    store.change(lambda state: state)
    store.remove()
    assert not store.exists()
    assert list(tmp_path.iterdir()) == []
