"""A worksite behind connections of Airflow's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from airflow.sdk import Variable

from lab.simulator import running_simulator
from tests.apply.worksite import SKEWED, Worksite
from tests.asking import AirflowRows, airflow_rows_in
from tests.builders import CLUSTER
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def airflow_rows(monkeypatch: pytest.MonkeyPatch) -> AirflowRows:
    """Airflow's questions, which tasks of this test add to."""
    return airflow_rows_in(monkeypatch)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worksite]:
    """Three made-up brokers and a ledger, both behind connections of Airflow's."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with running_simulator(SKEWED) as simulator:
        admin = {"conn_type": "http", "extra": {"urls": simulator.admin_urls, "no_policy_file": True}}
        monkeypatch.setenv(f"AIRFLOW_CONN_PULSAR_ADMIN_{CLUSTER.upper()}", json.dumps(admin))
        monkeypatch.setenv("AIRFLOW_CONN_STEWARD_LEDGER", json.dumps({"conn_type": "sqlite", "extra": {"url": url}}))
        monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
        engine = ledger_at(url)
        # What tasks write must not be what a test of another ledger reads.
        monkeypatch.setattr(Variable, "get", lambda _key, default=None: default)
        monkeypatch.setattr(Variable, "set", lambda *_, **__: None)
        yield Worksite(simulator, engine)
        engine.dispose()
