"""A diagnosis stands while nothing changed that it rests on."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Callable
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import steward_spark
from pulsar_steward.model.catalog.info import CheckInfo
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.tables import VERDICTS
from pulsar_steward.orchestration.shipping import code_archive
from pulsar_steward.snapshots.read import open_snapshot
from steward_spark.checks.check import Check, Judgement
from steward_spark.diagnosing import diagnose
from steward_spark.grounds import _sources, code_digest, said_of, say
from steward_spark.place import DIAGNOSED_NOTE, SnapshotPlace
from tests.builders import CLUSTER, NOW, a_policy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

STEP = timedelta(minutes=10)
PlaceOf = Callable[[dict[str, list[dict[str, Any]]]], SnapshotPlace]


def rows(steps_ago: int = 0) -> dict[str, list[dict[str, Any]]]:
    """A snapshot of a broker without topics."""
    about = {"cluster": CLUSTER, "taken_at": NOW - steps_ago * STEP, "coordinators": 0}
    return {
        "snapshot": [{**about, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": "a:1", "read": True}],
    }


class Counting:
    """A check that finds something, and counts how often it is asked; at first it fails, if it is told to."""

    def __init__(self, *, fails: int = 0) -> None:
        self.asked = 0
        self._fails = fails

    def judge(self, _frames: Frames, _policy: Policy) -> Judgement:
        """Always the same."""
        self.asked += 1
        if self.asked <= self._fails:
            raise MemoryError("too little")
        found = Finding(check_id="made-up", severity=Severity.INFO, subject=CLUSTER, evidence="as ever", figures={})
        return Judgement(findings=(found,))

    def check(self, check_id: str = "made-up") -> Check:
        """The check."""
        return Check(CheckInfo(check_id=check_id, title="made up", advice=(), source="here"), self.judge)


CHANGED = a_policy(tc_skew={"warning_spread_coordinators": 7})
FOR_ALL = a_policy(clusters={CLUSTER: {"tc_skew": {"warning_spread_coordinators": 7}}, "west": {}})


@pytest.mark.spark
@pytest.mark.parametrize(
    ("first", "again"),
    [
        pytest.param(a_policy(), a_policy(), id="the same"),
        pytest.param(CHANGED, FOR_ALL, id="the same for this cluster, in a file for several"),
    ],
)
def test_on_the_same_grounds_a_diagnosis_stands(
    spark: SparkSession, place_of: PlaceOf, caplog: pytest.LogCaptureFixture, first: Policy, again: Policy
) -> None:
    """No check is asked again, nothing is written, and the log says why."""
    place, check = place_of(rows()), Counting()
    diagnose(spark, place.uri, first, [check.check()])
    before = {path: path.stat().st_mtime_ns for path in Path(place.uri).rglob("*")}

    with caplog.at_level(logging.INFO):
        assert diagnose(spark, place.uri, again, [check.check()]) == place.uri

    assert check.asked == 1
    assert {path: path.stat().st_mtime_ns for path in Path(place.uri).rglob("*")} == before
    assert f"{place.name} was diagnosed already: neither policy, code nor earlier snapshots changed" in caplog.messages


def another_policy(place: SnapshotPlace, _place_of: PlaceOf) -> None:
    """It was diagnosed with other thresholds."""
    diagnose(place._spark, place.uri, CHANGED, [Counting().check()])


def another_code(place: SnapshotPlace, _place_of: PlaceOf) -> None:
    """Another version of Steward diagnosed it."""
    _noted(place, code="0")


def another_check(place: SnapshotPlace, _place_of: PlaceOf) -> None:
    """It was diagnosed by another check."""
    diagnose(place._spark, place.uri, a_policy(), [Counting().check("another")])


def another_past(place: SnapshotPlace, _place_of: PlaceOf) -> None:
    """It had no earlier snapshot."""
    _noted(place, earlier=())


def _noted(place: SnapshotPlace, **other: object) -> None:
    said = said_of(place)
    assert said is not None
    say(place, msgspec.structs.replace(said.grounds, **other))


def an_earlier_one_diagnosed_again(_place: SnapshotPlace, place_of: PlaceOf) -> None:
    """Its findings may differ now."""
    before = place_of(rows(1))
    diagnose(before._spark, before.uri, a_policy(), [Counting().check()])


def collected_anew(_place: SnapshotPlace, place_of: PlaceOf) -> None:
    """As a task does that is tried again."""
    place_of(rows())


def cut_off(place: SnapshotPlace, _place_of: PlaceOf) -> None:
    """Whoever wrote it down was ended."""
    place.write_note(DIAGNOSED_NOTE, (place.note(DIAGNOSED_NOTE) or b"")[:40])


def no_verdicts(place: SnapshotPlace, _place_of: PlaceOf) -> None:
    """Somebody removed what the diagnosis is."""
    for file in Path(place.uri, VERDICTS.name).iterdir():
        file.unlink()
    Path(place.uri, VERDICTS.name).rmdir()


@pytest.mark.spark
@pytest.mark.parametrize(
    "change",
    [
        another_policy,
        another_code,
        another_check,
        another_past,
        an_earlier_one_diagnosed_again,
        collected_anew,
        cut_off,
        no_verdicts,
    ],
)
def test_on_other_grounds_a_snapshot_is_diagnosed_anew(
    spark: SparkSession, place_of: PlaceOf, change: Callable[[SnapshotPlace, PlaceOf], None]
) -> None:
    """And afterwards it stands on these."""
    check = Counting()
    before, place = place_of(rows(1)), place_of(rows())
    for each in (before, place):
        diagnose(spark, each.uri, a_policy(), [check.check()])

    change(place, place_of)
    for _ in range(2):
        diagnose(spark, place.uri, a_policy(), [check.check()])

    assert check.asked == 3
    assert [finding.snapshots_in_a_row for finding in open_snapshot(place.uri).findings()] == [2]


@pytest.mark.spark
def test_a_diagnosis_in_which_a_check_failed_does_not_stand(spark: SparkSession, place_of: PlaceOf) -> None:
    """The next try may have the memory that it lacked."""
    place, check = place_of(rows()), Counting(fails=1)

    for _ in range(3):
        diagnose(spark, place.uri, a_policy(), [check.check()])

    assert check.asked == 2
    assert [finding.check_id for finding in open_snapshot(place.uri).findings()] == ["made-up"]


@pytest.mark.spark
def test_what_is_collected_anew_is_no_earlier_diagnosis(spark: SparkSession, place_of: PlaceOf) -> None:
    """What was found in the tables that are gone says nothing of those that are there."""
    before, place = place_of(rows(1)), place_of(rows())
    diagnose(spark, before.uri, a_policy(), [])
    assert [each.name for each in place.earlier(1)] == [before.name]

    place_of(rows(1))

    assert place.earlier(1) == []


@pytest.mark.spark
def test_snapshots_of_older_versions_count_as_diagnosed(spark: SparkSession, place_of: PlaceOf) -> None:
    """They do not say what their diagnosis rests on."""
    before, place = place_of(rows(1)), place_of(rows())
    diagnose(spark, before.uri, a_policy(), [Counting().check()])
    before.remove_note(DIAGNOSED_NOTE)

    diagnose(spark, place.uri, a_policy(), [Counting().check()])

    said = said_of(place)
    assert said is not None
    assert [(each.name, each.diagnosis) for each in said.grounds.earlier] == [(before.name, None)]
    assert [finding.snapshots_in_a_row for finding in open_snapshot(place.uri).findings()] == [2]


def test_code_is_the_same_in_a_folder_and_in_an_archive(tmp_path: Path) -> None:
    """Where a driver imports it from does not matter, and one letter does."""
    package = Path(steward_spark.__file__).parent
    archive = zipfile.ZipFile(code_archive([package], tmp_path))
    here = list(_sources(files("steward_spark"), "steward_spark"))

    assert list(_sources(zipfile.Path(archive, "steward_spark/"), "steward_spark")) == here
    assert ("steward_spark/grounds.py", (package / "grounds.py").read_bytes()) in here
    assert len(code_digest()) == 64
