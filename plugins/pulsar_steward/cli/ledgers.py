"""The ledger as the command line may open it: one that is there already, and no password among the arguments."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import URL, Engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.store import open_ledger

LEDGER = "STEWARD_LEDGER"

_PASSWORD = re.compile(r"(passw(or)?d|pwd|secret|token)[^=;&]*=", re.IGNORECASE)

LedgerUrl = Annotated[
    str | None,
    typer.Option("--ledger", envvar=LEDGER, show_envvar=True, metavar="URL", help="The ledger, an SQLAlchemy URL."),
]


def named_ledger(context: typer.Context, ledger: str | None) -> str:
    """The ledger's URL, for commands that need one.

    Raises:
        ConfigurationError: If none is named, or its password stands in the arguments.
    """
    if ledger is None:
        raise ConfigurationError(f"name the ledger by --ledger, such as sqlite:////path/to/ledger.db, or set {LEDGER}")
    without_password(context, ledger)
    return ledger


def without_password(context: typer.Context, ledger: str | None) -> None:
    """Refuses a password in the arguments, which everybody on the machine can read.

    Raises:
        ConfigurationError: If there is one; it is not repeated.
    """
    source = context.get_parameter_source("ledger")
    if ledger is None or source is None or source.name != "COMMANDLINE":
        return
    try:
        held = _holds_password(make_url(ledger))
    except (SQLAlchemyError, ValueError):
        return  # said, without the URL, when it is opened
    if held:
        raise ConfigurationError(
            f"--ledger holds a password, which everybody on this machine could read: set {LEDGER} instead, or leave the"
            " password out of the URL (libpq looks for it in ~/.pgpass, or in the file that PGPASSFILE names)"
        )


def _holds_password(url: URL) -> bool:
    """Also among what the URL hands to the driver: ``?password=``, ``?sslpassword=``, ``?odbc_connect=...PWD=...``."""
    given = (f"{name}={value}" for name, values in url.normalized_query.items() for value in values)
    return url.password is not None or any(_PASSWORD.search(each) for each in given)


@contextmanager
def opened_ledger(url: str, *, make: bool = False, only_read: bool = False) -> Iterator[Engine]:
    """A ledger for the length of a ``with`` block.

    Args:
        url: Where it is.
        make: Whether its tables are made and brought up to date. An SQLite file has to be there all the same.
        only_read: Whether an SQLite file is opened so that nothing of it can change, its mode among that.

    Raises:
        ConfigurationError: If the URL is none, or names a file that is not there, or tables of another Steward.
        LedgerError: If it cannot be read.
    """
    _check_file(url)
    engine = open_ledger(_only_read(url) if only_read else url, make=make)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def ledger_to_read(url: str) -> Iterator[LedgerReader]:
    """The same with what can only read it.

    Raises:
        ConfigurationError: As for `opened_ledger`.
        LedgerError: As for `opened_ledger`.
    """
    with opened_ledger(url) as engine:
        yield LedgerReader(engine)


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite ledger; None: it is another database, or the URL is none."""
    try:
        parsed = make_url(url)
    except (SQLAlchemyError, ValueError):
        return None  # said, without the URL, when it is opened
    return Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None


def _only_read(url: str) -> URL | str:
    file = sqlite_file(url)
    if file is None:
        return url
    return URL.create("sqlite", database=file.absolute().as_uri(), query={"mode": "ro", "uri": "true"})


def _check_file(url: str) -> None:
    """Opening an SQLite file that is not there would make it."""
    file = sqlite_file(url)
    if file is not None and not file.is_file():
        raise ConfigurationError(f"there is no ledger {str(file)!r}: name the file that Airflow's runs write to")
