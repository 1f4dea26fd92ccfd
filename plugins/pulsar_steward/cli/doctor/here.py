"""Checks of ``steward doctor`` on this machine: Steward's own folder, policies, the ledger, Airflow, Java and Spark."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pulsar_steward.cli.doctor.line import LineState, fine, of_error, problem
from pulsar_steward.cli.ledgers import found_ledger, home_ledger, is_ledger_known, opened_ledger, sqlite_file, verified
from pulsar_steward.errors import ConfigurationError, LedgerError, LedgerTampered, PolicyError
from pulsar_steward.ledger.cluster_names import known_cluster, shared_names
from pulsar_steward.ledger.noted_heads import ledger_names, noted_in_file
from pulsar_steward.ledger.standing import row_ahead
from pulsar_steward.ledger.store import read_url, transaction
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.policy.files import policy_files, unused_files
from pulsar_steward.policy.load import load_policy
from pulsar_steward.policy.place import SECRETS_FOLDERS, secrets_folders, steward_home
from pulsar_steward.runtime.installed_airflow import installed_airflow
from pulsar_steward.runtime.installed_files import document
from pulsar_steward.runtime.installed_spark import installed_spark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pulsar_steward.cli.doctor.line import Line
    from pulsar_steward.model.cluster import NamedCluster


OTHERS = stat.S_IRWXG | stat.S_IRWXO

_AS_THAT_USER = "run this as the user that runs Airflow"


def home_lines() -> Iterator[Line]:
    """Checks ``STEWARD_HOME``: that it exists, belongs to this user, and is closed to others."""
    home = steward_home()
    try:
        if home.exists() and not home.is_dir():
            yield problem("STEWARD_HOME", f"{home} is no folder", "name another one")
            return
        if not home.exists():
            above = next(each for each in home.absolute().parents if each.exists())
            if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
                words = f"{home} is not there, and cannot be made in {above}"
                yield problem("STEWARD_HOME", words, "name another one, or make it")
                return
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
    try:
        unused = () if named else unused_files()
        for words in unused:
            yield problem("policies", words, "rename it, put a file there, or take it away")
        files = [named] if named else policy_files()
    except (ConfigurationError, PolicyError):
        return  # reported with the folder, or above
    for file in files:
        yield _policy(file)
    if not files and not unused:
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


def ledger_lines(named: str | None, seen: NamedCluster | None = None) -> Iterator[Line]:
    """Checks that the ledger can be read, has this version's tables, was not tampered with, and the names in it."""
    file = sqlite_file(named) if named else home_ledger()
    try:
        url = found_ledger(named)
        if not is_ledger_known(named):
            yield fine("ledger", f"{file} is not there yet: Airflow's first run makes it; --ledger names another one")
            return
        if file is not None and file.is_file():
            yield _private("ledger's file", file, "600", "")
        yield _verified(url)
        yield from _rows(url, seen)
    except LedgerTampered as error:
        yield of_error("ledger", error, LineState.PROBLEM)
    except (LedgerError, ConfigurationError) as error:
        yield of_error("ledger", error)
    except OSError as error:
        yield problem("ledger", f"{file} may not be looked at: {error.strerror}", _AS_THAT_USER)


def _rows(url: str, seen: NamedCluster | None) -> Iterator[Line]:
    """Says that the newest row is later than this machine's clock shows, so that no approval counts.

    And which clusters have several names: they are one for whatever keeps a change from being made.
    """
    with opened_ledger(url, only_read=True) as engine, transaction(engine) as connection:
        ahead, shared = row_ahead(connection, datetime.now(UTC)), [*shared_names(connection)]
        if seen is not None:
            shared.append(tuple(sorted(known_cluster(connection, seen).names)))
    if ahead is not None:
        yield problem("clocks", *ahead)
    for names in dict.fromkeys(each for each in shared if len(each) > 1):
        yield problem(
            "names of clusters",
            f"{', '.join(names)} are names of one Pulsar cluster: lease, halts, pace, rests, questions and silences"
            " hold for all of them, and each is observed by itself",
            "keep one name, and remove the other's connection and schedule",
        )


def _verified(url: str) -> Line:
    noted = noted_in_file(steward_home(), ledger_names(read_url(url)))
    with opened_ledger(url, only_read=True) as engine:
        verdict = verify_ledger(engine, noted=noted)
    words = verified(verdict)
    if verdict.tampered:
        return problem("ledger", words, f"`steward ledger verify` names them, {document('ledger.md')} says what to do")
    return fine("ledger", f"{words}, {'the noted end is in it' if noted else 'no end was noted yet'}")


LEAST_JAVA = 17
SPARK = "4.3"
SECONDS = 60

_JAVA = re.compile(r'version "(?:1\.)?(\d+)')
_SPARK = re.compile(r"version (\d+\.\d+(?:\.\d+)?)")


def spark_lines(environment: Mapping[str, str] = os.environ) -> Iterator[Line]:
    """Checks the versions of Java and Spark."""
    home, path = environment.get("JAVA_HOME"), environment.get("PATH")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java", path=path)
    remedy = f"install Java {LEAST_JAVA} or later where Spark runs, or set JAVA_HOME"
    if java is None:
        yield problem("Java", "there is none here", remedy)
    else:
        version = _version([java, "-version"], _JAVA, environment)
        yield _line("Java", java, version, remedy, fits=int(version or 0) >= LEAST_JAVA)
    submit = shutil.which("spark-submit", path=path)
    remedy = (
        f"install Spark {SPARK} beside Airflow's environment, and put its `bin` on the PATH of Airflow's workers"
        f" ({document('start.md')})"
    )
    if submit is None:
        yield problem("Spark", "there is no spark-submit on the PATH", remedy)
    else:
        version = _version([submit, "--version"], _SPARK, environment)
        yield _line("Spark", submit, version, remedy, fits=version.startswith(f"{SPARK}."))


def package_lines() -> Iterator[Line]:
    """Checks the packages beside Steward: that Airflow has what the DAGs need, and PySpark is no mixture of two."""
    airflow = installed_airflow()
    if airflow is not None:
        trouble = airflow.lacks or airflow.untried
        yield problem("Airflow", trouble, airflow.remedy) if trouble else fine("Airflow", airflow.words)
    found = installed_spark()
    if found is not None:
        yield problem("PySpark", found.words, found.remedy) if found.foreign else fine("PySpark", found.words)


def _line(name: str, program: str, version: str, remedy: str, *, fits: bool) -> Line:
    words = f"{program}, version {version}" if version else f"{program} does not say its version"
    return fine(name, words) if fits else problem(name, words, remedy)


def _version(command: list[str], pattern: re.Pattern[str], environment: Mapping[str, str]) -> str:
    """Version that a program tells in either stream; empty if it cannot be run, or tells none."""
    try:
        ended = subprocess.run(  # noqa: S603 - a program of this machine, with fixed arguments
            command,
            env=dict(environment),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = pattern.search(ended.stderr + ended.stdout)
    return found[1] if found else ""
