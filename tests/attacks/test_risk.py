"""Risk is computed, and the floor holds: neither a policy nor a plan makes a batch less dangerous than it is."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.apply.pace import opening_waited_for
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.risk import Risk
from pulsar_steward.model.setting import Retention, SettingName
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.policy.approval import ApprovalPolicy, RiskTerms
from tests.apply.refusals import assert_refused
from tests.apply.worksite import quick_policy
from tests.builders import a_batch, a_finding, a_plan, a_step

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Step
    from tests.apply.worksite import Worksite

KEEPS_LESS = ChangeSetting(
    namespace="shop/orders", name=SettingName.RETENTION, before=None, after=Retention(minutes=60, megabytes=-1)
)


def harmless_in_words(change: ChangeSetting) -> Step:
    """A step that says of itself that nothing comes of it."""
    return a_step(
        change,
        step_id="b1.s01",
        why="harmless",
        effect="nothing is lost",
        undo=change.inverse,
        undo_note="every message comes back",
    )


def refused(site: Worksite, plan: Plan, words: str) -> None:
    assert_refused(site, plan, words)


def test_a_plan_that_declares_less_is_judged_by_what_it_does(site: Worksite) -> None:
    """A step that deletes messages has high risk although the plan calls it harmless and reversible."""
    site.policy = quick_policy(approval={"by_risk": {"high": {"people": 2}}})
    plan = site.approved(harmless_in_words(KEEPS_LESS))
    assert risk_of(plan, plan.batch("b1")).level.rank >= Risk.HIGH.rank
    refused(site, plan, "needs the approval of a second person .*approval.by_risk")


def test_a_split_that_claims_an_inverse_cannot_be_undone(site: Worksite) -> None:
    """A bundle split counts as irreversible and so has medium risk, although its step claims an undo."""
    site.policy = quick_policy(approval={"by_risk": {"medium": {"users": ["ann"]}}})
    split = site.split(0)
    plan = site.approved(a_step(split, step_id="b1.s01", undo=split, undo_note="can be undone"))
    refused(site, plan, "operator may not approve .* medium risk")


@pytest.mark.parametrize("level", [Risk.LOW, Risk.CRITICAL])
def test_no_policy_goes_below_the_floor_at_the_gate(site: Worksite, level: Risk) -> None:
    """The gate lets an approval expire within a day although a policy that was not validated allows a week."""
    week = 7 * 24 * 60
    risky = ApprovalPolicy.model_construct(
        **{
            **dict(ApprovalPolicy(valid_minutes=week)),
            "by_risk": {level: RiskTerms.model_construct(valid_minutes=week)},
        }
    )
    site.policy = quick_policy().model_copy(update={"approval": risky})
    plan = site.plan(harmless_in_words(KEEPS_LESS))
    site.approve(plan, expires_at=site.clock() + timedelta(days=7))
    site.clock.advance(minutes=24 * 60 + 1)
    refused(site, plan, "the approval has expired")


@pytest.mark.parametrize(("looks", "hours", "level"), [(1, 4, Risk.CRITICAL), (2, 24, Risk.HIGH)])
def test_no_window_lengthens_an_approval_beyond_the_floor(site: Worksite, looks: int, hours: int, level: Risk) -> None:
    """An approval of a grave risk is over some hours after the answer, although a window that it waits for opens later.

    Neither does it wait for that window, whatever its row in the ledger says.
    """
    opens = (site.clock() + timedelta(hours=hours + 2)).replace(minute=0, second=0, microsecond=0)
    window = {"opens": f"0 {opens.hour} {opens.day} {opens.month} *", "minutes": 600}
    site.policy = quick_policy(guards={"windows": [window]})
    found = msgspec.structs.replace(a_finding(), snapshots_in_a_row=looks)
    step = msgspec.structs.replace(harmless_in_words(KEEPS_LESS), loss=Loss(messages=0, bytes=1))
    plan = site.record(a_plan(a_batch(step, kind="retention", findings=(found,)), taken_at=site.clock()))
    assert risk_of(plan, plan.batch("b1")).level is level
    site.approve(plan, expires_at=opens + timedelta(hours=1))
    with site.context() as context:
        assert opening_waited_for(context, plan.plan_id, "b1") is None
    site.clock.ahead += opens + timedelta(minutes=1) - site.clock()
    refused(site, plan, "the approval has expired")


@pytest.mark.parametrize(
    ("by_risk", "asked", "words"),
    [
        ({"people": 2}, {}, "second person"),
        ({"users": ["ann"]}, {}, "operator may not approve"),
        ({"requester_may_approve": False}, {"requested_by": "operator"}, "operator started the run"),
    ],
)
def test_what_the_policy_demands_by_risk_is_asked_at_the_gate(
    site: Worksite, by_risk: dict[str, Any], asked: dict[str, Any], words: str
) -> None:
    """The gate checks the number of people, the approvers and the requester by the risk level of the batch."""
    site.policy = quick_policy(approval={"by_risk": {"low": by_risk}})
    plan = site.plan(site.move(0))
    site.approve(plan, asked=asked)
    refused(site, plan, words)


def test_what_a_level_does_not_reach_is_done_as_ever(site: Worksite) -> None:
    """A bundle move is carried out with one approval when only critical risk needs two people."""
    site.policy = quick_policy(approval={"by_risk": {"critical": {"people": 2}}})
    (outcome,) = site.carry_out(site.approved(site.move(0)))
    assert outcome.outcome.value == "done"
