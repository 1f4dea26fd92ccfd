"""Scheduled runs of a Kafka cluster: it is observed, nothing is planned for it, and nobody is asked."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.orchestration.observing import plan_snapshot
from pulsar_steward.orchestration.remediating import choose, dry_run, wanted_by
from tests.unit.collect.made_up_kafka import Cluster, taken

if TYPE_CHECKING:
    from pathlib import Path

NOTHING = "Steward only looks at Kafka clusters: there is nothing to change, and nobody is asked."


@pytest.fixture(autouse=True)
def connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection of Kafka's type, which need not be usable to be known as such."""
    document = {"conn_type": "kafka", "extra": {"bootstrap.servers": "no address"}}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_ADMIN_K", json.dumps(document))


def test_nothing_is_planned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Findings are in the log of the task, which has neither a policy nor a ledger here."""
    snapshot = taken(Cluster({}), tmp_path)
    planned = plan_snapshot("k", snapshot.uri, "pulsar_observe/now")
    assert (planned.plan_ids, planned.reason) == ((), NOTHING)
    assert "critical kafka-replicas-out-of-sync" in caplog.text
    with pytest.raises(ConfigurationError, match="is of cluster 'k', not 'east'"):
        plan_snapshot("east", snapshot.uri, "pulsar_observe/now")


def test_nobody_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever starts a run for it reads one sentence, in a dry run too; there is no ledger here."""
    caplog.set_level(logging.INFO)
    wanted = wanted_by({"cluster": "k"}, [])
    assert choose(wanted, "pulsar_remediate/now") == []
    assert [record.getMessage() for record in caplog.records] == [f"k: {NOTHING}"]
    assert dry_run(wanted, "pulsar_remediate/now") == f"k: {NOTHING}"
