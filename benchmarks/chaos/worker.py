"""The worker: carries a batch out, or reads it back, in a process of its own that may be killed at any line."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from sqlalchemy import event, exc

from pulsar_steward.apply.context import ApplyContext, LedgerContext
from pulsar_steward.apply.execute import carry_out
from pulsar_steward.apply.halting import StopSwitch
from pulsar_steward.apply.journal import Journal
from pulsar_steward.apply.verify import verify
from pulsar_steward.errors import Refused, StewardError
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar import exchange
from pulsar_steward.pulsar.settings import AdminSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from sqlalchemy import Connection, Engine

LIBRARY = str(Path(exchange.__file__).parents[1])
LIMIT_SECONDS = 240.0

Line = tuple[str, int]
"""A file of the library (``apply/perform.py``), and a line of it."""

WALKED = ("apply", "ledger")
"""Folders whose lines are tried one by one."""

processes = get_context("forkserver")
processes.set_forkserver_preload(["benchmarks.chaos.worker"])


@dataclass(frozen=True)
class Jump:
    """From its n-th reading on the clock is so many seconds off."""

    reading: int
    seconds: float


@dataclass(frozen=True)
class Outage:
    """The database's server is ended at the n-th commit: right before it, or right after it, its reply lost."""

    commit: int
    moment: Literal["before", "after"]
    server: int


@dataclass(frozen=True)
class Task:
    """Task of a worker, and what is to befall it.

    Attributes:
        what: ``apply`` or ``verify``.
        result: The file that it writes at its end.
        ahead: Seconds that its clock is off from the beginning.
        kill_at: The line at which it is killed, counted from where an intent is written until its outcome is.
        kill_line: The same, named; the first time that it is reached.
        stopped_seconds: It is stopped there instead, for so long.
        given_up: Whether another worker takes over before it goes on.
        walk: Whether it reports the lines that it came by in between.
    """

    what: Literal["apply", "verify"]
    ledger: str
    cluster: str
    plan_id: str
    batch_id: str
    run: str
    urls: tuple[str, ...]
    policy: dict[str, Any]
    proxy: str
    result: Path
    ahead: float = 0
    kill_at: int | None = None
    kill_line: Line | None = None
    stopped_seconds: float | None = None
    given_up: bool = False
    walk: bool = False
    jump: Jump | None = None
    outage: Outage | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Report of a worker at its end.

    Attributes:
        said: Outcomes by step, or what was raised.
        error: The class of what was raised.
        final: Whether Airflow would not try again: all went well, or it was refused.
        happened: Whether what was to befall it did.
    """

    said: list[str]
    error: str | None = None
    final: bool = True
    happened: bool = False
    lines: list[Line] = []


@dataclass
class _Mishaps:
    """Mishaps of this process."""

    task: Task
    lines: int = 0
    armed: bool = False
    readings: int = 0
    commits: int = 0
    happened: bool = field(default=False)
    walked: dict[Line, None] = field(default_factory=dict)

    def clock(self) -> datetime:
        """The present, as far as it can be trusted."""
        self.readings += 1
        ahead, jump = self.task.ahead, self.task.jump
        if jump and self.readings >= jump.reading:
            self.happened = True
            ahead += jump.seconds
        return datetime.now(UTC) + timedelta(seconds=ahead)

    def trace(self, frame: FrameType, what: str, _: object) -> Any:
        """Counts the lines of the library between an intent and its outcome; the chosen one is the last."""
        name = frame.f_code.co_name
        if what == "call" and name == "record_intent":
            self.armed = True
        if what == "return" and name == "record_outcome":
            self.armed = False
        if not frame.f_code.co_filename.startswith(LIBRARY):
            return None
        if what == "line" and self.armed:
            self.lines += 1
            line = str(Path(frame.f_code.co_filename).relative_to(LIBRARY)), frame.f_lineno
            if self.lines == self.task.kill_at or line == self.task.kill_line:
                self.happened = True
                os.kill(os.getpid(), signal.SIGKILL if self.task.stopped_seconds is None else signal.SIGSTOP)
            if line[0].startswith(WALKED):
                self.walked[line] = None
        return self.trace

    def watch(self, engine: Engine) -> None:
        """Ends the database's server at its commit."""
        outage = self.task.outage
        if outage is None:
            return

        @event.listens_for(engine, "commit")
        def committing(_: Connection) -> None:
            self.commits += 1
            if self.commits == outage.commit and outage.moment == "before":
                self._end_server(outage.server)

        commit = engine.dialect.do_commit

        def do_commit(connection: Any) -> None:
            commit(connection)
            if self.commits == outage.commit and outage.moment == "after":
                self._end_server(outage.server)
                raise exc.OperationalError("COMMIT", None, ConnectionError("the server went away"))

        engine.dialect.do_commit = do_commit  # type: ignore[method-assign,assignment]  # there is no event after a commit

    def _end_server(self, pid: int) -> None:
        self.happened = True
        os.kill(pid, signal.SIGQUIT)  # "immediate": as a crash
        while Path(f"/proc/{pid}").exists() and _state(pid) not in {"Z", "X"}:
            time.sleep(0.01)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _is_stopped(pid: int) -> bool:
    """Waits until a worker is stopped, or is over without having been."""
    while (state := _state(pid)) not in {"T", "Z", "X"}:
        time.sleep(0.05)
    return state == "T"


def run(task: Task, meanwhile: Callable[[], None] = lambda: None) -> Report | None:
    """Runs a worker to its end; None: it was killed.

    Args:
        task: What it does.
        meanwhile: Done while it is stopped, if that is what befalls it.
    """
    task.result.unlink(missing_ok=True)
    child = processes.Process(target=work, args=(task,))
    child.start()
    if task.stopped_seconds is not None and _is_stopped(child.pid or 0):
        until = time.monotonic() + task.stopped_seconds
        meanwhile()
        time.sleep(max(until - time.monotonic(), 0))
        os.kill(child.pid or 0, signal.SIGCONT)
    child.join(LIMIT_SECONDS)
    if child.is_alive():
        child.kill()
        child.join()
        return Report(said=[f"it took longer than {LIMIT_SECONDS:.0f} s"], error="Hung", final=True)
    if not task.result.exists():
        return None
    return msgspec.json.decode(task.result.read_bytes(), type=Report)


def work(task: Task) -> None:
    """Runs the worker's task; the process ends without atexit handlers, as tasks do that are killed."""
    sys.stderr = sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for the process's length
    mishaps = _Mishaps(task)
    report = _worked(task, mishaps)
    report = msgspec.structs.replace(report, happened=mishaps.happened, lines=list(mishaps.walked))
    task.result.write_bytes(msgspec.json.encode(report))


def _worked(task: Task, mishaps: _Mishaps) -> Report:
    policy = Policy.model_validate(task.policy)
    settings = AdminSettings(urls=task.urls, limits=policy.admin)
    _detoured(task.proxy)
    if task.kill_at is not None or task.kill_line is not None or task.walk:
        sys.settrace(mishaps.trace)
    try:
        engine = open_ledger(task.ledger)
        mishaps.watch(engine)
        ledger, writer = LedgerReader(engine), LedgerWriter(engine)
        ledger_context = LedgerContext(
            cluster=task.cluster,
            run=task.run,
            ledger=ledger,
            ledger_writer=writer,
            journal=Journal(writer, task.cluster),
            policy=policy,
            clock=mishaps.clock,
        )
        with ledger_context.applying(settings, StopSwitch(ledger, task.cluster)) as context:
            return _done(task, context)
    except Refused as refusal:
        return Report(said=[str(refusal)], error="Refused")
    except StewardError as error:
        return Report(said=[str(error)], error=type(error).__name__, final=False)
    except Exception as error:  # whatever it is, Airflow would try again
        return Report(said=[repr(error)], error="Defect", final=False)


def _done(task: Task, context: ApplyContext) -> Report:
    if task.what == "verify":
        proof = verify(context, task.plan_id, task.batch_id)
        return Report(said=["proved" if proof.proved else "not proved", proof.reason])
    outcomes = carry_out(context, task.plan_id, task.batch_id)
    return Report(said=[f"{row.step_id} {row.outcome.value}: {row.reason}" for row in outcomes])


def _detoured(proxy: str) -> None:
    """Sends this process's requests by way of the proxy."""

    class Session(exchange._Session):  # noqa: SLF001 - this process is Steward's, with another way to the brokers
        def __init__(self) -> None:
            super().__init__()
            self.proxies = {"http": proxy}

    exchange._Session = Session  # type: ignore[misc]  # noqa: SLF001 - as above
