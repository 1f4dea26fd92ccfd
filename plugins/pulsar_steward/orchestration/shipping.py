"""Archive of Steward's code, for Spark's Python on machines where it is not installed."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

import pulsar_steward
from pulsar_steward.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""Time of all files in the archive, the earliest possible, so that the archive depends on their content alone."""


def py_files(application: str, folder: Path) -> str | None:
    """Archive from which executors import Steward: ``STEWARD_PY_FILES``, or one made of the present code.

    Args:
        application: The Spark job's file.
        folder: Folder of archives, one for each state of the code.

    Returns:
        Paths or URIs as ``spark-submit --py-files`` takes them; None if executors need nothing.

    Raises:
        ConfigurationError: If a part of the code cannot be found.
    """
    chosen = os.environ.get("STEWARD_PY_FILES")
    if chosen is not None:
        return chosen.strip() or None
    library = Path(pulsar_steward.__file__).parent
    return str(code_archive([library, _jobs(application)], folder))


def code_archive(packages: Sequence[Path], folder: Path) -> Path:
    """Archive of packages, named by its content; an existing one is left as it is.

    Args:
        packages: Folders of Python packages.
        folder: Folder of archives.
    """
    content = _zipped(packages)
    archive = folder / f"steward-{hashlib.sha256(content).hexdigest()[:16]}.zip"
    if not (archive.is_file() and archive.read_bytes() == content):
        folder.mkdir(parents=True, exist_ok=True)
        # Renamed once complete: other tasks may be about to ship it.
        with NamedTemporaryFile(dir=folder, delete=False) as unfinished:
            unfinished.write(content)
        Path(unfinished.name).chmod(0o644)
        Path(unfinished.name).replace(archive)
    return archive


def _zipped(packages: Sequence[Path]) -> bytes:
    """Zips packages without compression, as compressed bytes differ between versions of a compressor."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for package in packages:
            for file in _files(package):
                place = f"{package.name}/{file.relative_to(package).as_posix()}"
                archive.writestr(zipfile.ZipInfo(place, LONG_AGO), file.read_bytes())
    return made.getvalue()


def _files(package: Path) -> Iterator[Path]:
    for file in sorted(package.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file


def _jobs(application: str) -> Path:
    """Package of jobs: the one beside a job's file, which the job imports first, or else the installed one."""
    beside = Path(application).parent / "steward_spark"
    if beside.is_dir():
        return beside
    found = find_spec("steward_spark")
    if found is None or found.origin is None:
        raise ConfigurationError(
            f"the package steward_spark is neither beside {application} nor installed: install Steward where Airflow"
            " runs, or name what executors shall import in STEWARD_PY_FILES"
        )
    return Path(found.origin).parent
