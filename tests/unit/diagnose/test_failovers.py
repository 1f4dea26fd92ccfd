"""Failover estimates for whoever plans a restart: of every broker, whether the check finds it long or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.delayed.failover_time import CHECK
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.model.tables import FAILOVERS, FINDINGS
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import on_this_thread
from tests.builders import broker
from tests.unit.diagnose.conftest import ABOUT, FolderOf
from tests.unit.diagnose.test_diagnosing import FINE

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Check


def a_broker(number: int, topics: int | None) -> dict[str, Any]:
    """A broker with topics; None: it was not read."""
    return {"broker": broker(number), "read": topics is not None, "bundles": 50, "topics": topics}


def kept(folder_of: FolderOf, brokers: list[dict[str, Any]], *checks: Check, **sections: Any) -> list[dict[str, Any]]:
    """Rows that a diagnosis leaves of these brokers."""
    folder = folder_of({"snapshot": [ABOUT], "brokers": brokers})
    diagnose(folder, Policy.model_validate(sections), on_this_thread, checks or (CHECK,))
    rows: list[dict[str, Any]] = folder.read(FAILOVERS).to_pylist()
    return rows


def test_every_broker_that_was_read_has_its_estimate(folder_of: FolderOf) -> None:
    """Every broker that was read has an estimate, and an orderly end does not wait for the session timeout."""
    rates = {"topics_loaded_per_second_per_broker": 10, "session_timeout_seconds": 40}
    rows = kept(folder_of, [a_broker(1, 20), a_broker(0, 400), a_broker(2, None)], failover_time=rates)
    assert [row["broker"] for row in rows] == [broker(0), broker(1)]
    first, second = rows
    assert (first["others"], first["bundles"], first["topics"], first["delayed_messages"]) == (1, 50, 400, 0)
    assert (first["session_seconds"], first["assigning_seconds"], first["loading_seconds"]) == (40, 2, 40)
    assert second["loading_seconds"] == 2
    for row in rows:
        served = row["assigning_seconds"] + row["loading_seconds"] + row["reading_seconds"]
        assert row["ended_seconds"] >= served
        assert row["lost_seconds"] >= row["ended_seconds"] + row["session_seconds"]


def test_what_is_found_is_what_is_kept(folder_of: FolderOf) -> None:
    """A failover finding has the same broker and the same seconds as the longest estimate that is kept."""
    folder = folder_of({"snapshot": [ABOUT], "brokers": [a_broker(0, 90_000), a_broker(1, 5)]})
    diagnose(folder, Policy(), on_this_thread, [CHECK])
    (finding,) = folder.read(FINDINGS).to_pylist()
    longest = max(folder.read(FAILOVERS).to_pylist(), key=lambda row: row["lost_seconds"])
    assert finding["subject"] == longest["broker"]
    assert f'"estimate_seconds":{longest["lost_seconds"]},' in finding["figures_json"]


@pytest.mark.parametrize(
    ("check", "topics"), [(FINE, 400), (CHECK, None)], ids=["the check was not asked", "no broker told its load"]
)
def test_without_figures_nothing_is_kept(folder_of: FolderOf, check: Check, topics: int | None) -> None:
    """No failover estimates are kept when the check was not run or no broker was read."""
    assert kept(folder_of, [a_broker(0, topics)], check) == []
