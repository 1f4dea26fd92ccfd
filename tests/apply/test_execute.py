"""A batch that goes well: the approved steps, in order, as its dry run printed them, each proved afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec
import pytest

from lab.simulator import Answer, ClusterSpec, Fault
from pulsar_steward.apply.precheck import rehearse
from pulsar_steward.apply.verify import verify
from pulsar_steward.model.step import SplitBundle
from tests.apply.worksite import RUN, Worksite, a_worksite, said
from tests.builders import NAMED, a_step

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.ledger.rows import Proof
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.pulsar.calls import Call


def test_a_move_is_done_when_the_target_owns_the_bundle(site: Worksite) -> None:
    (outcome,) = site.carry_out(site.approved(site.move(0)))
    assert (outcome.outcome, outcome.proof) == ("done", {"owner": site.brokers[1]})
    assert site.owner(site.tc_bundles[0]) == site.brokers[1]
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]


@pytest.mark.parametrize(
    ("ticked", "moved"),
    [(("b1.s02",), (1,)), (("b1.s03", "b1.s01"), (0, 2)), ((), (0, 1, 2))],
    ids=["one", "two, given in another order", "all"],
)
def test_only_the_approved_steps_run_in_the_plans_order(
    site: Worksite, ticked: tuple[str, ...], moved: tuple[int, ...]
) -> None:
    outcomes = site.carry_out(site.approve(site.plan(site.move(0), site.move(1), site.move(2)), *ticked))
    assert said(outcomes) == ["done"] * len(moved)
    assert site.changes() == [f"unload {site.tc_bundles[number]}" for number in moved]
    owners = [site.owner(bundle) for bundle in site.tc_bundles]
    assert owners == [site.brokers[1] if number in moved else site.brokers[0] for number in range(4)]


def test_a_bundle_is_split_before_its_halves_move(site: Worksite) -> None:
    assert said(site.carry_out(site.approve(site.split_and_moves()))) == ["done", "done", "done"]
    halves = site.split(0).halves
    assert site.changes() == [f"split {site.tc_bundles[0]}", f"unload {halves[0]}", f"unload {halves[1]}"]
    assert [site.owner(half) for half in halves] == [site.brokers[1], site.brokers[2]]


def test_a_half_does_not_move_without_its_approved_split(site: Worksite) -> None:
    outcomes = site.carry_out(site.approve(site.split_and_moves(), "b1.s02", "b1.s03"))
    assert said(outcomes) == ["refused", "refused"]
    assert all("needs b1.s01" in row.reason for row in outcomes)
    assert site.untouched()


def test_a_step_that_would_run_before_what_it_needs_is_refused(site: Worksite) -> None:
    late = a_step(site.move(1), step_id="b1.s01", after=("b1.s02",))
    assert said(site.carry_out(site.approved(late, a_step(site.move(2), step_id="b1.s02")))) == ["refused", "refused"]
    assert site.untouched()


def test_the_intent_is_committed_before_the_call(site: Worksite) -> None:
    plan = site.approved(site.move(0))
    seen: list[tuple[str, int, object, object]] = []

    def look_into_the_ledger(call: Call) -> None:
        intents = site.ledger.intents(plan.plan_id, "b1")
        seen.append((call.method, len(intents), intents[0].change, intents[0].before.get("owner")))

    site.carry_out(plan, before=look_into_the_ledger)
    assert seen[0] == ("PUT", 1, site.move(0), site.brokers[0])
    assert seen[1][0] == "GET"  # the lookup needs no intent of its own


def test_the_intent_holds_the_live_values(site: Worksite) -> None:
    plan = site.approve(site.split_and_moves())
    site.carry_out(plan)
    split, first, _ = site.ledger.intents(plan.plan_id, "b1")
    assert split.before == {"owner": site.brokers[0], "bundles": list(site.tc_bundles)}
    assert first.before["owner"] == site.brokers[0]
    assert "transaction_coordinator_assign-partition-" in first.before["topic"]


def test_a_run_that_is_tried_again_after_the_end_calls_nothing(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1))
    first = site.carry_out(plan)
    site.simulator.requests.clear()
    assert site.carry_out(plan) == first
    assert site.untouched()


def test_two_batches_of_two_runs_follow_one_another(site: Worksite) -> None:
    """The lease is given back at the end of a batch, so the next writer need not wait for it to run out."""
    first, second = site.approved(site.move(0)), site.approved(site.move(1))
    assert said(site.carry_out(first)) == ["done"]
    lease = site.ledger.lease(NAMED)
    assert lease is not None
    assert lease.expires_at <= site.clock()
    site.proved(first)
    assert said(site.carry_out(second)) == ["done"]


def test_a_call_that_is_sent_on_from_broker_to_broker_is_one_move(tmp_path: Path) -> None:
    with a_worksite(tmp_path, ClusterSpec(system_bundles=4, tc_owner=2)) as site:
        plan = site.approved(msgspec.structs.replace(site.move(0), source=site.brokers[2]))
        assert said(site.carry_out(plan)) == ["done"]
        assert site.owner(site.tc_bundles[0]) == site.brokers[1]
        assert [call.broker_id for call in site.simulator.requests.writes()] == [site.brokers[0], site.brokers[2]]
        assert len(site.ledger.intents(plan.plan_id, "b1")) == 1
        with site.context(RUN) as context:
            assert verify(context, plan.plan_id, "b1").proved


SYSTEM = "/admin/v2/namespaces/pulsar/system"


def rehearsed(site: Worksite, plan: Plan) -> list[str]:
    """The lines of a dry run of the plan's only batch, without their margins."""
    with site.context() as context:
        text = rehearse(context, plan, plan.batch("b1"))
    return [line.strip() for line in text.splitlines()]


def test_a_dry_run_prints_exactly_what_is_called_later(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1))
    lines = rehearsed(site, plan)
    assert site.untouched()
    assert said(site.carry_out(plan)) == ["done", "done"]
    records = [record for record in site.simulator.requests.all() if record.writes or "/lookup/" in record.path]
    first_hops = [record for record in records if "authoritative" not in record.query]
    called = [f"{row.method} {row.path}{'?' if row.query else ''}{unquote(row.query)}" for row in first_hops]
    printed = [line for line in lines if line.startswith(("PUT ", "GET "))]
    assert list(dict.fromkeys(called)) == printed


def test_a_dry_run_says_what_was_before_and_how_to_go_back(site: Worksite) -> None:
    plan = site.plan(a_step(site.move(0), undo_note="move it back"))
    lines = rehearsed(site, plan)
    assert lines[0] == f"b1: made up ({plan.plan_id})"
    assert any(line.startswith(f"before: owner={site.brokers[0]}, topic=persistent://") for line in lines)
    assert lines[-1] == "undo: move it back"


def test_a_dry_run_of_a_split_shows_the_moves_that_wait_for_it(site: Worksite) -> None:
    lines = rehearsed(site, site.split_and_moves())
    halves = site.split(0).halves
    assert [line for line in lines if line.startswith("PUT")] == [
        f"PUT {SYSTEM}/{site.tc_bundles[0]}/split?unload=false&splitAlgorithmName=topic_count_equally_divide",
        f"PUT {SYSTEM}/{halves[0]}/unload?destinationBroker={site.brokers[1]}",
        f"PUT {SYSTEM}/{halves[1]}/unload?destinationBroker={site.brokers[2]}",
    ]
    assert lines.count("waits for b1.s01: most guards of its own bundle can check it only after that") == 2
    assert lines.count("undo: cannot be undone") == 3
    assert site.untouched()


def test_a_dry_run_tells_drift(site: Worksite) -> None:
    """A dry run says that a step would drift, and does not print its call."""
    plan = site.plan(site.move(0))
    site.simulator.pile_up_tcs(site.brokers[2])
    lines = rehearsed(site, plan)
    assert lines[-1].startswith("would be drifted: owner: ")
    assert not [line for line in lines if line.startswith("PUT")]
    assert site.untouched()


def test_a_dry_run_knows_what_was_moved_lately(site: Worksite) -> None:
    site.carry_out(site.approved(site.move(0)))
    site.simulator.pile_up_tcs(site.brokers[0])
    assert rehearsed(site, site.plan(site.move(0, 2)))[-1].startswith("would be refused: cooldown: ")


def test_a_dry_run_of_an_unreadable_cluster_says_so(site: Worksite) -> None:
    plan = site.plan(site.move(0))
    site.simulator.faults.add(Fault(Answer(503, "away"), times=None))
    assert "would be refused: the cluster" in rehearsed(site, plan)[-1]


def proof_of(site: Worksite, plan: Plan, run: str = RUN) -> Proof:
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
