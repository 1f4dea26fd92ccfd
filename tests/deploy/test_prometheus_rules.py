"""The alert rules, by Prometheus' own tool: they are valid, and each fires when it should and not before."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from lab.testing import cannot_run

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "prometheus"


def test_each_alert_is_tested_to_fire_and_not_to_fire() -> None:
    """The unit tests for promtool expect each alert of the rules to fire at some time, and not to at another."""
    rules = yaml.safe_load((FOLDER / "steward-alerts.yaml").read_text(encoding="utf-8"))
    tests = yaml.safe_load((FOLDER / "steward-alerts-test.yaml").read_text(encoding="utf-8"))
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    tested = [each for test in tests["tests"] for each in test["alert_rule_test"]]
    assert alerts == {each["alertname"] for each in tested if each["exp_alerts"]}
    assert alerts == {each["alertname"] for each in tested if not each["exp_alerts"]}


@pytest.mark.parametrize(
    "words",
    [("check", "rules", "steward-alerts.yaml"), ("test", "rules", "steward-alerts-test.yaml")],
    ids=lambda words: words[0],
)
def test_promtool_has_nothing_to_say_against_the_rules(words: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        cannot_run("no promtool on this machine: install it (Debian: apt-get install prometheus)")
    ended = subprocess.run([promtool, *words], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
