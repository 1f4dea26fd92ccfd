"""Processes of the operating system: started, paused and ended, and never mistaken for others."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lab import process
from lab.errors import PartFailedError
from lab.model import ProcessId
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
