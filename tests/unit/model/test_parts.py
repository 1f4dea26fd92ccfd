"""A group is taken apart into the batches that it was made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.model.content import is_about_several, namespaces_of, parts_of
from pulsar_steward.model.plan import ROLLBACK, Plan
from pulsar_steward.model.setting import SettingName
from pulsar_steward.model.step import ChangeSetting
from tests.builders import a_batch, a_move, a_plan, a_step

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch

STEPS = tuple(
    a_step(ChangeSetting(namespace=name, name=SettingName.TTL, before=None, after=None), step_id=f"b1.s0{number}")
    for number, name in enumerate(("a/x", "a/y", "a/y"), start=1)
)
GROUP = a_batch(*STEPS, parts=(1, 2))


def test_a_group_has_its_steps_by_part() -> None:
    """A group's parts have its steps in order, and any other batch is its own part."""
    assert [part.steps for part in parts_of(GROUP)] == [STEPS[:1], STEPS[1:]]
    assert all(parts_of(part) == (part,) for part in parts_of(GROUP))
    assert parts_of(a_batch(*STEPS)) == (a_batch(*STEPS),)


def test_parts_are_recorded_with_the_plan() -> None:
    """Only a plan with a group records the key `parts`, and decoding it gives the same plan."""
    plan = a_plan(GROUP)
    assert Plan.decoded(plan.encoded()) == plan
    assert b"parts" in plan.encoded()
    assert b"parts" not in a_plan(a_batch(*STEPS)).encoded()


@pytest.mark.parametrize(
    ("batch", "namespaces", "several"),
    [
        pytest.param(GROUP, ("a/x", "a/y"), True, id="a group"),
        pytest.param(a_batch(*STEPS), ("a/x", "a/y"), False, id="no group"),
        pytest.param(a_batch(*STEPS, kind=ROLLBACK), ("a/x", "a/y"), True, id="the rollback of one"),
        pytest.param(a_batch(*STEPS[1:], parts=(1, 1)), ("a/y",), False, id="a group in one namespace"),
        pytest.param(
            a_batch(a_step(), a_step(a_move(namespace="a/x")), kind=ROLLBACK), (), False, id="moves between brokers"
        ),
    ],
)
def test_namespaces_may_be_left_out_of_some(batch: Batch, namespaces: tuple[str, ...], several: bool) -> None:
    """A group in several namespaces, or its rollback, is about several; moves between brokers are about none."""
    assert (namespaces_of(batch), is_about_several(batch)) == (namespaces, several)
