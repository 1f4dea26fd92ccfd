"""Opening of the ledger: any SQLAlchemy URL; its tables are created and upgraded as needed."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from sqlalchemy import URL, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import SQLAlchemyError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from pulsar_steward.errors import ConfigurationError, LedgerError
from pulsar_steward.ledger.migrations.migrate import VERSIONS, Migrations
from pulsar_steward.policy.place import keep_private, private_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

_SQLITE_WAIT_SECONDS = 30

MAX_IDLE_SECONDS, MAX_LOCK_SECONDS = 30, 60
"""Time limits of a PostgreSQL transaction: idle between two statements, and waiting for a lock.

Without them, a worker that was stopped in a transaction would block all others, also halts.
"""

_BESIDE = ("-wal", "-shm", "-journal")
"""Suffixes of SQLite's further files beside its database file; they get the database file's mode."""


def open_ledger(url: str | URL, *, make: bool = True) -> Engine:
    """Opens the ledger with its tables and returns an engine; only its owner can access a SQLite file.

    Args:
        url: The ledger's URL.
        make: True: create missing tables and upgrade tables of an earlier release.

    Raises:
        ConfigurationError: If the URL is invalid, or its driver is not installed; the message never repeats the URL.
            Also if the ledger's version is unknown, or is an earlier one and `make` is False.
        LedgerError: If the database cannot be reached or its tables cannot be created.
    """
    engine = _engine(url)
    try:
        with in_words(engine):
            _keep_file_private(engine, make=make)
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
        raise ConfigurationError(_NO_TABLES)
    with engine.begin() as connection:
        if lock := _ONE_AT_A_TIME.get(engine.dialect.name):
            connection.exec_driver_sql(lock)
        Migrations(connection).run()


def read_url(url: str | URL) -> URL:
    """Reads the ledger's URL.

    Raises:
        ConfigurationError: If it is invalid, or the end of its password is ambiguous; the message never repeats it.
    """
    try:
        parsed = make_url(url)
    except (SQLAlchemyError, ValueError):  # neither is chained: their messages may quote the URL with its password
        raise ConfigurationError(
            "the ledger's URL cannot be read: expected dialect+driver://user:password@host:port/database, "
            "special characters in the password as %XX"
        ) from None
    named = parsed.username is not None or parsed.password is not None
    if "@" in (parsed.host or "") or (isinstance(url, str) and named and url.count("@") > 1):
        raise ConfigurationError(
            "the ledger's URL has more than one @, so that nobody can tell where its password ends: write %40 for each"
            " that is part of the user's name, the password or another value"
        )
    strange = sorted(set(parsed.query) - _SQLITE_OPTIONS)
    if parsed.get_backend_name() == "sqlite" and strange and "uri" not in parsed.query:
        raise ConfigurationError(f"the ledger's URL holds {strange[0]!r}, which is no option of SQLite: leave it out")
    return parsed


def _engine(url: str | URL) -> Engine:
    parsed = read_url(url)
    sqlite = parsed.get_backend_name() == "sqlite"
    try:
        connect = {"timeout": _SQLITE_WAIT_SECONDS} if sqlite else {}
        engine = create_engine(parsed, connect_args=connect, pool_pre_ping=not sqlite)
    except (SQLAlchemyError, ImportError, ValueError) as error:
        words = _without_passwords(parsed, error)
        raise ConfigurationError(f"the ledger's database {parsed.drivername!r} cannot be used: {words}") from error
    if sqlite:
        if _file_of(engine) is not None:
            event.listen(engine, "connect", _write_ahead)
        event.listen(engine, "connect", _prepare_sqlite)
    return engine


_SQLITE_OPTIONS = frozenset(
    {"cached_statements", "check_same_thread", "detect_types", "isolation_level", "timeout", "uri"}
)
"""Permitted options in the query of a SQLite file's URL; with ``uri``, SQLite accepts further options."""

PASSWORD = re.compile(r"(passw(or)?d|pwd|secret|token)[^=;&]*=", re.IGNORECASE)
"""Name of a secret in a URL's query, with the ``=`` after it."""


def _without_passwords(url: URL, error: Exception) -> str:
    """First line of an error, with the URL's password and secrets masked: a driver may quote them."""
    words = str(error).partition("\n")[0]
    queried = [f"{name}={value}" for name, values in url.normalized_query.items() for value in values]
    secrets = [PASSWORD.split(each)[-1].partition(";")[0] for each in queried if PASSWORD.search(each)]
    for secret in filter(None, (url.password, *secrets)):
        words = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", words)
    return words


_NO_TABLES = (
    "the ledger has no tables of this Steward yet: the next run of a DAG makes them, and so does"
    " `steward ledger upgrade`"
)


def _keep_file_private(engine: Engine, *, make: bool) -> None:
    """Restricts a SQLite file to its owner before SQLite may write to it, as SQLite would follow the umask.

    Raises:
        ConfigurationError: If the SQLite database is no ledger; it was not changed.
    """
    file = _file_of(engine)
    if file is None:
        return
    if file.exists():
        names = _names_in(file)
        if names is None:
            return  # SQLite itself reports it
        if VERSIONS not in names and not make:
            raise ConfigurationError(_NO_TABLES)
    with suppress(OSError):  # a folder that is missing, or not ours: SQLite reports it itself
        private_file(file)
    for beside in _BESIDE:
        with suppress(OSError):  # missing
            keep_private(file.with_name(file.name + beside))


def _names_in(file: Path) -> frozenset[str] | None:
    """Names of all objects in a SQLite file, which is only read; None: SQLite cannot read it."""
    address = f"{file.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=_SQLITE_WAIT_SECONDS)) as connection:
            return frozenset(name for (name,) in connection.execute("SELECT name FROM sqlite_master"))
    except sqlite3.Error:
        return None


def _file_of(engine: Engine) -> Path | None:
    """SQLite's database file; None for other databases, in memory, and for a file that is only read."""
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
"""Locks by dialect, held while tables are created: the check for missing tables and their creation are not atomic."""


def _write_ahead(connection: Any, _record: Any) -> None:
    """Turns on write-ahead logging, so that readers and one writer do not block each other."""
    # A file changes to this mode once, for good. If two connections try it at the same time, each would wait for the
    # other's read lock. So SQLite fails one at once, whatever the timeout: in a few of 100 openings of a new ledger.
    while_locked = Retrying(
        retry=retry_if_exception(lambda error: getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY),
        wait=wait_random(0.01, 0.05),
        stop=stop_after_delay(_SQLITE_WAIT_SECONDS),
        reraise=True,
    )
    for attempt in while_locked:
        with attempt:
            if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                connection.execute("PRAGMA journal_mode=WAL").close()


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    """Makes SQLite sync each commit to disk and enforce foreign keys."""
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


@contextmanager
def in_words(engine: Engine) -> Iterator[None]:
    """Converts the database's errors to `LedgerError`, which names the database but no password.

    Raises:
        LedgerError: For any error of the database.
    """
    try:
        yield
    except SQLAlchemyError as error:
        words = _without_passwords(engine.url, getattr(error, "orig", None) or error)
        raise LedgerError(f"the ledger at {place_of(engine)} failed: {words}") from error


def place_of(engine: Engine) -> str:
    """Address of a ledger without secrets, for messages."""
    url = engine.url.set(query={})  # a query may hold a password too
    if "uri" in engine.url.query:
        url = url.set(database=unquote(urlsplit(url.database or "").path))
    return url.render_as_string(hide_password=True)


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Opens a transaction that is committed at the end; the database's errors become `LedgerError`.

    Raises:
        LedgerError: For any error of the database; then nothing was stored.
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
    """Opens a read transaction with one consistent state of the ledger, even while others add to it.

    Raises:
        LedgerError: For any error of the database.
    """
    with in_words(engine), engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN")  # its driver begins no transaction for reads alone
        else:
            connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


def open_to_read(url: URL) -> Engine:
    """Opens an existing ledger; the database itself refuses every change by this engine.

    Raises:
        ConfigurationError: If there is no ledger yet, or another version of Steward made it.
        LedgerError: If it cannot be reached.
    """
    if url.get_backend_name() == "sqlite":
        file = Path(url.database or "")
        if not file.is_file():
            raise ConfigurationError(f"there is no ledger {str(file)!r} yet: the first run of a DAG makes it")
        only_read = URL.create("sqlite", database=file.absolute().as_uri(), query={"mode": "ro", "uri": "true"})
        return open_ledger(only_read, make=False)
    engine = open_ledger(url, make=False)
    if engine.dialect.name == "postgresql":
        event.listen(engine, "connect", _refuse_changes)
        engine.dispose()  # connections from before the listener
    return engine


def _refuse_changes(connection: Any, _record: Any) -> None:
    connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    connection.commit()
