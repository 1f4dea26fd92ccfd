"""A batch that is a question by itself: it is carried out as long as it stands, and as fresh as it was seen last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from sqlalchemy import delete, insert, update

from pulsar_steward.errors import LedgerTampered, Refused
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.publishing import QuestionChanges
from tests.apply.worksite import RUN, a_question, quick_policy, said

if TYPE_CHECKING:
    from sqlalchemy import Executable

    from tests.apply.worksite import Worksite

OTHER_RUN = "pulsar_remediate/manual/1"


def test_a_question_that_stands_is_carried_out(site: Worksite) -> None:
    """A newer plan that asks something else does not end a question, and the question's batch is carried out."""
    plan = site.asked(site.move(0))
    other = msgspec.structs.replace(site.proposed(site.move(1)), snapshot_id="newer")
    site.record(other, questions=QuestionChanges(asked=(a_question(other),)))
    assert said(site.carry_out(plan)) == ["done"]


def test_an_answer_after_the_end_opens_nothing(site: Worksite) -> None:
    """A batch is refused if its question ended before the approval."""
    plan = site.proposed(site.move(0))
    plan = site.record(plan, questions=QuestionChanges(asked=(a_question(plan),)))
    site.end(plan)
    site.approve(plan)
    with pytest.raises(Refused, match=r"the question ended at .*: it was seen otherwise"):
        site.carry_out(plan)
    assert (site.untouched(), site.recorded(plan)) == (True, [("b1.s01", "refused")])


def test_an_end_between_approval_and_call_opens_nothing(site: Worksite) -> None:
    """A batch is refused if its question ended after the approval and before the call."""
    plan = site.asked(site.move(0))
    site.end(plan)
    with pytest.raises(Refused, match="the question ended at"):
        site.carry_out(plan)
    assert site.untouched()


def test_an_end_between_two_steps_stops_the_batch(site: Worksite) -> None:
    """If the question ends between two steps, the finished step stays done and the next one is refused."""
    plan = site.asked(site.move(0), site.move(1))
    outcomes = site.carry_out(plan, after=lambda _: site.end(plan))
    assert said(outcomes) == ["done", "refused"]
    assert "the question ended at" in outcomes[1].reason
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]


def test_two_runs_of_one_question_change_once(site: Worksite) -> None:
    """Two runs with an approval each change the cluster once, and the second run is refused."""
    plan = site.asked(site.move(0))
    site.approve(plan, run=OTHER_RUN)
    assert said(site.carry_out(plan, RUN)) == ["done"]
    site.simulator.requests.clear()
    with pytest.raises(Refused, match="tried before"):
        site.carry_out(plan, OTHER_RUN)
    assert site.untouched()


def test_the_same_in_a_later_plan_is_no_second_question(site: Worksite) -> None:
    """An approval of a later plan that confirms a question is refused, and the question's own batch is done."""
    plan = site.asked(site.move(0))
    later = msgspec.structs.replace(site.proposed(site.move(0)), snapshot_id="later")
    later = site.record(later, questions=QuestionChanges(confirmed=(site.question_of(plan),)))
    site.approve(later, run=OTHER_RUN)
    with pytest.raises(Refused, match="nobody is asked about batch b1"):
        site.carry_out(later, OTHER_RUN)
    assert site.untouched()
    assert said(site.carry_out(plan)) == ["done"]


def test_a_question_is_as_fresh_as_the_look_that_confirmed_it(site: Worksite) -> None:
    """A question with an old snapshot drifts, unless a later observation confirmed the question."""
    stale = msgspec.structs.replace(site.proposed(site.move(0)), taken_at=site.clock() - timedelta(minutes=1501))
    plan = site.approve(site.record(stale, questions=QuestionChanges(asked=(a_question(stale),))))
    (outcome,) = site.carry_out(plan)
    assert (outcome.outcome, site.untouched()) == ("drifted", True)

    fresh = msgspec.structs.replace(stale, snapshot_id="another")
    fresh = site.record(fresh, questions=QuestionChanges(asked=(a_question(fresh),)))
    site.confirm(fresh)
    assert said(site.carry_out(site.approve(fresh))) == ["done"]


def test_what_was_not_proved_keeps_a_question_back_until_it_was_seen_since(site: Worksite) -> None:
    """After an unproved change, a question is refused until an observation made since then confirms it."""
    site.policy = quick_policy(apply={"proof_wait_seconds": 0})
    plan, again = site.asked(site.move(1)), site.asked(site.move(2))
    assert said(site.carry_out(site.asked(site.move(0)))) == ["done"]
    site.simulator.requests.clear()
    (outcome,) = site.carry_out(plan)
    assert (outcome.outcome, "proved_first" in outcome.reason, site.untouched()) == ("refused", True, True)
    site.clock.advance(seconds=1)
    site.confirm(again)
    assert said(site.carry_out(again)) == ["done"]


def test_a_policy_that_is_looser_by_now_opens_nothing_however_often_it_was_confirmed(site: Worksite) -> None:
    """A batch is refused under a looser policy than at the question, even if the question was confirmed."""
    plan = site.asked(site.move(0))
    site.confirm(plan)
    site.policy = quick_policy(apply={"most_clients_per_step": 1_000_000})
    with pytest.raises(Refused, match="looser than the one under which"):
        site.carry_out(plan)
    assert site.untouched()


LATER = datetime(2999, 1, 1, tzinfo=UTC)
FORGERIES = {
    "confirmed later": update(tables.CONFIRMATIONS).values(taken_at=LATER),
    "confirmed with another": update(tables.CONFIRMATIONS).values(batch_ids='["b1","b2"]'),
    "confirmation removed": delete(tables.CONFIRMATIONS),
    "another content": update(tables.QUESTIONS).values(content_digest="0" * 64),
    "no question": delete(tables.QUESTIONS),
    "asked as a whole": update(tables.PLANS).values(asked_by_batch=False),
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
@pytest.mark.parametrize("midway", [False, True])
def test_a_forged_question_opens_nothing(site: Worksite, forgery: Executable, *, midway: bool) -> None:
    """A question that was forged before the batch or between its steps stops the batch as tampering."""
    plan = site.asked(site.move(0), site.move(1))
    site.confirm(plan)

    def forge(_: object) -> None:
        with site.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
            connection.execute(forgery)
            connection.commit()

    if not midway:
        forge(None)
    with pytest.raises(LedgerTampered):
        site.carry_out(plan, after=forge if midway else None)
    assert len(site.changes()) == int(midway)


def test_a_confirmation_by_another_hand_opens_nothing(site: Worksite) -> None:
    """A confirmation that was inserted past the chain is reported as tampering, and nothing is called."""
    plan = site.asked(site.move(0))
    row = {
        "question_id": site.question_of(plan),
        "plan_id": plan.plan_id,
        "batch_ids": '["b1"]',
        "by_plan_id": "later",
        "taken_at": site.clock(),
        "at": site.clock(),
    }
    with site.engine.begin() as connection:
        connection.execute(insert(tables.CONFIRMATIONS), row)
    with pytest.raises(LedgerTampered, match=r"row .* of confirmations was inserted by another hand"):
        site.carry_out(plan)
    assert site.untouched()
