"""A sample of ``make chaos``: faults at random points of remediations on real brokers, and every contract holds."""

from __future__ import annotations

import pytest

from benchmarks.chaos.__main__ import run_all
from benchmarks.chaos.document import OUTCOMES, Chaos, markdown
from benchmarks.chaos.faults import FAULTS, scenarios
from lab.postgres import binaries
from lab.testing import cannot_run, need_lab

pytestmark = pytest.mark.live

SEED = 20
SAMPLE = {
    "none",
    "503",
    "reply lost",
    "204 without effect",
    "redirect outside",
    "worker killed",
    "database gone before a commit",
    "database gone after a commit",
    "clock jumps",
    "row inserted",
    "two workers of a run",
    "two runs of a plan",
    "halted",
}


@pytest.mark.extended(
    "tests/apply/test_state_machine.py",
    "tests/apply/test_trouble.py",
    "tests/live/test_airflow_faults.py::test_a_task_that_is_killed_goes_on_in_its_retry",
)
def test_every_contract_holds_whatever_goes_wrong(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The brokers' logs, the cluster's state and the ledger agree after each fault of the sample."""
    need_lab()
    if binaries() is None:
        cannot_run("no PostgreSQL on this machine: install its package, such as Debian's `postgresql`")
    chosen = [each for each in scenarios(SEED, len(FAULTS)) if each.fault.name in SAMPLE]
    assert {each.fault.name for each in chosen} == SAMPLE
    runs = list(run_all(chosen, tmp_path_factory.mktemp("chaos"), print))
    assert [words for run in runs for words in run.violations] == []
    assert {outcome for run in runs for outcome in run.outcomes} <= set(OUTCOMES)
    assert any(run.outcomes and set(run.outcomes) == {"done"} for run in runs)
    told = markdown(Chaos(SEED, runs, [], "2026-01-01", {}))
    assert "| violations | 0 |" in told
    assert all(f"| {name} | " in told for name in SAMPLE)
