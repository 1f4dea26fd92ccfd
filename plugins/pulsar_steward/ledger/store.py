"""Opens the ledger: any SQLAlchemy URL, its tables made where they are missing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.exc import SQLAlchemyError

from pulsar_steward.errors import ConfigurationError, LedgerError
from pulsar_steward.ledger.tables import metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection
    from sqlalchemy.engine import URL

_SQLITE_WAIT_SECONDS = 30


def open_ledger(url: str | URL) -> Engine:
    """An engine on the ledger, its tables in place.

    Raises:
        ConfigurationError: If the URL is none, or its driver is not installed.
        LedgerError: If the database cannot be reached or its tables cannot be made.
    """
    try:
        parsed = make_url(url)
        sqlite = parsed.get_backend_name() == "sqlite"
        engine = create_engine(parsed, connect_args={"timeout": _SQLITE_WAIT_SECONDS} if sqlite else {})
    except (SQLAlchemyError, ModuleNotFoundError) as error:
        raise ConfigurationError(f"the ledger's URL is not usable: {type(error).__name__}: {error}") from error
    if sqlite:
        event.listen(engine, "connect", _prepare_sqlite)
    with in_words(engine):
        metadata.create_all(engine)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    """Readers beside one writer, nothing committed that is not on disk, and foreign keys that hold."""
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


@contextmanager
def in_words(engine: Engine) -> Iterator[None]:
    """Turns the database's errors into `LedgerError`, which names the database but no password.

    Raises:
        LedgerError: For whatever the database raised.
    """
    try:
        yield
    except SQLAlchemyError as error:
        place = engine.url.render_as_string(hide_password=True)
        first_line = str(getattr(error, "orig", None) or error).partition("\n")[0]
        raise LedgerError(f"the ledger at {place} failed: {first_line}") from error


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """One transaction, committed at the end; its errors in our words.

    Raises:
        LedgerError: For whatever the database raised; nothing was kept then.
    """
    with in_words(engine), engine.begin() as connection:
        yield connection
