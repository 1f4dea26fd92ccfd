"""The task that asks, under a policy that goes by risk: whom it asks, how many, and what they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from airflow.providers.common.compat.sdk import AirflowSkipException

from tests.asking import asked
from tests.builders import a_policy, a_step

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.step import Step
    from tests.apply.worksite import Worksite
    from tests.asking import AirflowRows


@pytest.fixture
def folder(tmp_path: Path, airflow_rows: AirflowRows) -> Path:
    """Home of the policy in force, beside an Airflow that keeps questions."""
    assert airflow_rows is not None
    return tmp_path


def by_risk(site: Worksite, folder: Path, **levels: dict[str, Any]) -> None:
    """Puts a policy in force."""
    approval = {"by_risk": levels}
    (folder / "policy.yaml").write_text(
        yaml.safe_dump({"approval": {"valid_minutes": 60, **approval}}), encoding="utf-8"
    )
    site.policy = a_policy(approval=approval)


def calm(site: Worksite) -> Step:
    """A move that can be undone."""
    return a_step(site.move(1), step_id="b1.s01", undo=site.move(1), undo_note="Move it back.")


def test_those_are_asked_whom_the_risk_demands(site: Worksite, folder: Path) -> None:
    """A step that cannot be undone is asked of the users of its risk, and one that can be undone of anybody."""
    by_risk(site, folder, medium={"users": ["7", "8"]})
    assert asked(site.asked_without_answer(calm(site))).assigned_users is None
    assert asked(site.asked_without_answer(site.split(1)), run="dag/another run/0").assigned_users == [
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
