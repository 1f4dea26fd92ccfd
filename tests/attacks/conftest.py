"""A worksite of each attack's own, and a second cluster beside it."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING

import pytest
from airflow.sdk import Variable

from lab.postgres import binaries, create_database
from tests.apply.worksite import a_worksite
from tests.asking import airflow_rows_in
from tests.attacks.wire_replay import recording, replaying
from tests.builders import CLUSTER
from tests.unit.pulsar.scripted import scripted_brokers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lab.postgres import Postgres
    from lab.simulator import Simulator
    from pulsar_steward.errors import AdminError
    from pulsar_steward.pulsar.exchange import Response
    from tests.apply.worksite import Worksite
    from tests.asking import AirflowRows
    from tests.attacks.wire_replay import Recorded
    from tests.unit.pulsar.scripted import ScriptedBroker


@pytest.fixture
def airflow_rows(monkeypatch: pytest.MonkeyPatch) -> AirflowRows:
    """Airflow's questions, which tasks of this test add to."""
    return airflow_rows_in(monkeypatch)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Worksite]:
    """Three made-up brokers, all coordinators on the first, and an empty ledger."""
    with a_worksite(tmp_path) as site:
        yield site


@pytest.fixture
def brokers() -> Iterator[Callable[[], ScriptedBroker]]:
    """Starts scripted brokers, and ends them after the test."""
    with scripted_brokers() as start:
        yield start


@pytest.fixture
def broker(brokers: Callable[[], ScriptedBroker]) -> ScriptedBroker:
    return brokers()


@pytest.fixture
def postgres_ledger(postgres: Postgres) -> str:
    """The URL of an empty database of its own, on a server."""
    folder = binaries()
    assert folder is not None
    name = f"attacks_{secrets.token_hex(4)}"
    create_database(folder, postgres, name)
    return postgres.url(name)


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    kept: dict[str, str] = {}
    monkeypatch.setattr(Variable, "get", lambda key, default=None: kept.get(key, default))
    monkeypatch.setattr(Variable, "set", lambda key, value, **_: kept.__setitem__(key, value))
    return kept


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> Path:
    """Steward's home, with the ledger of `site` behind Airflow's connection."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_CONN_STEWARD_LEDGER", json.dumps({"conn_type": "sqlite", "extra": {"url": url}}))
    assert variables == {}
    return tmp_path


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    return Connect(monkeypatch)


class Connect:
    """Airflow's connections to clusters, from the environment."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def __call__(self, cluster: Simulator, name: str = CLUSTER, **extra: object) -> None:
        """Points a name at a cluster; `extra` is what else the connection says."""
        said = {"conn_type": "http", "extra": {"urls": cluster.admin_urls, **extra}}
        self._patch.setenv(f"AIRFLOW_CONN_PULSAR_ADMIN_{name.upper()}", json.dumps(said))


@pytest.fixture(scope="package")
def recorded() -> Recorded:
    """A made-up cluster's answers to all that collecting asks."""
    return recording()


@pytest.fixture
def replayed(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> dict[str, Response | AdminError]:
    """The same answers without anybody who gives them; a test may put others in their place."""
    return replaying(recorded, monkeypatch)
