"""A batch that is a question by itself: it is carried out as long as it stands, and as fresh as it was seen last."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from pulsar_steward.errors import Refused
from pulsar_steward.ledger.publishing import QuestionChanges
from tests.apply.refusals import assert_refused, assert_stopped
from tests.apply.worksite import a_question, quick_policy, said

if TYPE_CHECKING:
    from tests.apply.worksite import Worksite

OTHER_RUN = "pulsar_remediate/manual/1"


def test_a_question_that_stands_is_carried_out(site: Worksite) -> None:
    plan = site.asked(site.move(0))
    other = msgspec.structs.replace(site.proposed(site.move(1)), snapshot_id="newer")
    site.record(other, questions=QuestionChanges(asked=(a_question(other),)))
    assert said(site.carry_out(plan)) == ["done"]


def test_an_answer_after_the_end_opens_nothing(site: Worksite) -> None:
    plan = site.proposed(site.move(0))
    plan = site.record(plan, questions=QuestionChanges(asked=(a_question(plan),)))
    site.end(plan)
    site.approve(plan)
    with pytest.raises(Refused, match=r"the question ended at .*: it was seen otherwise"):
        site.carry_out(plan)
    assert (site.untouched(), site.recorded(plan)) == (True, [("b1.s01", "refused")])


def test_the_same_in_a_later_plan_is_no_second_question(site: Worksite) -> None:
    plan = site.asked(site.move(0))
    later = msgspec.structs.replace(site.proposed(site.move(0)), snapshot_id="later")
    later = site.record(later, questions=QuestionChanges(confirmed=(site.question_of(plan),)))
    site.approve(later, run=OTHER_RUN)
    assert_refused(site, later, "nobody is asked about batch b1", run=OTHER_RUN)
    assert said(site.carry_out(plan)) == ["done"]


def test_a_question_is_as_fresh_as_the_look_that_confirmed_it(site: Worksite) -> None:
    stale = msgspec.structs.replace(site.proposed(site.move(0)), taken_at=site.clock() - timedelta(minutes=1501))
    plan = site.approve(site.record(stale, questions=QuestionChanges(asked=(a_question(stale),))))
    assert_stopped(site, plan, "drifted")
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
    assert_stopped(site, plan, "refused", "proved_first")
    site.clock.advance(seconds=1)
    site.confirm(again)
    assert said(site.carry_out(again)) == ["done"]


def test_a_policy_that_is_looser_by_now_opens_nothing_however_often_it_was_confirmed(site: Worksite) -> None:
    plan = site.asked(site.move(0))
    site.confirm(plan)
    site.policy = quick_policy(apply={"most_clients_per_step": 1_000_000})
    assert_refused(site, plan, "looser than the one under which")
