"""The task that asks, under a policy that goes by risk: whom it asks, how many, and what they read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
import pytest
import yaml
from airflow.providers.common.compat.sdk import AirflowSkipException
from airflow.providers.standard.operators.hitl import HITLOperator

from pulsar_steward.orchestration.approval import ApproveBatch
from pulsar_steward.orchestration.batches import BatchRef
from tests.apply.worksite import RUN
from tests.builders import a_policy, a_step

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Step
    from tests.apply.worksite import Worksite


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home of the policy in force; Airflow's own part of asking is left out."""
    monkeypatch.setattr(HITLOperator, "execute", lambda *_: None)
    return tmp_path


def by_risk(site: Worksite, folder: Path, **levels: dict[str, Any]) -> None:
    """Puts a policy in force."""
    approval = {"by_risk": levels}
    (folder / "policy.yaml").write_text(yaml.safe_dump({"approval": approval}), encoding="utf-8")
    site.policy = a_policy(approval=approval)


def calm(site: Worksite) -> Step:
    """A move that can be undone."""
    return a_step(site.move(1), step_id="b1.s01", undo=site.move(1), undo_note="Move it back.")


def asked(plan: Plan, voice: int = 1) -> ApproveBatch:
    """The task, after it asked about the plan's only batch."""
    batch = msgspec.to_builtins(BatchRef.of(plan, plan.batches[0]))
    task = ApproveBatch(task_id="ask", batch=batch, voice=voice)
    dag_id, run_id, map_index = RUN.split("/")
    instance = SimpleNamespace(id=uuid4(), dag_id=dag_id, run_id=run_id, map_index=int(map_index))
    run = SimpleNamespace(triggering_user_name=None, run_type="scheduled")
    context: Any = {"ti": instance, "task_instance": instance, "dag_run": run}
    task.execute(context)
    return task


def test_those_are_asked_whom_the_risk_demands(site: Worksite, folder: Path) -> None:
    """A step that cannot be undone is asked of the users of its risk, and one that can be undone of anybody."""
    by_risk(site, folder, medium={"users": ["7", "8"]})
    assert asked(site.asked_without_answer(calm(site))).assigned_users is None
    assert asked(site.asked_without_answer(site.split(1))).assigned_users == [
        {"id": "7", "name": "7"},
        {"id": "8", "name": "8"},
    ]


def test_a_second_person_is_asked_where_the_risk_demands_one(site: Worksite, folder: Path) -> None:
    """A second approver is asked for medium risk only, as the policy demands it."""
    by_risk(site, folder, medium={"people": 2})
    plan = site.asked_without_answer(site.split(0))
    site.approve(plan)
    assert "second approval" in asked(plan, voice=2).subject
    other = site.asked_without_answer(calm(site))
    site.approve(other)
    with pytest.raises(AirflowSkipException, match="no second person"):
        asked(other, voice=2)


def test_the_question_says_its_risk_its_worth_and_when(site: Worksite, folder: Path) -> None:
    """A question states the risk of its batch, what the batch is worth, and when it would be carried out."""
    by_risk(site, folder)
    task = asked(site.asked_without_answer(site.split(0)))
    assert "medium risk" in task.subject
    assert all(f"### {heading}" in (task.body or "") for heading in ("Risk: medium", "What it is worth", "When"))
