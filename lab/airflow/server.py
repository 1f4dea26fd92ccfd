"""Airflow's parts as processes of our own, all of them ended with the block, their children too."""

import contextlib
import json
import secrets
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil

from lab import ports, postgres, process
from lab.airflow.rest import AirflowApi
from lab.airflow.settings import USERS, AirflowSpec, environment
from lab.errors import NotReachedError, PartFailedError
from lab.model import ProcessId
from lab.waiting import wait_until

READY_WITHIN_S = 180.0
MIGRATED_WITHIN_S = 180.0
MIGRATED = ("Database migration done", "Database migrating done")
"""Last words of `airflow db migrate`; the second ones are those before Airflow 3.2."""
ENDED = "Received executor event with state success for task instance"
"""Words of a scheduler about a task's process that has ended, be it with a result or because the task waits."""
GRACE_S = 10.0
PARTS = ("api-server", "scheduler", "dag-processor")


class Airflow:
    """A running Airflow.

    Attributes:
        spec: What was asked for.
        api: Its REST API, as the first user.
    """

    def __init__(self, spec: AirflowSpec, passwords: Mapping[str, str]) -> None:
        self.spec = spec
        self._passwords = dict(passwords)
        self._processes: dict[str, ProcessId] = {}
        self._environment: dict[str, str] = {}
        self.api = self.api_as(next(iter(spec.users)))

    @property
    def passwords(self) -> dict[str, str]:
        """User to password, for the pages' login."""
        return dict(self._passwords)

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that its parts run with, for a command beside them."""
        return dict(self._environment)

    def api_as(self, user: str) -> AirflowApi:
        """The REST API as one of the users."""
        return AirflowApi(self.spec.url, user, self._passwords[user], self._has_noticed)

    def log(self, part: str) -> Path:
        """The log of one of `PARTS`, or of ``migrate``."""
        return self.spec.home / "parts" / f"{part}.log"

    def _has_noticed(self, task: Mapping[str, Any]) -> bool:
        """True once a scheduler's log says that the process of a task instance's last attempt has ended."""
        attempt = f"try_number={task['try_number']}, map_index={task['map_index']})"
        key = f"task_id='{task['task_id']}', run_id='{task['dag_run_id']}', {attempt}"
        logs = self.log("scheduler").parent.glob("*scheduler*.log")
        lines = (line for log in logs for line in log.read_text(encoding="utf-8", errors="replace").splitlines())
        return any(ENDED in line and key in line for line in lines)

    def migrate(self) -> None:
        """Begins to make the database, and returns at once."""
        self.log("migrate").parent.mkdir(parents=True, exist_ok=True)
        self._processes["migrate"] = self._spawned("migrate", "db", "migrate", settings=environment(self.spec))

    def start(self, settings: Mapping[str, str]) -> None:
        """Starts every part once the database is there, and returns when the pages answer.

        Args:
            settings: More environment variables, connections among them.

        Raises:
            PartFailedError: A part did not come up; the end of its log is in the message.
        """
        self._await_migration()
        self._environment = {**environment(self.spec), **settings}
        for part in (*PARTS, "triggerer") if self.spec.triggerer else PARTS:
            self._processes[part] = self._spawned(part, part, settings=self._environment)
        try:
            wait_until(self._ready, "Airflow answers", READY_WITHIN_S, every_s=0.5)
        except NotReachedError as error:
            raise PartFailedError(f"{error}:\n{process.tail(self.log('api-server'))}") from error

    def part(self, name: str) -> ProcessId:
        """The process of one of `PARTS`, or of a further scheduler; it may be gone."""
        return self._processes[name]

    def start_scheduler(self, name: str = "scheduler", **settings: str) -> None:
        """Starts one more scheduler, or the one again that is gone, and returns at once.

        Args:
            name: What to call it, for `part` and `log`.
            **settings: Environment variables in which it differs from the other parts.
        """
        together = {**self._environment, **settings}
        self._processes[name] = self._spawned(name, "scheduler", "--skip-serve-logs", settings=together)

    def end_part(self, name: str) -> None:
        """Ends one part and whatever it started."""
        _end([self._processes.pop(name)])

    def stop(self) -> None:
        """Ends every part and whatever it started."""
        self.api.close()
        _end(self._processes.values())
        self._processes.clear()

    def _spawned(self, name: str, *words: str, settings: Mapping[str, str]) -> ProcessId:
        command = [str(self.spec.python), "-m", "airflow", *words]
        return process.spawn(command, self.log(name), tied=True, env=settings)

    def _await_migration(self) -> None:
        migrating = self._processes.pop("migrate")
        wait_until(lambda: process.condition(migrating) == "gone", "Airflow's database is made", MIGRATED_WITHIN_S)
        said = self.log("migrate").read_text(encoding="utf-8", errors="replace")
        if not any(words in said for words in MIGRATED):
            raise PartFailedError(f"Airflow's database could not be made:\n{process.tail(self.log('migrate'))}")

    def _ready(self) -> bool:
        for part, started in self._processes.items():
            if process.condition(started) == "gone":
                raise PartFailedError(f"Airflow's {part} ended:\n{process.tail(self.log(part))}")
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.spec.url}/api/v2/version", timeout=5).is_success
        return False


@contextlib.contextmanager
def running_airflow(
    home: Path,
    settings: Mapping[str, str],
    *,
    users: Mapping[str, str] | None = None,
    port: int | None = None,
    **installed: Any,
) -> Iterator[Airflow]:
    """An Airflow for the length of a ``with`` block; the arguments are those of `prepared_airflow` and `Airflow.start`.

    Raises:
        PartFailedError: It did not come up; nothing of it runs then.
    """
    with prepared_airflow(home, users=users, port=port, **installed) as airflow:
        airflow.start(settings)
        yield airflow


@contextlib.contextmanager
def prepared_airflow(
    home: Path, *, users: Mapping[str, str] | None = None, port: int | None = None, **installed: Any
) -> Iterator[Airflow]:
    """An Airflow whose database is being made, to be started within the block and ended with it.

    Args:
        home: A folder for everything of it.
        users: Names and roles; an admin, an operator and a viewer by default.
        port: Where its pages shall be; a free port by default.
        **installed: Where an Airflow other than this environment's is, and what it needs: fields of `AirflowSpec`.
    """
    taken = ports.Ports(port).take(ports.LOOPBACK, "Airflow's pages")
    home = home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    with _databases(home) as (database, ledger):
        named = dict(users or USERS)
        spec = AirflowSpec(home=home, port=taken, database=database, ledger=ledger, users=named, **installed)
        spec.steward_home.mkdir(parents=True, exist_ok=True)
        passwords = {name: secrets.token_urlsafe(9) for name in spec.users}
        spec.passwords_file.write_text(json.dumps(passwords), encoding="utf-8")
        spec.passwords_file.chmod(0o600)
        airflow = Airflow(spec, passwords)
        try:
            airflow.migrate()
            yield airflow
        finally:
            airflow.stop()


@contextlib.contextmanager
def _databases(home: Path) -> Iterator[tuple[str, str]]:
    """URLs for Airflow and for the ledger: PostgreSQL where it is installed, files of SQLite elsewhere.

    On SQLite, Airflow's API now and then answers that its database is locked, on a busy machine above all.
    """
    folder = postgres.binaries()
    if folder is None:
        yield f"sqlite:///{home / 'airflow.db'}", f"sqlite:///{home / 'ledger.db'}"
        return
    with postgres.running_postgres(folder) as server:
        postgres.create_database(folder, server, "steward")
        yield server.url(), server.url("steward")


def _end(parts: Collection[ProcessId]) -> None:
    families = [relative for part in parts for relative in _family(part)]
    process.end(parts, GRACE_S)
    for relative in families:
        with contextlib.suppress(psutil.NoSuchProcess):
            relative.kill()


def _family(part: ProcessId) -> list[psutil.Process]:
    try:
        return list(psutil.Process(part.pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []
