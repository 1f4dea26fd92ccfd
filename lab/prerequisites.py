"""The programs that a lab needs from the machine, and how to get them."""

import re
import shutil
import subprocess

from lab.errors import PrerequisiteMissingError

JAVA_AT_LEAST = 17
INSTALL_JAVA = "install a Java runtime 17 or newer (Debian: `apt install openjdk-17-jre-headless`)"
INSTALL_MAVEN = "install Maven (Debian: `apt install maven`)"


def missing(*, maven: bool = True) -> list[str]:
    """Missing prerequisites of a lab, each with its remedy; empty if none is missing.

    Args:
        maven: Maven is needed too, as the jars are not in the cache yet.
    """
    return [complaint for complaint in (_java(), _maven() if maven else None) if complaint is not None]


def require(*, maven: bool) -> None:
    """Raises unless everything is there.

    Raises:
        PrerequisiteMissingError: Names everything that is missing at once.
    """
    if complaints := missing(maven=maven):
        raise PrerequisiteMissingError("; ".join(complaints))


def major_version(banner: str) -> int | None:
    """The major version in what ``java -version`` prints (``1.8.0_402`` is 8), or None."""
    if (found := re.search(r'version "(\d+)(?:\.(\d+))?', banner)) is None:
        return None
    first, second = found.groups()
    return int(second) if first == "1" and second else int(first)


def _java() -> str | None:
    if shutil.which("java") is None:
        return f"`java` is not on the PATH: {INSTALL_JAVA}"
    run = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    banner = run.stderr + run.stdout
    version = major_version(banner)
    if version is None:
        return f"`java -version` answered {banner.strip()[:200]!r}: {INSTALL_JAVA}"
    if version < JAVA_AT_LEAST:
        return f"`java` on the PATH is version {version}, Pulsar needs {JAVA_AT_LEAST} or newer: {INSTALL_JAVA}"
    return None


def _maven() -> str | None:
    return None if shutil.which("mvn") else f"`mvn` is not on the PATH: {INSTALL_MAVEN}"
