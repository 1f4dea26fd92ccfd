"""Another rate of writing cursors, or a smaller E, is proposed where the policy wants people to be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.facts.protocol import Bookies
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.setting import Persistence, SettingName
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.planners.settings.facts import BacklogSample, NamespaceFact
from pulsar_steward.planners.settings.namespaces import PERSISTENCE as PLANNER
from tests.builders import NOW, a_policy, planning_facts_with
from tests.cases import cases

if TYPE_CHECKING:
    from pulsar_steward.planners.base import Proposal
    from pulsar_steward.policy.schema import Policy

NAMESPACE = "shop/orders"
NAME = SettingName.PERSISTENCE
USUAL = Persistence.of((3, 2, 2), 1.0)
SELDOM, OFTEN = {"messages": 30_000, "seconds": 100}, {"cursor_writes_per_second": 6_000, "percent": 75}
FINDINGS = {"ack-state-seldom": SELDOM, "ack-state-often": OFTEN, "ensemble-too-large": {"bookies": 2, "ensemble": 3}}


def at_rate(rate: float) -> Persistence:
    """What is usual, with another rate of cursors' writes."""
    return Persistence.of((3, 2, 2), rate)


def asking(**remedy: object) -> Policy:
    """A policy that wants both asked, and vouches for the version, on which it was tried on no real broker yet."""
    both = {"propose_rate": True, "propose_ensemble": True}
    return a_policy(persistence_remedy={**both, **remedy})


def proposed(*checks: str, own: Persistence | None = USUAL, subject: str = NAMESPACE, **fields: Any) -> Proposal:
    """Proposal for a namespace with warnings of these checks; `fields` are of `PlanningFacts`."""
    found = tuple(
        Finding(check_id=each, severity=Severity.WARNING, subject=subject, evidence="made up", figures=FINDINGS[each])
        for each in checks
    )
    fact = NamespaceFact(
        namespace=NAMESPACE,
        own={} if own is None else {NAME: own},
        looks=(BacklogSample(taken_at=NOW, topics=3),),
        busiest_bytes_per_second=0.0,
        stored_bytes=0,
    )
    known = {"findings": found, "namespaces": (fact,), "bookies": Bookies(listed=2), "policy": asking()}
    return PLANNER.proposal(planning_facts_with(3, **{**known, **fields}))


def the_change(proposal: Proposal) -> ChangeSetting:
    (batch,) = proposal.batches
    (step,) = batch.steps
    assert batch.kind == "persistence"
    assert isinstance(step.change, ChangeSetting)
    assert step.undo == step.change.inverse
    return step.change


@cases(
    "check, own, after",
    ("seldom", "ack-state-seldom", at_rate(0.01), at_rate(1.0)),
    ("often", "ack-state-often", USUAL, at_rate(0.2)),
    ("no limit", "ack-state-often", Persistence.of((3, 2, 2), 0.0, "class"), Persistence.of((3, 2, 2), 0.2, "class")),
    ("too large", "ensemble-too-large", USUAL, Persistence.of((2, 2, 2), 1.0)),
)
def test_one_part_is_changed_and_the_rest_is_sent_as_it_is(check: str, own: Persistence, after: Persistence) -> None:
    """The rate or E is changed; Qw, Qa and whatever else Pulsar keeps beside them stay."""
    change = the_change(proposed(check, own=own))
    assert (change.before, change.after) == (own, after)


def test_the_brokers_default_is_taken_over_with_what_is_changed() -> None:
    """A namespace that sets nothing gets the brokers' E, Qw and Qa, and its way back is to set nothing."""
    change = the_change(proposed("ack-state-often", own=None, defaults={NAME: USUAL}))
    assert (change.before, change.after) == (None, Persistence.of((3, 2, 2), 0.2))
    assert (change.inherited, change.inverse.after) == (USUAL, None)


def test_both_parts_are_one_step() -> None:
    """Pulsar keeps both in one policy, so one step changes both, with both reasons."""
    proposal = proposed("ack-state-often", "ensemble-too-large")
    assert the_change(proposal).after == Persistence.of((2, 2, 2), 0.2)
    (step,) = proposal.batches[0].steps
    assert "6,000 times a second in all: 75 % of what is written to bookies" in step.why
    assert "was acknowledged in the last 5 s comes again" in step.why
    assert "new ledgers need 3 bookies, and there are 2" in step.why
    assert "E, Qw and Qa hold for new ledgers" in step.effect
    assert "that are known to take writes" in step.undo_note


@cases(
    "checks, fields, note",
    ("rate off", ["ack-state-often"], {"policy": asking(propose_rate=False)}, "key persistence_remedy.propose_rate"),
    ("no E", ["ensemble-too-large"], {"policy": asking(propose_ensemble=False)}, "persistence_remedy.propose_ensemble"),
    ("both", ["ack-state-often", "ack-state-seldom"], {}, "decide by hand"),
    ("seldom already", ["ack-state-often"], {"own": at_rate(0.2)}, "cursors are written once in 5 s already"),
    (
        "no oftener",
        ["ack-state-seldom"],
        {"own": at_rate(1 / 30), "policy": asking(seldom_seconds=60)},
        "once in 30 s already, and once in 1 min would be no oftener",
    ),
    ("below 0", ["ack-state-often"], {"own": at_rate(-1)}, "the brokers' default on others: decide by hand"),
    ("copies", ["ensemble-too-large"], {"own": Persistence.of((3, 3, 2), 1.0)}, "fewer copies are for people"),
    ("no default", ["ack-state-often"], {"own": None}, "brokers do not tell which E, Qw, Qa and rate apply"),
    ("no fact", ["ack-state-often"], {"namespaces": ()}, "its settings are not in the snapshot"),
    ("too few", ["ensemble-too-large"], {"bookies": Bookies(listed=1)}, "bookies_enough: E 2 of 1 bookie"),
)
def test_why_nothing_is_proposed_is_said(checks: list[str], fields: dict[str, Any], note: str) -> None:
    """Both are off by default, copies stay, and what is not known is not guessed."""
    proposal = proposed(*checks, **fields)
    assert proposal.batches == ()
    assert note in " ".join(proposal.notes)


def test_a_reason_says_only_what_was_read() -> None:
    """Large ack states are the reason without a count of writes, which is not 0 where brokers do not tell it."""
    finding = Finding(
        check_id="ack-state-often",
        severity=Severity.WARNING,
        subject=NAMESPACE,
        evidence="made up",
        figures={"state_bytes_per_second": 20 << 20},
    )
    proposal = proposed(findings=(finding,))
    (step,) = proposal.batches[0].steps
    assert "large ack states are written whole each time, about 20 MiB a second" in step.why
    assert "0 times" not in step.why


def test_both_are_off_by_default() -> None:
    """No figure shows what consumers can bear, nor why there are so many bookies: an operator decides to be asked."""
    proposal = proposed(*FINDINGS, policy=a_policy())
    assert proposal.batches == ()
    assert len(proposal.notes) == 2


def test_findings_of_the_brokers_default_are_left_to_people() -> None:
    assert proposed("ack-state-seldom", subject="lab") == msgspec.structs.replace(proposed(), batches=(), notes=())
