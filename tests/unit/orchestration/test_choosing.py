"""Which questions a run asks: those that stand, and that no other run asks already."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from pulsar_steward.errors import Refused
from pulsar_steward.ledger.publishing import NewQuestion, QuestionChanges
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.ledger.silences import SilenceEnd, take_back
from pulsar_steward.model.plan import content_digest, goal_of
from pulsar_steward.orchestration.remediating import RemediateParams, choose, dry_run
from tests.apply.worksite import said
from tests.builders import CLUSTER, a_batch, a_plan, a_step

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Plan
    from tests.apply.worksite import Worksite

MINE, OTHER = "pulsar_remediate/mine", "pulsar_remediate/other/0"


@pytest.fixture
def plan(site: Worksite) -> Plan:
    """A plan of two questions."""
    batches = (
        a_batch(a_step(site.move(0))),
        a_batch(a_step(site.move(1), step_id="b2.s01"), batch_id="b2", kind="bundle_balance"),
    )
    drawn = a_plan(*batches, taken_at=site.clock())
    asked = (
        NewQuestion(batch_id=batch.batch_id, content_digest=content_digest(drawn, batch), goal=goal_of(batch))
        for batch in batches
    )
    return site.record(drawn, questions=QuestionChanges(asked=tuple(asked)))


def chosen(plan: Plan | None, run: str = MINE, *, published: bool = False) -> list[str]:
    """The batches that a run asks about."""
    named = None if plan is None else plan.plan_id
    wanted = RemediateParams(cluster=CLUSTER, plan_id=named, published=published)
    return [ref["batch_id"] for ref in choose([wanted], run)]


def test_what_stands_is_asked(plan: Plan) -> None:
    """A run asks about all open batches of a plan that is given by name, as the newest one, or as just published."""
    assert chosen(plan) == chosen(None) == chosen(plan, published=True) == ["b1", "b2"]


def test_what_another_run_asks_is_not_asked_again(site: Worksite, plan: Plan) -> None:
    """A question that another run asks is not asked until it is answered there; that run itself may be tried again."""
    site.ask(plan, OTHER)
    assert chosen(plan) == ["b2"]
    assert chosen(plan, OTHER.rpartition("/")[0]) == ["b1", "b2"]
    site.writes.record_answer(site.approval(plan, run=OTHER, decision=Decision.REJECTED, step_ids=(), expires_at=None))
    assert chosen(plan) == ["b1", "b2"]


def test_what_was_approved_in_another_run_is_left_to_it(site: Worksite, plan: Plan) -> None:
    """A run does not ask about a batch that was approved in another run, also after it was carried out there."""
    site.approve(plan, run=OTHER)
    assert chosen(plan) == ["b2"]
    assert said(site.carry_out(plan, OTHER)) == ["done"]
    site.clock.advance(minutes=61)
    assert chosen(plan) == ["b2"]


def test_what_was_said_no_to_in_a_third_run_may_be_asked_again(site: Worksite, plan: Plan) -> None:
    """A batch whose approval in another run was ended by a no in a third one can be asked about again."""
    site.ask(plan, OTHER)
    site.writes.record_answer(site.approval(plan, run=OTHER))
    assert chosen(plan) == ["b2"]
    no = {"decision": Decision.REJECTED, "step_ids": (), "expires_at": None}
    site.writes.record_answer(site.approval(plan, run="pulsar_remediate/third/0", **no))
    assert chosen(plan) == ["b1", "b2"]


def test_a_run_by_hand_of_which_nothing_is_left_says_who_asks(site: Worksite, plan: Plan) -> None:
    """A manual run with no batch left to ask about is refused with the reason; one of a published plan asks nothing."""
    site.ask(plan, OTHER)
    wanted = RemediateParams(cluster=CLUSTER, plan_id=plan.plan_id, kinds=("tc_balance",))
    with pytest.raises(Refused, match=rf"nothing of plan .* is to be asked: b1: run {OTHER} asks about it"):
        choose([wanted], MINE)
    assert choose([msgspec.structs.replace(wanted, published=True)], MINE) == []


@pytest.mark.parametrize("decision", [Decision.SNOOZED, Decision.NEVER])
def test_what_is_silent_is_not_asked_by_hand_either(site: Worksite, plan: Plan, decision: Decision) -> None:
    """A run by hand refuses a silent question and names the command that takes the silence back."""
    site.ask(plan, OTHER)
    until = site.clock() + timedelta(days=1) if decision is Decision.SNOOZED else None
    no = site.approval(plan, run=OTHER, decision=decision, step_ids=(), expires_at=None, silent_until=until)
    number = site.writes.record_answer(no)
    wanted = RemediateParams(cluster=CLUSTER, plan_id=plan.plan_id, kinds=("tc_balance",))
    with pytest.raises(Refused, match=f"b1: nobody is to be asked .*{decision} by .*ask-again {number}"):
        choose([wanted], MINE)
    assert chosen(plan, published=True) == ["b2"]
    assert take_back(site.engine, SilenceEnd(answer_id=number, at=site.clock(), said_by="bob", reason="it may"))
    assert chosen(plan) == ["b1", "b2"]


def test_what_ended_is_not_asked(site: Worksite) -> None:
    """A question that ended is not asked, and the refusal says why; a dry run of it is refused as well."""
    plan = site.asked(site.move(0))
    site.end(plan)
    assert chosen(plan, published=True) == []
    with pytest.raises(Refused, match=r"b1: the question ended at .*: it was seen otherwise"):
        chosen(plan)
    with pytest.raises(Refused, match=r"nothing of plan .* stands"):
        dry_run([RemediateParams(cluster=CLUSTER, plan_id=plan.plan_id)], MINE)
