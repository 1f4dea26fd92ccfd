"""Somebody is asked: a question stands only where a person was asked and can still answer, at the risk it has now."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.errors import NotInLedger, Refused
from pulsar_steward.ledger.counts import ledger_counts
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.step import Touched
from pulsar_steward.orchestration.asked import QuestionBook, nobody_knows
from pulsar_steward.orchestration.publish import SnapshotView, decide
from pulsar_steward.orchestration.remediating import choose, wanted_by
from pulsar_steward.orchestration.run_states import RunStates
from tests.apply.refusals import assert_refused
from tests.apply.worksite import RUN, quick_policy, said
from tests.builders import CLUSTER, a_finding, a_step, waiting_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.orchestration.publish import Publication
    from tests.apply.worksite import Worksite
    from tests.attacks.conftest import Connect

FIRST, SECOND = "pulsar_remediate/first/0", "pulsar_remediate/second/0"

CROWDED = Touched(producers=6_000, consumers=6_000, topics=1, coordinators=0)
"""Clients of a move whose risk is high; that of a few is low."""


def observed(
    site: Worksite,
    plan: Plan,
    view: SnapshotView = SnapshotView.COMPLETE,
    has_ended: Callable[[str, str], bool] = nobody_knows,
) -> Publication:
    """Decision on another snapshot that proposes this plan's batches; it is recorded as an observation does."""
    later = msgspec.structs.replace(
        plan,
        snapshot_id=f"seen-{site.clock():%H%M%S%f}",
        taken_at=site.clock(),
        pulsar_cluster=site.identity,
        policy_digest=site.recorded_policy.digest,
    )
    book = QuestionBook(site.ledger, NamedCluster(CLUSTER), site.recorded_policy, site.clock(), has_ended)
    publication = decide(later, view, book.standing(), book.rejected(), book.silenced())
    if publication.record:
        site.writes.record_plan(later, site.clock(), policy=site.recorded_policy, questions=publication.questions)
    else:
        site.writes.record_confirmations(later, publication.questions.confirmed, site.clock())
    return publication


def moved(site: Worksite, clients: Touched | None = None) -> Plan:
    """A plan of one move that can be undone, for two findings in a row; its risk is low but for many clients."""
    few = Touched(producers=1, consumers=1, topics=1, coordinators=0)
    there, back = site.move(0), msgspec.structs.replace(site.move(0), source=site.brokers[1], target=site.brokers[0])
    step = a_step(there, step_id="b1.s01", touched=clients or few, undo=back)
    plan = site.proposed(step)
    finding = msgspec.structs.replace(a_finding(Severity.WARNING), snapshots_in_a_row=2)
    batch = msgspec.structs.replace(plan.batches[0], findings=(finding,))
    return msgspec.structs.replace(plan, batches=(batch,))


@pytest.mark.parametrize("view", SnapshotView)
def test_what_nobody_was_asked_is_published_until_somebody_is(site: Worksite, view: SnapshotView) -> None:
    """Each observation publishes a question again whose event made no run, such as of a paused DAG; then no more."""
    proposal = moved(site)
    (first,) = observed(site, proposal).publish
    for _ in range(2):
        site.clock.advance(minutes=24 * 60)
        assert observed(site, proposal, view).publish == (first,)
    site.ask(site.ledger.plan(first))
    assert not observed(site, proposal, view).ask


def test_two_runs_that_begin_at_once_ask_once(site: Worksite) -> None:
    """Of two runs of one publication, however slow the first one is, one asks and the other names it."""
    plan = site.asked_without_answer(site.move(0))
    both = Barrier(2)

    def ask(run: str) -> str:
        both.wait()
        try:
            site.ask(plan, run)
        except Refused as error:
            return str(error)
        return run

    with ThreadPoolExecutor(2) as threads:
        told = list(threads.map(ask, (FIRST, SECOND)))
    (waiting,) = waiting_in(site.engine, site.clock())
    assert sorted(told) == sorted([waiting.run, f"run {waiting.run} asks about it"])
    site.ask(plan, waiting.run)  # the same run may be tried again
    assert [each.run for each in waiting_in(site.engine, site.clock())] == [waiting.run]


def airflow_says(states: dict[str, str | None] | Exception | None) -> RunStates:
    """What Airflow says of the tasks of the run `FIRST`; None: it does not know that run."""

    def get_task_states(dag_id: str, run_ids: list[str]) -> dict[str, dict[str, str | None]]:
        assert (dag_id, run_ids) == ("pulsar_remediate", ["first"])
        if isinstance(states, Exception):
            raise states
        return {} if states is None else {"first": states}

    return RunStates(SimpleNamespace(get_task_states=get_task_states))


@pytest.mark.parametrize(
    "states",
    [
        pytest.param(None, id="its run was deleted, or Airflow's database was made anew"),
        pytest.param({"choose": "success"}, id="its tasks were removed"),
        pytest.param({"batch.approve_0": "failed"}, id="it failed, or its time was over while the API was away"),
        pytest.param({"batch.approve_0": "success"}, id="somebody marked it as a success"),
        pytest.param({"batch.approve_0": "skipped"}, id="its run was marked as failed"),
        pytest.param({"batch.approve_0": "upstream_failed"}, id="what is before it failed"),
        pytest.param({"batch.approve_1": "deferred", "batch.approve_0": "removed"}, id="another batch is asked by now"),
    ],
)
def test_a_question_for_which_no_task_waits_is_asked_anew(site: Worksite, states: dict[str, str | None] | None) -> None:
    """The next observation ends a question whose run does not wait any more, names it, and asks the same again."""
    proposal = moved(site)
    (first,) = observed(site, proposal).publish
    site.ask(site.ledger.plan(first), FIRST)
    publication = observed(site, proposal, has_ended=airflow_says(states).has_ended)
    assert len(publication.publish) == 1
    assert publication.publish != (first,)
    over = site.ledger.questions.over(first, "b1") or ""
    assert f"run {FIRST} does not wait for an answer any more" in over
    assert waiting_in(site.engine, site.clock()) == []


@pytest.mark.parametrize(
    "states",
    [
        *({"batch.approve_0": state} for state in ("deferred", "awaiting_input", "running", "queued", "up_for_retry")),
        {"batch.approve_0": None},
        RuntimeError("Airflow's API server is away"),
    ],
    ids=str,
)
def test_a_question_for_which_a_task_waits_is_asked_once(site: Worksite, states: dict[str, str | None]) -> None:
    """A question stands whose task waits, is about to ask, was cleared, or of which Airflow does not say anything."""
    proposal = moved(site)
    (first,) = observed(site, proposal).publish
    site.ask(site.ledger.plan(first), FIRST)
    assert observed(site, proposal, has_ended=airflow_says(states).has_ended).publish == ()
    assert [each.run for each in waiting_in(site.engine, site.clock())] == [FIRST]


def test_an_approval_that_no_task_carries_out_is_asked_anew(site: Worksite) -> None:
    """An approval whose run was deleted before it acted, such as before its window, is void and asked anew."""
    proposal = moved(site)
    (first,) = observed(site, proposal).publish
    plan = site.approve(site.ledger.plan(first), run=FIRST)
    assert not observed(site, proposal, has_ended=airflow_says({"batch.apply_0": "deferred"}).has_ended).ask
    assert observed(site, proposal, has_ended=airflow_says(None).has_ended).ask
    assert_refused(site, plan, "the question ended", run=FIRST)


@pytest.mark.parametrize("minutes", [10, 24 * 60])
def test_the_time_to_answer_is_the_one_that_was_promised(site: Worksite, minutes: int) -> None:
    """A question waits for as long as its form said, whatever a later policy says, and is asked anew after that."""
    site.policy = quick_policy(approval={"response_timeout_minutes": 60})
    proposal = moved(site)
    (first,) = observed(site, proposal).publish
    site.ask(site.ledger.plan(first))
    site.policy = quick_policy(approval={"response_timeout_minutes": minutes})
    site.clock.advance(minutes=59)
    assert not observed(site, proposal).ask
    site.clock.advance(minutes=2)
    assert observed(site, proposal).ask


POSTED: list[dict[str, Any]] = [
    {"cluster": CLUSTER, "plan_ids": ["another-home-20260101T000000Z-0123456789ab"]},
    {"cluster": "nobody-knows-it", "plan_ids": ["x"]},
    {"cluster": 7, "plan_ids": ["x"]},
    {"plan_ids": "x"},
    {"cluster": CLUSTER, "plan_ids": [None]},
    {},
]


@pytest.fixture
def in_airflow(site: Worksite, home: Path, connect: Connect) -> Worksite:
    """The worksite behind connections of Airflow's."""
    assert home.is_dir()
    connect(site.simulator, no_policy_file=True)
    return site


@pytest.mark.parametrize("posted", POSTED, ids=json.dumps)
def test_no_event_of_another_keeps_anybody_from_being_asked(in_airflow: Worksite, posted: dict[str, Any]) -> None:
    """A run that several events started asks about the plans that it knows, whatever another event names."""
    plan = in_airflow.asked_without_answer(in_airflow.move(0))
    events = [posted, {"cluster": CLUSTER, "plan_ids": [plan.plan_id]}, posted]
    assert [ref["plan_id"] for ref in choose(wanted_by({"cluster": CLUSTER}, events), "pulsar_remediate/r")] == [
        plan.plan_id
    ]


def test_a_run_that_knows_none_of_its_plans_says_so(in_airflow: Worksite) -> None:
    """A run all of whose events name plans of another ledger fails, and its error names the settings to compare."""
    assert in_airflow.ledger.plans(CLUSTER) == ()
    with pytest.raises(NotInLedger, match="need the same connection steward_ledger and STEWARD_HOME"):
        choose(wanted_by({"cluster": CLUSTER}, POSTED[:1]), "pulsar_remediate/r")


def test_more_than_a_run_can_ask_is_left_to_the_next(in_airflow: Worksite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run asks about as many batches as Airflow expands, and not about none because there are more."""
    monkeypatch.setattr("pulsar_steward.orchestration.remediating.MAX_BATCHES", 1)
    plans = [in_airflow.asked_without_answer(in_airflow.move(number)) for number in range(2)]
    events = [{"cluster": CLUSTER, "plan_ids": [plan.plan_id for plan in plans]}]
    assert [each["plan_id"] for each in choose(wanted_by({}, events), "pulsar_remediate/r")] == [plans[0].plan_id]


@pytest.mark.parametrize("view", SnapshotView)
def test_a_higher_risk_is_not_approved_by_who_read_a_lower_one(site: Worksite, view: SnapshotView) -> None:
    """An approval of a low risk ends once an observation computes a high one for the same, which is asked anew."""
    site.policy = quick_policy(approval={"by_risk": {"high": {"people": 2}}})
    (first,) = observed(site, moved(site)).publish
    plan = site.approve(site.ledger.plan(first))
    publication = observed(site, moved(site, CROWDED), view)
    assert publication.ask
    assert_refused(site, plan, "its risk is high by now, and it was asked as low")
    site.approve(site.ledger.plan(publication.publish[0]))
    with pytest.raises(Refused, match="needs the approval of a second person"):
        site.carry_out(site.ledger.plan(publication.publish[0]))


def test_a_partial_look_neither_ends_nor_refreshes_what_a_whole_one_asked(site: Worksite) -> None:
    """A risk that is higher only as brokers were not read ends no question, and does not make its evidence younger."""
    proposal = moved(site)
    (first,) = observed(site, proposal).publish
    plan = site.approve(site.ledger.plan(first))
    publication = observed(site, msgspec.structs.replace(proposal, unread=("broker-2:8080",)), SnapshotView.PARTIAL)
    assert (publication.ask, publication.questions.ended, publication.questions.confirmed) == (False, (), ())
    assert said(site.carry_out(plan)) == ["done"]


def test_a_lower_risk_keeps_the_stricter_terms(site: Worksite) -> None:
    """A question of a high risk stands while the risk is lower by now, and needs what it was asked under."""
    site.policy = quick_policy(approval={"by_risk": {"high": {"people": 2}}})
    (first,) = observed(site, moved(site, CROWDED)).publish
    plan = site.approve(site.ledger.plan(first))
    assert not observed(site, moved(site)).ask
    assert_refused(site, plan, "needs the approval of a second person")


def test_a_change_under_way_is_not_asked_again_as_its_risk_rises(site: Worksite) -> None:
    """A batch that a run acts on goes on: guards look at the live cluster before each of its calls."""
    (first,) = observed(site, moved(site)).publish
    plan = site.approve(site.ledger.plan(first))
    assert site.writes.use_answer(1, RUN, site.clock())
    assert not observed(site, moved(site, CROWDED)).ask
    assert said(site.carry_out(plan)) == ["done"]


def test_a_question_of_nobody_is_counted_as_such(site: Worksite) -> None:
    """What nobody was asked is neither waiting nor nothing: it is counted by itself until somebody is asked."""
    plan = site.asked_without_answer(site.move(0))

    def counted() -> tuple[int, int]:
        counts = ledger_counts(site.engine, site.clock()).clusters[CLUSTER]
        return len(counts.unasked), len(counts.waiting)

    assert counted() == (1, 0)
    site.ask(plan)
    assert counted() == (0, 1)
    site.writes.record_answer(site.approval(plan, decision=Decision.REJECTED, step_ids=(), expires_at=None))
    assert counted() == (0, 0)
