"""A planner is asked only about findings that may be answered, and says why it is not asked about others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.step import GuardResult
from pulsar_steward.planners.base import Planner, Proposal, Vetoed, enumerated, reasons_against
from pulsar_steward.planners.snapshot_facts import vetoes
from tests.builders import a_policy, a_step, planning_facts_with

if TYPE_CHECKING:
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from tests.golden import Golden


def propose(_: PlanningFacts, goal: str, findings: tuple[Finding, ...]) -> Proposal:
    """A note with all that a planner is asked about."""
    return Proposal(notes=(f"{goal}: {' '.join(finding.evidence for finding in findings)}",))


PLANNER = Planner(
    kinds=("retention",),
    answers=frozenset({"found"}),
    goal=lambda finding: None if finding.subject == "of another" else finding.subject,
    propose=propose,
    partial_note="partial without {missing}",
)
TWO = a_policy(plan={"standing_snapshots": 2})


def found(evidence: str, stood: int = 2, **fields: Any) -> Finding:
    """A finding that the planner answers; `fields` are those of `Finding`."""
    usual = {"check_id": "found", "severity": Severity.WARNING, "subject": "a/b"}
    return Finding(evidence=evidence, snapshots_in_a_row=stood, **{**usual, **fields})


def notes(planner: Planner, *findings: Finding, **fields: Any) -> tuple[str, ...]:
    """A planner's notes on findings, where two snapshots are asked for."""
    return planner.proposal(planning_facts_with(3, **{"findings": findings, "policy": TWO, **fields})).notes


def test_goals_are_answered_one_by_one() -> None:
    """The planner is asked once for each goal, in order of name, with the findings that have stood for long enough."""
    findings = [found("2", subject="c/d"), found("1"), found("young", stood=1), found("0", severity=Severity.CRITICAL)]
    assert notes(PLANNER, *findings) == ("a/b: 1 0", "c/d: 2")


@pytest.mark.parametrize(
    "finding",
    [found("x", severity=Severity.INFO), found("x", check_id="other"), found("x", subject="of another")],
    ids=["information", "another check", "no goal"],
)
def test_others_are_no_business_of_it(finding: Finding) -> None:
    """A planner gives no note about findings that it does not answer, also in a partial snapshot."""
    assert notes(PLANNER, finding, unread=("c/d",)) == ()


def test_findings_have_to_stand() -> None:
    """Young findings lead to a note that counts their snapshots, or to none if the planner has no text for it."""
    stood = msgspec.structs.replace(PLANNER, young_note="{goal} {stood} of {needed}")
    assert notes(stood, found("x", stood=1)) == ("a/b 1 of 2",)
    assert notes(msgspec.structs.replace(PLANNER, young_note=""), found("x", stood=1)) == ()


def test_a_partial_snapshot_comes_first() -> None:
    """A partial snapshot leads to one note for all goals, with what is missing of what the planner needs."""
    unread = tuple(f"broker-{number}" for number in range(7))
    needs = msgspec.structs.replace(PLANNER, missing=lambda planning: planning.unread[6:])
    every = msgspec.structs.replace(PLANNER, partial_note="{all_missing}")
    both = [found("x", stood=1), found("y", subject="c/d")]

    assert notes(PLANNER, *both, unread=unread) == (f"partial without {', '.join(unread[:5])} and 2 more",)
    assert notes(needs, *both, unread=unread) == ("partial without broker-6",)
    assert notes(every, *both, unread=unread) == (", ".join(unread),)
    assert notes(needs, found("z"), unread=unread[:6]) == ("a/b: z",)


def test_braces_in_names_are_text() -> None:
    """Braces in names from outside stay text, and are never a template."""
    assert notes(PLANNER, found("x"), unread=("{goal.__class__}",)) == ("partial without {goal.__class__}",)
    assert "{needed}: " in notes(PLANNER, found("x", stood=1, subject="{needed}"))[0]


def test_an_obstacle_is_told_whatever_has_stood() -> None:
    """An obstacle is noted for young findings too, and for explained goals without a finding."""
    stopped = msgspec.structs.replace(PLANNER, obstacle=lambda _, goal: f"{goal} stopped", explained=("c/d",))
    assert notes(stopped, found("x", stood=1)) == ("c/d stopped", "a/b stopped")
    assert notes(msgspec.structs.replace(PLANNER, explained=("c/d",))) == ()


VETOED = a_step(
    guards=(
        GuardResult(guard="cooldown", passed=False, reason="moved lately"),
        GuardResult(guard="owner", passed=True, reason="it is"),
    )
)


def test_vetoed_changes_are_named_by_guard(golden: Golden) -> None:
    """A note names the first few changes that a guard vetoed, and the number of the others."""
    vetoed = Vetoed()
    assert all(vetoed.holds(vetoes(VETOED), f"b{number}") for number in range(7))
    assert not vetoed.holds(vetoes(a_step()), "free")
    golden("\n".join(vetoed.notes("bundles where they are")))


def test_reasons_are_given_once() -> None:
    """A reason that several steps share is given once, and steps without a veto have none."""
    assert reasons_against(VETOED, a_step(), VETOED) == "cooldown: moved lately"
    assert reasons_against(a_step()) == ""


def test_names_are_counted_with_separators() -> None:
    """The number of names that a list leaves out is written with thousands separators."""
    assert enumerated(("x",) * 1_005).endswith(" x and 1,000 more")
