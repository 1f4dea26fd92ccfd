"""A person in a browser answers otherwise than by yes or no: all but one namespace, and never for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.faults.real.operator import operator_of
from pulsar_steward.ledger.rows import Decision, Outcome
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.home import now
from pulsar_steward.orchestration.question_form import NEVER
from tests.browser.pages import Pages
from tests.builders import a_batch, a_plan, a_step
from tests.live.plots import plot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Step
    from tests.live.care import Care

pytestmark = [
    pytest.mark.browser,
    pytest.mark.live,
    pytest.mark.airflow,
    pytest.mark.extended(
        "tests/apply/test_questions.py",
        "tests/unit/orchestration/test_silence.py",
        "tests/browser/test_approval.py::test_what_a_person_takes_out_stays_where_it_is",
    ),
]

NAMES = tuple(f"answered-{number}" for number in (1, 2, 3))
NEVER_EXPIRES = TimeToLive(seconds=0)


@pytest.fixture
def pages(browser: Chrome, care: Care, screenshots: Path) -> Pages:
    """The browser of somebody who is logged in."""
    pages = Pages(browser, care.airflow.spec.url, screenshots)
    user = next(iter(care.airflow.spec.users))
    pages.log_in(user, care.airflow.passwords[user])
    return pages


@pytest.fixture
def namespaces(care: Care) -> Iterator[tuple[str, ...]]:
    """Three namespaces on which no TTL is set."""
    with plot(care.lab, NAMES[0]) as one, plot(care.lab, NAMES[1]) as two, plot(care.lab, NAMES[2]) as three:
        yield one.namespace, two.namespace, three.namespace


def planned(care: Care, *namespaces: str) -> Plan:
    """One question about these namespaces, each of which gets a TTL of its own."""
    steps = [_step(number, namespace) for number, namespace in enumerate(namespaces, start=1)]
    parts = {"parts": tuple(1 for _ in namespaces)} if len(namespaces) > 1 else {}
    made = a_plan(
        a_batch(*steps, kind="retention", title=f"TTL of {len(namespaces)}", unit="", **parts),
        cluster=care.cluster,
        snapshot_id=f"{care.cluster}-{len(namespaces)}",
        taken_at=now(),
    )
    return care.record(made)


def _step(number: int, namespace: str) -> Step:
    change = ChangeSetting(namespace=namespace, name=SettingName.TTL, before=None, after=NEVER_EXPIRES)
    return a_step(change, step_id=f"b1.s{number:02}", undo=change.inverse, undo_note="Unset it.")


def ttl_of(care: Care, namespace: str) -> int | None:
    """The TTL that is set on a namespace, in seconds; None: none is."""
    seconds: int | None = operator_of(care.lab).policies(namespace).get("message_ttl_in_seconds")
    return seconds


def test_all_but_one_namespace(care: Care, pages: Pages, namespaces: tuple[str, ...]) -> None:
    """A namespace that the approver leaves out by name is not changed, although its step stays ticked."""
    plan = planned(care, *namespaces)
    (detail,) = care.approvals(1, care.remediate(plan_id=plan.plan_id))
    pages.open_question_of_plan(plan.plan_id, "b1")
    first, left_out, last = namespaces
    pages.leave_out(left_out)
    pages.picture("5-one-namespace-left-out", of="//button[normalize-space()='Approve']")
    care.airflow.api.settle(detail)
    pages.answer()
    assert care.ended(detail) == "success"
    (answer,) = care.ledger.answers(plan.plan_id, "b1")
    assert (answer.decision, answer.step_ids) == (Decision.APPROVED, ("b1.s01", "b1.s03"))
    outcomes = {outcome.step_id: outcome.outcome for outcome in care.ledger.outcomes(plan.plan_id, "b1")}
    assert outcomes == dict.fromkeys(answer.step_ids, Outcome.DONE)
    assert [ttl_of(care, each) for each in (first, left_out, last)] == [0, None, 0]


def test_all_namespaces_after_all(care: Care, pages: Pages, namespaces: tuple[str, ...]) -> None:
    """A namespace that a person leaves out and then removes from that list is changed like the others."""
    plan = planned(care, *namespaces)
    (detail,) = care.approvals(1, care.remediate(plan_id=plan.plan_id))
    pages.open_question_of_plan(plan.plan_id, "b1")
    pages.leave_out(namespaces[1])
    pages.remove(namespaces[1])
    care.airflow.api.settle(detail)
    pages.answer()
    assert care.ended(detail) == "success"
    assert [ttl_of(care, each) for each in namespaces] == [0, 0, 0]


def test_no_step_at_all(care: Care, pages: Pages, namespaces: tuple[str, ...]) -> None:
    plan = planned(care, *namespaces[:2])
    (detail,) = care.approvals(1, care.remediate(plan_id=plan.plan_id))
    pages.open_question_of_plan(plan.plan_id, "b1")
    for step in reversed(pages.steps()):
        pages.take_out(step)
    assert pages.steps() == []
    pages.picture("7-no-step-at-all", of="//button[normalize-space()='Approve']")
    care.airflow.api.settle(detail)
    pages.answer()
    assert care.ended(detail) == "success"
    (answer,) = care.ledger.answers(plan.plan_id, "b1")
    assert (answer.decision, answer.step_ids) == (Decision.REJECTED, ())
    assert answer.reason == "every step was unticked: nothing is approved, and nothing is changed"
    assert care.ledger.intents(plan.plan_id, "b1") == ()
    assert [ttl_of(care, each) for each in namespaces] == [None, None, None]
    pages.open_plan(plan.plan_id)
    assert answer.reason in pages.text()


def test_never_for_a_namespace(care: Care, pages: Pages, namespaces: tuple[str, ...]) -> None:
    namespace = namespaces[0]
    plan = planned(care, namespace)
    (detail,) = care.approvals(1, care.remediate(plan_id=plan.plan_id))
    pages.open_question_of_plan(plan.plan_id, "b1")
    pages.comment("its owners delete by themselves")
    pages.picture("6-never", of=f"//button[normalize-space()='{NEVER}']")
    care.airflow.api.settle(detail)
    pages.answer(NEVER)
    assert care.ended(detail) == "success"
    (answer,) = care.ledger.answers(plan.plan_id, "b1")
    assert (answer.decision, answer.comment) == (Decision.NEVER, "its owners delete by themselves")
    assert answer.policy_entry is not None
    assert namespace in answer.policy_entry
    assert care.ledger.outcomes(plan.plan_id, "b1") == ()
    assert ttl_of(care, namespace) is None
    pages.open_plan(plan.plan_id)
    assert all(line.strip() in pages.text() for line in answer.policy_entry.splitlines())
