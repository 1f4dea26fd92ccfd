"""For whom it serves: a namespace whose topics are on two clusters, as other ones, is never proposed for a move."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.planners.clusters.moving import Empty, stages_of
from tests.unit.cli.conftest import steward
from tests.unit.planners.clusters.members import Held, write_member
from tests.unit.planners.clusters.test_moving import BUSY, NAMESPACE, NOT_YET, NOW, TOPIC, look

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Steward

__all__ = ["steward"]

REASONS = {
    "its member is over its ceiling": ([], "east"),
    "its member leaves": (["--remove-cluster", "east"], "east"),
    "the other member leaves": (["--remove-cluster", "west"], "west"),
    "its member loses brokers": (["--remove-brokers", "east=2"], "east"),
}


@pytest.mark.parametrize(("changes", "leaves"), REASONS.values(), ids=REASONS)
@pytest.mark.parametrize("apart", [True, False], ids=["clashes", "is replicated"])
def test_a_namespace_that_clashes_is_never_placed_elsewhere(
    tmp_path: Path, steward: Steward, changes: list[str], leaves: str, *, apart: bool
) -> None:
    """A namespace with topics of one name on two members, not replicated, stays at both, and the reason is told."""
    both = ("east", "west")
    write_member(tmp_path, "east", {"iot/x": Held(130, 9, ("east",) if apart else both)})
    write_member(tmp_path, "west", {"iot/x": Held(5, 9, ("west",) if apart else both), "a/b": Held(1, 1, ("west",))})
    write_member(tmp_path, "south", {"a/c": Held(1, 1, ("south",))}, settings={"loadBalancerBrokerMaxTopics": "900"})
    ended = steward("whatif", "--snapshots", tmp_path, "--json", *changes)
    told = json.loads(ended.out)
    assert ended.code == {False: 1, None: 2}[told["fits"]], ended.err  # nobody knows of their disks
    moved = {(each["namespace"], each["source"]) for each in told["moves"]}
    assert (("iot/x", leaves) in moved) is not apart
    assert ("iot/x" in {namespace for namespace, _ in moved}) is not apart
    if apart:
        why = {each["member"]: each["why"] for each in told["unplaced"] if each["namespace"] == "iot/x"}
        other = "west" if leaves == "east" else "east"
        assert why[leaves] == f"{other} has other topics of the same name, such as persistent://iot/x/t"


@pytest.mark.parametrize("seen", [{}, BUSY, {"loaded": {}}, {"sends_all": True}], ids=str)
def test_no_call_is_given_for_moving_a_namespace_that_clashes(seen: dict[str, Any]) -> None:
    """A move onto topics of the same name that are not replicated is not ready, and no stage has a call to copy."""
    alone = {"policies": {"replication_clusters": ["east"]}, **seen}
    found = stages_of(
        NAMESPACE,
        look("east", **alone),
        look("west", policies={"replication_clusters": ["west"]}),
        Empty(wanted_seconds=0, now=NOW),
    )
    first = found.stages[0]
    assert first.standing is NOT_YET
    assert f"1 topic of the same name is at west, such as {TOPIC}" in first.points[0].words
    assert not found.is_ready
    assert [point.calls for stage in found.stages for point in stage.points if point.calls] == []
