"""``steward airflow``: installs Steward's DAGs and Spark jobs in an Airflow, as files or as a DAG bundle.

Files are written with a record of them, so that a changed one is never lost.
"""

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated

import msgspec
import typer

from pulsar_steward.cli.errors import help_without_command
from pulsar_steward.cli.output import tell, tell_done
from pulsar_steward.decoding import decode
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.units import counted
from pulsar_steward.report.checkup.compose import steward_version
from pulsar_steward.runtime.installed_airflow import require_supported_airflow
from pulsar_steward.runtime.installed_files import project_files

app = typer.Typer(add_completion=False, rich_markup_mode=None)

LEFT_AS_CHANGED = 1

VARIABLE = "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"
LOCAL_BUNDLE = "airflow.dag_processing.bundles.local.LocalDagBundle"

DagsFolder = Annotated[Path, typer.Argument(metavar="DAGS_FOLDER", help="Airflow's folder of DAGs.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replaces files that somebody changed, and keeps them beside the new ones.")
]

FOLDER = "pulsar-steward"
"""Folder below that of the DAGs. Airflow has that on its import path, where this is no name of a package."""

NOTE = "installed.json"
IGNORED = ".airflowignore"


class Done(StrEnum):
    """Result for one file."""

    WRITTEN = "written"
    UPDATED = "updated"
    UNCHANGED = "as it was"
    LEFT = "left, as somebody changed it"
    REPLACED = "replaced, and what somebody made of it is kept beside it"
    REMOVED = "removed, as this version has none"


class Note(msgspec.Struct, frozen=True):
    """Record of the files that were written.

    Attributes:
        version: Steward's version.
        files: SHA-256 of each file as it was written, by its path below the folder.
    """

    version: str
    files: dict[str, str]


@app.callback(invoke_without_command=True)
def _options(context: typer.Context) -> None:
    """Brings Steward's DAGs and Spark jobs to an Airflow: as files, or as a DAG bundle.

    Refused where the Airflow of this environment lacks what the DAGs need; one elsewhere says so when it reads them.
    """
    help_without_command(context)
    require_supported_airflow()


@app.command()
def install(dags_folder: DagsFolder, *, overwrite: Overwrite = False) -> None:
    """Writes the DAGs and jobs of this version; may be repeated. Exit code: 0 all are, 1 a changed file was left."""
    version = steward_version()
    done = install_files(dags_folder, version, overwrite=overwrite)
    tell_done(
        f"pulsar-steward {version}: {counted(len(done), 'file')} in {dags_folder / FOLDER}",
        (f"- {path}: {what}" for path, what in sorted(done.items())),
    )
    if Done.LEFT in done.values():
        tell(
            "Not all files are this version's: compare those that were left, or replace them by --overwrite.", err=True
        )
        raise typer.Exit(LEFT_AS_CHANGED)
    if set(done.values()) - {Done.UNCHANGED}:
        tell("Airflow looks for new DAG files every `[dag_processor] refresh_interval` seconds, 300 by default.")


@app.command()
def bundle() -> None:
    """Prints Airflow's setting that reads the DAGs out of the installed package: nothing has to be copied.

    The bundle of Airflow's own folder of DAGs is in it. Where that setting has others already, add the last one there.
    """
    stanza = [
        {"name": "dags-folder", "classpath": LOCAL_BUNDLE, "kwargs": {}},
        {"name": FOLDER, "classpath": LOCAL_BUNDLE, "kwargs": {"path": str(project_files() / "dags")}},
    ]
    tell(f"{VARIABLE}={json.dumps(stanza)}")


def shipped_files() -> dict[str, bytes]:
    """Files of the installed package: path below the folder, and content."""
    root = project_files()
    files = {
        f"{folder}/{file.name}": file.read_bytes()
        for folder in ("dags", "spark_apps")
        for file in sorted((root / folder).glob("*.py"))
    }
    return {IGNORED: b"# Spark jobs are no DAG files.\nspark_apps/\n", **files}


def install_files(dags_folder: Path, version: str, *, overwrite: bool = False) -> dict[str, Done]:
    """Writes the DAGs and jobs of this version into a folder of its own below that of the DAGs.

    Args:
        dags_folder: Airflow's folder of DAGs, which must exist.
        version: Steward's version, for the record.
        overwrite: True: replace a file that somebody changed; the changed one is kept beside it.

    Returns:
        The result for each file.

    Raises:
        ConfigurationError: If there is no such folder, or it cannot be written to.
    """
    if not dags_folder.is_dir():
        raise ConfigurationError(
            f"there is no folder {dags_folder}: name the one that Airflow reads DAGs from"
            " (`airflow config get-value core dags_folder`)"
        )
    folder = dags_folder / FOLDER
    try:
        note, files = _noted(folder), shipped_files()
        done = {path: _put(folder / path, content, note.files.get(path), overwrite) for path, content in files.items()}
        done |= dict(_cleared(folder, {path: digest for path, digest in note.files.items() if path not in files}))
        written = {path: _digest(content) for path, content in files.items() if done[path] is not Done.LEFT}
        left = {path: note.files[path] for path, what in done.items() if what is Done.LEFT and path in note.files}
        _write(folder / NOTE, msgspec.json.format(msgspec.json.encode(Note(version, written | left), order="sorted")))
    except OSError as error:
        raise ConfigurationError(f"{error.filename or folder} cannot be written: {error.strerror}") from error
    return done


def _noted(folder: Path) -> Note:
    try:
        return decode((folder / NOTE).read_bytes(), Note)
    except FileNotFoundError:
        return Note("", {})
    except msgspec.MsgspecError as error:
        raise ConfigurationError(
            f"{folder / NOTE} should say what was written here, and cannot be read ({error}): remove it, and every file"
            " that differs from this version's counts as changed by somebody"
        ) from error


def _put(file: Path, content: bytes, noted: str | None, overwrite: bool) -> Done:
    if not file.exists() and not file.is_symlink():
        _write(file, content)
        return Done.WRITTEN
    present = file.read_bytes() if file.is_file() else b""
    if present == content:
        return Done.UNCHANGED
    if _digest(present) == noted:
        _write(file, content)
        return Done.UPDATED
    if not overwrite:
        return Done.LEFT
    # Names that Airflow does not take for DAG files.
    beside = (file.with_name(f"{file.name}.changed-{number}") for number in itertools.count(1))
    file.rename(next(each for each in beside if not each.exists()))
    _write(file, content)
    return Done.REPLACED


def _cleared(folder: Path, gone: Mapping[str, str]) -> Iterator[tuple[str, Done]]:
    """Removes files of an earlier version that this one lacks, unless somebody changed them."""
    for path, noted in gone.items():
        file = folder / path
        if path.count("/") != 1 or ".." in path or not file.is_file():  # a record may have been changed, too
            continue
        own = _digest(file.read_bytes()) == noted
        if own:
            file.unlink()
        yield path, Done.REMOVED if own else Done.LEFT


def _write(file: Path, content: bytes) -> None:
    """Writes a file atomically, with the permissions of its folder."""
    if file.is_file() and file.read_bytes() == content:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=file.parent, prefix=".steward-", delete=False) as unfinished:
        unfinished.write(content)
    made = Path(unfinished.name)
    made.chmod(file.parent.stat().st_mode & 0o666)
    made.replace(file)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
