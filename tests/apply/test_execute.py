"""A batch that goes well: exactly the approved steps, in order, each written down first and proved afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from lab.simulator import ClusterSpec
from pulsar_steward.apply.verify import verify
from tests.apply.worksite import RUN, Worksite, a_worksite, said
from tests.builders import NAMED, a_step

if TYPE_CHECKING:
    from pathlib import Path

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
