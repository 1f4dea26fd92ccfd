"""Facts for planners, of a snapshot."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.errors import SnapshotError
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.planners.planning_facts import BrokerFact, TcBundle
from pulsar_steward.policy.schema import Policy
from pulsar_steward.snapshots.read import open_snapshot

if TYPE_CHECKING:
    from pathlib import Path


def test_the_scene_holds_the_bundles_that_place_coordinators(folder: Path) -> None:
    """The planning facts hold only the bundles that place coordinators, and an unknown owner is None."""
    moved = {"pulsar/system/0x00000000_0x40000000": datetime(2025, 12, 31, tzinfo=UTC)}

    planning = planning_facts_of(open_snapshot(str(folder)), Policy(), Moves(moved_at=moved))

    assert planning.tc_bundles == (
        TcBundle(
            bundle="0x00000000_0x40000000",
            owner="a:1",
            coordinators=(0, 2),
            positions=(7, 9, 11),
            producers=1,
            consumers=2,
        ),
        TcBundle(bundle="0x80000000_0xffffffff", owner=None, coordinators=(1,), positions=(0x90000000,)),
    )
    assert planning.brokers[2] == BrokerFact(broker="c:1", read=False)
    assert planning.versions == Unknown("which version of Pulsar b:1 runs is not known")
    assert (planning.tc_allowed, planning.unread, planning.moved_at) == (("a:1", "b:1"), ("c:1",), moved)
    assert (planning.snapshot_id, planning.taken_at) == ("lab-20260101T000000Z", datetime(2026, 1, 1, tzinfo=UTC))
    assert len(planning.findings) == 3


def test_the_same_snapshot_gives_the_same_scene(folder: Path) -> None:
    """The same snapshot gives the same facts by its path and by its URI."""
    by_path, by_uri = open_snapshot(str(folder)), open_snapshot(folder.as_uri())
    assert planning_facts_of(by_path, Policy(), Moves()) == planning_facts_of(by_uri, Policy(), Moves())


def test_a_snapshot_that_was_not_diagnosed_gives_no_scene(folder: Path) -> None:
    """Planning facts cannot be read from a snapshot without findings."""
    shutil.rmtree(folder / "findings")

    with pytest.raises(SnapshotError, match="findings"):
        planning_facts_of(open_snapshot(str(folder)), Policy(), Moves())
