"""How long findings have stood, by the diagnoses of earlier snapshots."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.diagnose.history import Diagnosis, FindingAge, with_history
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.tables import FINDINGS
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import on_this_thread
from tests.builders import NOW
from tests.unit.diagnose.conftest import ABOUT, FolderOf, Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.snapshots.folder import SnapshotFolder

HOUR = timedelta(hours=1)
FINDING = Finding(check_id="tc-skew", severity=Severity.WARNING, subject="east", evidence="skewed")
KEY = ("tc-skew", "east")
CLEAR = Diagnosis(frozenset({"tc-skew"}), {})
BLIND = Diagnosis(frozenset(), {})
SEEN = Diagnosis(frozenset({"tc-skew"}), {KEY: FindingAge(NOW - 3 * HOUR, 2)})


@pytest.mark.parametrize(
    ("earlier", "first_seen", "in_a_row"),
    [
        pytest.param([], NOW, 1, id="never looked before"),
        pytest.param([CLEAR], NOW, 1, id="was clear"),
        pytest.param([CLEAR, SEEN], NOW, 1, id="had gone in between"),
        pytest.param([SEEN], NOW - 3 * HOUR, 3, id="stands"),
        pytest.param([BLIND, BLIND, SEEN], NOW - 3 * HOUR, 3, id="could not be judged in between"),
        pytest.param([BLIND, CLEAR, SEEN], NOW, 1, id="could not be judged, then was clear"),
    ],
)
def test_a_finding_stands_as_long_as_no_snapshot_says_otherwise(
    earlier: list[Diagnosis], first_seen: datetime, in_a_row: int
) -> None:
    """A finding keeps its first time until a snapshot that could judge its check does not find it."""
    (found,) = with_history([FINDING], NOW, earlier)
    assert (found.first_seen, found.snapshots_in_a_row) == (first_seen, in_a_row)


def test_another_subject_has_a_row_of_its_own() -> None:
    """Earlier findings of another subject do not count for the snapshots in a row of a finding."""
    other = Diagnosis(frozenset({"tc-skew"}), {("tc-skew", "west"): FindingAge(NOW - HOUR, 7)})
    (found,) = with_history([FINDING], NOW, [other])
    assert found.snapshots_in_a_row == 1


def test_no_more_is_read_than_is_needed() -> None:
    """No earlier diagnosis is read without findings, and otherwise none before the one that settles them."""
    read: list[str] = []

    def diagnoses() -> Iterator[Diagnosis]:
        for name, diagnosis in (("newest", SEEN), ("older", CLEAR)):
            read.append(name)
            yield diagnosis

    with_history([], NOW, diagnoses())
    assert read == []
    with_history([FINDING], NOW, diagnoses())
    assert read == ["newest"]


def test_three_snapshots_in_a_row_are_counted(folder_of: FolderOf) -> None:
    """A finding in three finished snapshots is three in a row, although an unfinished one lies between them."""
    folders = [skewed(folder_of, NOW + number * HOUR, finished=number != 1) for number in range(4)]
    for number in (0, 2, 3):
        diagnose(folders[number], Policy(), on_this_thread, [BY_ID["tc-skew"]])

    (found,) = folders[3].read(FINDINGS).to_pylist()
    assert (found["check_id"], found["first_seen"], found["snapshots_in_a_row"]) == ("tc-skew", NOW, 3)


def skewed(folder_of: FolderOf, taken_at: datetime, *, finished: bool) -> SnapshotFolder:
    """A snapshot of two brokers of which one holds all four coordinators."""
    about = {"taken_at": taken_at, "pulsar_version": "4.0.7", "coordinators": 4, "tcs_by_bundle": True}
    rows: Rows = {
        "snapshot": [ABOUT | about],
        "brokers": [{"broker": name, "read": True} for name in ("a:8080", "b:8080")],
        "transaction_coordinators": [
            {"coordinator": number, "broker": "a:8080", "broker_known": True} for number in range(4)
        ],
    }
    folder = folder_of(rows)
    if not finished:
        folder.begin()
    return folder
