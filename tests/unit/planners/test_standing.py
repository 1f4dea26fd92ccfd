"""A skew becomes a proposal once it has stood for as many snapshots as the policy asks for."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_steward.planners.tc.balance import TC_BALANCE as PLANNER
from tests.builders import a_finding, a_policy, broker, hashed_tc_bundles, planning_facts_with


@pytest.mark.parametrize(("stood", "proposed"), [(1, False), (2, False), (3, True), (4, True)])
def test_a_young_skew_is_not_acted_upon_yet(stood: int, proposed: bool) -> None:
    """A skew that has stood for fewer snapshots than the policy asks for gets no step but a note with their number."""
    finding = msgspec.structs.replace(a_finding(), snapshots_in_a_row=stood)
    planning = planning_facts_with(
        3, hashed_tc_bundles([broker(0)] * 16, 16), findings=(finding,), policy=a_policy(plan={"standing_snapshots": 3})
    )
    proposal = PLANNER.proposal(planning)
    assert bool(proposal.batches) == proposed
    assert any(f"stood for {stood} of the 3" in note for note in proposal.notes) != proposed
