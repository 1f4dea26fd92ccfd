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
    yield _java(environment)
    yield _spark_submit(environment)


def package_lines() -> Iterator[Line]:
    """Checks the packages beside Steward: that Airflow has what the DAGs need, and PySpark is no mixture of two."""
    airflow = installed_airflow()
    if airflow is not None:
        trouble = airflow.lacks or airflow.untried
        yield problem("Airflow", trouble, airflow.remedy) if trouble else fine("Airflow", airflow.words)
    found = installed_spark()
    if found is not None:
        yield problem("PySpark", found.words, found.remedy) if found.foreign else fine("PySpark", found.words)


def _java(environment: Mapping[str, str]) -> Line:
    remedy = f"install Java {LEAST_JAVA} or later where Spark runs, or set JAVA_HOME"
    home = environment.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java", path=environment.get("PATH"))
    if program is None:
        return problem("Java", "there is none here", remedy)
    said = _said([program, "-version"], environment)
    version = _JAVA.search(said)
    if version is None:
        return problem("Java", f"{program} does not say its version", remedy)
    words = f"{program}, version {version[1]}"
    return fine("Java", words) if int(version[1]) >= LEAST_JAVA else problem("Java", words, remedy)


def _spark_submit(environment: Mapping[str, str]) -> Line:
    remedy = (
        f"install Spark {SPARK} beside Airflow's environment, and put its `bin` on the PATH of Airflow's workers"
        f" ({document('start.md')})"
    )
    program = shutil.which("spark-submit", path=environment.get("PATH"))
    if program is None:
        return problem("Spark", "there is no spark-submit on the PATH", remedy)
    version = _SPARK.search(_said([program, "--version"], environment))
    if version is None:
        return problem("Spark", f"{program} does not say its version", remedy)
    words = f"{program}, version {version[1]}"
    return fine("Spark", words) if version[1].startswith(f"{SPARK}.") else problem("Spark", words, remedy)


def _said(command: list[str], environment: Mapping[str, str]) -> str:
    """Version output of a program, from either stream; empty if it cannot be run."""
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
    return ended.stderr + ended.stdout
