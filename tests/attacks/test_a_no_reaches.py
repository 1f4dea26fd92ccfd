"""A no reaches: it ends every approval of the very same that has not begun, wherever either was said."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from lab.simulator import ClusterSpec, NamespaceSpec
from pulsar_steward.errors import Refused
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.ledger.silences import SilenceEnd, take_back
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, GuardResult
from pulsar_steward.orchestration.remediating import RemediateParams, choose, dry_run
from tests.apply.refusals import assert_refused
from tests.apply.test_rollback import BACK, back_of, done
from tests.apply.worksite import RUN, Worksite, a_worksite, quick_policy, said
from tests.builders import CLUSTER, a_batch, a_plan, a_step
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.plan import Batch, Plan
    from tests.attacks.conftest import Connect

OTHER = "pulsar_remediate/by hand/0"
NOES = (Decision.REJECTED, Decision.SNOOZED, Decision.NEVER)
NAMES = ("shop/a", "shop/b", "shop/c")
CLUSTER_OF_THREE = ClusterSpec(namespaces=tuple(NamespaceSpec(name) for name in NAMES))


def say_no(site: Worksite, plan: Plan, run: str = OTHER, **fields: Any) -> int:
    """Somebody is asked in a run, and says no; returns the answer's id."""
    usual = {"decision": Decision.REJECTED, "answered_by": "carol", "step_ids": (), "digest": None, "expires_at": None}
    site.ask(plan, run)
    return site.writes.record_answer(site.approval(plan, run=run, **{**usual, **fields}))


def refuses(site: Worksite, plan: Plan, run: str = RUN) -> None:
    """The approval does not count any more, and nothing is called."""
    site.simulator.requests.clear()
    assert_refused(site, plan, r"carol said no to it \((rejected|snoozed|never)\)", run=run)
    assert {outcome for _, outcome in site.recorded(plan)} <= {"done", "refused"}


@pytest.mark.parametrize("decision", NOES)
def test_a_no_in_another_run_ends_an_approval(site: Worksite, decision: Decision) -> None:
    """An approval does not count once somebody said no to the same question in another run."""
    plan = site.approved(site.move(0))
    say_no(site, plan, decision=decision)
    refuses(site, plan)


@pytest.mark.parametrize("decision", NOES)
def test_a_no_to_the_same_in_another_plan_ends_an_approval(site: Worksite, decision: Decision) -> None:
    """An approval does not count once somebody said no to the very same content in a later plan."""
    plan = site.approved(site.move(0))
    site.clock.advance(minutes=5)
    say_no(site, site.plan(site.move(0)), decision=decision)
    refuses(site, plan)


@pytest.mark.parametrize("seen", ["another guard", "another kind", "no way back"])
def test_a_no_to_the_same_change_in_other_words_ends_an_approval(site: Worksite, seen: str) -> None:
    """A no counts for the changes: what a later version says of guards, kind or way back makes them no other ones."""
    change = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=86_400))
    plan = site.approved(change)
    site.clock.advance(minutes=5)
    step = a_step(change, step_id="b1.s01")
    if seen == "another guard":
        step = msgspec.structs.replace(step, guards=(GuardResult(guard="new", passed=True, reason="as it should be"),))
    if seen == "no way back":
        step = msgspec.structs.replace(step, undo=None)
    later = a_plan(a_batch(step, kind="retention" if seen == "another kind" else "tc_balance"), taken_at=site.clock())
    say_no(site, site.record(later))
    refuses(site, plan)


def test_a_no_in_postgresql_ends_an_approval(postgres_ledger: str, site: Worksite) -> None:
    """The same holds in PostgreSQL."""
    engine = ledger_at(postgres_ledger)
    try:
        site = replace(site, engine=engine)
        plan = site.approved(site.move(0))
        site.clock.advance(minutes=5)
        say_no(site, site.plan(site.move(0)))
        refuses(site, plan)
    finally:
        engine.dispose()


def test_a_no_under_another_name_of_the_cluster_ends_an_approval(site: Worksite) -> None:
    """An approval does not count once somebody said no to the same for the same brokers under another name."""
    west = replace(site, cluster="west")
    plan = site.approved(site.move(0))
    say_no(west, west.plan(west.move(0)))
    refuses(site, plan)


def test_a_no_that_is_recorded_early_and_dated_later_ends_an_approval(site: Worksite) -> None:
    """A no that was given after the approval counts, although a slow worker recorded the approval after it."""
    plan = site.plan(site.move(0))
    now = site.clock()
    say_no(site, plan, answered_at=now + timedelta(seconds=2))
    site.clock.advance(seconds=3)
    site.approve(plan, answered_at=now)
    refuses(site, plan)


def test_a_no_that_is_dated_early_and_recorded_later_ends_an_approval(site: Worksite) -> None:
    """A no that is recorded after the approval counts, whatever its own time is."""
    plan = site.approved(site.move(0))
    say_no(site, plan, answered_at=site.clock() - timedelta(hours=1))
    refuses(site, plan)


def test_a_no_between_two_approvals_ends_both(site: Worksite) -> None:
    """Where two people have to approve, a no in another run after the first of them ends the approval of both."""
    site.policy = quick_policy(approval={"two_people_for": ["tc_balance"]})
    plan = site.approve(site.plan(site.move(0)), voice=1)
    say_no(site, plan)
    site.approve(plan, voice=2, answered_by="dave", answered_by_id="4")
    refuses(site, plan)


@pytest.mark.parametrize("run", [OTHER, RUN])
def test_taking_a_no_back_does_not_bring_an_approval_back(site: Worksite, run: str) -> None:
    """An approval that a no ended stays ended after the no was taken back: that permits nothing."""
    plan = site.approved(site.move(0))
    no = say_no(site, plan, run, decision=Decision.SNOOZED)
    assert take_back(site.engine, SilenceEnd(answer_id=no, at=site.clock(), said_by="mallory", reason="never mind"))
    if run == RUN:
        assert_refused(site, plan, "snoozed")
    else:
        refuses(site, plan)


def test_an_approval_after_the_no_counts(site: Worksite) -> None:
    """Somebody who was asked after the no, and approves, is not held up by it."""
    plan = site.plan(site.move(0))
    say_no(site, plan)
    assert said(site.carry_out(site.approve(plan))) == ["done"]


@pytest.mark.parametrize("decision", [Decision.NO_ANSWER, Decision.MALFORMED])
def test_what_nobody_said_no_to_stands(site: Worksite, decision: Decision) -> None:
    """A question in another run that nobody answered, or nobody could read, ends no approval."""
    plan = site.approved(site.move(0))
    say_no(site, plan, decision=decision)
    assert said(site.carry_out(plan)) == ["done"]


def test_a_no_to_something_else_ends_nothing(site: Worksite) -> None:
    """A no to another change of the same bundle ends no approval."""
    plan = site.approved(site.move(0))
    say_no(site, site.plan(site.move(0, target=2)))
    assert said(site.carry_out(plan)) == ["done"]


@pytest.mark.parametrize("decision", [Decision.SNOOZED, Decision.NEVER])
def test_a_no_to_the_goal_ends_the_approval_of_another_value(site: Worksite, decision: Decision) -> None:
    """Not now and never are about a namespace's retention or quota: an approval of another value there ends too."""
    ttl = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=86_400))
    plan = site.approved(ttl)
    site.clock.advance(minutes=5)
    say_no(site, site.plan(msgspec.structs.replace(ttl, after=TimeToLive(seconds=3_600))), decision=decision)
    refuses(site, plan)


def test_a_no_at_the_last_moment_ends_an_approval(site: Worksite) -> None:
    """A no that comes while the guards look is found in the transaction of the intent, and nothing is called."""
    plan, asked = site.approved(site.move(0)), iter(range(100))

    def switch(_name: str) -> None:
        if next(asked) == 1:  # asked first before the lease is taken, and then when all guards have looked
            say_no(site, plan)

    site.switch = switch
    (outcome,) = site.carry_out(plan)
    assert (outcome.outcome, outcome.intent_id, site.untouched()) == ("refused", None, True)
    assert "carol said no to it" in outcome.reason


def test_what_has_begun_goes_on(site: Worksite) -> None:
    """A no after the first call of a batch ends nothing, as half a change would be worse: a halt stops it."""
    plan = site.approved(site.move(0), site.move(1))
    assert said(site.carry_out(plan, after=lambda _: say_no(site, plan))) == ["done", "done"]


def test_a_no_ends_the_approval_of_a_way_back(site: Worksite) -> None:
    """A rollback that was approved is not carried out once somebody said no to its plan in another run."""
    back = site.approve(back_of(site, done(site, site.move(0))), run=BACK)
    say_no(site, back)
    refuses(site, back, BACK)


def test_a_no_to_a_newer_way_back_ends_the_approval_of_an_older_one(site: Worksite) -> None:
    """A rollback that was approved is not carried out once somebody said no to the same rollback in a later plan."""
    plan = done(site, site.move(0))
    back = site.approve(back_of(site, plan), run=BACK)
    site.clock.advance(minutes=5)
    say_no(site, back_of(site, plan), "pulsar_rollback/again/0")
    refuses(site, back, BACK)


@pytest.mark.usefixtures("home")
def test_a_way_back_is_asked_by_the_dag_that_made_it_alone(site: Worksite, connect: Connect) -> None:
    """A rollback's plan id that is given to `pulsar_remediate` is refused, with what to start instead."""
    connect(site.simulator, no_policy_file=True)
    plan = done(site, site.move(0))
    wanted = RemediateParams(cluster=CLUSTER, plan_id=back_of(site, plan).plan_id)
    for act in (choose, dry_run):
        with pytest.raises(Refused, match=f"start pulsar_rollback with plan_id {plan.plan_id}"):
            act([wanted], OTHER)


# -- a question about several namespaces


def never_expires(namespace: str, number: int = 1) -> Batch:
    """Batch of one step for a namespace."""
    change = ChangeSetting(namespace=namespace, name=SettingName.TTL, before=None, after=TimeToLive(seconds=0))
    return a_batch(a_step(change, undo=change.inverse, step_id=f"b1.s0{number}"), kind="retention")


def asked_together(site: Worksite) -> Plan:
    """The plan of one question about three namespaces."""
    steps = [step for number, name in enumerate(NAMES, start=1) for step in never_expires(name, number).steps]
    return site.record(a_plan(a_batch(*steps, kind="retention", parts=(1, 1, 1)), taken_at=site.clock()))


def test_a_no_to_one_namespace_takes_it_out_of_a_group(tmp_path: Path) -> None:
    """What somebody said no to elsewhere is left out of an approved group, and said; the rest is carried out."""
    with a_worksite(tmp_path, CLUSTER_OF_THREE) as site:
        plan = site.approve(asked_together(site))
        say_no(site, site.record(a_plan(never_expires("shop/b"), snapshot_id="alone", taken_at=site.clock())))
        outcomes = site.carry_out(plan)
        assert said(outcomes) == ["done", "refused", "done"]
        assert "carol said no to it" in outcomes[1].reason
        assert site.changes() == ["messageTTL a", "messageTTL c"]


def test_a_never_of_the_policy_reaches_what_was_approved_before(tmp_path: Path) -> None:
    """An entry of `approval.never_ask` that came after the approval takes its namespace out, and says so."""
    with a_worksite(tmp_path, CLUSTER_OF_THREE) as site:
        plan = site.approve(asked_together(site))
        site.policy = quick_policy(namespaces={"shop/b": {"approval": {"never_ask": ["retention"]}}})
        outcomes = site.carry_out(plan)
        assert said(outcomes) == ["done", "refused", "done"]
        assert "never to ask about retention of shop/b (approval.never_ask)" in outcomes[1].reason


def test_a_no_to_a_group_ends_the_approval_of_one_of_its_namespaces(tmp_path: Path) -> None:
    """An approval for one namespace does not count once somebody said no to a group that has the same in it."""
    with a_worksite(tmp_path, CLUSTER_OF_THREE) as site:
        alone = site.record(a_plan(never_expires("shop/b"), snapshot_id="alone", taken_at=site.clock()))
        site.approve(alone)
        say_no(site, asked_together(site))
        refuses(site, alone)


def test_a_no_to_a_namespace_of_a_group_whose_turn_has_not_come_is_heard(tmp_path: Path) -> None:
    """A no to a namespace of a group that is under way stops the group before that namespace."""
    with a_worksite(tmp_path, CLUSTER_OF_THREE) as site:
        plan = site.approve(asked_together(site))
        alone = site.record(a_plan(never_expires("shop/b"), snapshot_id="alone", taken_at=site.clock()))
        outcomes = site.carry_out(plan, after=lambda _: say_no(site, alone))
        assert said(outcomes) == ["done", "refused", "refused"]
        assert "carol said no to it" in outcomes[1].reason
        assert site.changes() == ["messageTTL a"]
