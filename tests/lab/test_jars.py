"""Jars of a Pulsar version are fetched into the cache; a script stands in for Maven."""

import threading
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lab import jars
from lab.errors import JarsUnavailableError
from lab.model import VERSIONS

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
