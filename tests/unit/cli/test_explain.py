"""``steward explain`` and ``steward schema``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.cli import explain
from pulsar_steward.report.checkup.document import schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Ended

    Steward = Callable[..., Ended]


@pytest.mark.parametrize("check_id", BY_ID)
def test_every_check_is_explained(steward: Steward, monkeypatch: pytest.MonkeyPatch, check_id: str) -> None:
    """The explanation of a check has its title, its source and every step of its advice, also without its page."""
    monkeypatch.setattr(explain, "page_of", lambda _: None)
    info = BY_ID[check_id]

    ended = steward("explain", check_id)

    said = " ".join(ended.out.split())
    assert ended.code == 0
    assert info.title in said
    assert info.source in said
    assert [step for step in info.advice if " ".join(step.split()) not in said] == []


def test_thresholds_are_said_with_their_defaults(steward: Steward) -> None:
    """A check's thresholds are shown by their key in the policy, with default and meaning."""
    said = " ".join(steward("explain", "tc-skew").out.split())

    assert "tc_skew.warning_spread_coordinators: 3: most minus fewest" in said
    assert "Steward can propose one (tc_balance)" in said


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("tc-skw", "did you mean tc-skew"),
        ("tc_skew", "did you mean tc-skew"),
        ("TC-SKEW", "did you mean tc-skew"),
        ("qqqqqqqq", "`steward explain` lists them all"),
    ],
)
def test_a_check_that_is_none_is_told_with_what_may_be_meant(steward: Steward, given: str, words: str) -> None:
    """An unknown check ends the command with exit code 2 and one line that suggests a check or the list."""
    ended = steward("explain", given)

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert words in ended.err


def test_all_checks_are_listed_in_the_guides_order(steward: Steward) -> None:
    """All checks are listed in the guide's order if none is named."""
    out = steward("explain").out

    places = [out.index(f"  {check_id}\n") for check_id in BY_ID]
    assert places == sorted(places)


@pytest.mark.parametrize("terminal", [False, True])
def test_the_page_of_a_check_follows(
    steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    """A check's page is printed unchanged to a pipe and formatted to a terminal; a missing one is mentioned."""
    page = tmp_path / "tc-skew.md"
    page.write_text("# Title\n\n`a command`\n", encoding="utf-8")
    monkeypatch.setattr(explain, "page_of", lambda check_id: page if check_id == "tc-skew" else None)
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")

    assert ("# Title\n\n`a command`\n" in steward("explain", "tc-skew").out) is not terminal
    assert "not at hand" in steward("explain", "bundle-topic-skew").out


def test_the_schema_is_printed(steward: Steward) -> None:
    """The command prints the JSON schema of check-ups."""
    assert json.loads(steward("schema").out) == schema()


def test_an_installed_package_says_where_documents_of_sources_are(
    steward: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Below a source that names a document stands the folder of documents, where the package is installed."""
    assert "docs/ is " not in steward("explain", "tc-skew").out
    monkeypatch.setattr(explain, "installed_files", lambda: tmp_path)
    assert f"docs/ is {tmp_path / 'docs'}" in " ".join(steward("explain", "tc-skew").out.split())
