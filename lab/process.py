"""Starting and ending operating-system processes by pid *and* start time, so that a recycled pid is never signalled."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from lab.errors import PartFailedError
from lab.model import ProcessId

TIED = Path(__file__).with_name("tied.py")
POLL_S = 0.05
LOG_LINES_SHOWN = 15
# Letters of proc(5) and ps(1): zombies and the dead; and what is said here of those with threads left.
ENDED, EXITING = "ZX", "D"

Condition = Literal["running", "paused", "gone"]

# Handles of our own children, so that they can be reaped and are not reported as forgotten while they run.
_children: dict[int, subprocess.Popen[bytes]] = {}


def spawn(command: Sequence[str], log: Path, *, tied: bool, env: Mapping[str, str] | None = None) -> ProcessId:
    """Starts a process in a session of its own with all its output going to ``log``.

    A tied process gets SIGKILL when the *thread* that called this ends (Linux' PR_SET_PDEATHSIG): call it from the
    main thread, or from one that outlives the lab.
    """
    child = _started(command, log, tied=tied, env=env)
    _children[child.pid] = child
    seen = _look(child.pid)
    if seen is None:
        raise PartFailedError(f"{command[0]} ended at once; its output is in {log}")
    return ProcessId(child.pid, seen[1])


def run(command: Sequence[str], log: Path, within_s: float, *, env: Mapping[str, str] | None = None) -> None:
    """Runs a command to its end, and ends it on any way out of here.

    Raises:
        PartFailedError: It failed, or took too long.
    """
    child = _started(command, log, tied=True, env=env)
    try:
        code = child.wait(within_s)
    except subprocess.TimeoutExpired:
        raise PartFailedError(f"not done after {within_s:.0f} s:\n{tail(log)}") from None
    finally:
        child.kill()
        child.wait()
    if code != 0:
        raise PartFailedError(f"ended with exit code {code}:\n{tail(log)}")


def tail(log: Path) -> str:
    """The last lines of a log, under its name."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    return "\n  ".join([f"the end of {log}:", *lines])


def condition(process: ProcessId | None) -> Condition:
    """Tells whether the process runs, is paused, or is gone (a zombie is gone)."""
    if process is None:
        return "gone"
    if (child := _children.get(process.pid)) is not None and child.poll() is not None:
        _children.pop(process.pid, None)
    seen = _look(process.pid)
    if seen is None or seen[1] != process.started or seen[0] in ENDED:
        return "gone"
    return "paused" if seen[0] in "Tt" else "running"


def send(process: ProcessId, number: signal.Signals) -> None:
    """Signals the process's group, unless the process is gone."""
    if condition(process) != "gone":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def end(processes: Iterable[ProcessId | None], grace_s: float) -> None:
    """Ends processes side by side: SIGTERM (paused ones are resumed for it), and SIGKILL once the grace is over."""
    mine = [process for process in processes if process is not None]
    for process in mine:
        send(process, signal.SIGTERM)
        send(process, signal.SIGCONT)
    if not _all_gone(mine, grace_s):
        kill(mine)


def kill(processes: Iterable[ProcessId | None]) -> None:
    """SIGKILL, and waits until they are gone."""
    mine = [process for process in processes if process is not None]
    for process in mine:
        send(process, signal.SIGKILL)
    if not _all_gone(mine, 10):
        pids = ", ".join(str(process.pid) for process in mine if condition(process) != "gone")
        raise PartFailedError(f"processes {pids} outlived SIGKILL: look at them with `ps`")


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Holds SIGINT and SIGTERM back while a process is started *and* written down, so that none is ever left unknown.

    Does nothing outside the main thread, where Python delivers no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[signal.Signals] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda number, _frame: held.append(signal.Signals(number)))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in held:
            signal.raise_signal(number)


def _started(
    command: Sequence[str], log: Path, *, tied: bool, env: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    shim = [sys.executable, "-I", "-S", str(TIED), str(os.getpid())] if tied else []
    with log.open("ab") as output:
        return subprocess.Popen(
            [*shim, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=env,
        )


def _all_gone(processes: Sequence[ProcessId], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while any(condition(process) != "gone" for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _look(pid: int) -> tuple[str, str] | None:
    """The one-letter state and the start time of a pid, or None."""
    if not sys.platform.startswith("linux"):
        return _ask_ps(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # proc(5): the name in parentheses may hold anything, so fields are counted behind the last one.
    fields = stat.rpartition(")")[2].split()
    state, threads, started = fields[0], int(fields[17]), fields[19]
    # The first thread is a zombie at once, while others may still be dying and hold the process's ports.
    return (EXITING if state in ENDED and threads > 1 else state), started


def _ask_ps(pid: int) -> tuple[str, str] | None:
    answer = subprocess.run(
        ["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split(maxsplit=1)
    return (answer[0][0], answer[1].strip()) if answer else None
