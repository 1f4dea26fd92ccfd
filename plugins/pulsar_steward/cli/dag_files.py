"""Installation of DAGs and Spark jobs as files in Airflow's folder of DAGs, with a record of what was written."""

from __future__ import annotations

import hashlib
import itertools
from enum import StrEnum
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.runtime.installed_files import project_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
