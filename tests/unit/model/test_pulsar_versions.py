"""Operations tried on each version of Pulsar, and the answer for all others; docs/versions.md shows the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.versions import markdown, written
from lab.model import VERSIONS
from pulsar_steward.model import pulsar_versions
from pulsar_steward.model.pulsar_versions import (
    EVERY,
    INTRODUCED,
    OF_NAMESPACES,
    OF_TOPICS,
    TRIED,
    Operation,
    objection_to,
    tried_as,
)
from pulsar_steward.model.setting import SettingName

DOCUMENT = Path(__file__).parents[3] / "docs" / "versions.md"
HELD_BY_TESTS = {"4.0.7", "4.2.4"}
"""Releases that `tests/live` and `tests/contract` were written on; the document need not have a column of them."""
MOVE, TTL = Operation.MOVE_BUNDLE, Operation.NAMESPACE_TTL


def test_every_release_that_was_tried_can_be_started() -> None:
    """The lab can start exactly the releases on which operations were tried."""
    assert set(TRIED) == set(VERSIONS)


def test_every_setting_is_an_operation() -> None:
    """Every setting is an operation of namespaces and one of topics."""
    assert set(OF_NAMESPACES) == set(OF_TOPICS) == set(SettingName)
    assert {*OF_NAMESPACES.values(), *OF_TOPICS.values()} < EVERY


def test_the_document_says_what_the_table_says() -> None:
    """The document says `done` exactly for the releases and operations that the table of tried ones has."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in DOCUMENT.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    releases = rows[0][1:]
    told = {row[0]: dict(zip(releases, row[1:], strict=True)) for row in rows}
    assert set(releases) | HELD_BY_TESTS >= set(TRIED) >= set(releases)
    for operation in Operation:
        done = {release for release, result in told[operation].items() if result == "done"}
        assert done == {release for release in releases if operation in TRIED[release]}, operation


@pytest.mark.parametrize("version", [*TRIED, "4.0.0", "4.0.15", "4.2.9", "3.0.17", "3.3.9"])
def test_a_release_of_a_line_that_was_tried(version: str) -> None:
    """A patch release counts as the tried release of its line, and the words name that release."""
    assert objection_to(TTL, version) is None
    line = version.rpartition(".")[0]
    tried = next(each for each in TRIED if each.startswith(f"{line}."))
    assert tried_as(version) == (
        f"Pulsar {version}" if version in TRIED else f"Pulsar {tried}, of the same line as {version}"
    )


@pytest.mark.parametrize("version", ["2.8.1", "2.10.0", "2.10.6", "2.11.4", "2.10.4-acme", "2.11.0.3"])
@pytest.mark.parametrize("vouched", [(), ("2.8", "2.10", "2.11", "2.10.4-acme", "2.11.0.3")])
def test_what_brokers_lack_is_refused_whoever_vouches_for_it(version: str, vouched: tuple[str, ...]) -> None:
    """A bundle move is refused on releases that lack it, also where the policy vouches for the release."""
    reason = objection_to(MOVE, version, vouched)
    assert reason is not None
    assert reason.startswith(f"Pulsar {version} has no `destinationBroker`")
    assert INTRODUCED[MOVE].source in reason


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("4.3.0", "was never tried: it is newer than 4.2.4, the newest that was ("),
        ("5.0.1", "was never tried: it is newer than 4.2.4, the newest that was ("),
        ("10.0.0", "was never tried: it is newer than 4.2.4, the newest that was ("),
        ("4.1.2", "Pulsar 4.1.2 was never tried ("),
        ("4.0.7-acme", "was never tried: it is no release of Apache Pulsar ("),
        ("4.0.7.3", "was never tried: it is no release of Apache Pulsar ("),
        ("4.0.8-SNAPSHOT", "was never tried: it is no release of Apache Pulsar ("),
        ("4.0", "was never tried: it is no release of Apache Pulsar ("),
        ("\u0664.\u0660.\u0667", "was never tried: it is no release of Apache Pulsar ("),
        ("4.0.7\n", "was never tried: it is no release of Apache Pulsar ("),
    ],
)
def test_what_was_never_tried_is_refused(version: str, words: str) -> None:
    """A version that was never tried is refused for every operation, and the reason names the policy key."""
    for operation in Operation:
        reason = objection_to(operation, version)
        assert reason is not None
        assert words in reason
        assert reason.endswith("(docs/versions.md; policy key guards.versions_tried_here)")


@pytest.mark.parametrize(
    ("version", "vouched", "passes"),
    [
        ("4.3.1", ("4.3",), True),
        ("4.3.1", ("4.3.1",), True),
        ("4.3.2", ("4.3.1",), False),
        ("4.31.0", ("4.3",), False),
        ("4.3.1-acme", ("4.3",), False),
        ("4.3.1-acme", ("4.3.1-acme",), True),
    ],
)
def test_the_operator_vouches_for_a_line_or_for_a_version(version: str, vouched: tuple[str, ...], passes: bool) -> None:
    """A vouched line covers its releases but no custom build, and a vouched version covers itself only."""
    assert (objection_to(MOVE, version, vouched) is None) is passes
    if passes:
        assert tried_as(version).endswith("as the policy says (policy key guards.versions_tried_here)")


def test_the_policy_takes_nothing_away() -> None:
    """A tried version stays permitted when the policy names other versions only."""
    assert objection_to(MOVE, "4.0.7", ("4.3",)) is None


def test_one_operation_may_be_untried_on_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single untried operation is refused on a release until the policy vouches for it; the others pass."""
    operation = Operation.NAMESPACE_DELAYED_DELIVERY
    all_but_one = {**pulsar_versions.TRIED, "4.2.4": EVERY - {operation}}
    monkeypatch.setattr(pulsar_versions, "TRIED", all_but_one)
    reason = objection_to(operation, "4.2.4")
    assert reason is not None
    assert reason.startswith("longest delay of a namespace: it was never tried on Pulsar 4.2.4 (docs/versions.md;")
    assert objection_to(operation, "4.2.4", ("4.2",)) is objection_to(TTL, "4.2.4") is None
    assert "came with 3.3" in (objection_to(operation, "3.0.7", ("3.0",)) or "")


def test_columns_of_other_versions_stay_as_they_are() -> None:
    """What the command writes it reads back whole, notes of several lines included."""
    assert markdown(written(DOCUMENT)) == DOCUMENT.read_text(encoding="utf-8")
