"""Opening of the ledger: any SQLAlchemy URL; its tables are created and upgraded as needed."""

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
"""Time limits of a PostgreSQL transaction: pauses between two statements, and waits for another's lock.

Without them a worker that was stopped in a transaction would lock everybody out, halts included.
"""

_BESIDE = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps beside its database file, with that file's mode."""


def open_ledger(url: str | URL, *, make: bool = True) -> Engine:
    """Opens the ledger and returns an engine, its tables in place; a SQLite file is made accessible to its owner only.

    Args:
        url: The ledger's URL.
        make: True: create missing tables and upgrade those of an earlier Steward.

    Raises:
        ConfigurationError: If the URL is invalid, or its driver is not installed; the message never repeats the URL.
            Also if the ledger is of a later Steward, or of an earlier one and not to be upgraded.
        LedgerError: If the database cannot be reached or its tables cannot be created.
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
    """Restricts a SQLite file to its owner before SQLite opens it, as SQLite would follow the umask."""
    file = _file_of(engine)
    if file is None:
        return
    with suppress(OSError):  # a folder that is missing, or not ours: SQLite reports it itself
        private_file(file)
    for beside in _BESIDE:
        with suppress(OSError):  # missing
            keep_private(file.with_name(file.name + beside))


def _file_of(engine: Engine) -> Path | None:
    """SQLite's database file; None for another database, one in memory, or one that is only read."""
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
"""Locks by dialect, held while tables are created: checking what is missing and creating it is not atomic."""


def _write_ahead(connection: Any, _record: Any) -> None:
    """Turns on write-ahead logging, so that readers and one writer do not block each other."""
    # A file changes to this mode once, for good. Where two connections are about to, SQLite fails one of them at once,
    # whatever the timeout, as each would wait for the other's read lock: a few in 100 openings of a new ledger.
    for attempt in _while_locked():
        with attempt:
            if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                connection.execute("PRAGMA journal_mode=WAL").close()


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    """Makes SQLite sync each commit to disk and enforce foreign keys."""
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
    """Converts the database's errors to `LedgerError`, which names the database but no password.

    Raises:
        LedgerError: For any error of the database.
    """
    try:
        yield
    except SQLAlchemyError as error:
        place = engine.url.set(query={}).render_as_string(hide_password=True)  # a query may hold a password too
        first_line = str(getattr(error, "orig", None) or error).partition("\n")[0]
        raise LedgerError(f"the ledger at {place} failed: {first_line}") from error


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Opens a transaction that is committed at the end; the database's errors become `LedgerError`.

    Raises:
        LedgerError: For any error of the database; nothing was stored then.
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
    """Opens a read transaction with one consistent state of the ledger, whoever adds to it meanwhile.

    Raises:
        LedgerError: For any error of the database.
    """
    with in_words(engine), engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN")  # its driver begins no transaction for reads alone
        else:
            connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection
