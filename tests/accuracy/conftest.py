"""What the measured faults need: a Spark session of their own settings, and one lab after the other."""

from __future__ import annotations

import shutil
import warnings
from typing import TYPE_CHECKING

import pytest

from benchmarks.accuracy.labs import Labs
from benchmarks.accuracy.running import Workbench, for_small_tables
from lab.testing import cannot_run
from steward_spark.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """Looks at faults as `make accuracy` does."""
    if not shutil.which("java"):
        cannot_run("no Java on this machine: Spark needs version 17 or later")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the gateway's own sockets
        session = spark_session("tests")
        yield Workbench(for_small_tables(session), tmp_path_factory.mktemp("accuracy"), print)
        session.stop()


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labs]:
    """Starts labs as faults need them; the last one ends with the module."""
    with Labs(tmp_path_factory.mktemp("labs"), print) as running:
        yield running
