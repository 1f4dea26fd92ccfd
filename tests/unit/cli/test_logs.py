"""``steward checkup --logs``: logs and thread dumps in the same report as the cluster."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import jsonschema
import pytest

from pulsar_steward.logs.patterns import LOG_CHECKS
from pulsar_steward.report.checkup.schema import schema
from tests.cases import row_by_row
from tests.unit.logs.lines import EXPIRED, a_dump
from tests.unit.report_checkup.snapshots import meta, skewed, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Steward


TOKEN = "words-that-are-a-token"


@pytest.fixture
def healthy(tmp_path: Path) -> str:
    """A new snapshot without trouble."""
    return written(tmp_path / "healthy", snapshot=meta(taken_at=datetime.now(UTC)))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A broker's log with one trouble."""
    path = tmp_path / "broker-1.log"
    path.write_text(f"{EXPIRED}\n", encoding="utf-8")
    return path


def test_logs_are_told_in_the_same_report(steward: Steward, healthy: str, log: Path) -> None:
    """A critical message in a log is a finding with advice, also if the cluster itself looks healthy."""
    alone = steward("checkup", "--snapshot", healthy)
    ended = steward("checkup", "--snapshot", healthy, "--logs", log)

    assert (alone.code, ended.code) == (0, 1)
    said = " ".join(ended.out.split())
    assert "CRITICAL The metadata store stands still, loses sessions" in said
    assert "Sessions expired: 1 time in" in said
    assert "log-metadata-store 1. Give ZooKeeper's transaction log a disk of its own" in said
    assert "Logs and thread dumps" in said
    assert f"reading {log}" in " ".join(ended.err.split())


def test_several_files_may_be_named(steward: Steward, healthy: str, log: Path, tmp_path: Path) -> None:
    """Several files of logs may follow one option, or each its own."""
    dump = tmp_path / "dump.txt"
    dump.write_text(a_dump(("pulsar-io-4-1", "waits")), encoding="utf-8")

    for files in (["--logs", log, dump], ["--logs", log, "--logs", dump]):
        said = json.loads(steward("checkup", "--snapshot", healthy, "--json", "-", *files).out)
        found = {check["check_id"] for check in said["checks"] if check["severity"] == "critical"}
        assert found == {"log-metadata-store", "log-thread-dump"}


def test_the_document_is_of_the_same_form(steward: Steward, tmp_path: Path, log: Path) -> None:
    """The document with logs has the checks of logs last; without the option it has none of them."""
    snapshot = written(tmp_path / "snapshot", **skewed())
    page, document, without = (tmp_path / name for name in ("a.html", "a.json", "b.json"))

    steward("checkup", "--snapshot", snapshot, "--html", page, "--json", document, "--logs", log)
    steward("checkup", "--snapshot", snapshot, "--json", without)

    said, other = (json.loads(each.read_text(encoding="utf-8")) for each in (document, without))
    jsonschema.Draft202012Validator(schema()).validate(said)
    ids = [check["check_id"] for check in said["checks"]]
    assert ids[-len(LOG_CHECKS) :] == list(LOG_CHECKS)
    assert ids[: -len(LOG_CHECKS)] == [check["check_id"] for check in other["checks"]]
    assert said["planning"] == other["planning"]
    assert 'id="log-metadata-store"' in page.read_text(encoding="utf-8")


def test_what_a_log_holds_is_text(
    steward: Steward, healthy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Markup and control characters of a log are escaped in all output, and the token is not shown."""
    monkeypatch.setenv("STEWARD_ADMIN_TOKEN", TOKEN)
    log, page = tmp_path / "x.log", tmp_path / "a.html"
    told = f"12:00:00.000 ERROR Some <script>alert(1)</script> \x1b[31m \u202e {{{{7*7}}}} {TOKEN}\n"
    log.write_text(told, encoding="utf-8")

    ended = steward("checkup", "--snapshot", healthy, "--logs", log, "--html", page)

    shown = page.read_text(encoding="utf-8")
    assert "<script>alert(1)" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert "{{7*7}}" in shown
    for text in (ended.out, ended.err, shown):
        assert TOKEN not in text
        assert "\x1b[31m" not in text
        assert "\u202e" not in text
    assert "\\u202e" in ended.out


@row_by_row(
    "arguments, words",
    (["--logs", "missing.log"], "error: --logs missing.log: No such file or directory"),
    (["--logs", "."], "error: --logs .: name a file"),
    (["broker.log"], "error: got unexpected extra argument (broker.log): files are given by --logs"),
)
def test_what_cannot_be_read_is_told_first(
    steward: Steward, healthy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], words: str
) -> None:
    """A file of logs that cannot be read ends the command with exit code 2 and one line, before any report."""
    monkeypatch.chdir(tmp_path)
    ended = steward("checkup", "--snapshot", healthy, *arguments)

    assert (ended.code, ended.out, ended.err) == (2, "", f"{words}\n")


@pytest.mark.parametrize("check_id", LOG_CHECKS)
def test_checks_of_logs_are_explained(steward: Steward, check_id: str) -> None:
    ended = steward("explain", check_id)

    said = " ".join(ended.out.split())
    assert ended.code == 0
    assert LOG_CHECKS[check_id].title in said
    assert "docs/checks/logs.md" in said
    assert f"`{check_id}`" in said
