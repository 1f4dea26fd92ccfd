"""The simulated faults that are quickly made: the checks find each of them, and nothing else.

`make accuracy` makes the real ones, too: what it measures depends on how busy the machine is, so no test goes by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.accuracy.scenes import scenes
from benchmarks.accuracy.table import strays_of, wrongs
from lab.faults.fault import MadeUpFault
from lab.faults.registry import FAULTS

if TYPE_CHECKING:
    from benchmarks.accuracy.labs import Labs
    from benchmarks.accuracy.running import Workbench
    from benchmarks.accuracy.scenes import Scene

pytestmark = pytest.mark.extended("tests/live/test_checkup.py::test_a_cluster_through_its_days", "tests/checks")

QUICK = scenes(fault for fault in FAULTS if fault.quick and isinstance(fault, MadeUpFault))


@pytest.mark.parametrize("scene", QUICK, ids=lambda scene: scene.name)
def test_the_checks_find_what_the_faults_are_labelled_with(scene: Scene, workbench: Workbench, labs: Labs) -> None:
    """The checks report all that is expected of quick faults, and no false finding at warning or critical."""
    seen = workbench.outcome(scene, labs)
    wrong = {outcome.fault.name: wrongs(outcome) for outcome in seen.outcomes if not outcome.right}
    assert (wrong, strays_of(seen)) == ({}, [])
