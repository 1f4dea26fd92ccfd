"""The real parts that many tests share: labs, one Airflow, one Spark, one PostgreSQL, started when first asked for.

Tests run in several processes, each with parts of its own, so those that share an expensive part run in the same one.
"""

from __future__ import annotations

import contextlib
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from benchmarks.submit import SUBMIT
from lab.airflow.server import running_airflow
from lab.faults.real.ground import COMMON_SETTINGS
from lab.pool import LabPool
from lab.postgres import Postgres, binaries, running_postgres
from lab.testing import cannot_run, need_java, need_lab
from pulsar_steward.ledger import store
from steward_spark.session import spark_session
from tests.ledgers import engine_that_shares

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from lab.airflow.server import Airflow
    from lab.cluster import Lab

    StoppedEarly = Callable[[str, Callable[[], None]], None]

pytest_plugins = ("tests.tiers", "tests.groups", "tests.golden", "tests.budgets")

# Seconds are a machine's, and of what else it does: no test with generated cases fails for them.
settings.register_profile("all", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", settings.get_profile("all"), max_examples=25, derandomize=True)


def pytest_configure(config: pytest.Config) -> None:
    """A property is tried on a hundred new cases in `make test-all`; in the gate on fewer, the same in every run."""
    if config.getoption("--tier", "all") in {"all", "extended"}:
        settings.load_profile("all")
        return
    settings.load_profile("few")
    # Hypothesis also draws constants of this project's modules, all of which it parses: others with any change of one.
    patch = pytest.MonkeyPatch()
    patch.setattr(providers, "_get_local_constants", lambda: providers._local_constants)
    config.add_cleanup(patch.undo)


ARTEFACTS = Path(__file__).resolve().parents[1] / "artefacts"


LABS_AT_ONCE = 2
"""Of one process. A lab takes 1.3 GB, and 10 % of a core where nobody asks it anything."""


@pytest.fixture(scope="session", autouse=True)
def _statements_compiled_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "create_engine", engine_that_shares)
        yield


@pytest.fixture(scope="session")
def labs(tmp_path_factory: pytest.TempPathFactory, stopped_early: StoppedEarly) -> Iterator[LabPool]:
    """Real clusters by what they are set to. Leave a namespace of your own behind, or nothing; or `discard` the lab."""
    need_lab()
    with LabPool(tmp_path_factory.mktemp("labs"), LABS_AT_ONCE, print) as pool:
        stopped_early("labs", pool.close)
        yield pool


@pytest.fixture(scope="module")
def pulsar(labs: LabPool) -> Lab:
    """The lab that most tests use: three brokers that ask for a token, and soon show what happens."""
    return labs.lab(auth="token", broker_settings=dict(COMMON_SETTINGS))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A Spark session as the jobs start it; skips where there is no Java, or fails with ``CI=true``."""
    need_java()
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as environment:
        warnings.simplefilter("ignore", ResourceWarning)  # the gateway's own sockets
        environment.setenv("PYSPARK_SUBMIT_ARGS", SUBMIT)
        session = spark_session("tests")
        environment.undo()
        yield session
        session.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server for the whole run; skips where none is installed, or fails with ``CI=true``."""
    folder = binaries()
    if folder is None:
        cannot_run("no PostgreSQL on this machine: install it (Debian: apt-get install postgresql)")
    with running_postgres(folder) as server:
        yield server


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory, stopped_early: StoppedEarly) -> Iterator[Airflow]:
    """An Airflow with Steward's DAGs, on PostgreSQL where that is installed; its logs stay behind as an artefact."""
    home = tmp_path_factory.mktemp("airflow")
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(running_airflow(home, {}))
        stopped_early("airflow", stack.close)
        for dag_id in ("pulsar_remediate", "pulsar_rollback", "pulsar_observe", "pulsar_housekeeping"):
            running.api.unpause(dag_id)
        yield running
    shutil.copytree(home / "logs", ARTEFACTS / "airflow-logs", dirs_exist_ok=True)
