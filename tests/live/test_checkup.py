"""``steward checkup`` on real brokers: healthy, with several troubles at once, half gone, and shut out."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from lab.cluster import Lab, running_lab
from lab.faults.real.ground import COMMON_SETTINGS
from lab.faults.registry import REAL
from lab.testing import need_lab
from tests.command import steward

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = [pytest.mark.live, pytest.mark.spark]

BROKERS = 4
AT_ONCE = ("piled-up-coordinators", "never-acknowledged", "ttl-before-quota")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Four brokers; one that is killed stays listed until the test has looked."""
    need_lab()
    home = tmp_path_factory.mktemp("labs")
    settings = {**dict(COMMON_SETTINGS), "metadataStoreSessionTimeoutMillis": "60000"}
    with running_lab("checkup", home=home, brokers=BROKERS, auth="token", broker_settings=settings) as running:
        yield running


def running(lab: Lab) -> str:
    """The address of a broker that runs."""
    return next(broker.admin_url for broker in lab.brokers if lab.condition(broker.broker_id) == "running")


def checked(folder: Path, lab: Lab, *more: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Runs a check-up with the lab's token; returns how it ended, and its JSON."""
    given = ["--admin-url", running(lab), "--token-file", str(lab.token_file), "--json", "out.json", *more]
    ended = steward(folder, "checkup", *given)
    return ended, json.loads((folder / "out.json").read_text(encoding="utf-8"))


def found_by(document: dict[str, Any]) -> set[str]:
    """Ids of the checks that found trouble: information, such as a backlog that no quota bounds, is none."""
    return {check["check_id"] for check in document["checks"] if check["severity"] in {"warning", "critical"}}


def test_a_cluster_through_its_days(lab: Lab, tmp_path: Path) -> None:
    """Healthy is 0 and an empty list; three troubles at once are exactly these three and 1; half gone is said first."""
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
    assert "PARTIAL: 2 of what the cluster lists could not be read" in partial.stdout


def test_a_wrong_token(lab: Lab, tmp_path: Path) -> None:
    """It is 2, with the remedy; nothing is printed as a report."""
    (tmp_path / "token").write_text("not.a.token", encoding="utf-8")
    shut_out = steward(tmp_path, "checkup", "--admin-url", running(lab), "--token-file", "token")

    assert (shut_out.returncode, shut_out.stdout) == (2, "")
    assert "--token-file" in shut_out.stderr
