"""The faults that are quickly made, real ones side by side: the checks find each of them, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.accuracy.scenes import scenes
from benchmarks.accuracy.table import strays_of, wrongs
from lab.faults.clients.languages import unavailable
from lab.faults.fault import RealFault
from lab.faults.registry import FAULTS
from lab.testing import need_lab

if TYPE_CHECKING:
    from benchmarks.accuracy.labs import Labs
    from benchmarks.accuracy.running import Workbench
    from benchmarks.accuracy.scenes import Scene
    from lab.faults.registry import AnyFault

pytestmark = pytest.mark.extended("tests/live/test_checkup.py::test_a_cluster_through_its_days", "tests/checks")


def can_be_made(fault: AnyFault) -> bool:
    """Whether its clients can be had here."""
    return not isinstance(fault, RealFault) or fault.client is None or unavailable(fault.client) is None


QUICK = scenes(fault for fault in FAULTS if fault.quick and can_be_made(fault))


def marked(scene: Scene) -> object:
    """The scene as a parameter, marked as live where it is on real brokers."""
    marks = [pytest.mark.live] if isinstance(scene.first, RealFault) else []
    return pytest.param(scene, id=scene.name, marks=marks)


def test_the_real_ones_are_one_scene() -> None:
    """All quick real faults share one scene."""
    assert len([scene for scene in QUICK if isinstance(scene.first, RealFault)]) == 1


@pytest.mark.parametrize("scene", [marked(scene) for scene in QUICK])
def test_the_checks_find_what_the_faults_are_labelled_with(scene: Scene, workbench: Workbench, labs: Labs) -> None:
    """The checks report all that is expected of quick faults, and no false finding at warning or critical."""
    if isinstance(scene.first, RealFault):
        need_lab()
    seen = workbench.outcome(scene, labs, again=False)
    wrong = {outcome.fault.name: wrongs(outcome) for outcome in seen.outcomes if not outcome.right}
    assert (wrong, strays_of(seen)) == ({}, [])
