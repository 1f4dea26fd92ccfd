"""The result on a terminal: what each fault came to, each check's score, and what went wrong in words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from benchmarks.accuracy.outcome import total

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.accuracy.outcome import Outcome, SceneOutcome, Score
    from pulsar_steward.model.finding import Finding


VERDICTS = ("found", "half", "missed", "wrong", "harmful")
"""Verdicts on reports of others, the best first."""


def verdict_of(outcome: Outcome) -> str:
    """Verdict of a report; what could not be looked at is missed."""
    return "missed" if outcome.failure is not None else outcome.judgement.verdict


def field_table(outcomes: Iterable[Outcome]) -> Table:
    """How many reports of others came to each verdict."""
    verdicts = Counter(verdict_of(outcome) for outcome in outcomes if outcome.fault.report is not None)
    table = Table("verdict", "reports", title="The field")
    for verdict in VERDICTS:
        table.add_row(verdict, str(verdicts[verdict]))
    return table


def faults_table(scenes: Iterable[SceneOutcome]) -> Table:
    """A row for each fault, and one for what was found falsely of none."""
    table = Table("fault", "scene", "found", "wrong", "seconds", title="Faults")
    for scene in scenes:
        for outcome in scene.outcomes:
            told = Text("\n".join(wrongs(outcome)) or "-", "green" if outcome.right else "red")
            table.add_row(outcome.fault.name, scene.scene.name, found_of(outcome), told, f"{outcome.seconds:.0f}")
        if scene.strays:
            table.add_row("none", scene.scene.name, "-", Text("\n".join(strays_of(scene)), "red"), "")
    return table


def checks_table(scores: Mapping[str, Score]) -> Table:
    """A row for each check, and one for all of them."""
    table = Table("check", "found", "missed", "false", "precision", "recall", title="Checks")
    for check_id, score in scores.items():
        table.add_row(check_id, *figures(score))
    table.add_section()
    table.add_row("all", *figures(total(scores.values())))
    return table


def figures(score: Score) -> tuple[str, str, str, str, str]:
    """Found, missed, false, precision and recall."""
    return str(score.found), str(score.missed), str(score.false), percent(score.precision), percent(score.recall)


def percent(share: float | None) -> str:
    """``97 %``; a dash where nothing can be said."""
    return "-" if share is None else f"{100 * share:.0f} %"


def found_of(outcome: Outcome) -> str:
    """The checks that found what they should, and those that the label allows besides."""
    judgement = outcome.judgement
    allowed = sorted({finding.check_id for finding in judgement.allowed})
    names = list(dict.fromkeys(expected.check_id for expected in judgement.found))
    return ", ".join([*names, *(f"({name})" for name in allowed if name not in names)]) or "-"


def strays_of(scene: SceneOutcome) -> list[str]:
    """False findings that are no fault's, one thing each."""
    return [_false(finding) for finding in scene.strays]


def wrongs(outcome: Outcome) -> Sequence[str]:
    """Mistakes, one thing each."""
    judgement = outcome.judgement
    return [
        *([f"failed: {outcome.failure}"] if outcome.failure else []),
        *(f"missed {each.expected.check_id}: {each.said}" for each in judgement.missed),
        *map(_false, judgement.false),
        *(f"harmful: {words}" for words in judgement.harmful),
        *(f"not proposed: {pattern}" for pattern in judgement.unproposed),
    ]


def _false(finding: Finding) -> str:
    return f"false {finding.check_id} of {finding.subject}: {finding.evidence}"
