"""The jars of a version of Pulsar or Kafka: resolved by Maven from the committed POM, once, into the user's cache.

Beside a version's ``pom.xml`` may be a ``pinned.xml``, which is asked where the repository at hand lacks parts of what
the first one resolves to.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lab import prerequisites
from lab.errors import JarsUnavailableError

EVERY = 40
PLAIN, PINNED = "pom.xml", "pinned.xml"


class Product(NamedTuple):
    """A product: its name, the folder of its POMs, the jar without which it is not there, and the size of all."""

    name: str
    poms: Path
    main_jar: str
    megabytes: int


PULSAR = Product("Pulsar", Path(__file__).with_name("pulsar"), "pulsar-broker-*.jar", 240)
KAFKA = Product("Kafka", Path(__file__).with_name("kafka"), "kafka_2.13-*.jar", 44)


def cache() -> Path:
    """Folder in which jars are kept for all labs of a user."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "pulsar-steward" / "jars"


def folder(version: str, product: Product = PULSAR) -> Path:
    """Folder of the jars of a version, as its POM asks for them now; it appears only once it is complete."""
    digest = hashlib.sha256(b"".join(pom.read_bytes() for pom in _poms(version, product))).hexdigest()
    return cache() / f"{version}-{digest[:12]}"


def _poms(version: str, product: Product) -> list[Path]:
    """Those of a version, in the order in which they are tried."""
    pinned = product.poms / version / PINNED
    return [product.poms / version / PLAIN, *([pinned] if pinned.exists() else [])]


def fetched(version: str, product: Product = PULSAR) -> bool:
    """Tells whether the jars are in the cache."""
    return folder(version, product).is_dir()


def counts_log_lines(version: str) -> bool:
    """Tells whether the jars in the cache have the appender that counts log lines, as Pulsar's distribution does."""
    return any(folder(version).glob("simpleclient_log4j2-*.jar"))


def fetch(version: str, progress: Callable[[str], None], product: Product = PULSAR) -> Path:
    """Returns the folder of the jars, fetching them first if need be; others that want them meanwhile wait.

    Raises:
        PrerequisiteMissingError: Maven is needed and not there.
        JarsUnavailableError: Maven failed; its last lines are in the message.
    """
    target = folder(version, product)
    target.parent.mkdir(parents=True, exist_ok=True)
    if fetched(version, product):
        return target
    prerequisites.require(maven=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        progress(
            f"fetching the jars of {product.name} {version} with Maven, about {product.megabytes} MB:"
            " up to three minutes, once"
        )
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not fetched(version, product):
            _fetch(version, product, target, progress)
    return target


def _fetch(version: str, product: Product, target: Path, progress: Callable[[str], None]) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{version}.", dir=target.parent) as scratch:
        *others, last = _poms(version, product)
        for pom in others:
            with contextlib.suppress(JarsUnavailableError):
                jars = _copied(pom, Path(scratch), product, progress)
                break
            progress(f"Maven's repository does not serve all that {pom.name} resolves to: trying {last.name}")
        else:
            jars = _copied(last, Path(scratch), product, progress)
        progress(f"{sum(1 for _ in jars.iterdir())} jars of {product.name} {version} are in {target}")
        jars.rename(target)


def _copied(pom: Path, scratch: Path, product: Product, progress: Callable[[str], None]) -> Path:
    """The folder that Maven copied the jars of a POM into."""
    jars = scratch / f"jars of {pom.stem}"
    # Maven resolves a copy, so that nothing is ever written beside the committed POM.
    _run_maven(Path(shutil.copy(pom, scratch)), jars, progress)
    if not any(jars.glob(product.main_jar)):
        raise JarsUnavailableError(f"Maven ended well, yet {jars} holds no {product.main_jar}: see {pom}")
    return jars


def _run_maven(pom: Path, into: Path, progress: Callable[[str], None]) -> None:
    goals = ["dependency:copy-dependencies"]
    if "<artifactItems>" in pom.read_text(encoding="utf-8"):  # jars that are copied without a look at their own POMs
        goals.append("dependency:copy")
    command = ["mvn", "--batch-mode", "--file", str(pom), *goals, f"-DoutputDirectory={into}"]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as maven:
        try:
            for line in maven.stdout or ():
                lines.append(line.rstrip())
                _report(lines, progress)
        except BaseException:
            maven.terminate()
            raise
    if maven.returncode != 0:
        errors = [line for line in lines if line.startswith("[ERROR]")][:8] or lines[-8:]
        raise JarsUnavailableError(
            "Maven could not fetch the jars: check the network, and Maven's settings for a mirror or a proxy\n"
            + "\n".join(errors)
        )


def _report(lines: list[str], progress: Callable[[str], None]) -> None:
    """Reports Maven's progress, at every 40th jar that it downloaded."""
    if _is_download(lines[-1]) and (count := sum(map(_is_download, lines))) % EVERY == 0:
        progress(f"{count} jars downloaded")


def _is_download(line: str) -> bool:
    return "Downloaded from" in line and ".jar " in line
