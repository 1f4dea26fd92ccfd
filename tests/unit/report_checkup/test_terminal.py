"""The report in a terminal."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from pulsar_steward.cli.saying import print_lines
from pulsar_steward.planners.from_snapshot import scene_of
from pulsar_steward.planners.moves import Moves
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.checkup.plan_text import plan_lines
from pulsar_steward.report.checkup.terminal import MOST_LISTED, lines
from pulsar_steward.report.checkup.text import wrapped
from pulsar_steward.snapshots.read import open_snapshot
from tests.unit.report_checkup.examples import EXAMPLES, FOLDER, LOOKS, looks
from tests.unit.report_checkup.snapshots import a_finding, a_verdict, meta, skewed, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pulsar_steward.report.checkup.document import Checkup

    Make = Callable[..., Checkup]

LONG = "persistent://acme/orders/" + "very-long-name-" * 8 + "partition-0"


def shown(checkup: Checkup, width: int = 80) -> str:
    """The report as a pipe gets it."""
    return "\n".join(line.plain for line in lines(checkup, width))


def test_the_worst_comes_before_what_is_clear(checkup_with: Make) -> None:
    """Result, findings with evidence, advice, remedy and source, then unknown, clear, and the proposal."""
    text = shown(checkup_with(**skewed()))

    parts = [
        "Check-up of east (calls itself local), Pulsar 4.0.7",
        "RESULT: 1 finding to look at",
        "[tc-skew]",
        "CRITICAL  east",
        "broker-00:8080 has 16 of 16",
        "What to do:",
        "1. Move bundles of pulsar/system",
        "Steward can propose a remedy (tc_balance)",
        "Source: docs/knowledge.md A",
        "Could not be judged",
        "Clear (1)",
        "bundle-topic-skew",
        "What Steward would propose",
        "Even out 16 transaction coordinators",
    ]
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert "more here" not in text


@pytest.mark.parametrize("width", [40, 80, 300])
def test_no_line_is_longer_than_the_terminal_but_for_names(checkup_with: Make, width: int) -> None:
    """Nothing is folded by the terminal; on a very wide one lines stay readable."""
    text = shown(checkup_with(**skewed()), width)

    assert max(len(line) for line in text.splitlines()) <= min(width, 100)


def test_a_name_longer_than_a_line_stays_whole(checkup_with: Make) -> None:
    """It can be copied, as subject and within the evidence."""
    finding = a_finding(subject=LONG, evidence=f"The topic {LONG} is behind.")

    text = shown(checkup_with(findings=[finding], verdicts=[a_verdict("tc-skew", "found")]))

    assert text.count(LONG) == 2


def test_names_cannot_steer_the_terminal(checkup_with: Make) -> None:
    """Escape sequences, line breaks and markup of a name are spelled out."""
    finding = a_finding(subject="a\x1b[2Jb", evidence="[red]x[/red]\nRESULT: healthy \u202e")
    checkup = checkup_with(findings=[finding], verdicts=[a_verdict("tc-skew", "found")])
    console = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False)

    with console.capture() as capture:
        print_lines(lines(checkup, 80), console)

    assert "a\\x1b[2Jb" in capture.get()
    assert "[red]x[/red]\\nRESULT: healthy \\u202e" in capture.get()


@pytest.mark.parametrize(("terminal", "coloured"), [(True, True), (False, False)])
def test_colour_is_for_terminals_only(checkup_with: Make, *, terminal: bool, coloured: bool) -> None:
    """A pipe gets words alone."""
    console = Console(file=io.StringIO(), force_terminal=terminal, width=80, no_color=False, highlight=False)

    with console.capture() as capture:
        print_lines(lines(checkup_with(**skewed()), 80), console)

    assert ("\x1b[" in capture.get()) is coloured


def test_no_color_is_respected(checkup_with: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but weight is left of the styles, and everything is said in words."""
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False, _environ=os.environ)

    with console.capture() as capture:
        print_lines(lines(checkup_with(**skewed()), 80), console)

    assert "\x1b[1;31m" not in capture.get()
    assert "CRITICAL" in capture.get()


def test_a_partial_snapshot_says_so_before_anything_else(checkup_with: Make) -> None:
    """What is unread is listed, cut where it is too much for a screen."""
    unread = [f"acme/n{number:02d}" for number in range(23)]

    text = shown(checkup_with(snapshot=meta(unread_namespaces=unread), **skewed()))

    assert text.index("PARTIAL: 23 of what the cluster lists could not be read") < text.index("CRITICAL")
    assert "namespace acme/n19" in text
    assert "acme/n20" not in text
    assert "and 3 more" in text


@pytest.mark.parametrize(
    ("listed", "further", "words"),
    [
        (MOST_LISTED, 0, []),
        (MOST_LISTED + 2, 0, ["and 2 more here: --html and --json list them"]),
        (100, 150, ["and 95 more here", "and 150 further ones that are less bad", "(250)"]),
    ],
)
def test_many_findings_are_cut_and_counted(checkup_with: Make, listed: int, further: int, words: list[str]) -> None:
    """The screen has the worst ones."""
    findings = [a_finding("warning", subject=f"s{number}") for number in range(listed)]

    text = shown(checkup_with(findings=findings, verdicts=[a_verdict("tc-skew", "found", more=further)]))

    assert text.count("WARNING   s") == MOST_LISTED
    assert [word for word in words if word not in text] == []
    assert ("more here" in text) is bool(words)


def test_a_finding_that_stands_says_since_when(checkup_with: Make) -> None:
    """One that only this snapshot shows says nothing of it."""
    old = a_finding(snapshots_in_a_row=4, first_seen=meta()[0]["taken_at"], subject="old")
    verdicts = [a_verdict("tc-skew", "found")]

    text = shown(checkup_with(findings=[old, a_finding(subject="new")], verdicts=verdicts))

    assert text.count("Stands since 2026-03-01 12:00 UTC, in 4 snapshots in a row.") == 1


def test_checks_of_one_reason_stand_together(checkup_with: Make) -> None:
    """A reason that many checks share is said once."""
    text = shown(checkup_with())

    assert text.count("The snapshot was diagnosed without this check") == 1


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (
            [a_verdict("tc-skew", "clear"), a_verdict("bundle-topic-skew", "unknown")],
            "healthy, as far as could be seen",
        ),
        ([a_verdict("tc-skew", "unknown")], "could not look: no check could say that it is clear"),
    ],
)
def test_the_result_is_said_in_a_sentence(checkup_with: Make, verdicts: list[dict[str, str]], words: str) -> None:
    """Health that was not seen is not claimed."""
    assert f"RESULT: {words}" in shown(checkup_with(verdicts=verdicts), 100)


def test_a_plan_shows_each_step_with_its_call(tmp_path: Path) -> None:
    """Reason, effect, cost, way back, and the call on a line of its own."""
    snapshot = open_snapshot(written(tmp_path / "snapshot", **skewed()))
    plan = make_plan(scene_of(snapshot, Policy(), Moves()))

    text = "\n".join(line.plain for line in plan_lines(plan, ["because"], 80))

    assert f"Plan {plan.plan_id}" in text
    assert "broker-00:8080     16 -> 6" in text
    assert text.count("call      PUT /admin/v2/namespaces/pulsar/system/0x") == 4
    for words in ("why", "effect", "disturbs", "back", "Why it is no more than this", "- because"):
        assert words in text


def test_a_paragraph_keeps_its_indentation() -> None:
    """What stands before its first line does not count as a word."""
    assert [line.plain for line in wrapped("one two three", 10, first="1. ", indent=3)] == ["1. one two", "   three"]
    assert [line.plain for line in wrapped("", 10, first="- ", indent=2)] == ["- "]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_how_a_checkup_looks(name: str, look: str) -> None:
    """To the letter and the colour; `tests.unit.report_checkup.examples` says how to write it down anew."""
    assert looks(name, look) == (FOLDER / f"{name}-{look}.txt").read_text(encoding="utf-8")


def test_what_was_found_is_listed_in_a_line_each(checkup_with: Make) -> None:
    """The worst first, with how many there are, before any of them is told at length."""
    findings = [a_finding("warning", "ack-holes"), a_finding(), a_finding("info", "clock-skew")]
    verdicts = [a_verdict(each, "found") for each in ("ack-holes", "tc-skew", "clock-skew")]

    text = shown(checkup_with(findings=findings, verdicts=verdicts), 100)

    listed = text.split("What was found, the worst first\n")[1].split("\n\n")[0]
    assert [word for word in listed.split() if word.isupper()] == ["CRITICAL", "WARNING", "INFO"]
    assert listed.count("(1)") == 3
