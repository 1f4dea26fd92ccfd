"""The rule for coordinators as an operator published it (docs/knowledge.md A), beside what Steward proposes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.planners.tc.balance import TC_BALANCE
from tests.builders import broker, counted_tc_bundles, planning_facts_with

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LAB = (3, 3, 2, 2, 2, 2, 1, 1)
"""Coordinators by bundle, as the hashes of 16 of them fall into a real cluster's bundles."""


def as_published(bundles: Sequence[Sequence[int]], chosen: Callable[[list[int]], int]) -> list[int] | None:
    """Counts, the most first, where the published rule ends; None: it goes round for ever.

    With M the difference of the two fullest brokers, a bundle of the fullest with at most M coordinators goes to the
    emptiest. Which of them, it does not say.
    """
    brokers, seen = [list(each) for each in bundles], set()
    while True:
        brokers.sort(key=sum, reverse=True)
        state = tuple(tuple(sorted(each)) for each in brokers)
        fitting = [count for count in brokers[0] if count <= sum(brokers[0]) - sum(brokers[1])]
        if not fitting:
            return [sum(each) for each in brokers]
        if state in seen:
            return None
        seen.add(state)
        brokers[0].remove(chosen(fitting))
        brokers[-1].append(chosen(fitting))


@pytest.mark.parametrize(
    ("bundles", "largest_first", "smallest_first", "ours"),
    [
        pytest.param([LAB, (), ()], None, [6, 5, 5], [6, 5, 5], id="16/0/0"),
        pytest.param([LAB[:2] + LAB[6:], LAB[2:6], ()], [8, 8, 0], [8, 8, 0], [6, 5, 5], id="8/8/0"),
        pytest.param(
            [LAB[:2] + LAB[6:], LAB[2:6], (), (), ()], [8, 8, 0, 0, 0], [8, 8, 0, 0, 0], [4, 3, 3, 3, 3], id="8/8/0/0/0"
        ),
        pytest.param([(4,), ()], None, None, [2, 2], id="4/0 in one bundle"),
    ],
)
def test_where_the_published_rule_fails_the_plan_ends_even(
    bundles: list[tuple[int, ...]],
    largest_first: list[int] | None,
    smallest_first: list[int] | None,
    ours: list[int],
) -> None:
    """The published rule goes round or never starts where two brokers are equally full; the plan ends even."""
    assert as_published(bundles, max) == largest_first
    assert as_published(bundles, min) == smallest_first
    held = [(broker(number), count) for number, each in enumerate(bundles) for count in each]
    (batch,) = TC_BALANCE.proposal(planning_facts_with(len(bundles), counted_tc_bundles(held))).batches
    assert sorted((placement.count for placement in batch.after), reverse=True) == ours
