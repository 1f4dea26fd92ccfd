"""From a made-up cluster to splits and moves of business bundles, and back: carried out, nothing is left to find."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import httpx

from lab.simulator import ClusterSpec, NamespaceSpec, Simulator, TopicSpec
from lab.simulator import running_simulator as running
from pulsar_steward.changes import kind_of
from pulsar_steward.checks.registry import CHECKS
from pulsar_steward.collect.collecting import CollectParameters, collect
from pulsar_steward.collect.reading import TaskDivision, WrittenByTasks
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.model.bundles import BundleRange, position_of
from pulsar_steward.model.step import Change, SplitBundle, UnloadBundle
from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.schema import AdminPolicy
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.runtime.parallel import OnThreads
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import a_policy

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.pulsar.calls import Call

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
