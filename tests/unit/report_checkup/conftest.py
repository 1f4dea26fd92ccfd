"""Check-ups of snapshots that were made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.checkup.compose import checkup_of
from pulsar_steward.report.checkup.document import Checkup
from pulsar_steward.snapshots.read import open_snapshot
from tests.unit.report_checkup.snapshots import written

if TYPE_CHECKING:
    from pathlib import Path

Make = Callable[..., Checkup]
"""Makes a check-up."""


@pytest.fixture
def checkup_with(tmp_path: Path) -> Make:
    """Makes the check-up of a snapshot some of whose tables have other rows."""

    def make(**changed: list[dict[str, object]]) -> Checkup:
        snapshot = open_snapshot(written(tmp_path / "snapshot", **changed))
        policy = Policy()
        return checkup_of(snapshot, make_plan(planning_facts_of(snapshot, policy, Moves())), policy)

    return make
