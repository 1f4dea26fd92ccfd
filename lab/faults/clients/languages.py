"""Languages that clients can be had in on this machine, and the commands that start their processes."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from lab import jars
from lab.errors import PrerequisiteMissingError
from lab.faults.clients.helper import HelperProcess
from lab.faults.clients.python import PythonClients
from lab.faults.clients.work import Clients, Language
from lab.model import VERSIONS

SOURCES = Path(__file__).parent
BUILT_WITHIN_S = 900
PROGRAMS: dict[Language, tuple[str, ...]] = {"python": (), "java": ("java", "javac"), "go": ("go",)}


def unavailable(language: Language) -> str | None:
    """Reason why there are no clients in that language here; None: there are."""
    missing = [program for program in PROGRAMS[language] if shutil.which(program) is None]
    return f"`{missing[0]}` is not on the PATH" if missing else None


def clients(language: Language, service_url: str, token: str | None, log: Path) -> Clients:
    """A client in that language; use it in a ``with`` statement.

    Args:
        language: It is a process of its own, but for Python's.
        service_url: ``pulsar://host:port,...``.
        token: A superuser's, or None.
        log: A file for what it writes.

    Raises:
        PrerequisiteMissingError: A compiler is missing, or failed.
    """
    if language == "python":
        return PythonClients(service_url, token)
    if why := unavailable(language):
        raise PrerequisiteMissingError(f"no clients in {language}: {why}")
    command = java() if language == "java" else go()
    return HelperProcess([*command, service_url, token or ""], log)


def java() -> list[str]:
    """Command that starts the client for Java, which is compiled once for each of its versions."""
    source = SOURCES / "java" / "Clients.java"
    libraries = f"{jars.folder(VERSIONS[0])}/*"
    classes = _built((source,), lambda into: ["javac", "-cp", libraries, "-d", str(into), str(source)])
    return [
        "java",
        *("-cp", f"{classes}{os.pathsep}{libraries}"),
        *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        "-Dorg.apache.logging.log4j.level=ERROR",
        "Clients",
    ]


def go() -> list[str]:
    """Command that starts the client for Go, which is compiled once for each of its versions."""
    folder = SOURCES / "go"
    sources = tuple(folder / name for name in ("main.go", "go.mod", "go.sum"))
    built = _built(sources, lambda into: ["go", "build", "-C", str(folder), "-o", str(into / "clients"), "."])
    return [str(built / "clients")]


def _built(sources: Sequence[Path], command: Callable[[Path], Sequence[str]]) -> Path:
    """The folder of what was compiled of these sources, kept in the user's cache; others that want it meanwhile wait.

    Raises:
        PrerequisiteMissingError: The compiler failed; its last lines are in the message.
    """
    content = b"".join(source.read_bytes() for source in sources)
    target = jars.cache() / "clients" / hashlib.sha256(content).hexdigest()[:16]
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.parent.joinpath("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
                into = Path(scratch) / "built"
                into.mkdir()
                _run(command(into))
                into.rename(target)
    return target


def _run(command: Sequence[str]) -> None:
    run = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=BUILT_WITHIN_S
    )
    if run.returncode:
        raise PrerequisiteMissingError(f"{command[0]} failed:\n{run.stdout[-2000:]}")
