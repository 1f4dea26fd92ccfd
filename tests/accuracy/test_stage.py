"""Faults are made side by side, once more where one failed, and looked at together."""

from __future__ import annotations

import contextlib
import itertools
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest

from benchmarks.accuracy.outcome import Outcome, SceneOutcome
from benchmarks.accuracy.running import Workbench
from benchmarks.accuracy.scenes import MOST, Scene, policy_of, scenes
from benchmarks.accuracy.stage import Actor, Stage
from lab.errors import NotReachedError
from lab.faults.fault import Change, RealFault, SimulatedFault
from lab.faults.registry import FAULTS
from lab.simulator import ClusterSpec
from pulsar_steward.policy.load import parse_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.accuracy.labs import Labs
    from lab.cluster import Lab

LAB = cast("Lab", None)
PATIENCE_S = 10.0


def fault(name: str, made: Callable[[Lab], contextlib.AbstractContextManager[Change | None]]) -> RealFault:
    """A fault that is made like that."""
    return RealFault(name=name, about="A fault.", made=made)


def test_all_are_made_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=PATIENCE_S)

    @contextlib.contextmanager
    def made(_lab: Lab) -> Iterator[None]:
        both.wait()
        yield

    stage = Stage([fault("a", made), fault("b", made)], LAB)
    stage.make()
    assert [actor.failure for actor in stage.actors] == [None, None]
    assert stage.clear() == []


def test_a_single_one_is_made_in_the_calling_thread() -> None:
    threads = []

    @contextlib.contextmanager
    def made(_lab: Lab) -> Iterator[None]:
        threads.append(threading.current_thread())
        yield

    Stage([fault("a", made)], LAB).make()
    assert threads == [threading.current_thread()]


def test_one_that_fails_is_told_and_the_others_stay() -> None:
    left = []

    @contextlib.contextmanager
    def in_vain(_lab: Lab) -> Iterator[None]:
        raise NotReachedError("in vain")
        yield

    @contextlib.contextmanager
    def made(_lab: Lab) -> Iterator[None]:
        yield
        left.append("cleared")

    stage = Stage([fault("a", in_vain), fault("b", made)], LAB)
    stage.make()
    assert [actor.failure for actor in stage.actors] == ["NotReachedError: in vain", None]
    assert (stage.clear(), left) == ([], ["cleared"])


def test_what_changes_is_told_how_many_looks_there_were() -> None:
    seen: list[int] = []

    @contextlib.contextmanager
    def changing(_lab: Lab) -> Iterator[Change]:
        yield seen.append

    @contextlib.contextmanager
    def still(_lab: Lab) -> Iterator[None]:
        yield

    stage = Stage([fault("a", changing), fault("b", still)], LAB)
    stage.make()
    for observed in range(3):
        stage.change(observed)
    assert seen == [0, 1, 2]


def test_one_that_cannot_change_has_failed() -> None:
    def in_vain(_observed: int) -> None:
        raise NotReachedError("it did not grow")

    @contextlib.contextmanager
    def changing(_lab: Lab) -> Iterator[Change]:
        yield in_vain

    stage = Stage([fault("a", changing)], LAB)
    stage.make()
    stage.change(0)
    assert stage.actors[0].failure == "NotReachedError: it did not grow"


def test_what_cannot_be_cleared_away_is_told() -> None:
    @contextlib.contextmanager
    def staying(_lab: Lab) -> Iterator[None]:
        yield
        raise NotReachedError("it stays")

    stage = Stage([fault("a", staying)], LAB)
    stage.make()
    assert stage.clear() == ["a could not be cleared away: it stays"]
    assert stage.actors[0].failure is None


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


HOLES: dict[str, object] = {"ack_holes": {"warning_percent": 60}}
RECENT: dict[str, object] = {"collect": {"recent_minutes": 1}}
UNCHECKED = (("backlogQuotaCheckEnabled", "false"),)


def real(name: str, **label: Any) -> RealFault:
    """A fault that is not made."""
    return RealFault(name=name, about="A fault.", **label)


def names(faults: list[RealFault | SimulatedFault]) -> list[list[str]]:
    """The faults of each scene."""
    return [[fault.name for fault in scene.faults] for scene in scenes(faults)]


def test_faults_share_a_scene_that_need_the_same_brokers() -> None:
    """Faults share a scene if their policies differ only in thresholds that may differ by namespace."""
    assert names([real("a"), real("b", policy=HOLES), real("c")]) == [["a", "b", "c"]]


APART = {
    "settings of brokers": {"settings": UNCHECKED},
    "the number of looks": {"observations": 3},
    "a policy of the whole cluster": {"policy": RECENT},
    "its own company": {"among": "crowds"},
    "the whole cluster that it concerns": {"alone": True},
    "a lab of its own": {"own_lab": True},
}


@pytest.mark.parametrize("label", APART.values(), ids=APART)
def test_what_parts_a_fault_from_others(label: dict[str, object]) -> None:
    """A fault that needs another setup has a scene of its own, and the other faults stay together."""
    parted = names([real("a"), real("odd", **label), real("b")])
    assert sorted(parted) == [["a", "b"], ["odd"]]


def test_simulated_faults_have_a_cluster_each() -> None:
    """Each simulated fault has a scene of its own, and these scenes come before the real ones."""
    made_up = [SimulatedFault(name=name, about="Made up.", specs=(ClusterSpec(),), why="too large") for name in "xy"]
    assert names([real("a"), *made_up, real("b")]) == [["x"], ["y"], ["a", "b"]]


def test_a_large_company_is_parted_into_equal_halves() -> None:
    """Faults that are more than `MOST` are divided into scenes of equal size."""
    sizes = [len(scene) for scene in names([real(f"f{number}") for number in range(MOST + 4)])]
    assert sizes == [MOST // 2 + 2, MOST // 2 + 2]


def test_each_namespace_has_the_thresholds_of_its_fault() -> None:
    both = policy_of([real("a", policy=RECENT | HOLES), real("b", policy=RECENT)])
    assert both == RECENT | {"namespaces": {"public/a": HOLES}}
    parse_policy(both, name="both")


def test_the_policy_of_one_fault_is_as_it_is_written() -> None:
    """The policy of a single fault is used as the fault defines it, without sections by namespace."""
    assert policy_of([real("a", policy=RECENT | HOLES)]) == RECENT | HOLES


def test_faults_that_differ_in_what_holds_for_the_cluster_have_no_policy_together() -> None:
    """Faults whose policies differ for the whole cluster have no common policy, and an error names them."""
    with pytest.raises(ValueError, match="a, b"):
        policy_of([real("a", policy=RECENT), real("b")])


@pytest.mark.parametrize("scene", scenes(FAULTS), ids=lambda scene: scene.name)
def test_every_scene_there_is_has_a_policy_that_holds_up(scene: Scene) -> None:
    parse_policy(dict(scene.policy), name=scene.name)


def test_every_fault_is_in_one_scene_and_names_of_scenes_are_unique() -> None:
    all_scenes = scenes(FAULTS)
    assert sorted(fault.name for scene in all_scenes for fault in scene.faults) == sorted(each.name for each in FAULTS)
    assert len({scene.name for scene in all_scenes}) == len(all_scenes)


def test_each_kind_of_lab_is_started_once() -> None:
    wanted = [scene.settings for scene in scenes(FAULTS) if isinstance(scene.first, RealFault) and not scene.own_lab]
    changes = sum(before != after for before, after in itertools.pairwise(wanted))
    assert changes == len(set(wanted)) - 1
