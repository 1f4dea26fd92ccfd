"""One cluster is asked about once, whatever it is called: questions and every kind of no go by the cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from lab.simulator import running_simulator
from pulsar_steward.ledger.rows import Decision, EndReason
from pulsar_steward.ledger.silences import silences
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.asked import QuestionBook
from pulsar_steward.orchestration.grouping import grouped
from pulsar_steward.orchestration.publish import SnapshotView, decide
from pulsar_steward.orchestration.remediating import RemediateParams, choose
from tests.apply.worksite import Worksite, a_worksite
from tests.attacks.test_a_no_reaches import CLUSTER_OF_THREE, NOES, say_no
from tests.attacks.test_somebody_is_asked import CROWDED
from tests.builders import a_batch, a_plan, a_step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.orchestration.publish import Publication
    from tests.attacks.conftest import Connect

WRITTEN_OTHERWISE = replace(CLUSTER_OF_THREE, own_settings=({}, {}, {"metadataStoreUrl": "zk:127.0.0.1:2181"}))
"""The third broker writes the address of the metadata store in another way: so real brokers of one cluster may."""


@pytest.fixture(params=["the same address", "another broker, which writes its metadata's address otherwise"])
def east(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Worksite]:
    """The cluster by its first name."""
    spec = CLUSTER_OF_THREE if request.param == "the same address" else WRITTEN_OTHERWISE
    with a_worksite(tmp_path, spec) as site:
        yield replace(site, broker=0)


@pytest.fixture
def west(east: Worksite) -> Worksite:
    """The same brokers by a second name, which leads to another one of them; the ledger has not seen it yet."""
    return replace(east, cluster="west", broker=2)


one_address = pytest.mark.parametrize("east", ["the same address"], indirect=True)


def a_change(seconds: int = 0, namespace: str = "shop/a", **step: Any) -> Batch:
    """Batch that sets the time to live of a namespace; `step` is what else its step has."""
    change = ChangeSetting(namespace=namespace, name=SettingName.TTL, before=None, after=TimeToLive(seconds=seconds))
    batch = a_batch(a_step(change, undo=change.inverse, **step), kind="retention", title=namespace)
    return msgspec.structs.replace(batch, batch_id="b1")


def observed(site: Worksite, *batches: Batch) -> tuple[Plan, Publication]:
    """An observation under a worksite's name after which these are proposed, as the task of Airflow decides on it."""
    site.clock.advance(seconds=1)
    made = a_plan(
        *batches,
        cluster=site.cluster,
        snapshot_id=f"{site.cluster}-{site.clock():%d%H%M%S%f}",
        taken_at=site.clock(),
        pulsar_cluster=site.identity,
        policy_digest=site.recorded_policy.digest,
    )
    named = NamedCluster(site.cluster, site.identity, frozenset(site.brokers))
    book = QuestionBook(site.ledger, named, site.recorded_policy, site.clock())
    standing, rejected, silenced = book.standing(), book.rejected(), book.silenced()
    plan = grouped(made, SnapshotView.COMPLETE, standing, rejected, silenced, site.policy)
    publication = decide(plan, SnapshotView.COMPLETE, standing, rejected, silenced)
    if publication.record:
        site.record(plan, questions=publication.questions)
    elif publication.questions.confirmed:
        site.writes.record_confirmations(plan, publication.questions.confirmed, site.clock())
    return plan, publication


def waiting(site: Worksite, batch: Batch) -> Plan:
    """The plan of a question that somebody was asked under a worksite's name."""
    plan, publication = observed(site, batch)
    assert publication.publish == (plan.plan_id,), publication.reason
    site.ask(plan)
    return plan


@pytest.mark.parametrize("decision", NOES)
def test_a_no_under_one_name_is_heard_under_another(east: Worksite, west: Worksite, decision: Decision) -> None:
    """What somebody rejected, snoozed or never wants by one name is not asked by another, and the reason says who."""
    plan, _ = observed(east, a_change())
    until = east.clock() + timedelta(days=7) if decision is Decision.SNOOZED else None
    say_no(east, plan, decision=decision, silent_until=until)
    for site in (east, west):
        _, publication = observed(site, a_change())
        assert (publication.questions.asked, publication.publish) == ((), ())
        assert f"by carol (plan {plan.plan_id})" in publication.reason
    observed(west, a_change(namespace="shop/b"))  # the ledger knows a name from its first recorded plan on
    (silence,) = silences(east.engine, east.clock(), NamedCluster(west.cluster))
    assert silence.decision is decision


def test_a_question_under_one_name_is_not_asked_under_another(east: Worksite, west: Worksite) -> None:
    """While a question stands, an observation by another name confirms it, and asks nobody a second time."""
    plan = waiting(east, a_change())
    question = east.question_of(plan)
    for site in (west, east, west):
        _, publication = observed(site, a_change())
        assert (publication.publish, publication.questions.asked, publication.questions.ended) == ((), (), ())
        assert publication.questions.confirmed == (question,)
    assert east.ledger.questions.seen_at(plan, "b1") > plan.taken_at


def test_another_policy_ends_no_question_that_can_be_answered(east: Worksite, west: Worksite) -> None:
    """An observation by another name that proposes something else neither ends a question nor asks for its goal."""
    plan = waiting(east, a_change())
    _, publication = observed(west, a_change(namespace="shop/b"))
    assert publication.questions.ended == ()
    _, publication = observed(west, a_change(3600))
    assert publication.questions.asked == ()
    assert f"batch b1 of plan {plan.plan_id} asks about the same goal under the name east" in publication.reason
    assert east.ledger.questions.over(plan.plan_id, "b1") is None


def test_an_own_observation_ends_a_question_as_before(east: Worksite, west: Worksite) -> None:
    """What takes the place of a question by its own name is what the other name confirms from then on."""
    first = waiting(east, a_change())
    second = waiting(east, a_change(3600))
    assert "takes its place" in str(east.ledger.questions.over(first.plan_id, "b1"))
    _, publication = observed(west, a_change(3600))
    assert publication.questions.confirmed == (east.question_of(second),)


def test_a_higher_risk_is_asked_anew_whoever_sees_it(east: Worksite, west: Worksite) -> None:
    """A risk that rose is asked anew by the name that sees it, and no approval of the lower one counts any more."""
    plan = waiting(east, a_change())
    riskier, publication = observed(west, a_change(touched=CROWDED))
    assert publication.publish == (riskier.plan_id,)
    assert "its risk is high by now" in str(east.ledger.questions.over(plan.plan_id, "b1"))


@one_address
@pytest.mark.usefixtures("home")
def test_what_nobody_was_asked_is_asked_under_its_own_name(east: Worksite, west: Worksite, connect: Connect) -> None:
    """A question that nobody was asked is published by each name that confirms it, and asked under its own."""
    for name in ("east", "west"):
        connect(east.simulator, name, no_policy_file=True)
    plan, _ = observed(east, a_change())
    _, publication = observed(west, a_change())
    assert (publication.publish, publication.questions.asked) == ((plan.plan_id,), ())
    (chosen,) = choose([RemediateParams(cluster="west", plan_id=plan.plan_id, published=True)], "pulsar_remediate/1")
    assert (chosen["plan_id"], chosen["batch_id"]) == (plan.plan_id, "b1")


def test_what_nobody_was_asked_for_too_long_is_asked_under_another_name(east: Worksite, west: Worksite) -> None:
    """A name that is not observed any more holds up no other: its question is ended and asked anew in time."""
    forgotten, _ = observed(east, a_change())
    east.clock.advance(minutes=east.policy.approval.response_timeout_minutes)
    plan, publication = observed(west, a_change())
    assert publication.publish == (plan.plan_id,)
    assert [end.reason for end in publication.questions.ended] == [EndReason.ASKED_ANEW]
    assert "asks the same anew" in str(east.ledger.questions.over(forgotten.plan_id, "b1"))


def test_what_nobody_answered_in_time_is_asked_by_whichever_name_sees_it_first(east: Worksite, west: Worksite) -> None:
    """A question whose time is over is asked anew under another name, and then not under its own as well."""
    waiting(east, a_change())
    east.clock.advance(minutes=east.policy.approval.response_timeout_minutes)
    plan = waiting(west, a_change())
    _, publication = observed(east, a_change())
    assert (publication.publish, publication.questions.confirmed) == ((), (west.question_of(plan),))


def test_a_snooze_that_ended_is_over_under_every_name(east: Worksite, west: Worksite) -> None:
    """A snooze until it gets worse is over once another name asked, as it got worse."""
    plan, _ = observed(east, a_change())
    until = east.clock() + timedelta(days=7)
    say_no(east, plan, decision=Decision.SNOOZED, silent_until=until, until_worse=True)
    waiting(west, a_change(loss=Loss(messages=5, bytes=5)))
    assert silences(east.engine, east.clock()) == ()


@one_address
def test_a_name_that_leads_elsewhere_by_now_takes_nothing_with_it(east: Worksite, west: Worksite) -> None:
    """A no stays with the cluster that it is about when its name leads to another one."""
    plan, _ = observed(west, a_change())
    say_no(west, plan, decision=Decision.NEVER)
    elsewhere = replace(CLUSTER_OF_THREE, configuration={"metadataStoreUrl": "zk:elsewhere:2181"})
    with running_simulator(elsewhere) as simulator:
        waiting(replace(west, simulator=simulator), a_change())
    _, publication = observed(east, a_change())
    assert (publication.publish, publication.questions.ended) == ((), ())
    assert "never to be asked" in publication.reason
