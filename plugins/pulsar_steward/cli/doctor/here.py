"""Checks of ``steward doctor`` on this machine: Steward's own folder, the policies, the ledger."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from sqlalchemy import make_url

from pulsar_steward.cli.doctor.line import LineState, fine, of_error, problem
from pulsar_steward.cli.ledgers import opened_ledger, sqlite_file
from pulsar_steward.errors import ConfigurationError, LedgerError, LedgerTampered, PolicyError
from pulsar_steward.ledger.noted_heads import ledger_name, noted_in_file
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.model.units import counted
from pulsar_steward.policy.load import load_policy
from pulsar_steward.policy.place import SECRETS_FOLDERS, secrets_folders, steward_home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulsar_steward.cli.doctor.line import Line

OTHERS = stat.S_IRWXG | stat.S_IRWXO
DEFAULT_LEDGER = "ledger.db"

_AS_THAT_USER = "run this as the user that runs Airflow"


def home_lines() -> Iterator[Line]:
    """Checks ``STEWARD_HOME``: that it exists, belongs to this user, and is closed to others."""
    home = steward_home()
    try:
        yield _private("STEWARD_HOME", home, "700", "the first run makes it, for its user alone")
    except OSError as error:
        yield problem("STEWARD_HOME", f"{home} may not be looked at: {error.strerror}", _AS_THAT_USER)


def _private(subject: str, path: Path, mode: str, missing: str) -> Line:
    if not path.exists():
        return fine(subject, f"{path} is not there yet: {missing}")
    found = path.stat()
    words = f"{path} ({stat.filemode(found.st_mode)})"
    if found.st_uid != os.geteuid():
        return problem(subject, f"{words} is of user {found.st_uid}, and this is user {os.geteuid()}", _AS_THAT_USER)
    if found.st_mode & OTHERS:
        return problem(
            subject, f"{words} is open to others: it says what may be done to a cluster", f"chmod {mode} {path}"
        )
    return fine(subject, f"{words} is this user's alone")


def secrets_lines() -> Iterator[Line]:
    """Checks the folders that connections may name files with credentials in: that nobody else may put files there."""
    folders = secrets_folders()
    there = []
    for folder in folders:
        try:
            mode = folder.stat().st_mode
        except OSError:
            continue
        there.append(str(folder))
        if mode & stat.S_IWOTH:
            words = f"everybody may put files into {folder} ({stat.filemode(mode)}), and links out of it"
            yield problem("secrets", words, f"chmod o-w {folder}, or name other folders in {SECRETS_FOLDERS}")
            return
    named = ", ".join(map(str, folders))
    words = f"connections may name files with credentials in {named} only; there: {', '.join(there) or 'none of them'}"
    yield fine("secrets", f"{words} ({SECRETS_FOLDERS} names others)")


def policy_lines(named: Path | None) -> Iterator[Line]:
    """Validates each policy: the one that was named, or those of ``STEWARD_HOME``."""
    home = steward_home()
    try:
        files = [named] if named else [*sorted((home / "policies").glob("*.yaml")), *home.glob("policy.yaml")]
    except OSError:
        return  # reported with the folder already
    for file in files:
        yield _policy(file)
    if not files:
        told = "there is none: check-ups go by the defaults, and nothing is planned or changed in Airflow's runs"
        yield fine("policy", f"{told} unless the cluster's connection says `no_policy_file`")


def _policy(file: Path) -> Line:
    subject = f"policy {file.name}"
    try:
        if not file.is_file():
            return problem(subject, f"{file}: no such file", "name one that is there")
        load_policy(file)
    except PolicyError as error:
        return problem(subject, str(error), f"`steward policy check {file}` lists every place, a line each")
    except OSError as error:
        return problem(subject, f"{file} cannot be read: {error.strerror}", _AS_THAT_USER)
    return fine(subject, f"{file} holds up")


def ledger_lines(named: str | None) -> Iterator[Line]:
    """Checks that the ledger can be read, has this version's tables, and was not tampered with."""
    url = named or f"sqlite:///{(steward_home() / DEFAULT_LEDGER).absolute()}"
    file = sqlite_file(url)
    try:
        if named is None and not (file and file.exists()):
            yield fine("ledger", f"{file} is not there yet: Airflow's first run makes it; --ledger names another one")
            return
        if file is not None and file.is_file():
            yield _private("ledger's file", file, "600", "")
        yield _verified(url)
    except LedgerTampered as error:
        yield of_error("ledger", error, LineState.PROBLEM)
    except (LedgerError, ConfigurationError) as error:
        yield of_error("ledger", error)
    except OSError as error:
        yield problem("ledger", f"{file} may not be looked at: {error.strerror}", _AS_THAT_USER)


def _verified(url: str) -> Line:
    noted = noted_in_file(steward_home(), ledger_name(make_url(url)))
    with opened_ledger(url, only_read=True) as engine:
        verdict = verify_ledger(engine, noted=[noted] if noted else [])
    compared = f"{counted(verdict.rows, 'row')} compared"
    if verdict.tampered:
        words = f"TAMPERED WITH: {compared}, {counted(len(verdict.tampered), 'place')} not as written"
        return problem("ledger", words, "`steward ledger verify` names them, docs/ledger.md says what to do")
    return fine("ledger", f"as written: {compared}, {'the noted end is in it' if noted else 'no end was noted yet'}")
