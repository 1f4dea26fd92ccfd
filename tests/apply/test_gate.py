"""Only what was approved, by whom the policy names; whatever is not exactly right keeps every call away."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import delete, update

from pulsar_steward.errors import LedgerError, LedgerTampered, NotInLedger
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.rows import Decision, Origin
from pulsar_steward.model.plan import approval_digest
from tests.apply.refusals import assert_refused
from tests.apply.worksite import RUN, quick_policy, said
from tests.builders import a_batch, a_plan, a_step

if TYPE_CHECKING:
    from sqlalchemy import Executable

    from pulsar_steward.model.plan import Plan
    from tests.apply.worksite import Worksite

OTHER_RUN = "pulsar_remediate/manual/1"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"decision": Decision.REJECTED}, "rejected: made up", id="rejected"),
        pytest.param({"decision": Decision.SNOOZED}, "snoozed: made up", id="snoozed"),
        pytest.param({"decision": Decision.NEVER}, "never: made up", id="never to be asked"),
        pytest.param({"decision": Decision.NO_ANSWER}, "no answer: made up", id="nobody answered"),
        pytest.param({"decision": Decision.MALFORMED}, "malformed: made up", id="malformed"),
        pytest.param({"answered_by": None}, "no person's name", id="without a name"),
        pytest.param({"answered_by": " "}, "no person's name", id="with a blank name"),
        pytest.param({"step_ids": ()}, "covers no step", id="every step unticked"),
        pytest.param({"digest": None}, "digest is not that", id="without a digest"),
        pytest.param({"digest": "0" * 64}, "digest is not that", id="with a made-up digest"),
        pytest.param({"step_ids": ("b1.s02",)}, "digest is not that", id="with the digest of other steps"),
        pytest.param({"expires_at": None}, "does not say until when", id="without an end"),
        pytest.param({"run": OTHER_RUN}, "holds no answer", id="of another run"),
        pytest.param({"batch_id": "b2"}, "holds no answer", id="of another batch"),
    ],
)
def test_an_answer_that_is_no_approval_opens_nothing(site: Worksite, fields: dict[str, Any], reason: str) -> None:
    plan = site.plan(site.move(0), site.move(1))
    site.approve(plan, "b1.s01", **fields)
    assert_refused(site, plan, reason)


def test_an_approval_that_names_an_unknown_step_opens_nothing(site: Worksite) -> None:
    plan = site.plan(site.move(0))
    site.approve(plan, step_ids=("b1.s01", "b1.s99"))
    assert_refused(site, plan, r"b1\.s99", error=NotInLedger)


def test_an_expired_approval_opens_nothing(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1))
    site.clock.advance(minutes=61)
    assert_refused(site, plan, "has expired")
    assert site.recorded(plan) == [("b1.s01", "refused"), ("b1.s02", "refused")]


def test_a_superseded_plan_opens_nothing(site: Worksite) -> None:
    plan = site.approved(site.move(0))
    newer = a_plan(a_batch(a_step(site.move(1))))
    site.writes.record_plan(newer, site.clock(), supersede=[plan.plan_id])
    assert_refused(site, plan, newer.plan_id)


def test_an_approval_that_another_run_uses_opens_nothing(site: Worksite) -> None:
    plan = site.approved(site.move(0))
    site.writes.use_answer(1, OTHER_RUN, site.clock())
    assert_refused(site, plan, f"used already, by run {OTHER_RUN}")


@pytest.mark.parametrize(
    "forgery",
    [
        delete(tables.ANSWER_USES),
        update(tables.ANSWERS).values(expires_at=datetime(2999, 1, 1, tzinfo=UTC)),
        update(tables.ANSWERS).values(answered_by="mallory"),
        delete(tables.CHAIN).where(tables.CHAIN.c.sequence == 1),
        update(tables.HEAD).values(hash="0" * 64),
    ],
    ids=["use removed", "expiry put off", "another person", "link removed", "head changed"],
)
def test_a_ledger_that_is_changed_between_two_steps_stops_the_batch(site: Worksite, forgery: Executable) -> None:
    plan = site.approved(site.move(0), site.move(1))

    def forge(_: object) -> None:
        with site.engine.begin() as connection:
            connection.execute(forgery)

    with pytest.raises(LedgerTampered):
        site.carry_out(plan, after=forge)
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]
    with pytest.raises(LedgerTampered):
        site.carry_out(plan)
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]


def test_a_ledger_that_cannot_be_read_opens_nothing(site: Worksite) -> None:
    plan = site.approved(site.move(0))
    with site.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE answers RENAME TO elsewhere")
    assert_refused(site, plan, error=LedgerError)


def test_a_ledger_that_takes_no_intent_lets_nothing_be_called(site: Worksite) -> None:
    plan = site.approved(site.move(0))
    with site.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER full BEFORE INSERT ON intents BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )
    assert_refused(site, plan, "the disk is full", error=LedgerError)


def test_another_approval_of_a_plan_that_was_tried_opens_nothing(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1))
    site.carry_out(plan)
    site.simulator.requests.clear()
    site.approve(plan, run=OTHER_RUN)
    assert_refused(site, plan, "tried before", run=OTHER_RUN)
    rows = site.ledger.outcomes(plan.plan_id, "b1")
    assert [(row.step_id, row.outcome) for row in rows if row.run == OTHER_RUN] == [
        ("b1.s01", "refused"),
        ("b1.s02", "refused"),
    ]
    assert site.user_of(1) == RUN


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
