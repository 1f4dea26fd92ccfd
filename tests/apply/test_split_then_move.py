"""A bundle that carries everything is split, and its parts are moved, as one batch that a person approved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from lab.simulator import Answer, ClusterSpec, Fault, NamespaceSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.plan import BUNDLE_BALANCE, BUNDLE_SPLIT, ROLLBACK
from pulsar_steward.model.step import SplitBundle, UnloadBundle
from pulsar_steward.policy.schema import BrokersPolicy
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.writer import Writer
from tests.apply.refusals import assert_refused
from tests.apply.seeing import Seeing
from tests.apply.test_crash import Crash
from tests.apply.test_rollback import back_of
from tests.apply.worksite import a_worksite, permitted, quick_policy, said
from tests.builders import a_batch, a_plan, a_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.pulsar.calls import Call
    from tests.apply.worksite import Worksite

NAMESPACE = "shop/firehose"
OTHER = "pulsar_remediate/by hand/0"
SPEC = ClusterSpec(
    namespaces=(
        NamespaceSpec(
            NAMESPACE,
            bundles=1,
            topics=(
                TopicSpec(
                    "events",
                    partitions=24,
                    producers=4,
                    subscriptions=(SubscriptionSpec("sink", consumers=4, rate_out=1_000.0),),
                    message_bytes=10_000,
                    rate_in=1_000.0,
                ),
            ),
            owner=0,
        ),
    )
)
"""24 partitions of 20 MB/s, in and out, on one of three brokers."""


@pytest.fixture
def seeing(tmp_path: Path) -> Iterator[Seeing]:
    """The cluster, seen by the checks of bundles and brokers."""
    with a_worksite(tmp_path, SPEC) as site:
        site.policy = quick_policy(bundle_balance_remedy={"least_snapshots": 2}, approval={"two_people_for": []})
        yield Seeing(site, tmp_path / "snapshots", (BUNDLE_SPLIT, BUNDLE_BALANCE))


def the_plan(seeing: Seeing) -> Plan:
    """A plan with splits and moves, once there are snapshots enough."""
    seeing.observe()
    plan, _ = seeing.observe()
    (batch,) = plan.batches
    assert batch.kinds == (BUNDLE_SPLIT, BUNDLE_BALANCE)
    return plan


def bundles_of(seeing: Seeing) -> list[int]:
    """The namespace's bundles on each broker, asked behind the API's back."""
    return [
        sum(name.startswith(NAMESPACE) for name in seeing.site.simulator.owned_bundles()[broker])
        for broker in seeing.site.brokers
    ]


def test_it_is_split_then_moved_and_nothing_is_left_to_find(seeing: Seeing) -> None:
    """All splits and moves are done in one batch, brokers carry the same then, and moves alone can be taken back."""
    plan = the_plan(seeing)
    assert set(seeing.carry_out(plan)) == {"done"}
    for step in plan.batches[0].steps:
        if isinstance(step.change, UnloadBundle):
            assert seeing.site.owner(step.change.bundle, NAMESPACE) == step.change.target
    assert max(held := bundles_of(seeing)) - min(held) <= 1
    after, found = seeing.observe()
    assert (after.batches, set(found)) == ((), set())
    (back,) = back_of(seeing.site, plan).batches
    assert {step.change for step in back.steps} == {step.undo for step in plan.batches[0].steps if step.undo}
    assert back.answered_as == (ROLLBACK, BUNDLE_SPLIT, BUNDLE_BALANCE)


def test_a_move_without_its_split_is_refused(seeing: Seeing) -> None:
    plan = the_plan(seeing)
    moves = [step.step_id for step in plan.batches[0].steps if isinstance(step.change, UnloadBundle)]
    assert set(seeing.carry_out(plan, *moves)) == {"refused"}
    assert seeing.site.untouched()


def test_nothing_is_moved_once_a_split_yields_other_parts(seeing: Seeing) -> None:
    """Where a topic was created since, the first split drifts, and no part is split further or moved."""
    plan = the_plan(seeing)
    seeing.site.simulator.add_topic(NAMESPACE, TopicSpec("late"))
    first, *_ = plan.batches[0].steps
    assert isinstance(first.change, SplitBundle)
    outcomes = seeing.carry_out(plan)
    assert outcomes[0] == "drifted"
    assert "done" not in outcomes
    assert seeing.site.untouched()


def moves_of(plan: Plan) -> list[UnloadBundle]:
    """The moves of the only batch, in order."""
    return [step.change for step in plan.batches[0].steps if isinstance(step.change, UnloadBundle)]


def at_first(ends: str, happens: Callable[[], object]) -> Callable[[Call], None]:
    """Something that happens once, at the first call whose path ends like this."""
    calls_so_far: list[Call] = []

    def at(call: Call) -> None:
        if call.path.endswith(ends) and not calls_so_far:
            calls_so_far.append(call)
            happens()

    return at


def drains(site: Worksite, broker: str) -> None:
    """The operator is about to shut a broker down."""
    site.policy = site.policy.model_copy(update={"brokers": BrokersPolicy(draining=(broker,))})


def few_clients_may_reconnect(site: Worksite, _target: str) -> None:
    """The operator lets fewer clients reconnect at once than any of the topics has."""
    site.policy = quick_policy(apply={"most_clients_per_step": 7})


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        pytest.param(drains, "refused", id="the target drains"),
        pytest.param(lambda site, target: site.simulator.stop_broker(target), "drifted", id="the target is gone"),
        pytest.param(few_clients_may_reconnect, "refused", id="a part has too many clients"),
    ],
)
def test_a_move_that_cannot_follow_stops_the_splits(
    seeing: Seeing, trouble: Callable[[Worksite, str], object], said: str
) -> None:
    """Splits cannot be undone: nothing is split if it is known beforehand that a part must not be moved."""
    plan = the_plan(seeing)
    trouble(seeing.site, moves_of(plan)[-1].target)

    outcomes = seeing.carry_out(plan)

    assert outcomes[-1] == said
    assert set(outcomes) <= {said, "refused"}
    assert seeing.site.untouched()


@pytest.mark.parametrize("spare", [0, 1])
def test_nothing_is_split_where_the_hours_limit_leaves_no_room_for_the_moves(seeing: Seeing, spare: int) -> None:
    """The batch's own changes count before it begins, each once: with room for all of them, all are done."""
    plan = the_plan(seeing)
    most = len(plan.batches[0].steps) - 1 + spare
    seeing.site.policy = seeing.site.policy.model_copy(
        update={"guards": seeing.site.policy.guards.model_copy(update={"most_changes_per_hour": most})}
    )

    outcomes = seeing.carry_out(plan)

    assert set(outcomes) == ({"done"} if spare else {"refused"})
    assert spare or seeing.site.untouched()


def test_where_a_split_fails_nothing_is_moved(seeing: Seeing) -> None:
    plan = the_plan(seeing)
    fails = Fault(Answer(500), path="/split", times=None)

    outcomes = seeing.carry_out(plan, after=lambda _: seeing.site.simulator.faults.add(fails))

    assert outcomes[0] == "done"
    assert outcomes[1] != "done"
    assert set(outcomes[2:]) == {"refused"}
    assert [change.partition(" ")[0] for change in seeing.site.changes()] == ["split", "split"]


def test_a_target_that_is_lost_after_the_splits_stops_the_moves_and_what_moved_can_go_back(seeing: Seeing) -> None:
    plan = the_plan(seeing)
    targets = [move.target for move in moves_of(plan)]
    lost = next(target for target in targets if target != targets[0])

    outcomes = seeing.carry_out(plan, after=at_first("/unload", lambda: seeing.site.simulator.stop_broker(lost)))

    ended = len(outcomes) - len(targets) + targets.index(lost)
    assert set(outcomes[:ended]) == {"done"}
    assert "done" not in outcomes[ended:]
    (back,) = back_of(seeing.site, plan).batches
    assert len(back.steps) == targets.index(lost)


def test_a_part_that_brokers_unloaded_themselves_is_not_moved(seeing: Seeing) -> None:
    plan = the_plan(seeing)
    last = moves_of(plan)[-1]

    def sheds() -> None:
        with Writer(seeing.site.settings) as shedder:
            shedder.send(calls.unload(last.namespace, last.bundle, last.source), permitted)

    assert seeing.carry_out(plan, after=at_first("/unload", sheds))[-1] == "drifted"
    assert seeing.site.changes().count(f"unload {last.bundle}") == 1


def test_after_a_crash_between_split_and_move_nothing_is_done_twice(seeing: Seeing) -> None:
    plan = the_plan(seeing)

    def dies() -> None:
        raise Crash

    with pytest.raises(Crash):
        seeing.carry_out(plan, before=at_first("/unload", dies))
    seeing.site.clock.outlive_a_crash()

    assert {row.outcome.value for row in seeing.site.carry_out(plan, f"pulsar_remediate/manual/{seeing.runs}")} == {
        "done"
    }
    made = seeing.site.changes()
    assert len(made) == len(set(made)) == len(plan.batches[0].steps)


def splits_and_moves(site: Worksite) -> Plan:
    """A recorded plan of one batch that splits a bundle and moves both halves."""
    steps = site.split_and_moves().batches[0].steps
    return site.record(a_plan(a_batch(*steps, kind=BUNDLE_SPLIT), taken_at=site.clock()))


def snooze(site: Worksite, kind: str) -> None:
    """Carol snoozes a batch of moves, of this kind, in another run."""
    moves = site.record(a_plan(a_batch(a_step(site.move(1), step_id="b1.s01"), kind=kind), taken_at=site.clock()))
    site.ask(moves, OTHER)
    answer = site.approval(moves, run=OTHER)
    no = {"decision": Decision.SNOOZED, "answered_by": "carol", "step_ids": (), "digest": None, "expires_at": None}
    site.writes.record_answer(msgspec.structs.replace(answer, **no))


@pytest.mark.parametrize("kind", [BUNDLE_BALANCE, "tc_balance"])
def test_a_no_to_moves_ends_its_approval(site: Worksite, kind: str) -> None:
    """It is not carried out once somebody silenced moves between brokers; a no to another kind does not concern it."""
    plan = site.approve(splits_and_moves(site))
    site.clock.advance(minutes=5)
    snooze(site, kind)

    if kind == BUNDLE_BALANCE:
        assert_refused(site, plan, r"carol said no to it \(snoozed\)")
    else:
        assert set(said(site.carry_out(plan))) == {"done"}


@pytest.mark.parametrize("asked_first", [True, False])
def test_an_approval_overrules_no_no_to_moves_that_came_after_the_question(site: Worksite, asked_first: bool) -> None:
    """Whoever approves splits with moves need not know of a snooze of moves since; one from before was known."""
    plan = splits_and_moves(site)
    if asked_first:
        site.ask(plan)
    site.clock.advance(minutes=1)
    snooze(site, BUNDLE_BALANCE)
    site.clock.advance(minutes=1)
    if not asked_first:
        site.ask(plan)
    site.writes.record_answer(site.approval(plan))

    if asked_first:
        assert_refused(site, plan, r"carol said no to it \(snoozed\)")
    else:
        assert set(said(site.carry_out(plan))) == {"done"}


def test_a_no_to_moves_does_not_end_an_approval_of_the_splits_alone(site: Worksite) -> None:
    """Whoever unticked the moves approved none."""
    plan = site.approve(splits_and_moves(site), "b1.s01")
    site.clock.advance(minutes=5)
    snooze(site, BUNDLE_BALANCE)

    assert said(site.carry_out(plan)) == ["done"]


def test_a_policy_against_moves_does_not_end_an_approval_of_the_splits_alone(site: Worksite) -> None:
    plan = site.approve(splits_and_moves(site), "b1.s01")
    site.policy = quick_policy(approval={"never_ask": [BUNDLE_BALANCE]})

    assert said(site.carry_out(plan)) == ["done"]
