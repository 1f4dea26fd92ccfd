"""Every guard is asked of every kind of change and of its rollback, or says why not; docs/guards.md shows that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import msgspec
import pytest

from pulsar_steward.changes import kind_of
from pulsar_steward.guards.evaluate import GUARDS, guards_of
from pulsar_steward.model.step import (
    AddPartitions,
    Change,
    ChangeSetting,
    DeleteSubscription,
    RaiseCoordinators,
    SplitBundle,
    UnloadBundle,
)
from tests.builders import a_look, a_step
from tests.unit.changes.test_kinds import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.guards.kinds import Guard
    from pulsar_steward.model.step import Step

PAGE = Path(__file__).parents[3] / "docs" / "guards.md"
NAMES: dict[type[Change], str] = {
    UnloadBundle: "moves",
    SplitBundle: "splits",
    ChangeSetting: "settings",
    RaiseCoordinators: "coordinators",
    AddPartitions: "partitions",
    DeleteSubscription: "subscriptions",
}


def steps() -> Iterator[Step]:
    """A step of each kind, and its rollback where it can have one."""
    for change in EXAMPLES:
        step = a_step(change)
        yield step
        if kind_of(change).undoable:
            yield msgspec.structs.replace(step, undoes="p1/b1.s01")


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_judges_every_step_that_it_does_not_refuse_to_look_at(guard: Guard) -> None:
    """Each guard returns a result for each kind of change, and for its rollback, of which it does not say why not."""
    judged = [guard.check(step, *a_look()) for step in steps() if guard in guards_of(step)]
    assert judged, f"{guard.name} is asked of nothing"
    assert {result.guard for result in judged} == {guard.name}


def test_only_what_is_said_to_be_left_out_is_left_out() -> None:
    for step in steps():
        aspects = kind_of(step.change).aspects
        expected = {
            guard
            for guard in GUARDS
            if guard.aspect in {None, *aspects} and not (step.undoes and guard.not_asked_of_rollbacks)
        }
        assert set(guards_of(step)) == expected


def test_a_value_goes_to_no_second_cluster_on_its_way_back() -> None:
    """Rollbacks of settings are held against other clusters, clocks and delays like the changes themselves."""
    (back,) = (step for step in steps() if step.undoes and isinstance(step.change, ChangeSetting))
    assert {"one_cluster", "clocks", "longest_delay"} <= {guard.name for guard in guards_of(back)}


def table() -> str:
    """The table of guards.md: of what each guard is asked, and why not of the rest."""
    kinds = {NAMES[type(change)]: kind_of(change) for change in EXAMPLES}
    rows = [f"| guard | is about | {' | '.join(kinds)} | ahead | rollbacks |", "|---|---|" + "---|" * (len(kinds) + 2)]
    for guard in GUARDS:
        asked = [kind for kind in kinds.values() if guard.aspect in {None, *kind.aspects}]
        cells = ["yes" if kind in asked else "no" for kind in kinds.values()]
        cells.append("yes" if guard.ahead else "no")
        rollbacks = f"no: {guard.not_asked_of_rollbacks}" if guard.not_asked_of_rollbacks else "yes"
        cells.append(rollbacks if any(kind.undoable for kind in asked) else "there are none")
        rows.append(f"| `{guard.name}` | {guard.aspect or 'every change'} | {' | '.join(cells)} |")
    return "\n".join(rows)


def test_the_document_shows_the_table() -> None:
    assert set(NAMES) == set(get_args(Change))
    assert table() in PAGE.read_text(encoding="utf-8"), f"write this into docs/guards.md:\n{table()}"
