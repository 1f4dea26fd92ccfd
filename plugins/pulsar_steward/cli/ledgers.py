"""Access of the command line to the ledger: found by every command in one way, and without a password in arguments.

It is the one that ``--ledger`` names, or the variable ``STEWARD_LEDGER``, or else the file in ``STEWARD_HOME``, and it
has to exist.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from sqlalchemy import URL, Engine

from pulsar_steward.errors import ConfigurationError, LedgerTampered, StewardError
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.store import PASSWORD, open_ledger, read_url
from pulsar_steward.ledger.verify import IntegrityReport, verify_ledger
from pulsar_steward.model.units import counted
from pulsar_steward.policy.place import steward_home

LEDGER = "STEWARD_LEDGER"

AIRFLOWS_LEDGER = "AIRFLOW_CONN_STEWARD_LEDGER"
"""Airflow's connection to the ledger, where it is in the environment; that of Airflow's database is not seen here."""

DEFAULT_FILE = "ledger.db"


def _without_password(context: typer.Context, ledger: str | None) -> str | None:
    """Refuses a password in the arguments, which everybody on the machine can read.

    Raises:
        ConfigurationError: If there is one; it is not repeated. Or if the URL is empty.
    """
    source = context.get_parameter_source("ledger")
    if ledger is None or source is None or source.name != "COMMANDLINE":
        return ledger
    if not ledger.strip():
        raise ConfigurationError("--ledger is empty: leave it out for the ledger in STEWARD_HOME")
    try:
        url = read_url(ledger)
    except ConfigurationError:
        return ledger  # reported, without the URL, when it is opened
    # Also as ``?password=``, ``?sslpassword=``, ``?odbc_connect=...PWD=...``.
    given = (f"{name}={value}" for name, values in url.normalized_query.items() for value in values)
    if url.password is not None or any(map(PASSWORD.search, given)):
        raise ConfigurationError(
            f"--ledger holds a password, which everybody on this machine could read: set {LEDGER} instead, or leave the"
            " password out of the URL (libpq looks for it in ~/.pgpass, or in the file that PGPASSFILE names)"
        )
    return ledger


LedgerUrl = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        envvar=LEDGER,
        show_envvar=True,
        metavar="URL",
        callback=_without_password,
        help=f"The ledger, an SQLAlchemy URL.  [default: {DEFAULT_FILE} in STEWARD_HOME]",
    ),
]
"""The option of every command that uses a ledger; `opened_ledger` finds the one that is meant."""

PlanId = Annotated[str, typer.Argument(metavar="PLAN_ID", help="As approvals and logs name it.")]


def home_ledger() -> Path:
    """The ledger's file in ``STEWARD_HOME``, which need not be there."""
    return (steward_home() / DEFAULT_FILE).absolute()


def is_ledger_known(named: str | None) -> bool:
    """True if a ledger is named, or there is one in ``STEWARD_HOME``."""
    return named is not None or home_ledger().is_file()


def found_ledger(named: str | None) -> str:
    """The ledger's URL: the one that is named, or else that of the file in ``STEWARD_HOME``, as in Airflow's runs.

    Raises:
        ConfigurationError: If Airflow's runs use another one than that file.
    """
    if named is not None:
        return named
    if os.environ.get(AIRFLOWS_LEDGER):
        raise ConfigurationError(
            f"Airflow's runs use the ledger that the connection steward_ledger names ({AIRFLOWS_LEDGER}): name the same"
            f" one by --ledger or {LEDGER}"
        )
    return f"sqlite:///{home_ledger()}"


@contextmanager
def opened_ledger(named: str | None, *, make: bool = False, only_read: bool = False) -> Iterator[Engine]:
    """Opens the ledger for the length of a ``with`` block.

    Args:
        named: Its URL; None: the one in ``STEWARD_HOME``.
        make: True: create and upgrade its tables. An SQLite file has to exist all the same.
        only_read: True: open an SQLite file so that nothing of it can change, not even its mode.

    Raises:
        ConfigurationError: If the URL is not valid, or names a file that does not exist, or tables of another Steward.
        LedgerTampered: If the block could not read a row, and that is not what was written.
        LedgerError: If it cannot be read.
    """
    url: URL | str
    file = sqlite_file(url := found_ledger(named))
    if file is not None:
        _require_file(file, named)
        if only_read:
            url = URL.create("sqlite", database=file.absolute().as_uri(), query={"mode": "ro", "uri": "true"})
    engine = open_ledger(url, make=make)
    try:
        yield engine
    except (ValueError, TypeError, msgspec.MsgspecError) as error:
        # The command could not go on; perhaps as the ledger holds what Steward never wrote.
        for first in () if isinstance(error, StewardError) else verify_ledger(engine).tampered:
            raise LedgerTampered(
                f"the ledger was changed or damaged: {first.words} (`steward ledger verify` says more)"
            ) from error
        raise
    finally:
        engine.dispose()


@contextmanager
def ledger_to_read(named: str | None) -> Iterator[LedgerReader]:
    """Opens the ledger as `opened_ledger` does, with the same errors, and returns its reader."""
    with opened_ledger(named) as engine:
        yield LedgerReader(engine)


def verified(report: IntegrityReport) -> str:
    """Result of comparing a ledger with its chain."""
    compared = f"{counted(report.rows, 'row')} compared"
    if report.tampered:
        return f"TAMPERED WITH: {compared}, {counted(len(report.tampered), 'place')} not as written"
    return f"as written: {compared}"


def sqlite_file(url: str) -> Path | None:
    """File of an SQLite ledger; None: another database, or an invalid URL."""
    try:
        parsed = read_url(url)
    except ConfigurationError:
        return None  # reported, without the URL, when it is opened
    return Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None


def _require_file(file: Path, named: str | None) -> None:
    """Checks that an SQLite file exists, as opening a missing one would create it."""
    try:
        if file.is_file():
            return
    except PermissionError as error:
        raise ConfigurationError(
            f"the ledger {str(file)!r} may not be looked at: run this as the user that runs Airflow"
        ) from error
    how = "name the file that Airflow's runs write to"
    if named is None:
        how += f" by --ledger or {LEDGER}, or set STEWARD_HOME to the folder that it is in"
    raise ConfigurationError(f"there is no ledger {str(file)!r}: {how}")
