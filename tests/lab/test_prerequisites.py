"""Words of a lab when a program that it needs is missing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lab import prerequisites
from lab.cluster import Lab
from lab.errors import PrerequisiteMissingError


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
