"""Which faults are looked at together, and under which policy."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from benchmarks.accuracy.scenes import MOST, Scene, policy_of, scenes
from lab.faults.fault import RealFault, SimulatedFault
from lab.faults.registry import FAULTS
from lab.simulator import ClusterSpec
from pulsar_steward.policy.load import parse_policy

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
