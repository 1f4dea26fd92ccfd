"""``steward metrics``."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from tests.builders import NOW
from tests.ledgers import ledger_at
from tests.unit.cli.recorded import record_move
from tests.unit.report_checkup.snapshots import skewed, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Ended

    Steward = Callable[..., Ended]


@pytest.fixture
def options(tmp_path: Path) -> tuple[str, ...]:
    """A ledger and a folder of snapshots of the cluster east."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = ledger_at(url)
    record_move(engine, "0x00000000_0x10000000", NOW)
    engine.dispose()
    written(tmp_path / "snapshots" / "cluster=east" / "taken_at=20260301T120000Z", **skewed())
    return ("--ledger", url, "--snapshots", str(tmp_path / "snapshots"))


def test_metrics_of_ledger_and_snapshot(steward: Steward, options: tuple[str, ...]) -> None:
    """The metrics count each cluster's findings in its snapshot and its calls without an outcome in the ledger."""
    ended = steward("metrics", *options)
    assert (ended.code, ended.err) == (0, "")
    assert 'steward_findings{check="tc-skew",cluster="east",severity="critical"} 1.0' in ended.out
    assert 'steward_calls_without_outcome{cluster="east"} 1.0' in ended.out
    assert ended.out.endswith("\n")
    assert steward("metrics", *options, "--openmetrics").out.endswith("# EOF\n")


def test_only_the_cluster_that_is_named(steward: Steward, options: tuple[str, ...]) -> None:
    """Only the named cluster has metrics, and an unknown cluster has no readable snapshot."""
    ended = steward("metrics", *options, "--cluster", "west")
    assert 'cluster="east"' not in ended.out
    assert 'steward_snapshot_readable{cluster="west"} 0.0' in ended.out


def test_a_file_is_replaced_as_a_whole(steward: Steward, options: tuple[str, ...], tmp_path: Path) -> None:
    """The file of metrics is replaced, other users may read it, and no other file is left beside it."""
    folder = tmp_path / "collected"
    folder.mkdir()
    file = folder / "steward.prom"
    file.write_text("old")
    ended = steward("metrics", *options, "--output", file)
    assert (ended.code, ended.out) == (0, "")
    assert file.read_text().startswith("# HELP steward_")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(folder.iterdir()) == [file]


def test_a_file_that_cannot_be_written(steward: Steward, options: tuple[str, ...], tmp_path: Path) -> None:
    """A file that cannot be written ends the command with exit code 2, and the error names it."""
    ended = steward("metrics", *options, "--output", tmp_path / "missing" / "steward.prom")
    assert ended.code == 2
    assert "missing/steward.prom cannot be written" in ended.err


def test_a_broken_snapshot_is_said_and_counted(steward: Steward, options: tuple[str, ...], tmp_path: Path) -> None:
    """A broken snapshot is reported and counted as not readable, and the other metrics are printed."""
    (part,) = (tmp_path / "snapshots").glob("*/*/findings/*.parquet")
    part.write_bytes(b"no parquet")
    ended = steward("metrics", *options)
    assert ended.code == 0
    assert "east: " in ended.err
    assert 'steward_snapshot_readable{cluster="east"} 0.0' in ended.out
    assert 'steward_plans_total{cluster="east"} 1.0' in ended.out


def test_a_ledger_is_needed(steward: Steward) -> None:
    """The command ends with exit code 2 without a ledger, and names the variable to set."""
    ended = steward("metrics")
    assert (ended.code, "STEWARD_LEDGER" in ended.err) == (2, True)
