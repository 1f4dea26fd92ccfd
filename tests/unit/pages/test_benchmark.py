"""The measurement of pages asks every route: one that it cannot fill in would fail it unnoticed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.bench import pages
from tests.builders import NOW
from tests.unit.pages.scenes import observed, quiet_bundles
from tests.unit.report_checkup import snapshots

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_every_route_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pages, "LATER", 1)
    tables: dict[str, Any] = snapshots.skewed() | {"bundles": quiet_bundles()}
    observed(tmp_path, "east", NOW, **tables)
    pages.main(str(tmp_path))
    assert "/clusters/{cluster}/troubles/{trouble_id}" in capsys.readouterr().out
