"""Parts of a measurement: those that ended early, work beside a block, and a made-up snapshot."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from benchmarks.bench.failover import KILLED, Failover
from benchmarks.bench.kept import KeptParts
from benchmarks.large_snapshot import Cluster, write
from lab.alongside import alongside
from pulsar_steward.model.tables import COLLECTED

if TYPE_CHECKING:
    from pathlib import Path

LOST = Failover(KILLED, 10_000, 30.5, 82.25, 90)


def _unheard(_line: str) -> None:
    pass


def _lost() -> list[Failover]:
    return [LOST]


def _never() -> list[Failover]:
    pytest.fail("it was measured before")


def test_a_later_run_of_the_same_commit_takes_what_was_measured(tmp_path: Path) -> None:
    """A failure in the last part of half an hour costs that part."""
    KeptParts(tmp_path, "c1").part("lost", list[Failover], _lost, _unheard)
    assert KeptParts(tmp_path, "c1").part("lost", list[Failover], _never, _unheard) == [LOST]


@pytest.mark.parametrize(("first", "later"), [("c1", "c2"), (None, None), ("c1", None)])
def test_any_other_code_is_measured_again(tmp_path: Path, first: str | None, later: str | None) -> None:
    """Of another commit, or with changes that are not committed."""
    KeptParts(tmp_path, first).part("lost", list[Failover], list, _unheard)
    assert KeptParts(tmp_path, later).part("lost", list[Failover], _lost, _unheard) == [LOST]


def test_removed_parts_are_measured_again(tmp_path: Path) -> None:
    """As they are once the document is written."""
    kept = KeptParts(tmp_path, "c1")
    kept.part("lost", list[Failover], list, _unheard)
    kept.remove()
    assert kept.part("lost", list[Failover], _lost, _unheard) == [LOST]


def test_work_that_fails_fails_the_block() -> None:
    def fails() -> None:
        raise AttributeError("pause_bookies")

    with pytest.raises(AttributeError, match="pause_bookies"), alongside(fails, threading.Event()):
        pass


def test_work_is_over_with_its_block() -> None:
    over, ended = threading.Event(), threading.Event()

    def waits() -> None:
        over.wait()
        ended.set()

    with alongside(waits, over):
        assert not ended.is_set()
    assert ended.is_set()


def test_every_table_is_written(tmp_path: Path) -> None:
    write(tmp_path, Cluster(1_000))
    assert {each.name for each in tmp_path.iterdir() if each.is_dir()} >= {table.name for table in COLLECTED}
