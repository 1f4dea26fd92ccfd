"""Files that the package brings beside its modules: DAGs, Spark jobs, documents (hatch_build.py maps them)."""

from __future__ import annotations

from pathlib import Path

import pulsar_steward

_PACKAGE = Path(pulsar_steward.__file__).resolve().parent


def installed_files(package: Path = _PACKAGE) -> Path | None:
    """Folder with `dags`, `spark_apps` and `docs` of the installed package; None: it is run from the repository."""
    folder = package / "files"
    return folder if folder.is_dir() else None


def project_files() -> Path:
    """Folder with `dags`, `spark_apps` and `docs`: of the installed package, or else of the repository."""
    return installed_files() or _PACKAGE.parents[1]


def document(name: str, package: Path = _PACKAGE) -> str:
    """Place of a document for a message: its path where the package is installed, ``docs/NAME`` in the repository."""
    installed = installed_files(package)
    return f"docs/{name}" if installed is None else str(installed / "docs" / name)
