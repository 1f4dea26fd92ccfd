"""A PostgreSQL server of one's own on loopback, where PostgreSQL is installed: for Airflow and the ledger."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from lab import ports, process
from lab.errors import PartFailedError
from lab.model import ProcessId
from lab.waiting import wait_until

USER = "steward"
START_S = 60.0
GRACE_S = 20.0


class Postgres(msgspec.Struct, frozen=True):
    """A running server.

    Attributes:
        port: On 127.0.0.1.
        password: Of the user ``steward``, made anew for each server.
    """

    port: int
    password: str

    def url(self, database: str = "postgres", driver: str = "postgresql+psycopg") -> str:
        """An SQLAlchemy URL."""
        return f"{driver}://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"


def binaries() -> Path | None:
    """The folder with ``initdb`` and ``postgres``, the newest there is; None where there is none."""
    on_path = shutil.which("postgres")
    found = [Path(on_path).resolve().parent] if on_path else []
    installed = Path("/usr/lib/postgresql")
    found += sorted(installed.glob("*/bin"), key=lambda folder: folder.parent.name, reverse=True)
    return next((folder for folder in found if (folder / "initdb").exists()), None)


class PostgresProcess:
    """One server's program, which may be started again after it was ended from outside.

    Args:
        command: With its folder of data.
        log: Where its output goes.
    """

    def __init__(self, command: list[str], log: Path) -> None:
        self._command = command
        self._log = log
        self._running: ProcessId | None = None

    @property
    def pid(self) -> int:
        """Id of the server's first process; when it ends, so do all others.

        Raises:
            PartFailedError: It does not run.
        """
        if self._running is None or process.condition(self._running) == "gone":
            raise PartFailedError(f"PostgreSQL does not run:\n{process.tail(self._log)}")
        return self._running.pid

    def start(self) -> None:
        """Starts it where it does not run, and returns once it takes connections."""
        if self._running is not None and process.condition(self._running) != "gone":
            return
        self._log.write_bytes(b"")
        running = self._running = process.spawn(self._command, self._log, tied=True)
        wait_until(lambda: _ready(self._log, running), "PostgreSQL is ready", START_S)

    def stop(self) -> None:
        """Ends it, if it runs."""
        if self._running is not None:
            process.send(self._running, signal.SIGINT)  # "fast": clients are cut off
            process.end([self._running], GRACE_S)


@contextmanager
def running_postgres(folder: Path) -> Iterator[Postgres]:
    """A fresh server on a free port, for the length of a ``with`` block; see `restartable_postgres`."""
    with restartable_postgres(folder) as (server, _):
        yield server


@contextmanager
def restartable_postgres(folder: Path) -> Iterator[tuple[Postgres, PostgresProcess]]:
    """The same with its program at hand.

    Args:
        folder: Where the programs are, as `binaries` finds them.

    Raises:
        PartFailedError: It did not come up; the end of its log is in the message.
    """
    with tempfile.TemporaryDirectory(prefix="steward-pg-") as home:
        server = Postgres(ports.Ports(None).take(ports.LOOPBACK, "PostgreSQL"), os.urandom(12).hex())
        data, secret, log = Path(home, "data"), Path(home, "password"), Path(home, "log")
        secret.write_text(server.password, encoding="utf-8")
        log.touch()
        if os.geteuid() == 0:
            for path in (Path(home), secret, log):
                shutil.chown(path, "nobody", "nogroup")
        options = ["-U", USER, "-A", "scram-sha-256", "--pwfile", str(secret)]
        process.run([*_as_user(), str(folder / "initdb"), "--no-sync", "-D", str(data), *options], log, START_S)
        listening = ["-h", "127.0.0.1", "-p", str(server.port), "-k", "", "-c", "max_connections=200"]
        program = PostgresProcess([*_as_user(), str(folder / "postgres"), "-F", "-D", str(data), *listening], log)
        try:
            program.start()
            yield server, program
        finally:
            program.stop()


def _ready(log: Path, running: ProcessId) -> bool:
    if process.condition(running) == "gone":
        raise PartFailedError(f"PostgreSQL ended:\n{process.tail(log)}")
    return b"ready to accept connections" in log.read_bytes()


def _as_user() -> list[str]:
    """PostgreSQL refuses to be run by root; a change of user unties a process, so it is tied anew."""
    other = ["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--pdeathsig", "QUIT"]
    return ["setpriv", *other] if os.geteuid() == 0 else []


def create_database(folder: Path, server: Postgres, name: str) -> None:
    """Makes one more database."""
    environment = {**os.environ, "PGPASSWORD": server.password}
    command = [str(folder / "createdb"), "-h", "127.0.0.1", "-p", str(server.port), "-U", USER, name]
    subprocess.run(command, check=True, capture_output=True, env=environment)
