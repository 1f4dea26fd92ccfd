"""Opens the ledger: any SQLAlchemy URL, its tables made and brought up to date where that is needed."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from sqlalchemy import Engine, create_engine, event, make_url, text
from sqlalchemy.exc import SQLAlchemyError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from pulsar_steward.errors import ConfigurationError, LedgerError
from pulsar_steward.ledger.migrations.migrate import Migrations
from pulsar_steward.policy.place import keep_private, private_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection
    from sqlalchemy.engine import URL

_SQLITE_WAIT_SECONDS = 30

MAX_IDLE_SECONDS, MAX_LOCK_SECONDS = 30, 60
"""In a transaction of PostgreSQL: how long a writer may pause between two statements before the server ends it, and how
long one waits for another's lock. A worker that was stopped in the middle would keep everybody out, halts included."""

_BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside its file, with that file's mode."""


def open_ledger(url: str | URL, *, make: bool = True) -> Engine:
    """An engine on the ledger, its tables in place; a SQLite file is its owner's alone from then on.

    Args:
        url: Where it is.
        make: Whether missing tables are made and those of an earlier Steward brought up to date.

    Raises:
        ConfigurationError: If the URL is none, or its driver is not installed; the message never repeats the URL. Also
            if the ledger is of a later Steward, or of an earlier one and not to be brought up to date.
        LedgerError: If the database cannot be reached or its tables cannot be made.
    """
    engine = _engine(url)
    try:
        with in_words(engine):
            _keep_file_private(engine)
            _prepare(engine, make=make)
    except (LedgerError, ConfigurationError):
        engine.dispose()
        raise
    return engine


def _prepare(engine: Engine, *, make: bool) -> None:
    with engine.connect() as connection:
        migrations = Migrations(connection)
        if migrations.complete():
            return
    if not make:
        raise ConfigurationError(
            "the ledger has no tables of this Steward yet: the next run of a DAG makes them, and so does"
            " `steward ledger upgrade`"
        )
    with engine.begin() as connection:
        if lock := _ONE_AT_A_TIME.get(engine.dialect.name):
            connection.exec_driver_sql(lock)
        Migrations(connection).run()


def _engine(url: str | URL) -> Engine:
    try:
        parsed = make_url(url)
    except (SQLAlchemyError, ValueError):  # neither is chained: their messages may quote the URL with its password
        raise ConfigurationError(
            "the ledger's URL cannot be read: expected dialect+driver://user:password@host:port/database, "
            "special characters in the password as %XX"
        ) from None
    sqlite = parsed.get_backend_name() == "sqlite"
    try:
        connect = {"timeout": _SQLITE_WAIT_SECONDS} if sqlite else {}
        engine = create_engine(parsed, connect_args=connect, pool_pre_ping=not sqlite)
    except (SQLAlchemyError, ImportError) as error:
        raise ConfigurationError(f"the ledger's database {parsed.drivername!r} cannot be used: {error}") from error
    if sqlite:
        if _file_of(engine) is not None:
            event.listen(engine, "connect", _write_ahead)
        event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _keep_file_private(engine: Engine) -> None:
    """Before SQLite opens a file, it is its owner's alone: SQLite would make it as the umask says, for all to read."""
    file = _file_of(engine)
    if file is None:
        return
    with suppress(OSError):  # a folder that is not there, or not ours: SQLite says so in its own words
        private_file(file)
    for beside in _BESIDE:
        with suppress(OSError):  # gone, or never there
            keep_private(file.with_name(file.name + beside))


def _file_of(engine: Engine) -> Path | None:
    """The file that SQLite keeps the ledger in; None where there is none, or where it is only read."""
    if engine.dialect.name != "sqlite":
        return None
    (name,), options = engine.dialect.create_connect_args(engine.url)
    if options.get("uri"):
        parts = urlsplit(name)
        query = parse_qs(parts.query)
        if "immutable" in query or {"memory", "ro"} & set(query.get("mode", ())):
            return None
        name = unquote(parts.path)
    return None if name == ":memory:" else Path(name)


_ONE_AT_A_TIME = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(hashtext('pulsar_steward'))"}
"""Locks, by dialect, for the time of making tables: looking what is missing and making it is no single step."""


def _write_ahead(connection: Any, _record: Any) -> None:
    """Readers beside one writer."""
    # A file changes to this mode once, for good. Where two connections are about to, SQLite fails one of them at once,
    # whatever the timeout, as each would wait for the other's read lock: a few in 100 openings of a new ledger.
    for attempt in _while_locked():
        with attempt:
            if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                connection.execute("PRAGMA journal_mode=WAL").close()


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    """Nothing committed that is not on disk, and foreign keys that hold."""
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _while_locked() -> Retrying:
    return Retrying(
        retry=retry_if_exception(lambda error: getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY),
        wait=wait_random(0.01, 0.05),
        stop=stop_after_delay(_SQLITE_WAIT_SECONDS),
        reraise=True,
    )


@contextmanager
def in_words(engine: Engine) -> Iterator[None]:
    """Turns the database's errors into `LedgerError`, which names the database but no password.

    Raises:
        LedgerError: For whatever the database raised.
    """
    try:
        yield
    except SQLAlchemyError as error:
        place = engine.url.set(query={}).render_as_string(hide_password=True)  # a query may hold a password too
        first_line = str(getattr(error, "orig", None) or error).partition("\n")[0]
        raise LedgerError(f"the ledger at {place} failed: {first_line}") from error


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """One transaction, committed at the end; its errors in our words.

    Raises:
        LedgerError: For whatever the database raised; nothing was kept then.
    """
    with in_words(engine), engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(_BOUNDS, {"idle": f"{MAX_IDLE_SECONDS}s", "lock": f"{MAX_LOCK_SECONDS}s"})
        yield connection


_BOUNDS = text(
    "select set_config('idle_in_transaction_session_timeout', :idle, true), set_config('lock_timeout', :lock, true)"
)


@contextmanager
def one_moment(engine: Engine) -> Iterator[Connection]:
    """Reads the ledger as it was at one moment, whoever adds to it meanwhile; its errors in our words.

    Raises:
        LedgerError: For whatever the database raised.
    """
    with in_words(engine), engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN")  # its driver begins none for what only reads
        else:
            connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection
