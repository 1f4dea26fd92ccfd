"""A start that fails, or is broken off, leaves nothing behind; a script stands in for Java."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab import process
from lab.cluster import Lab
from lab.errors import LabExistsError, PartFailedError, PortTakenError
from lab.model import ProcessId
from lab.store import StateFile
from lab.waiting import wait_until

PROJECT = Path(__file__).parents[2]
OWNED = "from lab.cluster import running_lab\nwith running_lab('lab'): pass"

Java = Callable[[str], None]


def zookeeper(home: Path) -> ProcessId | None:
    """The process of ZooKeeper in the lab ``lab``, as written down."""
    store = StateFile(home / "lab" / "state.json")
    return store.read().zookeeper.process if store.exists() else None


@contextlib.contextmanager
def starting(home: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Another Python that starts a lab in ``home``, in a state in which ZooKeeper runs and does not serve yet."""
    environment = os.environ | {"STEWARD_LAB_HOME": str(home)}
    starter = subprocess.Popen([sys.executable, *arguments], cwd=PROJECT, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: zookeeper(home) is not None, "ZooKeeper is written down", 30)
        yield starter
    finally:
        starter.terminate()
        starter.wait(30)


def test_a_part_that_dies_shows_the_end_of_its_log(java: Java, tmp_path: Path) -> None:
    java("echo No space left on device; exit 1")
    with pytest.raises(PartFailedError, match=r"(?s)zookeeper died .*zookeeper\.log:.*No space left on device"):
        Lab.start(home=tmp_path)
    assert {path.name for path in (tmp_path / "lab").iterdir()} == {"conf", "log"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_start_that_is_broken_off_leaves_nothing_running(java: Java, tmp_path: Path, number: signal.Signals) -> None:
    java("exec sleep 300")
    with starting(tmp_path, "-m", "lab", "start") as starter:
        started = zookeeper(tmp_path)
        starter.send_signal(number)
        assert starter.wait(30) != 0
    assert process.condition(started) == "gone"
    assert not StateFile(tmp_path / "lab" / "state.json").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to its parent")
def test_a_tied_lab_dies_with_a_killed_owner(java: Java, tmp_path: Path) -> None:
    java("exec sleep 300")
    with starting(tmp_path, "-c", OWNED) as owner:
        started = zookeeper(tmp_path)
        owner.kill()
    wait_until(lambda: process.condition(started) == "gone", "ZooKeeper is gone", 10)
    java("exit 1")
    with pytest.raises(PartFailedError):
        Lab.start(home=tmp_path)


def test_a_running_lab_is_not_started_over(java: Java, tmp_path: Path) -> None:
    java("exec sleep 300")
    with starting(tmp_path, "-m", "lab", "start") as starter:
        with pytest.raises(LabExistsError, match="`python -m lab stop --name lab` ends it"):
            Lab.start(home=tmp_path)
        assert starter.poll() is None


def test_a_taken_port_is_found_before_anything_is_started(java: Java, tmp_path: Path) -> None:
    """The error about a requested port in use names the port and the part that wanted it, and no folder is made."""
    java("exit 1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"port {port} .*wanted for ZooKeeper"):
            Lab.start(home=tmp_path, base_port=port)
    assert not (tmp_path / "lab").exists()
