"""Access of the command line to the ledger: only to an existing one, and without a password among the arguments."""

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

PlanId = Annotated[str, typer.Argument(metavar="PLAN_ID", help="As approvals and logs name it.")]


def named_ledger(context: typer.Context, ledger: str | None) -> str:
    """The ledger's URL, for commands that need one.

    Raises:
        ConfigurationError: If none is given, or its password is among the arguments.
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
        return  # reported, without the URL, when it is opened
    if held:
        raise ConfigurationError(
            f"--ledger holds a password, which everybody on this machine could read: set {LEDGER} instead, or leave the"
            " password out of the URL (libpq looks for it in ~/.pgpass, or in the file that PGPASSFILE names)"
        )


def _holds_password(url: URL) -> bool:
    """True if the URL has a password, also as ``?password=``, ``?sslpassword=``, ``?odbc_connect=...PWD=...``."""
    given = (f"{name}={value}" for name, values in url.normalized_query.items() for value in values)
    return url.password is not None or any(_PASSWORD.search(each) for each in given)


@contextmanager
def opened_ledger(url: str, *, make: bool = False, only_read: bool = False) -> Iterator[Engine]:
    """Opens a ledger for the length of a ``with`` block.

    Args:
        url: The ledger's URL.
        make: True: create and upgrade its tables. An SQLite file has to exist all the same.
        only_read: True: open an SQLite file so that nothing of it can change, not even its mode.

    Raises:
        ConfigurationError: If the URL is not valid, or names a file that does not exist, or tables of another Steward.
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
    """Opens a ledger as `opened_ledger` does, and returns its reader.

    Raises:
        ConfigurationError: As for `opened_ledger`.
        LedgerError: As for `opened_ledger`.
    """
    with opened_ledger(url) as engine:
        yield LedgerReader(engine)


def sqlite_file(url: str) -> Path | None:
    """File of an SQLite ledger; None: another database, or an invalid URL."""
    try:
        parsed = make_url(url)
    except (SQLAlchemyError, ValueError):
        return None  # reported, without the URL, when it is opened
    return Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None


def _only_read(url: str) -> URL | str:
    file = sqlite_file(url)
    if file is None:
        return url
    return URL.create("sqlite", database=file.absolute().as_uri(), query={"mode": "ro", "uri": "true"})


def _check_file(url: str) -> None:
    """Checks that an SQLite file exists, as opening a missing one would create it."""
    file = sqlite_file(url)
    if file is not None and not file.is_file():
        raise ConfigurationError(f"there is no ledger {str(file)!r}: name the file that Airflow's runs write to")
