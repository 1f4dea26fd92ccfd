"""Processes of the operating system: started, paused, ended, never mistaken for others; a failed start leaves none."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from lab import process
from lab.cluster import Lab
from lab.errors import LabExistsError, PartFailedError, PortTakenError
from lab.model import ProcessId
from lab.spark_cluster import running_spark
from lab.store import StateFile
from lab.testing import need_java
from lab.waiting import wait_until

SLEEP = ["sleep", "300"]
STUBBORN = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """File for the output of a process."""
    return tmp_path / "part.log"


@pytest.fixture
def sleeper(log: Path) -> Iterator[ProcessId]:
    """A process that does nothing, for long."""
    started = process.spawn(SLEEP, log, tied=False)
    yield started
    process.kill([started])


def test_a_process_pauses_and_resumes(sleeper: ProcessId) -> None:
    assert process.condition(sleeper) == "running"
    process.send(sleeper, signal.SIGSTOP)
    wait_until(lambda: process.condition(sleeper) == "paused", "it is paused", 5)
    process.send(sleeper, signal.SIGCONT)
    wait_until(lambda: process.condition(sleeper) == "running", "it runs again", 5)


def test_a_paused_process_ends_without_waiting_for_the_grace(sleeper: ProcessId) -> None:
    """A paused process is gone long before the grace period is over, as it is resumed to receive SIGTERM."""
    process.send(sleeper, signal.SIGSTOP)
    wait_until(lambda: process.condition(sleeper) == "paused", "it is paused", 5)
    began = time.monotonic()
    process.end([sleeper], grace_s=60)
    assert time.monotonic() - began < 30
    assert process.condition(sleeper) == "gone"


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(log: Path) -> None:
    stubborn = process.spawn(STUBBORN, log, tied=False)
    wait_until(lambda: "ready" in log.read_text(encoding="utf-8"), "it ignores SIGTERM", 5)
    process.end([stubborn], grace_s=0.2)
    assert process.condition(stubborn) == "gone"


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for a thread's end")
def test_a_process_is_there_until_its_last_thread_ended(log: Path) -> None:
    code = (
        "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(300,)).start();"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    headless = process.spawn([sys.executable, "-c", code], log, tied=False)
    try:
        stat = Path(f"/proc/{headless.pid}/stat")
        wait_until(lambda: ") Z " in stat.read_text(encoding="utf-8"), "its first thread is a zombie", 10)
        assert process.condition(headless) == "running"
    finally:
        process.kill([headless])
    assert process.condition(headless) == "gone"


def test_a_later_process_with_the_same_pid_is_left_alone(sleeper: ProcessId) -> None:
    """A pid that was given to another process since is neither seen as ours nor signalled."""
    former = replace(sleeper, started="1")
    process.end([former], grace_s=0)
    process.kill([former])
    assert process.condition(former) == "gone"
    assert process.condition(sleeper) == "running"


def test_a_part_that_was_never_started_is_gone() -> None:
    assert process.condition(None) == "gone"
    process.end([None], grace_s=60)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to its parent")
def test_a_tied_process_dies_with_its_owner(log: Path) -> None:
    code = (
        "import sys, pathlib, signal; from lab import process;"
        "started = process.spawn(sys.argv[2:], pathlib.Path(sys.argv[1]), tied=True);"
        "print(started.pid, started.started, flush=True); signal.pause()"
    )
    arguments = [sys.executable, "-c", code, str(log), *SLEEP]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as owner:
        try:
            assert owner.stdout is not None
            pid, started = owner.stdout.readline().split()
            tied = ProcessId(int(pid), started)
            assert process.condition(tied) == "running"
        finally:
            owner.kill()
    wait_until(lambda: process.condition(tied) == "gone", "the tied process is gone", 10)


def test_signals_wait_while_a_process_is_written_down() -> None:
    seen: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append("delivered"))
    try:
        with process.uninterrupted():
            os.kill(os.getpid(), signal.SIGTERM)
            seen.append("written down")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == ["written down", "delivered"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo out of luck; exit 3", r"(?s)exit code 3:.*part\.log:.*out of luck"),
        ("sleep 300", r"(?s)not done after 0 s:.*part\.log:.*begun before"),
    ],
)
def test_a_command_that_fails_shows_the_end_of_its_log(log: Path, script: str, message: str) -> None:
    # Not by the command, which may get to write nothing in so short a time.
    log.write_text("begun before\n", encoding="utf-8")
    with pytest.raises(PartFailedError, match=message):
        process.run(["sh", "-c", script], log, within_s=0.4 if "sleep" in script else 30)


def test_only_the_end_of_a_long_log_is_shown(log: Path) -> None:
    """A log of a thousand lines is cut to its last ones."""
    log.write_text("\n".join(f"line {number}" for number in range(1000)), encoding="utf-8")
    shown = process.tail(log)
    assert len(shown.splitlines()) == process.LOG_LINES_SHOWN + 1
    assert shown.endswith("line 999")


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


PARTS = ("org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker")


@pytest.mark.spark
def test_a_cluster_that_does_not_come_up_leaves_nothing(tmp_path: Path) -> None:
    need_java()
    with (
        pytest.raises(PartFailedError, match="Spark's worker-1 ended"),
        running_spark(tmp_path, workers=1, memory_mb=0),
    ):
        pytest.fail("a worker without memory cannot start")
    assert not [command for command in commands() if any(part in command for part in PARTS)]


def commands() -> Iterator[str]:
    """The command lines of all processes below this one; Spark's of other tests are among them."""
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it ended meanwhile
            yield " ".join(each.cmdline())
