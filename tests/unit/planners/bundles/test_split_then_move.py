"""Splits and moves of business bundles in one batch; carried out, nothing is left to find."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import msgspec

from lab.simulator import ClusterSpec, NamespaceSpec, Simulator, TopicSpec
from lab.simulator import running_simulator as running
from pulsar_steward.changes import kind_of
from pulsar_steward.checks.placement.broker_load import OTHERS_MEDIAN
from pulsar_steward.checks.registry import CHECKS
from pulsar_steward.collect.collecting import CollectParameters, collect
from pulsar_steward.collect.reading import TaskDivision, WrittenByTasks
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.facts.load_manager import BrokerUsage, load_manager_of
from pulsar_steward.model.bundles import FULL_RANGE, BundleRange, position_of
from pulsar_steward.model.plan import BROKER_DRAIN, BUNDLE_BALANCE, BUNDLE_SPLIT, Batch, numbered
from pulsar_steward.model.step import Change, SplitBundle, UnloadBundle
from pulsar_steward.model.units import MEGABYTE
from pulsar_steward.orchestration.remediating import is_of
from pulsar_steward.planners.bundles.facts import Busy, Load
from pulsar_steward.planners.bundles.parts import load_of
from pulsar_steward.planners.bundles.split import PLANNER
from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.load import parse_policy
from pulsar_steward.policy.schema import AdminPolicy
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.runtime.parallel import OnThreads
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import a_move, a_policy, broker, planning_facts_with
from tests.cases import row_by_row
from tests.unit.facts.test_load_manager import MODULAR
from tests.unit.planners.bundles.scenes import (
    NAMESPACE,
    a_crowd,
    a_stay,
    a_suspect,
    crowded_scene,
    finding,
    hot,
    load_of_stays,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.planners.base import Proposal
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.pulsar.calls import Call
    from tests.golden import Golden

WHOLE = BundleRange(0, FULL_RANGE)
FULL = msgspec.structs.replace(
    finding("broker-load-skew", broker(0)), figures={"megabytes": 480, f"{OTHERS_MEDIAN}megabytes": 0}
)
EMPTY = msgspec.structs.replace(finding("broker-load-skew", broker(2)), figures={"others_usual_topics": 1, "topics": 0})
PARTITION = {"bytes": 20 * MEGABYTE, "messages": 2000, "producers": 4, "consumers": 4}


def scene(*found: Any, partitions: int = 24, **fields: Any) -> PlanningFacts:
    """Three brokers, the first of which has a namespace's only bundle, and this load in it; `found` is found."""
    suspect = a_suspect(WHOLE, [PARTITION] * partitions)
    stay = a_stay(0, 0, suspect.load, bundle=str(WHOLE))
    usual: dict[str, Any] = {
        "busy": Busy(bytes=1, with_bytes=1, all_bytes=suspect.load.bytes, brokers=3),
        "load": load_of_stays(3, [stay]),
        "splits_keep_clients": True,
    }
    return crowded_scene(a_crowd([suspect], bundles=1), [hot(WHOLE), *found], **{**usual, **fields})


def the_batch(proposal: Proposal) -> Batch:
    (batch,) = numbered(proposal.batches)
    return batch


def test_it_is_split_and_its_parts_are_moved_in_one_batch(golden: Golden) -> None:
    batch = the_batch(PLANNER.proposal(scene(FULL)))

    splits = {
        half: step.step_id for step in batch.steps if isinstance(step.change, SplitBundle) for half in halves(step)
    }
    moves = [step for step in batch.steps if isinstance(step.change, UnloadBundle)]
    assert moves == list(batch.steps[-len(moves) :])
    for step in moves:
        assert isinstance(step.change, UnloadBundle)
        assert step.after == (splits[step.change.bundle],)
        assert step.change.source == broker(0)
        assert isinstance(step.undo, UnloadBundle)
    assert all(result.passed for step in batch.steps for result in step.guards)
    assert (batch.kind, batch.kinds) == (BUNDLE_SPLIT, (BUNDLE_SPLIT, BUNDLE_BALANCE))
    assert [each.check_id for each in batch.findings] == ["hot-bundle", "broker-load-skew"]
    assert [place.count for place in batch.before] == [24, 0, 0]
    assert all(6 <= place.count <= 10 for place in batch.after)
    golden(batch.title)
    golden(moves[0].why)
    golden(moves[0].effect)


def test_only_brokers_that_give_something_away_are_what_it_answers() -> None:
    """A broker that is full of other bundles stays a finding that this batch does not claim."""
    elsewhere = msgspec.structs.replace(FULL, subject=broker(1))
    batch = the_batch(PLANNER.proposal(scene(FULL, elsewhere)))
    assert [each.subject for each in batch.findings if each.check_id == FULL.check_id] == [broker(0)]


def test_a_run_that_leaves_moves_out_leaves_it_out() -> None:
    """Whoever asks about splits alone, so that no client reconnects, is not asked about moves of parts."""
    batch = the_batch(PLANNER.proposal(scene(FULL)))
    wanted = ((), (BUNDLE_SPLIT, BUNDLE_BALANCE), (BUNDLE_SPLIT,), (BUNDLE_BALANCE,))
    assert [is_of(batch, kinds) for kinds in wanted] == [True, True, False, False]


def halves(step: Any) -> tuple[str, str]:
    """The parts that a split makes."""
    made: tuple[str, str] = step.change.halves
    return made


def test_a_part_carries_its_share_of_what_was_seen_over_time() -> None:
    """A part is taken to have its share of the mean and the peak of the whole, as only the whole was seen before."""
    now = load_of(a_suspect(WHOLE, [PARTITION] * 24).topics)
    half = Load(**{field: getattr(now, field) // 2 for field in Load.__struct_fields__})
    calm = a_stay(0, 0, now, bundle=str(WHOLE), mean=half)

    steps = the_batch(PLANNER.proposal(scene(FULL, load=load_of_stays(3, [calm])))).steps

    move = next(step for step in steps if isinstance(step.change, UnloadBundle))
    assert f"{broker(0)} carried 12 topics and 240.0 MB/s on average" in move.why
    assert "about 1 topic, 20.0 MB/s" in move.why
    assert "about 40.0 MB/s at its peak" in move.why
    assert "at most" not in move.why


@row_by_row(
    "found, fields",
    ((), {}),
    ((EMPTY,), {}),
    ((msgspec.structs.replace(FULL, subject=broker(1)),), {}),
    ((FULL,), {"load": None}),
    ((FULL,), {"load": load_of_stays(3, [])}),
    ((FULL,), {"load": load_of_stays(3, [a_stay(0, 0, bundle=str(WHOLE))], snapshots=2)}),
    ((FULL,), {"proposed": frozenset({BROKER_DRAIN})}),
    ((FULL,), {"moves": (a_move(source=broker(0), target=broker(3)),)}),
    ((FULL,), {"moves": (a_move(source=broker(1), target=broker(2)),)}),
    ((FULL,), {"parts_stay": frozenset({NAMESPACE})}),
    ((FULL, finding("bundle-flapping", f"{NAMESPACE}/0x00000000_0xffffffff")), {}),
    ((FULL,), {"policy": parse_policy({"approval": {"never_ask": ["bundle_balance"]}}, name="p")}),
)
def test_where_it_is_split_alone(found: Any, fields: dict[str, Any]) -> None:
    """Nothing is moved without a full broker, without its load over time, or where moves may not be or come later."""
    batch = the_batch(PLANNER.proposal(scene(*found, **fields)))

    assert batch.kinds == (BUNDLE_SPLIT,)
    assert batch.unit == ""
    assert "move" not in batch.title


def test_a_bundle_of_one_topic_is_neither_split_nor_moved() -> None:
    """A bundle that carries everything in one topic stays, and the plan advises no move: none evens anything out."""
    plan = make_plan(scene(FULL, partitions=1))

    assert plan.batches == ()
    assert any("more partitions for" in note for note in plan.notes)
    assert any("no move evens that out" in note for note in plan.notes)


def scene_beside(**fields: Any) -> PlanningFacts:
    """The scene, where shop/orders may use three brokers of five alone, and the fourth is full of other bundles."""
    whole = a_stay(0, 0, a_suspect(WHOLE, [PARTITION] * 24).load, bundle=str(WHOLE))
    heavy = Load(topics=2, bytes=40 * MEGABYTE, messages=2000, producers=8, consumers=8)
    others = [a_stay(3, number, heavy, namespace="shop/carts") for number in range(1, 9)]
    allowed = {NAMESPACE: tuple(map(broker, range(3)))}
    skew = msgspec.structs.replace(FULL, subject=broker(3))
    load = load_of_stays(5, [whole, *others], allowed=allowed)
    return msgspec.structs.replace(scene(FULL, skew, load=load, **fields), brokers=planning_facts_with(5).brokers)


def moves_in(batch: Batch) -> list[UnloadBundle]:
    return [step.change for step in batch.steps if isinstance(step.change, UnloadBundle)]


def test_only_moves_of_the_same_brokers_wait_for_those_of_the_parts() -> None:
    """Brokers that give or get parts are left out of other moves, which the plan says; the others are evened out."""
    plan = make_plan(scene_beside())

    parts, others = sorted(plan.batches, key=lambda batch: batch.kind, reverse=True)
    assert (parts.kinds, others.kinds) == ((BUNDLE_SPLIT, BUNDLE_BALANCE), (BUNDLE_BALANCE,))
    concerned = {each for move in moves_in(parts) for each in (move.source, move.target)}
    assert {(move.source, move.target) for move in moves_in(others)} == {(broker(3), broker(4))}
    assert concerned == {broker(0), broker(1), broker(2)}
    waits = f"no other move from or to {', '.join(sorted(concerned))} is proposed in this plan"
    assert any(waits in note for note in plan.notes)


def test_parts_that_stay_by_a_no_hold_up_no_other_move() -> None:
    """Where a person said no to moves of the parts, the split is proposed alone, and all brokers are evened out."""
    plan = make_plan(scene_beside(parts_stay=frozenset({NAMESPACE})))

    assert sorted(batch.kinds for batch in plan.batches) == [(BUNDLE_BALANCE,), (BUNDLE_SPLIT,)]
    assert not any("no other move" in note for note in plan.notes)
    assert any(f"{NAMESPACE}: parts are not moved, as a person said no" in note for note in plan.notes)


def test_what_shedding_would_undo_is_known_of_parts() -> None:
    """The brokers' own shedding is judged by the foretold throughput of a part, after the splits before it."""
    usages = tuple(
        BrokerUsage(broker=broker(number), percent=percent, bytes=percent * MEGABYTE, messages=percent * 100.0)
        for number, percent in enumerate((90, 10, 10))
    )
    manager = load_manager_of(MODULAR)

    batch = the_batch(PLANNER.proposal(scene(FULL, load_manager=manager, usages=usages)))

    told = [result for step in batch.steps for result in step.guards if result.guard == "shedding"]
    assert batch.kinds == (BUNDLE_SPLIT, BUNDLE_BALANCE)
    assert told
    assert all(result.passed for result in told)
    assert not any("not known" in result.reason for result in told)


def test_a_part_that_a_guard_keeps_is_named() -> None:
    proposal = PLANNER.proposal(scene(FULL, policy=a_policy(apply={"most_clients_per_step": 7})))

    assert the_batch(proposal).kinds == (BUNDLE_SPLIT,)
    assert any("Guard clients keeps bundles where they are" in note for note in proposal.notes)


POLICY = a_policy(bundle_topic_skew={"warning_topics_per_bundle": 120}, bundle_balance_remedy={"least_snapshots": 2})
SPEC = ClusterSpec(
    namespaces=(
        NamespaceSpec("shop/orders", bundles=2, topics=(TopicSpec("t", partitions=300, producers=1),), owner=0),
        NamespaceSpec("shop/carts", bundles=16, topics=(TopicSpec("t", partitions=600, producers=1),), owner=0),
    )
)
BEGAN = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
PLANNERS = {"bundle-topic-skew", "broker-load-skew"}


def observed(cluster: Simulator, out: Path, number: int) -> tuple[Plan, set[str]]:
    """A plan, and the checks that found something that it answers; snapshots are ten minutes apart."""
    settings = AdminSettings(urls=cluster.admin_urls, limits=AdminPolicy(read_attempts=1))
    order = CollectParameters(cluster="lab", taken_at=BEGAN + timedelta(minutes=10 * number), policy=POLICY.collect)
    folder, threads = SnapshotFolder(LocalFiles(), snapshot_uri(str(out), "lab", order.taken_at)), OnThreads(3)
    collect(settings, order, folder, WrittenByTasks(settings, folder, threads, TaskDivision(3, 1)), threads)
    diagnose(folder, POLICY, threads, [check for check in CHECKS if check.check_id in PLANNERS])
    planning = planning_facts_of(open_snapshot(folder.uri), POLICY, Moves())
    return make_plan(planning), {finding.check_id for finding in planning.findings} & PLANNERS


def send(cluster: Simulator, call: Call) -> None:
    """Makes a call, wherever it is redirected to."""
    url = f"{cluster.admin_urls[0]}{call.path}"
    answer = httpx.request(call.method, url, params=call.query, follow_redirects=True, trust_env=False)
    assert answer.is_success, answer.text


def carry_out(cluster: Simulator, change: Change) -> None:
    """Does a step, and sees that it came as was foretold."""
    assert isinstance(change, SplitBundle | UnloadBundle)
    names = (f"persistent://{change.namespace}/t-partition-{number}" for number in range(600))
    topic = next(name for name in names if position_of(name) in BundleRange.parse(change.bundle))
    send(cluster, kind_of(change).call())
    owned = cluster.owned_bundles()
    if isinstance(change, SplitBundle):
        assert {f"{change.namespace}/{half}" for half in change.halves} <= set(owned[change.owner])
        return
    send(cluster, calls.look_up(topic))
    assert f"{change.namespace}/{change.bundle}" in cluster.owned_bundles()[change.target]


def test_what_is_proposed_heals_the_cluster(tmp_path: Path) -> None:
    """After the proposed splits and moves are carried out, neither check finds anything and nothing is proposed."""
    with running(SPEC) as cluster:
        first, found = observed(cluster, tmp_path, 0)
        assert found == PLANNERS
        assert {batch.kind for batch in first.batches} == {"bundle_split"}
        assert any("complete looks are needed" in note for note in first.notes)

        second, found = observed(cluster, tmp_path, 1)
        assert {batch.kind for batch in second.batches} == {"bundle_split", "bundle_balance"}
        steps = [step for batch in second.batches for step in batch.steps]
        assert all(step.guards for step in steps)
        assert all(result.passed for step in steps for result in step.guards)
        for step in steps:
            carry_out(cluster, step.change)

        last, found = observed(cluster, tmp_path, 2)

    assert found == set()
    assert last.batches == ()
