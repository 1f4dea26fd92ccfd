"""One batch after the other: what the one changed is proved before the next one changes more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.simulator import Answer, Fault
from pulsar_steward.apply.halting import StopSwitch
from tests.apply.worksite import quick_policy, said

if TYPE_CHECKING:
    from tests.apply.worksite import Worksite


def test_an_unproved_batch_stops_the_next_one(site: Worksite) -> None:
    site.policy = quick_policy(apply={"proof_wait_seconds": 0})
    first, second = site.approved(site.move(0)), site.approved(site.move(1))
    site.carry_out(first)
    (refused,) = site.carry_out(second)
    assert refused.outcome == "refused"
    assert f"batch b1 of plan {first.plan_id} changed the cluster, and its proof is not there yet" in refused.reason


def test_a_proof_that_comes_soon_is_waited_for(site: Worksite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch waits for the proof of the earlier batch, and is carried out once that is recorded."""
    first, second = site.approved(site.move(0)), site.approved(site.move(1))
    site.carry_out(first)
    rest, rests = StopSwitch.rest, list[float]()

    def proof_comes(switch: StopSwitch, seconds: float) -> None:
        rests.append(seconds)
        if len(rests) == 1:
            assert len(site.changes()) == 1
            site.proved(first)
        rest(switch, seconds)

    monkeypatch.setattr(StopSwitch, "rest", proof_comes)
    assert said(site.carry_out(second)) == ["done"]
    assert rests


def test_a_batch_that_failed_stops_plans_from_before_it(site: Worksite) -> None:
    first, second = site.approved(site.move(0)), site.approved(site.move(1))
    fault = site.simulator.faults.add(Fault(Answer(200), path="/unload", times=None))
    assert said(site.carry_out(first)) == ["failed"]
    site.simulator.faults.remove(fault)
    with pytest.raises(AssertionError):
        site.proved(first)
    (refused,) = site.carry_out(second)
    assert "was not proved: b1.s01 failed" in refused.reason
    site.clock.advance(seconds=2)
    assert said(site.carry_out(site.approved(site.move(1)))) == ["done"]


def test_a_batch_that_changed_nothing_needs_no_proof(site: Worksite) -> None:
    assert said(site.carry_out(site.approved(site.move("0x00000000_0x00000001")))) == ["drifted"]
    assert said(site.carry_out(site.approved(site.move(0)))) == ["done"]
