"""The PySpark installed here, and a check whether another package overwrote its files.

`pyspark` and `pyspark-client`, which Airflow's Spark provider requires, contain the same files, of different versions.
Neither pip nor uv notices: the files are those of whichever was written last, or some of each.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import sys
from importlib.metadata import Distribution
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.units import counted
from pulsar_steward.runtime.installed_files import document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SPARK, CLIENT = "pyspark", "pyspark-client"

RECORDED = 3
"""Columns of a distribution's RECORD: path, digest, size."""


class InstalledSpark(NamedTuple):
    """An installed PySpark and the state of its files.

    Attributes:
        version: PySpark's version.
        client: The version of `pyspark-client` that is installed beside it, or None.
        files: Number of Python files that PySpark was installed with.
        foreign: Number of these that belong to another package by now, or are missing.
    """

    version: str
    client: str | None
    files: int
    foreign: int

    @property
    def words(self) -> str:
        """State of the installation in a sentence."""
        beside = f", beside {CLIENT} {self.client}" if self.client else ""
        if not self.foreign:
            return f"{SPARK} {self.version}{beside}: its files are its own"
        whose = f"those of {CLIENT} {self.client}" if self.client else "another package's, or gone"
        return (
            f"{self.foreign} of {counted(self.files, 'file')} of {SPARK} {self.version}"
            f" {'is' if self.foreign == 1 else 'are'} {whose}"
        )

    @property
    def remedy(self) -> str:
        """Remedy where files are not PySpark's own."""
        return (
            f"`pip uninstall --yes {CLIENT}`, then `pip install --force-reinstall --no-deps {SPARK}=={self.version}`;"
            f" or give Spark a place of its own, outside of Airflow's environment ({document('start.md')})"
        )


def installed_spark(path: Sequence[str] | None = None) -> InstalledSpark | None:
    """Finds the installed PySpark; None if there is none.

    Args:
        path: Where to look, instead of `sys.path`.
    """
    pyspark, client = _found(SPARK, path), _found(CLIENT, path)
    if pyspark is None:
        return None
    files = [
        (path, noted) for path, noted in _recorded(pyspark) if path.startswith("pyspark/") and path.endswith(".py")
    ]
    foreign = sum(not _is_own(Path(str(pyspark.locate_file(path))), noted) for path, noted in files)
    return InstalledSpark(pyspark.version, client.version if client else None, len(files), foreign)


def require_own_files() -> None:
    """Checks that PySpark, where it is installed, is one version and not a mixture of two.

    Raises:
        ConfigurationError: If it is a mixture.
    """
    found = installed_spark()
    if found is not None and found.foreign:
        raise ConfigurationError(f"{found.words}: {found.remedy}")


def _found(name: str, path: Sequence[str] | None) -> Distribution | None:
    places = list(sys.path if path is None else path)
    return next(iter(Distribution.discover(name=name, path=places)), None)


def _recorded(distribution: Distribution) -> Iterator[tuple[str, str]]:
    """Yields each installed file: path, and `sha256=` with its digest. Python's own list omits missing files."""
    for row in csv.reader((distribution.read_text("RECORD") or "").splitlines()):
        if len(row) == RECORDED and row[1]:
            yield row[0], row[1]


def _is_own(file: Path, noted: str) -> bool:
    """True if a file is, byte for byte, what was installed."""
    method, _, digest = noted.partition("=")
    try:
        found = hashlib.new(method, file.read_bytes()).digest()
    except OSError:
        return False
    return base64.urlsafe_b64encode(found).rstrip(b"=").decode() == digest
