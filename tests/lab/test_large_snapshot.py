"""The made-up snapshot that measurements diagnose has every table of a Pulsar cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.large_snapshot import Cluster, write
from pulsar_steward.model.tables import COLLECTED

if TYPE_CHECKING:
    from pathlib import Path


def test_every_table_is_written(tmp_path: Path) -> None:
    write(tmp_path, Cluster(1_000))
    assert {each.name for each in tmp_path.iterdir() if each.is_dir()} >= {table.name for table in COLLECTED}
