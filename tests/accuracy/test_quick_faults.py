"""The faults that are quickly made: the checks find each of them, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.accuracy.labs import in_order
from benchmarks.accuracy.table import wrongs
from lab.faults.fault import RealFault
from lab.faults.registry import FAULTS
from lab.testing import need_lab

if TYPE_CHECKING:
    from benchmarks.accuracy.labs import Labs
    from benchmarks.accuracy.running import Workbench
    from lab.faults.registry import AnyFault

pytestmark = pytest.mark.extended("tests/live/test_checkup.py::test_a_cluster_through_its_days", "tests/checks")

QUICK = in_order(fault for fault in FAULTS if fault.quick)


def marked(fault: AnyFault) -> object:
    """The fault as a parameter, marked as live where it is made on real brokers."""
    marks = [pytest.mark.live] if isinstance(fault, RealFault) else []
    return pytest.param(fault, id=fault.name, marks=marks)


@pytest.mark.parametrize("fault", [marked(fault) for fault in QUICK])
def test_the_checks_find_what_the_fault_is_labelled_with(fault: AnyFault, workbench: Workbench, labs: Labs) -> None:
    """Everything that is expected is found, and nothing at warning or critical that is not."""
    if isinstance(fault, RealFault):
        need_lab()
    assert not wrongs(workbench.outcome(fault, labs))
