"""An approval that was given before a maintenance window: it waits, is looked at anew, and counts from the opening."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.apply.pace import opening_waited_for
from pulsar_steward.errors import Refused
from pulsar_steward.guards.window_times import good_until
from pulsar_steward.ledger.rows import Decision
from tests.apply.refusals import assert_refused, assert_stopped
from tests.apply.worksite import quick_policy, said

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.model.plan import Plan
    from tests.apply.worksite import Worksite


def a_window_in(site: Worksite, hours: int, minutes: int = 60, **approval: Any) -> datetime:
    """Puts a policy in force whose only window opens in so many whole hours; returns when."""
    opens = (site.clock() + timedelta(hours=hours)).replace(minute=0, second=0, microsecond=0)
    window = {"opens": f"0 {opens.hour} {opens.day} {opens.month} *", "minutes": minutes}
    site.policy = quick_policy(guards={"windows": [window]}, approval=approval)
    return opens


def expiry(site: Worksite) -> datetime:
    """Time until which an answer of this moment counts, as `interpret` would date it."""
    approval = site.policy.approval
    waits = approval.wait_for_window_minutes
    return good_until(site.clock(), approval.valid_minutes, waits, site.policy.guards.windows, None)


def approved(site: Worksite, bundle: int = 0) -> Plan:
    """A question and its approval, as `interpret` would date it."""
    plan = site.asked_without_answer(site.move(bundle))
    return site.approve(plan, expires_at=expiry(site))


def waits_for(site: Worksite, plan: Plan) -> datetime | None:
    with site.context() as context:
        return opening_waited_for(context, plan.plan_id, "b1")


def test_it_waits_and_is_done_in_the_window(site: Worksite) -> None:
    opens = a_window_in(site, 5)
    plan = approved(site)
    assert waits_for(site, plan) == opens
    assert site.ledger.outcomes(plan.plan_id, "b1") == ()
    site.clock.ahead += opens - site.clock() + timedelta(minutes=5)
    assert waits_for(site, plan) is None
    assert said(site.carry_out(plan)) == ["done"]


def test_its_own_clock_runs_from_the_opening(site: Worksite) -> None:
    opens = a_window_in(site, 5, minutes=600)
    plan = approved(site)
    site.clock.ahead += opens - site.clock() + timedelta(minutes=61)
    assert_refused(site, plan, "the approval has expired")


def test_a_window_that_opens_too_late_is_not_waited_for(site: Worksite) -> None:
    a_window_in(site, 5, wait_for_window_minutes=60)
    plan = approved(site)
    assert waits_for(site, plan) is None
    assert_stopped(site, plan, "refused", "no maintenance window is open")


def test_a_row_that_says_longer_is_believed_no_more_than_the_policy(site: Worksite) -> None:
    a_window_in(site, 5, wait_for_window_minutes=0)
    plan = site.asked_without_answer(site.move(0))
    site.approve(plan, expires_at=site.clock() + timedelta(days=7))
    assert waits_for(site, plan) is None
    site.clock.advance(minutes=61)
    with pytest.raises(Refused, match="the approval has expired"):
        site.carry_out(plan)


def test_what_the_gate_refuses_does_not_wait(site: Worksite) -> None:
    opens = a_window_in(site, 5)
    rejected, ended = approved(site), approved(site, 1)
    assert (waits_for(site, rejected), waits_for(site, ended)) == (opens, opens)
    no = site.approval(rejected, decision=Decision.REJECTED, reason="not now", expires_at=expiry(site))
    site.writes.record_answer(no)
    assert waits_for(site, rejected) is None
    site.end(ended)
    assert waits_for(site, ended) is None


def test_what_was_begun_waits_for_no_window(site: Worksite) -> None:
    hourly = {"opens": "0 * * * *", "minutes": 15}
    site.policy = quick_policy(guards={"windows": [hourly]}, approval={"valid_minutes": 180})
    hour = site.clock().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    site.clock.ahead += hour + timedelta(minutes=5) - site.clock()
    begun, unbegun = approved(site), approved(site, 1)
    assert said(site.carry_out(begun)) == ["done"]
    site.clock.advance(minutes=30)
    assert waits_for(site, begun) is None
    assert waits_for(site, unbegun) == hour + timedelta(hours=1)
