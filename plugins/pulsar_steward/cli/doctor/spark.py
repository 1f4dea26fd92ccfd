"""Checks of ``steward doctor`` on Airflow, Java and Spark: installed, of a supported version, and complete."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from pulsar_steward.cli.doctor.line import fine, problem
from pulsar_steward.runtime.installed_airflow import installed_airflow
from pulsar_steward.runtime.installed_files import document
from pulsar_steward.runtime.installed_spark import installed_spark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pulsar_steward.cli.doctor.line import Line

LEAST_JAVA = 17
SPARK = "4.3"
SECONDS = 60

_JAVA = re.compile(r'version "(?:1\.)?(\d+)')
_SPARK = re.compile(r"version (\d+\.\d+(?:\.\d+)?)")


def spark_lines(environment: Mapping[str, str] = os.environ) -> Iterator[Line]:
    """Checks the versions of Java and Spark."""
    home, path = environment.get("JAVA_HOME"), environment.get("PATH")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java", path=path)
    remedy = f"install Java {LEAST_JAVA} or later where Spark runs, or set JAVA_HOME"
    if java is None:
        yield problem("Java", "there is none here", remedy)
    else:
        version = _version([java, "-version"], _JAVA, environment)
        yield _line("Java", java, version, remedy, fits=int(version or 0) >= LEAST_JAVA)
    submit = shutil.which("spark-submit", path=path)
    remedy = (
        f"install Spark {SPARK} beside Airflow's environment, and put its `bin` on the PATH of Airflow's workers"
        f" ({document('start.md')})"
    )
    if submit is None:
        yield problem("Spark", "there is no spark-submit on the PATH", remedy)
    else:
        version = _version([submit, "--version"], _SPARK, environment)
        yield _line("Spark", submit, version, remedy, fits=version.startswith(f"{SPARK}."))


def package_lines() -> Iterator[Line]:
    """Checks the packages beside Steward: that Airflow has what the DAGs need, and PySpark is no mixture of two."""
    airflow = installed_airflow()
    if airflow is not None:
        trouble = airflow.lacks or airflow.untried
        yield problem("Airflow", trouble, airflow.remedy) if trouble else fine("Airflow", airflow.words)
    found = installed_spark()
    if found is not None:
        yield problem("PySpark", found.words, found.remedy) if found.foreign else fine("PySpark", found.words)


def _line(name: str, program: str, version: str, remedy: str, *, fits: bool) -> Line:
    words = f"{program}, version {version}" if version else f"{program} does not say its version"
    return fine(name, words) if fits else problem(name, words, remedy)


def _version(command: list[str], pattern: re.Pattern[str], environment: Mapping[str, str]) -> str:
    """Version that a program tells in either stream; empty if it cannot be run, or tells none."""
    try:
        ended = subprocess.run(  # noqa: S603 - a program of this machine, with fixed arguments
            command,
            env=dict(environment),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = pattern.search(ended.stderr + ended.stdout)
    return found[1] if found else ""
