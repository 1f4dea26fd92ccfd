"""A fault that could not be made is made once more, by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from benchmarks.accuracy.outcome import Outcome, SceneOutcome
from benchmarks.accuracy.running import Workbench
from benchmarks.accuracy.scenes import Scene
from benchmarks.accuracy.stage import Actor
from lab.faults.fault import RealFault

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.accuracy.labs import Labs
    from lab.cluster import Lab

IN_VAIN = "NotReachedError: waited in vain"
MADE, UNMADE = RealFault(name="made", about="A fault."), RealFault(name="unmade", about="A fault.")


class NoLabs:
    """Labs of which none is started."""

    def lab_for(self, _scene: Scene) -> Lab:
        """No lab."""
        return cast("Lab", None)

    def done_with(self, _scene: Scene) -> None:
        """Nothing to end."""


class ScriptedWorkbench(Workbench):
    """Makes all faults but one, so many times, and remembers what it was asked to make."""

    def __init__(self, home: Path, times: int) -> None:
        super().__init__(home, print)
        self.failing = times
        self.tried: list[list[str]] = []

    def _real(self, scene: Scene, lab: Lab, labs: Labs) -> tuple[SceneOutcome, list[Actor]]:  # noqa: ARG002 - none is there
        self.tried.append([fault.name for fault in scene.faults])
        failing = {UNMADE.name} if len(self.tried) <= self.failing else set()
        outcomes = tuple(Outcome(each, failure=IN_VAIN if each.name in failing else None) for each in scene.faults)
        actors = [Actor(each, failure=IN_VAIN) for each in (MADE, UNMADE) if each.name in failing]
        return SceneOutcome(scene, outcomes, seconds=1.0), actors


def outcome_of(workbench: ScriptedWorkbench, *, again: bool = True) -> SceneOutcome:
    """Outcome of both faults together."""
    return workbench.outcome(Scene("together", (MADE, UNMADE), {}), cast("Labs", NoLabs()), again=again)


def test_it_counts_as_it_came_out_the_second_time(tmp_path: Path) -> None:
    workbench = ScriptedWorkbench(tmp_path, 1)
    seen = outcome_of(workbench)
    assert workbench.tried == [["made", "unmade"], ["unmade"]]
    assert [(each.fault.name, each.failure, each.at_first) for each in seen.outcomes] == [
        ("made", None, None),
        ("unmade", None, IN_VAIN),
    ]
    assert seen.right


def test_it_is_made_no_third_time(tmp_path: Path) -> None:
    """A fault that cannot be made twice has failed."""
    workbench = ScriptedWorkbench(tmp_path, 9)
    seen = outcome_of(workbench)
    assert workbench.tried == [["made", "unmade"], ["unmade"]]
    assert [each.failure for each in seen.outcomes] == [None, IN_VAIN]
    assert not seen.right


def test_tests_of_the_faults_make_none_again(tmp_path: Path) -> None:
    """Where a fault that fails now and then is to be noticed, nothing is made again."""
    workbench = ScriptedWorkbench(tmp_path, 1)
    assert not outcome_of(workbench, again=False).right
    assert workbench.tried == [["made", "unmade"]]
