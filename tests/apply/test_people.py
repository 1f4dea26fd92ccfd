"""The gate asks anew who may approve, by the policy of that moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.ledger.rows import Decision, Origin
from pulsar_steward.model.plan import approval_digest
from tests.apply.refusals import assert_refused
from tests.apply.worksite import RUN, quick_policy, said

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Plan
    from tests.apply.worksite import Worksite


def a_policy(site: Worksite, plan: Plan, **approval: Any) -> None:
    """Puts a policy in force; `kind` stands for the kind of the plan's batch."""
    kind = plan.batch("b1").kind
    if "two" in approval:
        approval["two_people_for"] = [kind] if approval.pop("two") else []
    site.policy = quick_policy(approval=approval)
    site.record(plan)


@pytest.mark.parametrize(
    ("approval", "asked", "refusal"),
    [
        ({"assigned_users": ["bob"]}, None, "operator may not approve"),
        ({"assigned_users": ["operator"]}, None, None),
        ({"requester_may_approve": False}, {"origin": Origin.UNKNOWN}, "the run is not known"),
        ({"requester_may_approve": False}, {"requested_by": "operator"}, "operator started the run"),
        ({"requester_may_approve": False}, {"requested_by": "bob"}, None),
        ({"requester_may_approve": False}, None, None),
        ({"two": True}, None, "approval of a second person"),
    ],
)
def test_an_approval_by_whom_the_policy_does_not_name_opens_nothing(
    site: Worksite, approval: dict[str, Any], asked: dict[str, Any] | None, refusal: str | None
) -> None:
    plan = site.plan(site.move(0))
    a_policy(site, plan, **approval)
    site.approve(plan, asked=asked)
    if refusal is None:
        assert said(site.carry_out(plan)) == ["done"]
        return
    assert_refused(site, plan, refusal)


@pytest.mark.parametrize(
    ("second", "refusal"),
    [
        ({"answered_by": "bob"}, None),
        ({"answered_by": "operator"}, "both approvals are by operator"),
        ({"answered_by": "bob", "decision": Decision.REJECTED, "reason": "not now"}, "rejected: not now"),
        ({"answered_by": "bob", "decision": Decision.SNOOZED, "reason": "not now"}, "snoozed: not now"),
        ({"answered_by": "bob", "decision": Decision.NEVER, "reason": "not there"}, "never: not there"),
        ({"answered_by": "", "reason": "?"}, "carries no person's name"),
    ],
)
def test_two_different_people_open_the_gate_together(
    site: Worksite, second: dict[str, Any], refusal: str | None
) -> None:
    plan = site.plan(site.move(0), site.move(1))
    a_policy(site, plan, two=True)
    site.approve(plan, voice=1)
    site.approve(plan, "b1.s02", voice=2, **second)
    if refusal is None:
        assert said(site.carry_out(plan)) == ["done"]
        assert site.changes() == [f"unload {site.tc_bundles[1]}"]
        assert [site.user_of(number) for number in (1, 2)] == [RUN, RUN]
        return
    assert_refused(site, plan, refusal)


def test_the_second_approves_nothing_that_the_first_did_not(site: Worksite) -> None:
    plan = site.plan(site.move(0), site.move(1))
    a_policy(site, plan, two=True)
    site.approve(plan, "b1.s01", voice=1)
    both = approval_digest(plan, "b1", ["b1.s01", "b1.s02"])
    site.approve(plan, "b1.s01", "b1.s02", voice=2, answered_by="bob", digest=both)
    assert_refused(site, plan, "covers steps that the first")
