"""The newest snapshots of a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.snapshots.latest import SnapshotShelf
from tests.unit.report_checkup.snapshots import meta, written

if TYPE_CHECKING:
    from pathlib import Path

TIMES = ("20260301T120000Z", "20260301T121500Z", "20260301T123000Z")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three snapshots of one cluster, of which the oldest lost its large tables and the newest is not diagnosed."""
    for time in TIMES:
        written(tmp_path / "cluster=east" / f"taken_at={time}", snapshot=meta(snapshot_id=f"east-{time}"))
    (tmp_path / "cluster=east" / f"taken_at={TIMES[0]}" / "_SUCCESS").unlink()
    (tmp_path / "cluster=east" / f"taken_at={TIMES[2]}" / "verdicts").rename(tmp_path / "elsewhere")
    (tmp_path / "cluster=east" / "notes").mkdir()
    (tmp_path / "cluster=..%2f").mkdir()
    (tmp_path / "cluster=west").mkdir()
    return tmp_path


def names(shelf: SnapshotShelf, **asked: bool) -> list[str]:
    """Ids of the cluster's snapshots."""
    return [each.meta().snapshot_id for each in shelf.diagnosed("east", 10, **asked)]


def test_only_diagnosed_snapshots_are_found(root: Path) -> None:
    """Diagnosed snapshots are found newest first, and those without their large tables only on request."""
    shelf = SnapshotShelf(str(root))
    assert names(shelf) == [f"east-{TIMES[1]}"]
    assert names(shelf, whole=False) == [f"east-{TIMES[1]}", f"east-{TIMES[0]}"]
    assert shelf.diagnosed("west") == ()


def test_a_snapshot_is_found_by_its_id(root: Path) -> None:
    """A snapshot is found by its id if it is whole and diagnosed, and an unknown id finds None."""
    shelf = SnapshotShelf(str(root))
    found = shelf.named("east", f"east-{TIMES[1]}")
    assert found is not None
    assert found.meta().snapshot_id == f"east-{TIMES[1]}"
    assert [shelf.named("east", each) for each in (f"east-{TIMES[0]}", "east-../../west", "x")] == [None] * 3


def test_clusters_are_named_by_their_folders(root: Path) -> None:
    """Clusters are the folders with valid names, a missing folder has none, and an invalid name is refused."""
    assert SnapshotShelf(str(root)).clusters() == ("east", "west")
    assert SnapshotShelf(str(root / "missing")).clusters() == ()
    with pytest.raises(ConfigurationError):
        SnapshotShelf(str(root)).diagnosed("../east")
