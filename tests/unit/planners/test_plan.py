"""One plan of all proposals: which findings planners are asked about, the order of batches, and who claims what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.checks.registry import CHECKS
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.plan import KINDS, ROLLBACK, numbered
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import Change, ChangeSetting, GuardResult, Step
from pulsar_steward.planners.base import Planner, Proposal, Vetoed, enumerated, reasons_against
from pulsar_steward.planners.bundles.facts import BundleFacts
from pulsar_steward.planners.registry import PLANNERS, assemble, claimed_by, make_plan, proposals_of
from pulsar_steward.planners.snapshot_facts import vetoes
from pulsar_steward.policy.load import parse_policy
from tests.builders import (
    SNAPSHOT,
    a_batch,
    a_finding,
    a_move,
    a_policy,
    a_split,
    a_step,
    broker,
    hashed_tc_bundles,
    planning_facts_with,
)
from tests.cases import cases
from tests.unit.planners.bundles.scenes import CROWDED, NAMESPACE, a_stay, crowded, finding, load_of_stays

if TYPE_CHECKING:
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from tests.golden import Golden

CRITICAL = (a_finding(Severity.CRITICAL),)
SKEWED = planning_facts_with(3, hashed_tc_bundles([broker(0)] * 16, 16))


LOWER, UPPER = a_split().halves


def a_setting(namespace: str, topic: str | None = None) -> Step:
    """A step that sets a time to live."""
    ttl = TimeToLive(seconds=60)
    return a_step(ChangeSetting(namespace=namespace, topic=topic, name=SettingName.TTL, before=None, after=ttl))


@cases(
    "steps, after",
    ("moves of bundles that are there", [a_step(), a_step()], [(), ()]),
    (
        "a half that a split makes, and a bundle of another namespace",
        [a_step(a_split()), a_step(a_move(bundle=UPPER)), a_step(a_move(namespace="a/b", bundle=LOWER))],
        [(), ("b2.s01",), ()],
    ),
    (
        "settings of a namespace",
        [a_setting("a/b"), a_setting("a/b"), a_setting("a/c"), a_setting("a/b")],
        [(), ("b2.s01",), (), ("b2.s01", "b2.s02")],
    ),
    ("of topics", [a_setting("a/b"), a_setting("a/b", "t"), a_setting("a/b", "t")], [(), (), ()]),
)
def test_ids_and_order_follow_from_places(steps: list[Step], after: list[tuple[str, ...]]) -> None:
    """Batches and steps are numbered by their places, and each step comes after those that it rests on."""
    first, second = numbered([a_batch(*[a_step()] * 10), a_batch(*steps)])
    assert (first.batch_id, first.steps[-1].step_id, second.batch_id) == ("b1", "b1.s10", "b2")
    assert [step.step_id for step in second.steps] == [f"b2.s0{number}" for number in range(1, len(steps) + 1)]
    assert [step.after for step in second.steps] == after


def test_order_of_batches() -> None:
    """Coordinators come first, then worse findings, then sooner full quotas; all else equal, kind and title decide."""
    soon, later = (msgspec.structs.replace(a_finding(), figures={"seconds_to_quota": each}) for each in (60, 3600))
    batches = [
        a_batch(kind="split", title="b"),
        a_batch(kind="split", title="a"),
        a_batch(kind="quota", title="d"),
        a_batch(kind="split", title="e", findings=(later,)),
        a_batch(kind="split", title="f", findings=(soon,)),
        a_batch(kind="quota", findings=()),
        a_batch(kind="split", title="c", findings=CRITICAL),
        a_batch(kind="tc_balance"),
    ]
    plan = assemble(SKEWED, [Proposal(batches=(batch,)) for batch in batches])
    assert [(batch.batch_id, batch.kind, batch.title) for batch in plan.batches] == [
        ("b1", "tc_balance", "made up"),
        ("b2", "split", "c"),
        ("b3", "split", "f"),
        ("b4", "split", "e"),
        ("b5", "quota", "d"),
        ("b6", "split", "a"),
        ("b7", "split", "b"),
        ("b8", "quota", "made up"),
    ]


def test_empty_batches_are_left_out() -> None:
    without_steps = msgspec.structs.replace(a_batch(), steps=())
    assert assemble(SKEWED, [Proposal(batches=(without_steps,))]).batches == ()


def test_notes_once_in_order() -> None:
    proposals = [Proposal(notes=("z", "a")), Proposal(notes=("a", "m"))]
    assert assemble(SKEWED, proposals).notes == ("z", "a", "m")


def test_plan_of_a_scene() -> None:
    """A plan names its cluster, snapshot and policy, and the same facts give the same bytes."""
    plan = make_plan(SKEWED)
    assert (plan.cluster, plan.snapshot_id, plan.policy_digest) == (SKEWED.cluster, SNAPSHOT, SKEWED.policy.digest)
    assert [batch.kind for batch in plan.batches] == ["tc_balance"]
    assert plan.encoded() == make_plan(SKEWED).encoded()


def test_plan_depends_on_the_policy() -> None:
    """A changed policy changes the plan's digest, but not its proposal digest if the steps are the same."""
    other = planning_facts_with(3, SKEWED.tc_bundles, policy=a_policy(tc_skew={"cooldown_minutes": 31}))
    assert make_plan(other).digest != make_plan(SKEWED).digest
    assert make_plan(other).proposal_digest == make_plan(SKEWED).proposal_digest


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


@cases(
    "finding",
    ("information", found("x", severity=Severity.INFO)),
    ("another check", found("x", check_id="other")),
    ("no goal", found("x", subject="of another")),
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


SKEW = finding("broker-load-skew", broker(0))
STAYS = [a_stay(0, number, namespace=namespace) for namespace in (NAMESPACE, "shop/carts") for number in range(10)]
FACTS = BundleFacts(crowds=(crowded(1500, 10, 10, 10),), load=load_of_stays(3, STAYS))


def test_coordinators_are_balanced_before_bundles_move() -> None:
    """A plan that balances coordinators may split bundles but moves none, and a note says that moves come later."""
    planning = planning_facts_with(
        3, hashed_tc_bundles([broker(0)] * 16, 16), findings=(finding("tc-skew", "east"), CROWDED, SKEW), bundles=FACTS
    )
    plan = make_plan(planning)

    assert [batch.kind for batch in plan.batches] == ["tc_balance", "bundle_split"]
    assert any("once that batch is proved" in note for note in plan.notes)
    assert plan.encoded() == make_plan(planning).encoded()


def test_a_namespace_that_is_split_is_not_moved() -> None:
    plan = make_plan(planning_facts_with(3, findings=(CROWDED, SKEW), bundles=FACTS))

    kinds = {batch.kind: batch for batch in plan.batches}
    assert set(kinds) == {"bundle_split", "bundle_balance"}
    assert {step.change.namespace for step in kinds["bundle_balance"].steps} == {"shop/carts"}
    assert any(f"those of {NAMESPACE} are left" in note for note in plan.notes)


def test_what_is_claimed() -> None:
    """The namespaces of moves and splits are claimed, and those whose settings change; a topic's own setting is not."""
    change = ChangeSetting(namespace="e/f", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
    topic = msgspec.structs.replace(change, namespace="g/h", topic="persistent://g/h/t")
    changes: tuple[Change, ...] = (a_move(namespace="a/b"), a_split(namespace="c/d"), change, topic)
    batch = a_batch(*(a_step(each) for each in changes))
    assert [set(each) for each in claimed_by([Proposal(), Proposal(batches=(batch,))], ())] == [{"a/b", "c/d"}, {"e/f"}]


def test_planners_are_told_which_settings_earlier_ones_change() -> None:
    told: list[frozenset[str]] = []

    def remembers(planning: PlanningFacts, _: str, __: tuple[Finding, ...]) -> Proposal:
        told.append(planning.claimed_settings)
        return Proposal(batches=(a_batch(a_setting("a/b")),))

    planner = msgspec.structs.replace(PLANNER, propose=remembers)
    proposals_of([planner, planner], planning_facts_with(3, findings=(found("it is so"),)))
    assert told == [frozenset(), {"a/b"}]


def test_every_kind_of_batch_has_a_planner() -> None:
    assert {kind for planner in PLANNERS for kind in planner.kinds} == set(KINDS) - {ROLLBACK}


def test_checks_name_the_planners_that_answer_them() -> None:
    answered = {check_id for planner in PLANNERS for check_id in planner.answers}
    assert {check.check_id for check in CHECKS if check.remedied_by is not None} == answered
    for check in CHECKS:
        kinds = {kind for planner in PLANNERS if check.check_id in planner.answers for kind in planner.kinds}
        assert check.remedied_by in kinds or not kinds


def test_what_the_policy_never_asks_is_not_proposed() -> None:
    """A kind of batch under `never_ask` is left out with a note, and other kinds may change the namespace instead."""
    policy = parse_policy({"namespaces": {NAMESPACE: {"approval": {"never_ask": ["bundle_split"]}}}}, name="p")
    plan = make_plan(planning_facts_with(3, findings=(CROWDED, SKEW), bundles=FACTS, policy=policy))

    assert [batch.kind for batch in plan.batches] == ["bundle_balance"]
    assert {step.change.namespace for step in plan.batches[0].steps} == {NAMESPACE, "shop/carts"}
    (note,) = [note for note in plan.notes if "never_ask" in note]
    assert f"never to ask about bundle_split of {NAMESPACE}" in note


@pytest.mark.parametrize("namespaces", [(NAMESPACE,), (NAMESPACE, "shop/carts")])
def test_a_batch_is_left_out_whole(namespaces: tuple[str, ...]) -> None:
    """A batch of moves is left out as a whole if the policy's `never_ask` covers one of its namespaces."""
    layers = {name: {"approval": {"never_ask": ["bundle_balance"]}} for name in namespaces}
    facts = msgspec.structs.replace(FACTS, crowds=())
    policy = parse_policy({"namespaces": layers}, name="p")
    plan = make_plan(planning_facts_with(3, findings=(SKEW,), bundles=facts, policy=policy))

    assert plan.batches == ()
    assert len([note for note in plan.notes if "never_ask" in note]) == 1
