"""``steward`` as a process, on a machine without Java, against a simulated cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsonschema
import pytest

from lab.simulator import ClusterSpec, running_simulator
from pulsar_steward.report.checkup.schema import schema
from tests.command import steward

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "made.up-token_of-a.superuser"
JSON_AND_PAGE = ("--json", "out.json", "--html", "out.html")


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


HEALTHY = pytest.param(
    False, 0, id="healthy", marks=pytest.mark.extended("tests/live/test_checkup.py::test_a_cluster_through_its_days")
)


@pytest.mark.parametrize(("piled_up", "code"), [HEALTHY, pytest.param(True, 1, id="piled up")])
def test_a_checkup_of_a_cluster(tmp_path: Path, *, piled_up: bool, code: int) -> None:
    """A check-up writes valid JSON, and ends with 0 if healthy and with 1 and a plan if coordinators are piled up."""
    (tmp_path / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
    with running_simulator(ClusterSpec(tc_owner=0 if piled_up else None), token=TOKEN) as cluster:
        urls = [word for url in cluster.admin_urls for word in ("--admin-url", url)]
        looked = steward(tmp_path, "checkup", *urls, "--token-file", "token", "--keep", "kept", *JSON_AND_PAGE)
        changed = {record.method for record in cluster.requests.all()} - {"GET"}

    assert looked.returncode == code, looked.stdout + looked.stderr
    assert changed == set()
    document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema()).validate(document)
    assert document["about"]["brokers_read"] == 3
    outlooks = {check["check_id"]: check["outlook"] for check in document["checks"]}
    assert outlooks["tc-skew"] == ("found" if piled_up else "clear")
    assert looked.stderr.splitlines()[:2] == [
        f"asking {cluster.admin_urls[0]} who is there",
        "collecting from the brokers of local",
    ]
    kept = next((tmp_path / "kept").glob("cluster=local/taken_at=*"))
    planned = steward(tmp_path, "plan", "--snapshot", str(kept))
    assert planned.returncode == 0, planned.stderr
    assert ("PUT /admin/v2/namespaces/pulsar/system/" in planned.stdout) is piled_up
    said = looked.stdout + looked.stderr + planned.stdout + planned.stderr
    assert TOKEN not in said
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "token"]
    assert not [path for path in files if TOKEN.encode() in path.read_bytes()]


@pytest.mark.parametrize("token", ["wrong", None])
def test_a_cluster_that_does_not_let_us_in(tmp_path: Path, token: str | None) -> None:
    """A check-up with a wrong token or without one ends with exit code 2 and names the remedy."""
    (tmp_path / "token").write_text(str(token), encoding="utf-8")
    with running_simulator(ClusterSpec(brokers=1), token=TOKEN) as cluster:
        given = ["--token-file", "token"] if token else []
        ended = steward(tmp_path, "checkup", "--admin-url", cluster.admin_urls[0], *given)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--token-file" in ended.stderr


def test_no_such_address(tmp_path: Path) -> None:
    """A check-up of an address where no broker answers ends with exit code 2 and names the remedy."""
    ended = steward(tmp_path, "checkup", "--admin-url", "http://127.0.0.1:1")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "check --admin-url" in ended.stderr


@pytest.mark.extended("tests/live/test_checkup.py::test_a_cluster_through_its_days")
def test_a_broker_that_does_not_answer_makes_it_partial(tmp_path: Path) -> None:
    """A check-up with a silent broker is marked partial, names the broker and reports no check as clear."""
    with running_simulator(ClusterSpec(tc_owner=0), session_s=3600) as cluster:
        broker = cluster.active_brokers()[-1]
        url = next(url for url in cluster.admin_urls if not url.endswith(broker))
        cluster.kill_broker(broker)
        ended = steward(tmp_path, "checkup", "--admin-url", url)
    assert ended.returncode == 1
    assert "PARTIAL: 1 of what" in ended.stdout
    assert f"broker {broker}" in ended.stdout
    assert "Clear (" not in ended.stdout
