"""A batch is a question by itself, carried out as long as it is open, in a window, without what people took out."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from lab.simulator import ClusterSpec, NamespaceSpec
from pulsar_steward.apply.pace import opening_waited_for
from pulsar_steward.errors import Refused
from pulsar_steward.guards.window_times import good_until
from pulsar_steward.ledger.publishing import QuestionChanges
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.plan import namespaces_of
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.asked import QuestionBook
from pulsar_steward.orchestration.grouping import grouped
from pulsar_steward.orchestration.publish import SnapshotView, decide
from pulsar_steward.orchestration.question_form import APPROVE, COMMENT, LEFT_OUT, QUESTION, STEPS
from tests.apply.refusals import assert_refused, assert_stopped
from tests.apply.worksite import RUN, a_question, a_worksite, quick_policy, said
from tests.builders import ASKED_DIGEST, CLUSTER, a_batch, a_plan, a_step

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.orchestration.publish import Publication
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


NAMES = ("shop/a", "shop/b", "shop/c")
CLUSTER_OF_THREE = ClusterSpec(namespaces=tuple(NamespaceSpec(name) for name in NAMES))
LATER = TimeToLive(seconds=0)


def never_expires(namespace: str) -> Batch:
    """Batch of a namespace, as a planner makes it."""
    change = ChangeSetting(namespace=namespace, name=SettingName.TTL, before=None, after=LATER)
    return a_batch(a_step(change, undo=change.inverse), kind="retention", title=namespace)


def published(site: Worksite, *names: str, snapshot: str) -> tuple[Plan, Publication]:
    """An observation after which these namespaces are proposed, as the task of Airflow publishes it."""
    now, book = site.clock(), QuestionBook(site.ledger, NamedCluster(CLUSTER), site.policy, site.clock())
    batches = [msgspec.structs.replace(never_expires(name), batch_id=f"b{n}") for n, name in enumerate(names, start=1)]
    made = a_plan(
        *batches,
        snapshot_id=snapshot,
        taken_at=now,
        pulsar_cluster=site.identity,
        policy_digest=site.recorded_policy.digest,
    )
    plan = grouped(made, SnapshotView.COMPLETE, book.standing(), book.rejected(), book.silenced(), site.policy)
    known = book.standing(), book.rejected()
    publication = decide(plan, SnapshotView.COMPLETE, *known)
    if publication.record:
        site.record(plan, questions=publication.questions)
    return plan, publication


def answered(site: Worksite, plan: Plan, left_out: list[str]) -> Decision:
    """Somebody is asked, and approves all but these namespaces."""
    site.ask(plan)
    asked = ApprovalQuestion(plan=plan, batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST)
    event = {
        "chosen_options": [APPROVE],
        "params_input": {
            QUESTION: ASKED_DIGEST,
            STEPS: [step.step_id for step in asked.steps],
            LEFT_OUT: left_out,
            COMMENT: "",
        },
        "responded_at": site.clock(),
        "responded_by_user": {"id": "1", "name": "alice"},
    }
    answer = interpret(event, asked, site.policy.approval, site.clock())
    site.writes.record_answer(answer)
    return answer.decision


def test_all_but_one_namespace_are_changed_and_that_one_is_asked_anew(tmp_path: Path) -> None:
    with a_worksite(tmp_path, CLUSTER_OF_THREE) as site:
        site.policy = quick_policy(approval={"decide_by": "tenant"})
        plan, first = published(site, *NAMES, snapshot="first")
        assert [new.goal for new in first.questions.asked] == ["retention shop/a shop/b shop/c"]
        assert answered(site, plan, ["shop/b"]) is Decision.APPROVED
        assert said(site.carry_out(plan)) == ["done", "done"]
        assert site.changes() == ["messageTTL a", "messageTTL c"]
        later, second = published(site, "shop/b", snapshot="second")
        assert [namespaces_of(batch) for batch in later.batches] == [("shop/b",)]
        assert second.ask


def test_a_rejected_group_rests_in_the_ledger_by_its_parts(tmp_path: Path) -> None:
    with a_worksite(tmp_path, CLUSTER_OF_THREE) as site:
        site.policy = quick_policy(approval={"decide_by": "kind"})
        plan, _ = published(site, "shop/a", "shop/b", snapshot="first")
        assert answered(site, plan, ["shop/a", "shop/b"]) is Decision.REJECTED
        later, second = published(site, *NAMES, snapshot="second")
        asked = [namespaces_of(later.batch(new.batch_id)) for new in second.questions.asked]
        assert (asked, second.questions.ended) == ([("shop/c",)], ())


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
