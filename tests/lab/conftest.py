"""Labs without Java: stand-in programs on the PATH."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import jars
from lab.model import VERSIONS

Program = Callable[[str, str], None]

JAVA = """#!/bin/sh
case "$*" in *-version*) echo 'openjdk version "17.0.1" 2021-10-19' >&2; exit 0;; esac
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A PATH that begins with a folder of its own; call it with a name and a shell script to put it there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def put(name: str, script: str) -> None:
        (folder / name).write_text(script, encoding="utf-8")
        (folder / name).chmod(0o755)

    return put


@pytest.fixture
def no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH with nothing on it, and a cache with nothing in it."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def java(programs: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A stand-in for Java 17 that does what the given lines of shell say, with the jars in place."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    jars.folder(VERSIONS[0]).mkdir(parents=True)
    return lambda lines: programs("java", JAVA + lines)
