"""A batch that goes well: the approved steps, in order, as its dry run printed them, each proved afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec
import pytest

from lab.simulator import Answer, ClusterSpec, Fault
from pulsar_steward.apply.precheck import rehearse
from pulsar_steward.apply.verify import verify
from tests.apply.worksite import RUN, Worksite, a_worksite, said
from tests.builders import NAMED, a_step

if TYPE_CHECKING:
    from pathlib import Path

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
    assert lines.count("after b1.s01: most guards of its own bundle can look only then") == 2
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
