"""Scores, the table and the document, of made-up outcomes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from benchmarks.accuracy.document import FIELD, Run, markdown, with_field
from benchmarks.accuracy.judging import Judgement, Missed
from benchmarks.accuracy.outcome import Outcome, SceneOutcome, Score, scores, total
from benchmarks.accuracy.scenes import Scene
from benchmarks.accuracy.table import checks_table, faults_table
from lab.faults.fault import Expected, RealFault, SimulatedFault
from lab.simulator import ClusterSpec
from pulsar_steward.model.finding import Finding, Severity

if TYPE_CHECKING:
    from tests.golden import Golden

SKEW, HOLES = Expected("tc-skew"), Expected("ack-holes")
FALSE = tuple(
    Finding(check_id="hot-bundle", severity=Severity.WARNING, subject=subject, evidence="It is [hot].")
    for subject in ("a/b", "c/d")
)
PILED = Outcome(
    RealFault(name="piled", about="One | two.", expected=(SKEW,), policy={"tc_skew": {"warning_spread": 2}}),
    Judgement(found=(SKEW,), allowed=FALSE[:1]),
    12.4,
)
HOLED = Outcome(
    SimulatedFault(name="holed", about="Holes.", expected=(SKEW, HOLES), specs=(ClusterSpec(),), why="too large"),
    Judgement(found=(SKEW,), missed=(Missed(HOLES, "clear: all is well"),), false=FALSE),
    3.0,
)
BROKEN = Outcome(
    RealFault(name="broken", about="It cannot be made.", client="java", twin_of=("piled",)),
    seconds=1.0,
    failure="NotReachedError: in vain",
)
STRAY = Finding(check_id="gc-pressure", severity=Severity.WARNING, subject="b:1", evidence="It collects.")


def scene(*outcomes: Outcome, strays: tuple[Finding, ...] = ()) -> SceneOutcome:
    """These together."""
    faults = tuple(outcome.fault for outcome in outcomes)
    return SceneOutcome(Scene("together", faults, {}), outcomes, strays, 60.0)  # type: ignore[arg-type]  # no fault that can be made


def test_what_could_not_be_made_counts_as_missed() -> None:
    fault = RealFault(name="broken", about="It cannot be made.", expected=(SKEW, HOLES))
    failed = Outcome(fault, failure="NotReachedError: in vain")
    assert scores([scene(failed)]) == {"ack-holes": Score(missed=1), "tc-skew": Score(missed=1)}


def test_each_check_has_its_score() -> None:
    """A check counts as false at most once per fault, and a listed check without a fault has an empty score."""
    assert scores([scene(PILED), scene(HOLED)], ["clock-skew"]) == {
        "ack-holes": Score(missed=1),
        "clock-skew": Score(),
        "hot-bundle": Score(false=1),
        "tc-skew": Score(found=2),
    }


@pytest.mark.parametrize(
    ("score", "precision", "recall"),
    [(Score(3, 1, 1), 0.75, 0.75), (Score(2, 0, 0), 1.0, 1.0), (Score(0, 2, 0), None, 0.0), (Score(), None, None)],
)
def test_precision_and_recall_are_shares(score: Score, precision: float | None, recall: float | None) -> None:
    assert (score.precision, score.recall) == (precision, recall)


def test_the_total_adds_up() -> None:
    assert total(scores([scene(PILED), scene(HOLED)]).values()) == Score(found=2, missed=1, false=1)


@pytest.mark.parametrize(("outcome", "right"), [(PILED, True), (HOLED, False), (BROKEN, False)])
def test_a_fault_is_right_when_all_of_it_was_found_and_nothing_else(outcome: Outcome, right: bool) -> None:
    assert outcome.right is right


def test_the_tables_tell_what_went_wrong_in_words() -> None:
    """The tables show evidence with its brackets, verdicts of missed checks, failures and percentages."""
    shown = io.StringIO()
    console = Console(file=shown, width=300)
    outcomes = [scene(PILED, BROKEN, strays=(STRAY,)), scene(HOLED)]
    console.print(faults_table(outcomes), checks_table(scores(outcomes)))
    said = ("tc-skew, (hot-bundle)", "It is [hot].", "clear: all is well", "NotReachedError: in vain", "67 %")
    for words in (*said, "It collects."):
        assert words in shown.getvalue()


def test_what_is_no_faults_is_false_once_a_scene() -> None:
    """A finding that belongs to no fault counts as false once a scene, and makes the scene wrong."""
    strays = (STRAY, STRAY)
    assert scores([scene(PILED, strays=strays), scene(strays=strays)])["gc-pressure"] == Score(false=2)
    assert scene(PILED).right
    assert not scene(PILED, strays=strays).right


def test_the_document_tells_faults_labels_and_versions(golden: Golden) -> None:
    """The document tells why a fault is simulated and which policy it has, and escapes `|` in the tables."""
    outcomes = [scene(PILED, BROKEN, strays=(STRAY,)), scene(HOLED)]
    text = markdown(Run(outcomes, scores(outcomes, ["clock-skew"]), "2026-01-31", {"Pulsar": "4.0.7"}, 120.0))
    golden(text)


@pytest.mark.parametrize("before", ["# Title\n\nsummary\n", "# Title\n\nsummary\n\n## The field\n\nof before\n"])
def test_the_part_of_the_field_is_replaced_alone(before: str) -> None:
    """It comes after the summary, and everything else stays."""
    section = f"{FIELD}\n\nof now"
    assert (
        with_field(f"{before}\n## Clients\n\nall\n", section)
        == f"# Title\n\nsummary\n\n{section}\n\n## Clients\n\nall\n"
    )
