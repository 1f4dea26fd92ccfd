"""A person in a browser: reads the proposal, takes one move out, approves; just the rest is carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec
import pytest

from pulsar_steward.changes import kind_of
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.model.bundles import BundleRange, position_of, tc_topic
from pulsar_steward.model.step import UnloadBundle
from pulsar_steward.orchestration.home import now
from pulsar_steward.planners.planning_facts import BrokerFact
from pulsar_steward.planners.registry import make_plan
from tests.browser.pages import Pages
from tests.builders import a_finding, hashed_tc_bundles, planning_facts_with

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome

    from pulsar_steward.model.plan import Plan
    from tests.live.care import Care

pytestmark = [pytest.mark.browser, pytest.mark.live, pytest.mark.airflow]


COORDINATORS = 16
SYSTEM_BUNDLES = 16
"""As Pulsar makes them by default."""


def owner_of(care: Care, bundle: str) -> str | None:
    """Returns the broker that owns a bundle of `pulsar/system` as the brokers report it."""
    owned = care.lab.owned_bundles()
    return next((broker for broker, bundles in owned.items() if f"pulsar/system/{bundle}" in bundles), None)


def planned(care: Care) -> Plan:
    """Plan of the cluster with all coordinators on one broker, written down."""
    piled = care.lab.pile_up_tcs()
    bundles = hashed_tc_bundles([piled] * SYSTEM_BUNDLES, COORDINATORS)
    brokers = [BrokerFact(broker=broker, read=True) for broker in care.lab.active_brokers()]
    found = msgspec.structs.replace(
        a_finding(), subject=care.cluster, evidence=f"{piled} has 16 of 16 transaction coordinators"
    )
    scene = planning_facts_with(
        brokers, bundles, cluster=care.cluster, snapshot_id=f"{care.cluster}-made", taken_at=now(), findings=(found,)
    )
    plan = make_plan(scene)
    # Other tests may have moved these bundles a minute ago, by another name of the brokers.
    return care.record(plan, tc_skew={"cooldown_minutes": 0}, guards={"circle_minutes": 0})


def test_what_a_person_takes_out_stays_where_it_is(browser: Chrome, care: Care, screenshots: Path) -> None:
    """The page shows what moves and why; the unticked move is not made, all others are.

    Airflow's list and the page of the plan lead to the same question.
    """
    plan_id = planned(care).plan_id
    (detail,) = care.approvals(1, care.remediate(plan_id=plan_id))
    pages = Pages(browser, care.airflow.spec.url, screenshots)
    user = next(iter(care.airflow.spec.users))

    pages.log_in(user, care.airflow.passwords[user])
    pages.picture("1-required-actions", of=f"//a[contains(., '{care.cluster}:')]")
    pages.open_required_action(f"{care.cluster}:")
    listed = urlsplit(browser.current_url).path
    pages.open_question_of_plan(plan_id, "b1")
    assert unquote(urlsplit(browser.current_url).path) == unquote(listed)
    read = pages.text()
    pages.picture("2-proposal")
    assert len(pages.colours_of_answers()) == 1
    unticked = pages.steps()[-1]
    pages.take_out(unticked)
    pages.comment("the last one can wait until tonight")
    pages.picture("3-one-taken-out", of="//button[normalize-space()='Approve']")
    care.airflow.api.settle(detail)
    pages.answer()
    assert care.ended(detail) == "success"
    pages.picture("4-answered")

    (row,) = care.ledger.plans(care.cluster)
    batch = care.ledger.plan(row.plan_id).batch("b1")
    *approved, left_out = batch.steps
    assert unticked.startswith(left_out.step_id)
    assert all(kind_of(step.change).describe() in read for step in batch.steps[:2])
    assert "16 of 16 transaction coordinators" in read
    (answer,) = care.ledger.answers(row.plan_id, "b1")
    assert answer.step_ids == tuple(step.step_id for step in approved)
    assert answer.comment == "the last one can wait until tonight"
    outcomes = {outcome.step_id: outcome.outcome for outcome in care.ledger.outcomes(row.plan_id, "b1")}
    assert outcomes == dict.fromkeys(answer.step_ids, Outcome.DONE)
    for step in approved:
        assert isinstance(step.change, UnloadBundle)
        assert owner_of(care, step.change.bundle) == step.change.target
    assert isinstance(left_out.change, UnloadBundle)
    assert owner_of(care, left_out.change.bundle) == left_out.change.source
    stayed = BundleRange.parse(left_out.change.bundle)
    kept = sum(position_of(tc_topic(number)) in stayed for number in range(COORDINATORS))
    assert max(care.lab.tc_placement().values()) == max(place.count for place in batch.after) + kept
