"""``steward checkup`` on real brokers: healthy, with several troubles at once, half gone, and shut out."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from lab.faults.real.ground import COMMON_SETTINGS
from lab.faults.registry import REAL
from tests.command import steward

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool


pytestmark = pytest.mark.live

BROKERS = 4
AT_ONCE = ("piled-up-coordinators", "never-acknowledged", "ttl-before-quota")
BUSY_MACHINE = """
metadata_latency:
  {warning_mean_milliseconds: 60000, critical_mean_milliseconds: 60000, warning_slow_percent: 100,
   warning_lost_percent: 100}
ledger_switch_slow: {warning_share_percent: 100, critical_share_percent: 100, warning_lost_percent: 100}
bookie_thread_busy:
  {warning_slow_percent: 100, critical_slow_percent: 100, warning_lost_percent: 100, critical_lost_percent: 100}
publish_slow:
  {warning_slow_percent: 100, critical_slow_percent: 100, warning_lost_percent: 100, critical_lost_percent: 100,
   warning_topic_stalled_percent: 100}
gc_pressure: {warning_share_percent: 100, critical_share_percent: 100}
"""
"""The brokers are as slow as the machine is busy with other tests: which is true, and not what this is about."""


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[Lab]:
    """Four brokers; one that is killed stays listed until the test has looked. Half of them are dead in the end."""
    settings = {**dict(COMMON_SETTINGS), "metadataStoreSessionTimeoutMillis": "60000"}
    lab = labs.lab(brokers=BROKERS, auth="token", broker_settings=settings)
    yield lab
    labs.discard(lab)


def running(lab: Lab) -> str:
    return next(broker.admin_url for broker in lab.brokers if lab.condition(broker.broker_id) == "running")


def checked(folder: Path, lab: Lab, *more: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Runs a check-up with the lab's token; returns how it ended, and its JSON."""
    (folder / "policy.yaml").write_text(BUSY_MACHINE, encoding="utf-8")
    given = ["--admin-url", running(lab), "--token-file", str(lab.token_file), "--policy", "policy.yaml"]
    given += ["--json", "out.json", *more]
    ended = steward(folder, "checkup", *given)
    return ended, json.loads((folder / "out.json").read_text(encoding="utf-8"))


def found_by(document: dict[str, Any]) -> set[str]:
    """Ids of the checks that found trouble: information, such as a backlog that no quota bounds, is none."""
    return {check["check_id"] for check in document["checks"] if check["severity"] in {"warning", "critical"}}


def test_a_cluster_through_its_days(lab: Lab, tmp_path: Path) -> None:
    healthy, document = checked(tmp_path, lab)
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr
    assert found_by(document) == set()
    assert "RESULT: healthy" in healthy.stdout
    faults = [fault for fault in REAL if fault.name in AT_ONCE]
    with contextlib.ExitStack() as trouble:
        for each in faults:
            trouble.enter_context(each.made(lab))
        troubled, document = checked(tmp_path, lab, "--html", "out.html")
    assert troubled.returncode == 1, troubled.stdout + troubled.stderr
    assert found_by(document) == {expected.check_id for each in faults for expected in each.expected}
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert all(finding["subject"] in page for check in document["checks"] for finding in check["findings"])
    gone = {broker.broker_id for broker in lab.brokers[BROKERS // 2 :]}
    for broker_id in gone:
        lab.kill_broker(broker_id)
    partial, document = checked(tmp_path, lab)
    assert partial.returncode in {1, 2}, partial.stdout + partial.stderr
    assert document["about"]["complete"] is False
    assert {each["name"] for each in document["about"]["unread"]} == gone
    assert document["counts"]["checks_clear"] == 0
    assert "PARTIAL: 2 brokers " in partial.stdout


def test_a_wrong_token(lab: Lab, tmp_path: Path) -> None:
    """A check-up with a wrong token ends with exit code 2 and the remedy, and prints no report."""
    (tmp_path / "token").write_text("not.a.token", encoding="utf-8")
    shut_out = steward(tmp_path, "checkup", "--admin-url", running(lab), "--token-file", "token")
    assert (shut_out.returncode, shut_out.stdout) == (2, "")
    assert "--token-file" in shut_out.stderr
