"""A broker is emptied and filled again, and what comes in between: a part alone is approved, a broker fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.model.bundles import TC_NAMESPACE, BundleRange, position_of, tc_topic
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.step import UnloadBundle
from tests.apply.refusals import assert_refused
from tests.apply.seeing import Seeing
from tests.apply.worksite import a_worksite, quick_policy, said

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.pulsar.calls import Call

SUBSCRIPTION = SubscriptionSpec("s", consumers=1)
SPEC = ClusterSpec(
    brokers=4,
    system_bundles=16,
    namespaces=tuple(
        NamespaceSpec(
            name, bundles=8, topics=(TopicSpec("t", partitions=60, producers=1, subscriptions=(SUBSCRIPTION,)),)
        )
        for name in ("shop/orders", "shop/carts")
    ),
)
"""Four brokers that share coordinators and 120 topics evenly."""

REMEDIES = ("broker_drain", "bundle_balance", "tc_balance")
FAR_APART = {"broker_load_skew": {"minimum_topics": 20}, "bundle_balance_remedy": {"least_snapshots": 2}}


class Drain(Seeing):
    """A worksite with eyes and a broker that drains."""

    @property
    def source(self) -> str:
        """The broker that drains: neither the first, which leads, nor the last."""
        return self.site.brokers[1]

    def mark(self, *brokers: str, **sections: Any) -> None:
        """Writes brokers into the policy."""
        self.site.policy = quick_policy(brokers={"draining": list(brokers)}, **FAR_APART, **sections)

    def owned(self, broker: str) -> set[str]:
        """Bundles of a broker that hold a topic or a coordinator, heartbeats aside, asked behind the API's back."""
        owned = self.site.simulator.owned_bundles()[broker]
        return {name for name in owned if name.startswith("shop/") or _holds_coordinators(name)}


def _holds_coordinators(name: str) -> bool:
    namespace, _, bundle = name.rpartition("/")
    return namespace == TC_NAMESPACE and any(position_of(tc_topic(n)) in BundleRange.parse(bundle) for n in range(16))


@pytest.fixture
def drain(tmp_path: Path) -> Iterator[Drain]:
    """Four brokers, of which the second drains."""
    with a_worksite(tmp_path, SPEC) as site:
        found = Drain(site, tmp_path / "snapshots", REMEDIES)
        found.mark(found.source)
        yield found


def moves(plan: Plan) -> list[UnloadBundle]:
    """The moves of a plan's first batch."""
    return [step.change for step in plan.batches[0].steps if isinstance(step.change, UnloadBundle)]


def test_a_broker_is_emptied_stopped_and_filled_again(drain: Drain) -> None:
    site, source = drain.site, drain.source
    whole, coordinators = drain.owned(source), site.simulator.tc_placement()
    assert coordinators[source]
    plan, found = drain.observe()
    assert found[source].severity is Severity.WARNING
    (batch,) = plan.batches
    assert batch.kind == "broker_drain"
    assert {f"{move.namespace}/{move.bundle}" for move in moves(plan)} == whole
    assert [bool(step.touched.coordinators) for step in batch.steps] == sorted(
        (bool(step.touched.coordinators) for step in batch.steps), reverse=True
    )
    assert set(drain.carry_out(plan)) == {"done"}
    assert drain.owned(source) == set()
    assert site.simulator.tc_placement()[source] == 0

    plan, found = drain.observe()
    assert (found[source].severity, plan.batches) == (Severity.INFO, ())
    site.simulator.stop_broker(source)
    plan, found = drain.observe()
    assert (found[source].severity, plan.batches) == (Severity.INFO, ())

    site.simulator.start_broker(source)
    drain.mark()
    site.clock.advance(minutes=60)
    kinds = []
    for _ in range(4):
        plan, found = drain.observe()
        if plan.batches:
            kinds.append(plan.batches[0].kind)
            assert set(drain.carry_out(plan)) == {"done"}
    assert kinds == ["tc_balance", "bundle_balance"]
    assert not found
    counts = site.simulator.tc_placement().values()
    assert max(counts) - min(counts) <= 1
    assert all(
        2 <= len([name for name in drain.owned(broker) if name.startswith("shop/")]) <= 6 for broker in site.brokers
    )


def test_a_new_broker_gets_its_share(drain: Drain) -> None:
    site = drain.site
    drain.mark()
    new = site.simulator.add_broker().broker_id
    kinds = []
    for _ in range(3):
        plan, _ = drain.observe()
        if plan.batches:
            kinds.append(plan.batches[0].kind)
            assert set(drain.carry_out(plan)) == {"done"}
    assert kinds == ["tc_balance", "bundle_balance"]
    assert site.simulator.tc_placement()[new]
    assert any(name.startswith("shop/") for name in drain.owned(new))


def test_a_part_is_approved_and_the_rest_comes_with_the_next_plan(drain: Drain) -> None:
    source = drain.source
    plan, _ = drain.observe()
    whole, steps = drain.owned(source), plan.batches[0].steps
    assert drain.carry_out(plan, steps[0].step_id, steps[2].step_id) == ["done", "done"]
    left = whole - {f"{move.namespace}/{move.bundle}" for move in (moves(plan)[0], moves(plan)[2])}
    assert drain.owned(source) == left
    plan, found = drain.observe()
    assert found[source].severity is Severity.WARNING
    assert {f"{move.namespace}/{move.bundle}" for move in moves(plan)} == left
    assert set(drain.carry_out(plan)) == {"done"}
    assert drain.owned(source) == set()


def test_batches_are_approved_one_after_the_other(drain: Drain) -> None:
    source = drain.source
    drain.mark(source, broker_drain_remedy={"most_moves": 2, "most_batches": 1})
    holds = []
    while drain.owned(source):
        plan, _ = drain.observe()
        assert len(plan.batches) == 1
        assert len(plan.batches[0].steps) <= 2
        assert set(drain.carry_out(plan)) == {"done"}
        holds.append(drain.site.simulator.tc_placement()[source])
    assert len(holds) > 2
    assert holds == sorted(holds, reverse=True)
    assert holds[-2] == 0


def dying(drain: Drain, broker: str, after: int) -> Any:
    """Kills a broker right before a change, once so many were sent."""
    sent: list[Call] = []

    def before(call: Call) -> None:
        if call.method != "PUT":
            return
        if len(sent) == after:
            drain.site.simulator.kill_broker(broker)
        sent.append(call)

    return before


def test_the_draining_broker_fails_in_the_middle(drain: Drain) -> None:
    site, source = drain.site, drain.source
    plan, _ = drain.observe()
    outcomes = drain.carry_out(plan, before=dying(drain, source, after=2))
    assert outcomes[:2] == ["done", "done"]
    assert outcomes[2] in {"failed", "unknown"}
    assert set(outcomes[3:]) == {"refused"}
    site.simulator.expire_session(source)
    plan, found = drain.observe()
    assert found[source].severity is Severity.INFO
    assert not [batch for batch in plan.batches if batch.kind == "broker_drain"]


def test_a_target_goes_away(drain: Drain) -> None:
    """No step is done once a target was found silent, and a later plan moves the rest to the remaining brokers."""
    site, source = drain.site, drain.source
    plan, _ = drain.observe()
    gone = next(move.target for move in moves(plan)[3:] if move.target != site.brokers[0])
    outcomes = drain.carry_out(plan, before=dying(drain, gone, after=2))
    noticed = next(number for number, outcome in enumerate(outcomes) if outcome != "done")
    assert 2 <= noticed <= [move.target for move in moves(plan)].index(gone, 2)
    assert "done" not in outcomes[noticed:]
    plan, _ = drain.observe()
    assert not plan.batches
    assert any(f"partial without {gone}" in note for note in plan.notes)
    site.simulator.expire_session(gone)
    site.clock.advance(minutes=60)
    left = drain.owned(source)
    plan, _ = drain.observe()
    assert {move.target for move in moves(plan)} <= set(site.brokers) - {source, gone}
    assert {f"{move.namespace}/{move.bundle}" for move in moves(plan)} == left
    assert set(drain.carry_out(plan)) == {"done"}
    assert drain.owned(source) == set()


def test_under_a_policy_without_the_mark_nothing_is_moved(drain: Drain) -> None:
    plan, _ = drain.observe()
    drain.site.approve(plan)
    drain.site.policy = quick_policy(**FAR_APART)
    assert_refused(drain.site, plan, r"brokers\.draining is none")


def test_no_move_back_while_it_drains(drain: Drain) -> None:
    site, source = drain.site, drain.source
    plan, _ = drain.observe()
    assert set(drain.carry_out(plan)) == {"done"}
    move = moves(plan)[0]
    back = UnloadBundle(namespace=move.namespace, bundle=move.bundle, source=move.target, target=source)
    site.clock.advance(minutes=60)
    (refused,) = site.carry_out(site.approved(back))
    assert "is draining" in refused.reason
    drain.mark()
    assert said(site.carry_out(site.approved(back))) == ["done"]
