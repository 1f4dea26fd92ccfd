"""The alert rules, by Prometheus' own tool: they are valid, and each fires when it should and not before."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lab.testing import cannot_run

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "prometheus"


@pytest.mark.parametrize(
    "words",
    [("check", "rules", "steward-alerts.yaml"), ("test", "rules", "steward-alerts-test.yaml")],
    ids=lambda words: words[0],
)
def test_promtool_has_nothing_to_say_against_the_rules(words: tuple[str, ...]) -> None:
    """Promtool accepts the alert rules, and its unit tests of them pass."""
    promtool = shutil.which("promtool")
    if promtool is None:
        cannot_run("no promtool on this machine: install it (Debian: apt-get install prometheus)")
    ended = subprocess.run([promtool, *words], cwd=FOLDER, capture_output=True, text=True, check=False)  # noqa: S603 - promtool's own words
    assert ended.returncode == 0, ended.stdout + ended.stderr
