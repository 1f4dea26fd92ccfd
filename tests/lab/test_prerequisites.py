"""Programs and jars that a lab needs: words where one is missing, Java from a package, and Maven."""

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lab import jars, prerequisites
from lab.cluster import Lab
from lab.errors import JarsUnavailableError, PrerequisiteMissingError
from lab.model import VERSIONS
from lab.packaged_java import install


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_java_versions_are_understood(banner: str, version: int | None) -> None:
    assert prerequisites.major_version(banner) == version


def test_everything_missing_is_named_at_once(no_programs: None, tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteMissingError, match=r"`java` is not on the PATH: install .*`mvn` is not .*install"):
        Lab.start(home=tmp_path / "labs")
    assert not (tmp_path / "labs").exists()


def test_maven_is_not_asked_for_when_the_jars_are_there(java: Callable[[str], None]) -> None:
    """Java alone is enough for a lab whose jars are in the cache, so that Maven is not required."""
    java("")
    assert prerequisites.missing(maven=False) == []


def newer_beside(folder: Path) -> Path:
    """A stand-in for Java 21 that is not on the PATH, below a folder of installed ones."""
    program = folder / "java-21" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'openjdk version \"21.0.8\"' >&2\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def test_pulsar_5_takes_a_newer_java_from_beside_the_usual_one(
    java: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java("")
    monkeypatch.setattr(prerequisites, "INSTALLED", tmp_path / "jvm")
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(PrerequisiteMissingError, match=r"no Java 21 or newer .*requirements-java\.lock"):
        prerequisites.java(prerequisites.java_for("5.0.1"))
    newer = newer_beside(tmp_path / "jvm")
    assert prerequisites.java(prerequisites.java_for("5.0.1")) == str(newer)
    assert prerequisites.java(prerequisites.java_for("4.0.7")) == str(tmp_path / "bin" / "java")


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "version 11, Pulsar needs 17 or newer"),
        ("echo 'Unable to locate a Java Runtime' >&2; exit 1", "answered 'Unable to locate a Java Runtime'"),
    ],
)
def test_a_java_that_does_not_do_is_told_apart(
    programs: Callable[[str, str], None], script: str, complaint: str
) -> None:
    """A Java that is too old, or only a stub, is named as such."""
    programs("java", f"#!/bin/sh\n{script}\n")
    (found,) = prerequisites.missing(maven=False)
    assert complaint in found


def test_what_the_runtime_was_built_without_is_not_asked_of_it(tmp_path: Path) -> None:
    """The packaged Java drops the module option that it cannot grant, and passes every other argument unchanged."""
    runtime = tmp_path / "a runtime" / "java"
    runtime.parent.mkdir()
    runtime.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n", encoding="utf-8")
    java = install(tmp_path / "home", runtime)
    words = ["-cp", "a b/*", "--add-modules=jdk.incubator.vector", "", "-Dx=$HOME", "Main"]
    output = subprocess.run([java, *words], check=True, capture_output=True, text=True).stdout
    assert java == tmp_path / "home" / "bin" / "java"
    assert output.splitlines() == ["-cp", "a b/*", "", "-Dx=$HOME", "Main"]


MAVEN = """#!/bin/sh
echo called >> "$CALLS"
for argument; do case "$argument" in -DoutputDirectory=*) into="${argument#*=}";; esac; done
"""
COPIES = 'mkdir -p "$into"; touch "$into/pulsar-broker-4.0.7.jar"\n'


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, a Java, and the file in which Maven's runs are counted."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


@pytest.fixture
def maven(java: Callable[[str], None], programs: Callable[[str, str], None], calls: Path) -> Callable[[str], None]:
    """Puts a Maven on the PATH that ends with these lines of shell."""
    java("")
    jars.folder("4.0.7").rmdir()
    return lambda lines: programs("mvn", MAVEN + lines)


def test_those_who_want_the_jars_at_once_share_one_fetch(maven: Callable[[str], None], calls: Path) -> None:
    maven("sleep 0.3\n" + COPIES)
    threads = [threading.Thread(target=jars.fetch, args=("4.0.7", lambda _: None)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls.read_text(encoding="utf-8").splitlines() == ["called"]
    assert [path.name for path in jars.folder("4.0.7").iterdir()] == ["pulsar-broker-4.0.7.jar"]


def test_jars_in_the_cache_are_not_fetched_again(maven: Callable[[str], None], calls: Path) -> None:
    maven(COPIES)
    jars.fetch("4.0.7", lambda _: None)
    assert jars.fetch("4.0.7", lambda _: None) == jars.folder("4.0.7")
    assert calls.read_text(encoding="utf-8").splitlines() == ["called"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("echo '[INFO] fine'; echo '[ERROR] Unknown host'; exit 1", r"(?s)check the network.*\[ERROR\] Unknown host"),
        ('mkdir -p "$into"', "holds no pulsar-broker-"),
    ],
)
def test_a_failed_fetch_leaves_nothing_that_passes_for_jars(
    maven: Callable[[str], None], lines: str, message: str
) -> None:
    maven(lines + "\n")
    with pytest.raises(JarsUnavailableError, match=message):
        jars.fetch("4.0.7", lambda _: None)
    assert not jars.fetched("4.0.7")
    assert [path.name for path in jars.folder("4.0.7").parent.iterdir()] == [f"{jars.folder('4.0.7').name}.lock"]


def test_where_the_repository_lacks_a_part_the_pinned_versions_are_copied(maven: Callable[[str], None]) -> None:
    """A stand-in for a repository that cannot tell what the plain POM resolves to; it says so once, and not in vain."""
    maven('case "$*" in *pom.xml*) echo "[ERROR] no such parent"; exit 1;; esac\n' + COPIES + 'touch "$into/$4 $5"\n')
    said: list[str] = []
    copied = {path.name for path in jars.fetch("5.0.1", said.append).iterdir()}
    assert copied == {"pulsar-broker-4.0.7.jar", "dependency:copy-dependencies dependency:copy"}
    assert [each for each in said if "pinned.xml" in each]


def test_jars_of_another_pom_are_not_taken_for_those_of_this_one(maven: Callable[[str], None], tmp_path: Path) -> None:
    maven(COPIES)
    before = jars.fetch("4.0.7", lambda _: None)
    changed = tmp_path / "poms" / "4.0.7" / "pom.xml"
    changed.parent.mkdir(parents=True)
    changed.write_text("<project/>", encoding="utf-8")
    other = jars.PULSAR._replace(poms=tmp_path / "poms")
    assert not jars.fetched("4.0.7", other)
    assert jars.fetch("4.0.7", lambda _: None, other) != before


def broker_of(pom: Path) -> str | None:
    """The version of the broker that a POM depends on; None: it does not depend on one."""
    project = ET.parse(pom).getroot()  # noqa: S314 - a file of this project
    for dependency in project.findall("{*}dependencies/{*}dependency"):
        if dependency.findtext("{*}artifactId") == "pulsar-broker":
            version = dependency.findtext("{*}version", "")
            return version.replace("${project.version}", project.findtext("{*}version", ""))
    return None


def test_the_committed_poms_are_those_of_the_prepared_versions() -> None:
    assert {pom.parent.name: broker_of(pom) for pom in jars.PULSAR.poms.glob("*/pom.xml")} == {
        each: each for each in VERSIONS
    }
