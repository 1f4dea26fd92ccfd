"""Which snapshots go, and that nothing else does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.errors import SnapshotError
from pulsar_steward.policy.schema import HousekeepingPolicy
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri, stamp_of
from pulsar_steward.snapshots.housekeeping import Kept, past_their_time, tidy, too_large_by_now
from tests.cases import row_by_row

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
POLICY = HousekeepingPolicy(keep_snapshots_days=10, keep_snapshots_least=2)


def ago(days: float) -> datetime:
    """Returns the time that many days before now."""
    return NOW - timedelta(days=days)


@row_by_row(
    "finished, unfinished, gone",
    ([1, 2, 3], [], []),
    ([1, 2, 11, 12], [], [12, 11]),
    ([11, 12, 13], [], [13]),
    ([11, 12], [], []),
    ([1, 2, 9.9, 10.1], [], [10.1]),
    ([1, 2, 3], [0.9, 1.1, 30], [30, 1.1]),
    ([], [2], [2]),
)
def test_what_is_past_its_time_goes_oldest_first(
    finished: list[float], unfinished: list[float], gone: list[float]
) -> None:
    """Snapshots past their time go oldest first, except the newest finished ones; unfinished ones go after a day."""
    folder = SnapshotFolder(LocalFiles(), "file:///nowhere")
    there = [Kept(folder=folder, taken_at=ago(days), finished=True) for days in finished]
    there += [Kept(folder=folder, taken_at=ago(days), finished=False) for days in unfinished]
    assert [each.taken_at for each in past_their_time(there, POLICY, NOW)] == [ago(days) for days in gone]


def made(root: Path, days: float, *, finished: bool = True) -> Path:
    """A snapshot of so many days ago, with a file in it."""
    place = SnapshotFolder(LocalFiles(), snapshot_uri(str(root), "east", ago(days)))
    folder = root / "cluster=east" / f"taken_at={stamp_of(ago(days))}"
    (folder / "topics").mkdir(parents=True)
    (folder / "topics" / "part-0.parquet").write_bytes(b"x")
    if finished:
        place.finish()
    return folder


def test_only_the_clusters_own_old_snapshots_are_removed(tmp_path: Path) -> None:
    old, young = made(tmp_path, 11), [made(tmp_path, days) for days in (1, 2)]
    left_behind = made(tmp_path, 3, finished=False)
    other = [tmp_path / "cluster=east" / "notes", tmp_path / "cluster=west" / old.name]
    for folder in other:
        folder.mkdir(parents=True)
    here = SnapshotFolder(LocalFiles(), snapshot_uri(str(tmp_path), "east", NOW))
    tidied = tidy(here, POLICY, NOW)
    assert [uri.rpartition("/")[2] for uri in tidied.removed] == [old.name, left_behind.name]
    assert tidied.left == len(young)
    assert not old.exists()
    assert not left_behind.exists()
    assert all(folder.exists() for folder in [*young, *other])


@row_by_row(
    "least, ages, compacted",
    (1, [1, 2, 4, 5], []),
    (1, [0.1 * number for number in range(12)] + [2, 4, 5], [5, 4]),
    (14, [0.1 * number for number in range(12)] + [2, 4, 5], [5]),
    (1, [4 + 0.1 * number for number in range(13)], [5.2]),
)
def test_what_a_diagnosis_looks_back_to_stays_whole(least: int, ages: list[float], compacted: list[float]) -> None:
    """The newest twelve snapshots, or more by the policy, stay whole; old ones before them are compacted."""
    policy = HousekeepingPolicy(keep_topics_days=3, keep_snapshots_least=least)
    folder = SnapshotFolder(LocalFiles(), "file:///nowhere")
    there = [Kept(folder=folder, taken_at=ago(days), finished=True) for days in ages]
    there.append(Kept(folder=folder, taken_at=ago(6), finished=True, compacted=True))
    there.append(Kept(folder=folder, taken_at=ago(6), finished=False))
    assert [each.taken_at for each in too_large_by_now(there, policy, NOW)] == [ago(days) for days in compacted]


def test_of_a_compacted_snapshot_what_was_said_of_it_stays(tmp_path: Path) -> None:
    """An old snapshot loses its large tables once and keeps its findings until its time ends; newer ones stay whole."""
    folders = [made(tmp_path, days) for days in (*(0.1 * number for number in range(12)), 5)]
    (folders[-1] / "findings").mkdir()
    here = SnapshotFolder(LocalFiles(), snapshot_uri(str(tmp_path), "east", NOW))
    policy = HousekeepingPolicy(keep_topics_days=3, keep_snapshots_days=6)

    tidied = tidy(here, policy, NOW)
    assert (folders[-1] / "findings").exists()
    assert not (folders[-1] / "topics").exists()
    again = tidy(here, policy, NOW)
    later = tidy(here, policy, NOW + timedelta(days=2))

    assert [uri.rpartition("/")[2] for uri in tidied.compacted] == [folders[-1].name]
    assert (tidied.removed, again.compacted, again.removed) == ((), (), ())
    assert [uri.rpartition("/")[2] for uri in later.removed] == [folders[-1].name]
    assert all((folder / "topics").exists() for folder in folders[:-1])


def test_a_compacted_snapshot_is_none(tmp_path: Path) -> None:
    """A compacted snapshot keeps its findings, counts as not finished and is refused."""
    folder = made(tmp_path, 5)
    (folder / "findings").mkdir()
    place = SnapshotFolder(LocalFiles(), str(folder))
    place.compact()

    assert not place.finished()
    assert sorted(each.name for each in folder.iterdir() if each.is_dir()) == ["findings"]
    with pytest.raises(SnapshotError, match="no finished snapshot"):
        place.require_finished()


def test_a_cluster_without_snapshots_is_no_error(tmp_path: Path) -> None:
    here = SnapshotFolder(LocalFiles(), snapshot_uri(str(tmp_path), "east", NOW))
    assert tidy(here, POLICY, NOW).removed == ()
