"""Places of files that the command line needs: DAGs, Spark jobs, and the checks' pages."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.policy.place import steward_home
from pulsar_steward.runtime.installed_files import project_files

if TYPE_CHECKING:
    from collections.abc import Mapping

SPARK_APPS = "STEWARD_SPARK_APPS"
SNAPSHOTS = "STEWARD_SNAPSHOTS"
JOB = "observe.py"


def spark_apps(environment: Mapping[str, str] = os.environ) -> Path:
    """Folder of the Spark jobs.

    Raises:
        ConfigurationError: If they are not there.
    """
    named = environment.get(SPARK_APPS)
    folder = Path(named) if named else project_files() / "spark_apps"
    if not (folder / JOB).is_file():
        raise ConfigurationError(f"{folder} has no {JOB}: set {SPARK_APPS} to the folder of the Spark jobs")
    return folder


def snapshots_uri(named: str | None = None, environment: Mapping[str, str] = os.environ) -> str:
    """Folder of snapshots: the one that is named, or ``STEWARD_SNAPSHOTS``, or else that of ``STEWARD_HOME``."""
    return named or environment.get(SNAPSHOTS) or str(steward_home() / "snapshots")


def need_java(environment: Mapping[str, str] = os.environ) -> None:
    """Checks that Java, which Spark needs, is installed.

    Raises:
        ConfigurationError: If there is no Java.
    """
    if not environment.get("JAVA_HOME") and shutil.which("java", path=environment.get("PATH")) is None:
        raise ConfigurationError(
            "there is no Java here, and Spark needs version 17 or later: install it, set JAVA_HOME"
        )


def page_of(check_id: str) -> Path | None:
    """Documentation page of a check, or None if the pages are not installed."""
    page = project_files() / "docs" / "checks" / f"{check_id}.md"
    return page if page.is_file() else None
