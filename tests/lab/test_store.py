"""The state file of a lab."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab import plan
from lab.errors import UnknownLabError
from lab.model import LabSpec, LabState, ProcessId
from lab.store import StateFile


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
