"""A task that Airflow ends because its time is over, in the middle of a call: what is left is what a crash leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from airflow.sdk.exceptions import AirflowTaskTimeout
from airflow.sdk.execution_time.timeout import TimeoutPosix

from lab.simulator import Delay, Fault
from pulsar_steward.errors import StewardError
from tests.apply.worksite import SKEWED, a_worksite, said

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 2.0


def test_the_end_of_a_tasks_time_is_nothing_that_anybody_handles() -> None:
    """Airflow's task timeout is neither a `StewardError` nor an `Exception`, so no handler catches it."""
    assert not issubclass(AirflowTaskTimeout, StewardError | Exception)


@pytest.mark.parametrize(("where", "calls"), [("unload", 1), ("lookup/v2", 1), ("topicHashPositions", 0)])
def test_a_batch_whose_time_is_over_goes_on_in_the_next_try(where: str, calls: int, tmp_path: Path) -> None:
    """A batch that a task timeout interrupted is finished in the next try, and each move is made once."""
    with a_worksite(tmp_path, SKEWED) as site:
        plan = site.approved(site.move(0), site.move(1))
        site.simulator.faults.add(Fault(Delay(SECONDS + 2), path=where))
        with pytest.raises(AirflowTaskTimeout), TimeoutPosix(SECONDS):  # type: ignore[no-untyped-call]  # Airflow says no types
            site.carry_out(plan)
        assert len(site.ledger.intents(plan.plan_id, "b1")) == calls
        assert site.recorded(plan) == []
        site.clock.outlive_a_crash()
        assert said(site.carry_out(plan)) == ["done", "done"]
        assert site.changes() == [f"unload {site.tc_bundles[0]}", f"unload {site.tc_bundles[1]}"]
