"""A quota that is proposed, approved, set, proved, and taken back, on real brokers by a real Airflow: one story."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from lab.faults.clients.publishing import publish
from lab.faults.real.ground import Ground, connected
from lab.faults.real.operator import operator_of
from pulsar_steward.ledger.rows import Outcome
from tests.live.care import ENDED_WITHIN_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.care import Care

pytestmark = [pytest.mark.live, pytest.mark.airflow, pytest.mark.spark]

NAMESPACE = "public/way-back"
BACKLOG = 4_000_000
POLICY = "backlog_quota_missing: {warning_backlog_bytes: 2000000}\n"


@dataclass(frozen=True)
class Story:
    """Observations, in this order."""

    without: dict[str, Any]
    question: dict[str, Any]
    set_state: str
    with_quota: dict[str, Any]
    way_back: dict[str, Any]
    back_state: str
    after: dict[str, Any]


@contextlib.contextmanager
def backlog(care: Care) -> Iterator[Ground]:
    """A namespace with a backlog that no quota bounds; it stays behind, as no other policy minds it."""
    admin, client = operator_of(care.lab), connected(care.lab)
    try:
        admin.create_namespace(NAMESPACE, 4)
        here = Ground(care.lab, NAMESPACE, client, admin)
        here.subscription(here.topic())
        publish(here.producer(here.topic()), BACKLOG // 1000, 1000)
        here.until(here.topic(), lambda shown: shown["backlogSize"] >= BACKLOG, "the backlog is there")
        here.until_quiet(here.topic())
        yield here
    finally:
        client.close()


def quotas(here: Ground) -> dict[str, Any]:
    return dict(here.admin.policies(NAMESPACE).get("backlog_quota_map") or {})


@pytest.fixture(scope="module")
def story(care: Care) -> Iterator[Story]:
    """Observed, approved and set; taken back with an approval of its own."""
    policy = care.airflow.spec.steward_home / "policies" / f"{care.cluster}.yaml"
    policy.parent.mkdir(parents=True, exist_ok=True)
    policy.write_text(POLICY, encoding="utf-8")
    with backlog(care) as here:
        without = quotas(here)
        care.observe()
        question = next(each for each in care.approvals(1) if NAMESPACE in each["subject"])
        care.approve(question)
        set_state = care.ended(question)
        with_quota = quotas(here)
        run = care.airflow.api.trigger("pulsar_rollback", {"cluster": care.cluster})
        (way_back,) = care.approvals(1, run)
        care.approve(way_back, comment="we did not like it")
        back_state = care.airflow.api.wait_for_run("pulsar_rollback", run, ENDED_WITHIN_S)
        after = quotas(here)
        yield Story(
            without=without,
            question=question,
            set_state=set_state,
            with_quota=with_quota,
            way_back=way_back,
            back_state=back_state,
            after=after,
        )


def test_the_question_shows_the_value_and_its_harm(story: Story) -> None:
    body = story.question["body"]
    assert "1 GiB" in body
    assert "Stops producers" in body


def test_exactly_the_approved_quota_is_set(story: Story) -> None:
    assert story.without == {}
    assert story.set_state == "success"
    (quota,) = story.with_quota.values()
    assert (quota["limitSize"], quota["policy"]) == (1 << 30, "producer_request_hold")


def test_the_way_back_says_whose_change_it_takes_back(story: Story, care: Care) -> None:
    """The question about the rollback names the change's approver and its plan."""
    subject = story.way_back["subject"]
    assert "alice" in subject
    assert care.ledger.plans(care.cluster)[-1].plan_id in subject


def test_the_former_state_is_back(story: Story) -> None:
    assert story.back_state == "success"
    assert story.after == story.without


@pytest.mark.extended("tests/unit/orchestration/test_rolling_back.py")
def test_what_was_taken_back_is_not_proposed_again_at_once(story: Story, care: Care) -> None:
    assert story.after == {}
    assert care.observe()["plan"] == "skipped"


def test_the_ledger_tells_both_ways(story: Story, care: Care) -> None:
    del story
    plans = [care.ledger.plan(row.plan_id) for row in reversed(care.ledger.plans(care.cluster))]
    done = [
        outcome
        for plan in plans
        for batch in plan.batches
        for outcome in care.ledger.outcomes(plan.plan_id, batch.batch_id)
    ]
    assert [outcome.outcome for outcome in done] == [Outcome.DONE, Outcome.DONE]
    assert [proof.proved for plan in plans for proof in care.ledger.proofs(plan.plan_id)] == [True, True]
