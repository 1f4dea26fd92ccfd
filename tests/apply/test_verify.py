"""Proof of a whole batch: read anew from the brokers, and never kinder than what they show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.simulator import Answer, Fault
from pulsar_steward.apply.verify import verify
from pulsar_steward.model.step import SplitBundle
from tests.apply.worksite import RUN

if TYPE_CHECKING:
    from pulsar_steward.ledger.rows import Proof
    from pulsar_steward.model.plan import Plan
    from tests.apply.worksite import Worksite


def proof_of(site: Worksite, plan: Plan, run: str = RUN) -> Proof:
    """Result of a verification."""
    with site.context(run) as context:
        return verify(context, plan.plan_id, "b1")


def test_a_batch_that_still_shows_is_proved_with_its_placement(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1, 2))
    site.carry_out(plan)
    site.simulator.requests.clear()
    proof = proof_of(site, plan)
    assert (proof.proved, site.untouched()) == (True, True)
    assert "all 2 approved steps are done" in proof.reason
    counts = site.simulator.tc_placement()
    assert proof.shown["placement"] == {
        broker: {"bundles": bundles, "coordinators": counts[broker]}
        for broker, bundles in zip(site.brokers, (2, 1, 1), strict=True)
    }
    assert proof.shown["steps"]["b1.s01"] == f"{site.brokers[1]} owns {site.tc_bundles[0]}"
    assert site.ledger.proofs(plan.plan_id) == (proof,)


def test_a_split_whose_halves_moved_on_is_proved(site: Worksite) -> None:
    plan = site.approve(site.split_and_moves())
    site.carry_out(plan)
    proof = proof_of(site, plan)
    assert (proof.proved, proof.shown["steps"]["b1.s01"]) == (True, "later steps moved on from it")


def test_a_half_that_nothing_moved_on_from_is_looked_at(site: Worksite) -> None:
    """A split of which one half was moved is proved while the other half is where it was made, and not otherwise."""
    plan = site.split_and_moves()
    site.approve(plan, "b1.s01", "b1.s02")
    site.carry_out(plan)
    assert proof_of(site, plan).proved

    split = plan.batches[0].steps[0].change
    assert isinstance(split, SplitBundle)
    left = f"{split.namespace}/{split.halves[1]}"
    site.simulator._loop.call(site.simulator._state.unload, left, site.brokers[2])
    proof = proof_of(site, plan)
    assert not proof.proved
    assert proof.reason.startswith("b1.s01 was done, but now: later steps moved on from a half; ")


def test_a_change_that_was_undone_by_others_is_not_proved(site: Worksite) -> None:
    plan = site.approved(site.move(0))
    site.carry_out(plan)
    site.simulator.pile_up_tcs(site.brokers[0])
    proof = proof_of(site, plan)
    assert not proof.proved
    assert proof.reason.startswith("b1.s01 was done, but now: ")
    assert proof.reason.endswith(f"{site.brokers[0]} owns {site.tc_bundles[0]}")


def test_a_batch_that_stopped_half_way_is_not_proved(site: Worksite) -> None:
    site.simulator.faults.add(Fault(Answer(403, "no"), path=f"{site.tc_bundles[1]}/unload"))
    plan = site.approved(site.move(0), site.move(1), site.move(2))
    site.carry_out(plan)
    proof = proof_of(site, plan)
    assert not proof.proved
    assert proof.reason.startswith("b1.s02 failed: PUT ")
    assert "; b1.s03 refused: " in proof.reason


def test_an_approved_step_without_an_outcome_is_not_proved(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1))
    site.carry_out(plan)
    with site.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM outcomes WHERE step_id = 'b1.s02'")
    proof = proof_of(site, plan)
    assert not proof.proved
    assert proof.reason.startswith("b1.s02: approved, and no outcome")


def test_a_batch_that_nobody_approved_is_not_proved(site: Worksite) -> None:
    proof = proof_of(site, site.plan(site.move(0)))
    assert not proof.proved
    assert "there is no approved step" in proof.reason
    assert proof.shown["placement"][site.brokers[0]]["coordinators"] == 16


def test_a_killed_broker_is_named(site: Worksite) -> None:
    plan = site.approved(site.move(0))
    site.carry_out(plan)
    site.simulator.kill_broker(site.brokers[2])
    proof = proof_of(site, plan)
    assert proof.proved
    assert "no connection" in proof.shown["placement"][site.brokers[2]]["unread"]


def test_a_target_that_was_killed_is_no_proof(site: Worksite) -> None:
    plan = site.approved(site.move(0))
    site.carry_out(plan)
    site.simulator.kill_broker(site.brokers[1])
    proof = proof_of(site, plan)
    assert not proof.proved
    assert "but now: cannot be read" in proof.reason


def test_a_cluster_that_is_away_leaves_a_proof_that_says_so(site: Worksite) -> None:
    plan = site.approved(site.move(0))
    site.carry_out(plan)
    site.simulator.faults.add(Fault(Answer(503, "away"), times=None))
    proof = proof_of(site, plan)
    assert not proof.proved
    assert "the placement cannot be read" in proof.reason
    assert proof.shown["placement"] == {}
    assert site.ledger.proofs(plan.plan_id) == (proof,)
