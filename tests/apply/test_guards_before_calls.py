"""Twice guarded: right before the call guards look at the live cluster, and one veto stops the whole batch."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from lab.simulator import (
    Answer,
    ClusterSpec,
    Fault,
    LoadSpec,
    NamespaceSpec,
    ReplicatorSpec,
    SubscriptionSpec,
    TopicSpec,
)
from pulsar_steward.apply.execute import carry_out
from pulsar_steward.apply.live_cluster import LiveCluster
from pulsar_steward.apply.live_topics import _figures_in_metrics
from pulsar_steward.errors import BrokenAnswer
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.measures import SIZE_LIMIT
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.metrics import Sample
from pulsar_steward.pulsar.writer import Writer
from tests.apply.refusals import assert_done_unless, assert_stopped, outcome_on
from tests.apply.worksite import RUN, SKEWED, Worksite, a_worksite, permitted, quick_policy, said
from tests.cases import row_by_row

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pulsar_steward.model.plan import Plan


def owner_changed(site: Worksite) -> None:
    """Somebody else moved the coordinators meanwhile."""
    site.simulator.pile_up_tcs(site.brokers[2])


def target_killed(site: Worksite) -> None:
    """The target was killed, and the cluster has not noticed yet."""
    site.simulator.kill_broker(site.brokers[1])


def target_gone(site: Worksite) -> None:
    """The target was shut down."""
    site.simulator.stop_broker(site.brokers[1])


def source_unreadable(site: Worksite) -> None:
    """The present owner answers nothing, so nobody knows what it owns."""
    site.simulator.faults.add(Fault(Answer(500), path="ownedNamespaces", broker_id=site.brokers[0], times=None))


def isolation_unreadable(site: Worksite) -> None:
    """The isolation policies cannot be read."""
    site.simulator.faults.add(Fault(Answer(500), path="namespaceIsolationPolicies", times=None))


def split_meanwhile(site: Worksite) -> None:
    """Another plan of another run split the bundle."""
    other = site.approve(site.plan(site.split(1)), run="pulsar_remediate/earlier/0")
    with site.context("pulsar_remediate/earlier/0") as context:
        carry_out(context, other.plan_id, "b1")
    site.simulator.requests.clear()


def moved_lately(site: Worksite) -> None:
    """Another run moved the bundle there and, a moment ago, back."""
    run = "pulsar_remediate/earlier/0"
    site.carry_out(site.approve(site.plan(site.move(1)), run=run), run)
    site.simulator.pile_up_tcs(site.brokers[0])
    site.simulator.requests.clear()


def draining(site: Worksite) -> None:
    """The operator is about to shut the target down."""
    site.policy = quick_policy(brokers={"draining": (site.brokers[1],)})


def protected(site: Worksite) -> None:
    """The operator does not want the namespace to be touched."""
    site.policy = quick_policy(apply={"protected_namespaces": ("pulsar/system",)})


def replicated_to(*remotes: str, version: str) -> ClusterSpec:
    """A topic whose own policy replicates it to `west`; its namespace's policy names these clusters."""
    topic = TopicSpec("t", replicators=(ReplicatorSpec("west", backlog=60_000),))
    named: dict[str, object] = {"replication_clusters": ["local", *remotes]}
    namespace = NamespaceSpec("shop/links", bundles=1, owner=0, topics=(topic,), policies=named)
    return ClusterSpec(namespaces=(namespace,), version=version)


@pytest.mark.parametrize(
    ("spec", "outcome"),
    [
        (replicated_to(version="3.0.5"), "refused"),
        (replicated_to("west", version="3.0.5"), "done"),
        (replicated_to(version="3.0.7"), "done"),
    ],
    ids=["by the topic alone", "by the namespace too", "with the fix"],
)
def test_nothing_is_moved_that_would_never_be_replicated(tmp_path: Path, spec: ClusterSpec, outcome: str) -> None:
    """Brokers of some releases drop what a topic's own policy replicates when they load it (apache/pulsar#22890)."""
    with a_worksite(tmp_path, spec) as site:
        move = site.move("0x00000000_0xffffffff", namespace="shop/links")
        (found,) = site.carry_out(site.approved(move))
    assert found.outcome == outcome, found.reason
    assert outcome == "done" or (
        "replication_kept: Pulsar 3.0.5 never sends what waits of 1 topic once it loads them anew, as their own"
        " policies alone name the cluster: 60,000 entries wait of persistent://shop/links/t for west"
    ) in (found.reason or "")


UNREADABLE = "could not be looked at first"
OBJECTIONS = [
    pytest.param(owner_changed, "drifted", "owner: .* owns it, not", id="owner changed"),
    pytest.param(target_killed, "drifted", "target_active: .* did not answer", id="target killed"),
    pytest.param(target_gone, "drifted", "target_active: .* is not active", id="target gone"),
    pytest.param(split_meanwhile, "drifted", "boundaries: .* has no bundle", id="boundaries changed"),
    pytest.param(moved_lately, "refused", "cooldown: moved at", id="cooldown"),
    pytest.param(draining, "refused", "target_allowed: .* is draining", id="draining"),
    pytest.param(protected, "refused", "protected: pulsar/system is protected", id="protected"),
    pytest.param(source_unreadable, "refused", UNREADABLE, id="owner unreadable"),
    pytest.param(isolation_unreadable, "refused", UNREADABLE, id="isolation unreadable"),
]
TROUBLE_OF_BOTH: dict[Callable[[Worksite], None], str] = {
    target_killed: "whole_cluster: no answer from",
    source_unreadable: UNREADABLE,
    isolation_unreadable: UNREADABLE,
}
"""Troubles for which a guard objects to the first step, too, and its reason."""


@pytest.mark.parametrize(("trouble", "outcome", "reason"), OBJECTIONS)
def test_one_objection_stops_the_whole_batch(
    site: Worksite, trouble: Callable[[Worksite], None], outcome: str, reason: str
) -> None:
    """If a guard objects to the second step, the first step is refused with its own reason or because of that."""
    trouble(site)
    plan = site.approved(site.move("0x00000000_0xffffffff", 2, namespace="shop/orders"), site.move(1))
    first, second = site.carry_out(plan)
    assert site.untouched()
    assert second.outcome == outcome
    assert_says(second.reason, reason)
    assert first.outcome == "refused"
    assert_says(first.reason, TROUBLE_OF_BOTH.get(trouble, "^not tried: b1.s02 stopped the batch$"))


def test_too_many_clients_stop_the_batch(site: Worksite) -> None:
    site.policy = quick_policy(apply={"most_clients_per_step": 9})
    plan = site.approved(site.move(0), site.move("0x00000000_0xffffffff", namespace="shop/orders"))
    first, second = site.carry_out(plan)
    assert site.untouched()
    assert (first.outcome, second.outcome) == ("refused", "refused")
    assert_says(second.reason, "10 clients would reconnect, more than 9")


def test_isolation_keeps_a_bundle_from_a_broker(tmp_path: Path) -> None:
    policy: dict[str, object] = {
        "namespaces": ["pulsar/system"],
        "primary": ["127.0.0.1"],
        "secondary": [],
        "auto_failover_policy": {"policy_type": "min_available", "parameters": {"min_limit": "1"}},
    }
    spec = replace(SKEWED, hosts="distinct", isolation_policies={"coordinators": policy})
    with a_worksite(tmp_path, spec) as site:
        (outcome,) = site.carry_out(site.approved(site.move(0)))
        assert site.untouched()
        assert outcome.outcome == "refused"
        assert_says(outcome.reason, "an isolation policy keeps pulsar/system from")


def test_a_bundle_without_topics_is_not_unloaded(tmp_path: Path) -> None:
    spec = replace(SKEWED, coordinators=1)
    with a_worksite(tmp_path, spec) as site:
        site.simulator.pile_up_tcs(site.brokers[0])
        empty = next(number for number, bundle in enumerate(site.tc_bundles) if site.owner(bundle) is None)
        (outcome,) = site.carry_out(site.approved(site.move(empty)))
        assert (outcome.outcome, site.untouched()) == ("drifted", True)
        assert_says(outcome.reason, "nobody owns it")


def test_drift_between_two_steps_stops_the_rest(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1), site.move(2))

    def somebody_else_moves(_: object) -> None:
        if site.lookups():
            site.simulator.pile_up_tcs(site.brokers[1])

    outcomes = site.carry_out(plan, after=somebody_else_moves)
    assert said(outcomes) == ["done", "drifted", "refused"]
    assert outcomes[2].reason == "not tried: b1.s02 stopped the batch"
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]


def test_a_split_that_would_now_cut_elsewhere_is_not_begun(tmp_path: Path) -> None:
    system = NamespaceSpec("pulsar/system", bundles=4, owner=0, topics=(TopicSpec("new", partitions=12),))
    with a_worksite(tmp_path, replace(SKEWED, namespaces=(system,))) as site:
        plan: Plan = site.approve(site.split_and_moves())
        outcomes = site.carry_out(plan)
        assert said(outcomes) == ["drifted", "refused", "refused"]
        assert_says(outcomes[0].reason, "a split would now yield")
        assert site.untouched()


def test_a_bundle_into_which_a_segment_was_loaded_is_not_split(tmp_path: Path) -> None:
    """Brokers leave segments of scalable topics out of account when they divide a bundle, and a split is final."""
    segments = tuple(TopicSpec(f"one/0000-ffff-{number}", segment=True) for number in range(12))
    system = NamespaceSpec(TC_NAMESPACE, bundles=4, owner=0, topics=segments)
    with a_worksite(tmp_path, replace(SKEWED, namespaces=(system,))) as site:
        assert_stopped(site, site.approved(site.split(0)), "drifted", f"segment://{TC_NAMESPACE}/one/0000-ffff-")


def test_the_halves_of_a_fresh_split_count_with_the_clients_of_the_whole(site: Worksite) -> None:
    with site.context(RUN) as context:
        clients = context.reader.clients
        whole = clients(site.brokers[0], "shop/orders", "0x00000000_0xffffffff")
        half = clients(site.brokers[0], "shop/orders", "0x00000000_0x7fffffff")
        elsewhere = clients(site.brokers[0], "shop/returns", "0x00000000_0x7fffffff")
    assert (whole, half, elsewhere) == (10, 10, 0)


def test_a_broker_that_cannot_be_read_stops_everything(site: Worksite) -> None:
    site.simulator.faults.add(Fault(Answer(500), path="ownedNamespaces", broker_id=site.brokers[2], times=None))
    (refused,) = site.carry_out(site.approved(site.move(0)))
    assert (refused.outcome, site.untouched()) == ("refused", True)
    assert_says(refused.reason, f"whole_cluster: no answer from {site.brokers[2]}, which the cluster lists")


def test_isolation_policies_of_another_shape_are_no_answer(site: Worksite) -> None:
    """As those that cannot be read: whoever looks after a call goes on, and says so."""
    odd = Answer(200, "a text in place of a policy")
    site.simulator.faults.add(Fault(odd, path="namespaceIsolationPolicies", times=None))
    with site.context(RUN) as context, pytest.raises(BrokenAnswer, match="isolation policies cannot be read"):
        context.reader.isolation_policies()


def assert_says(words: str, pattern: str) -> None:
    """Looks for a pattern, and shows the words where it is not in them."""
    assert re.search(pattern, words), words


def a_site(folder: Path, *versions: str) -> AbstractContextManager[Worksite]:
    """Three brokers, the first of which run these versions, and the others 4.0.7."""
    return a_worksite(folder, replace(SKEWED, versions=versions))


@pytest.mark.parametrize(
    ("versions", "reason"),
    [
        (("2.10.4",) * 3, "version_tried: Pulsar 2.10.4 has no `destinationBroker`"),
        (("4.0.7", "no version"), "which version of Pulsar"),
    ],
)
def test_nothing_is_called_where_a_broker_lacks_it(tmp_path: Path, versions: tuple[str, ...], reason: str) -> None:
    with a_site(tmp_path, *versions) as site:
        outcomes = site.carry_out(site.approved(site.move(0), site.move(1)))
        assert said(outcomes) == ["refused", "refused"]
        assert reason in outcomes[0].reason
        assert site.untouched()


def test_brokers_that_do_not_tell_the_topics_of_a_bundle_are_refused_for_their_version(tmp_path: Path) -> None:
    with a_site(tmp_path, *(("2.10.4",) * 3)) as site:
        site.simulator.faults.add(Fault(Answer(404), "topicHashPositions", times=None))
        (outcome,) = site.carry_out(site.approved(site.move("0x00000000_0xffffffff", namespace="shop/orders")))
        assert "version_tried: Pulsar 2.10.4 has no `destinationBroker`" in outcome.reason


def test_a_broker_that_does_not_answer_for_its_version(tmp_path: Path) -> None:
    with a_site(tmp_path) as site:
        plan = site.approved(site.move(0))
        site.simulator.faults.add(Fault(Answer(500), path="/brokers/version", broker_id=site.brokers[2], times=None))
        assert_stopped(site, plan, "refused", f"/brokers/version at {site.brokers[2]}: 500")


ONE = "topic://shop/orders/one"


@pytest.mark.parametrize(
    ("versions", "scalable", "reason"),
    [
        (("5.0.1",) * 3, (), None),
        (("5.0.1",) * 3, (ONE,), f"shop/orders has 1 scalable topic, such as {ONE}"),
        (("4.0.7", "5.0.1"), (), "which scalable topics shop/orders has is not known"),
        (("4.0.7",) * 3, (ONE,), None),
    ],
)
def test_a_namespace_of_scalable_topics_keeps_its_limits(
    tmp_path: Path, versions: tuple[str, ...], scalable: tuple[str, ...], reason: str | None
) -> None:
    """Nobody knows what waits in segments; the call that lists scalable topics is new in 5.0."""
    spec = replace(SKEWED, versions=versions, namespaces=(NamespaceSpec("shop/orders", scalable=scalable),))
    change = ChangeSetting(
        namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=600), inherited=None
    )
    with a_worksite(tmp_path, spec) as site:
        plan = site.approved(change)
        if reason is None:
            assert said(site.carry_out(plan)) == ["done"]
        else:
            assert_stopped(site, plan, "refused", f"scalable_topics: {reason}")
        asked = [record for record in site.simulator.requests.all() if "/scalable/" in record.path]
        assert bool(asked) is ("5.0.1" in versions)


@row_by_row(
    "versions, known",
    (("acme-build",), True),
    (("4.0.7", "acme-build"), True),
    (("5.0.1", "acme-build"), False),
)
def test_brokers_that_list_no_scalable_topics_have_none_unless_one_is_of_pulsar_5(
    versions: tuple[str, ...], *, known: bool
) -> None:
    """An own build whose version cannot be read and that answers 404 is older."""
    cluster: Any = SimpleNamespace(versions=lambda: versions, reader=SimpleNamespace(scalable_topics=lambda _: None))
    assert (LiveCluster.scalable_topics(cluster, "shop/orders") == ()) is known


def test_each_broker_is_asked_once_for_a_batch(tmp_path: Path) -> None:
    with a_site(tmp_path) as site:
        plan = site.approved(site.move(0), site.move(1, 2))
        site.simulator.requests.clear()
        assert said(site.carry_out(plan)) == ["done", "done"]
        asked = [record.broker_id for record in site.simulator.requests.all() if record.path.endswith("/version")]
        assert sorted(asked) == sorted(site.brokers)


WHOLE = "0x00000000_0xffffffff"
IN_MEMORY = {
    "delayedDeliveryTrackerFactoryClassName": "org.apache.pulsar.broker.delayed.InMemoryDelayedDeliveryTrackerFactory"
}


def topic(**subscription: Any) -> TopicSpec:
    """A topic with two producers, whose messages are of 100 bytes, and a subscription."""
    return TopicSpec("t", producers=2, subscriptions=(SubscriptionSpec("s", **subscription),))


DEFAULTS = {"backlogQuotaDefaultLimitBytes": "10000", "backlogQuotaDefaultRetentionPolicy": "producer_exception"}
CASES: dict[str, tuple[TopicSpec, dict[str, str], str | None]] = {
    "over a quota of the brokers": (topic(backlog=200), DEFAULTS, "producers_return: PRODUCERS COULD NOT COME BACK"),
    "far from it": (topic(backlog=50), DEFAULTS, None),
    "an index in memory": (
        topic(backlog=5_000_000, delayed=5_000_000),
        IN_MEMORY,
        "delayed_index: 114.44 MiB of delayed messages' indexes are in memory alone, more than 64 MiB",
    ),
    "an index in buckets": (topic(backlog=5_000_000, delayed=5_000_000), {}, None),
}


@pytest.mark.parametrize("told", [True, False], ids=["told in metrics", "asked by topic"])
@pytest.mark.parametrize(("spec", "running", "words"), CASES.values(), ids=CASES)
def test_a_move_that_would_do_harm_is_refused(
    tmp_path: Path, spec: TopicSpec, running: dict[str, str], words: str | None, *, told: bool
) -> None:
    configuration = {**running, "exposeTopicLevelMetricsInPrometheus": str(told).lower()}
    cluster = with_topics(spec, bundles=1, owner=0, configuration=configuration)
    assert_done_unless(outcome_on(tmp_path, cluster, lambda site: site.move(WHOLE, namespace="shop/orders")), words)


def with_topics(*topics: TopicSpec, bundles: int, owner: int | None = None, **fields: Any) -> ClusterSpec:
    """The usual cluster, whose namespace `shop/orders` has these topics."""
    return replace(
        SKEWED, namespaces=(NamespaceSpec("shop/orders", bundles=bundles, owner=owner, topics=topics),), **fields
    )


def setting(name: SettingName, after: Setting) -> ChangeSetting:
    """A setting of `shop/orders` that is not set yet."""
    return ChangeSetting(namespace="shop/orders", name=name, before=None, after=after)


EVICT = setting(SettingName.SIZE_QUOTA, BacklogQuota(limit_bytes=10**9, policy=QuotaPolicy.EVICT))
HOLD = setting(SettingName.SIZE_QUOTA, BacklogQuota(limit_bytes=10**9, policy=QuotaPolicy.HOLD))
EXPIRE = setting(SettingName.TTL, TimeToLive(seconds=3600))


@pytest.mark.parametrize(
    ("change", "subscription", "last", "words"),
    [
        (HOLD, {"backlog": 9, "delayed": 9}, {}, None),
        (EVICT, {"backlog": 9, "delayed": 9}, {}, "delayed_kept: 9 delayed messages"),
        (EXPIRE, {"backlog": 9, "delayed": 9}, {}, "delayed_kept: 9 delayed messages"),
        (EXPIRE, {"backlog": 9}, {}, None),
        (HOLD, {}, {"backlogQuotaCheckEnabled": "false"}, "quotas_checked: brokers do not check"),
    ],
    ids=["hold", "evict", "expire", "nothing delayed", "one broker does not check"],
)
def test_a_setting_that_would_do_harm_is_refused(
    tmp_path: Path, change: ChangeSetting, subscription: dict[str, Any], last: dict[str, str], words: str | None
) -> None:
    cluster = with_topics(topic(**subscription), bundles=4, own_settings=({}, {}, last))
    assert_done_unless(outcome_on(tmp_path, cluster, change), words)


@pytest.mark.parametrize(("backlog", "size"), [(95, "9.28 KiB"), (8, None)], ids=["large", "small"])
def test_a_topics_own_quota_is_held_against_its_own_backlog(tmp_path: Path, backlog: int, size: str | None) -> None:
    ours = TopicSpec("ours", partitions=2, producers=1, subscriptions=(SubscriptionSpec("s", backlog=backlog),))
    other = TopicSpec("ours-too", subscriptions=(SubscriptionSpec("s", backlog=10_000),))
    change = ChangeSetting(
        namespace="shop/orders",
        topic="persistent://shop/orders/ours",
        name=SettingName.SIZE_QUOTA,
        before=None,
        after=BacklogQuota(limit_bytes=10_000, policy=QuotaPolicy.HOLD),
    )
    row = outcome_on(tmp_path, with_topics(ours, other, bundles=2), change)
    assert_done_unless(row, size)
    assert size is None or row.reason.startswith("quota_room: ")


def test_series_with_a_label_for_the_partition_are_put_to_their_partition() -> None:
    whole, second = "persistent://shop/orders/t", "persistent://shop/orders/t-partition-1"
    samples = [
        Sample(SIZE_LIMIT, {"topic": whole, "partition": "1"}, 1000.0),
        Sample(SIZE_LIMIT, {"topic": whole, "partition": "-1"}, 2000.0),
    ]
    found = _figures_in_metrics(samples, {whole, second})
    assert (found[whole]["limit_bytes"], found[second]["limit_bytes"]) == (2000, 1000)


SHEDDING = {"loadBalancerSheddingEnabled": "true", "loadBalancerBundleUnloadMinThroughputThreshold": "0"}
IMPL = "org.apache.pulsar.broker.loadbalance.impl."
MANAGERS = ("modular", "extensible")
ALL = "0x00000000_0xffffffff"
BUSY = (TopicSpec("t", producers=1, rate_in=1000.0),)
ORDERS = NamespaceSpec("shop/orders", bundles=1, owner=0, topics=BUSY)
USUAL = replace(SKEWED, namespaces=(ORDERS,))


def managers_a_site(folder: Path, spec: ClusterSpec = USUAL, **fields: Any) -> AbstractContextManager[Worksite]:
    """A skewed cluster, with other fields of `ClusterSpec`."""
    return a_worksite(folder, replace(spec, **fields))


def loads(*percents: float) -> tuple[LoadSpec, ...]:
    """Loads of the brokers, by the usage of their processors."""
    return tuple(LoadSpec(cpu_percent=2 * percent, usage_ratio=percent / 100) for percent in percents)


@pytest.mark.parametrize("shedding", [{}, SHEDDING], ids=["calm", "shedding"])
@pytest.mark.parametrize("load_manager", MANAGERS)
def test_coordinators_move_whatever_the_load_manager_does(
    tmp_path: Path, load_manager: str, shedding: dict[str, str]
) -> None:
    with managers_a_site(tmp_path, load_manager=load_manager, configuration=shedding) as site:
        site.simulator.faults.add(Fault(Answer(500), path="/metrics/", times=None))  # where a usage would be read
        plan = site.approved(site.move(0, 1), site.move(1, 2))
        assert said(site.carry_out(plan)) == ["done", "done"]
        site.proved(plan)
        assert [site.owner(bundle) for bundle in site.tc_bundles[:2]] == list(site.brokers[1:])


@pytest.mark.parametrize(
    ("load_manager", "strategy"),
    [
        ("modular", "ThresholdShedder"),
        ("modular", "AvgShedder"),
        ("modular", "UniformLoadShedder"),
        ("extensible", "TransferShedder"),
    ],
)
def test_a_move_that_shedding_would_undo_is_refused(tmp_path: Path, load_manager: str, strategy: str) -> None:
    """The target has other traffic, of which strategies take as much as the bundle has or more."""
    bills = replace(ORDERS, name="shop/bills", owner=1, topics=(replace(BUSY[0], rate_in=8000.0),))
    spec = replace(USUAL, namespaces=(ORDERS, bills), loads=loads(10, 80, 10))
    configuration = SHEDDING | {"loadBalancerLoadSheddingStrategy": f"{IMPL}{strategy}"}
    with managers_a_site(tmp_path, spec, load_manager=load_manager, configuration=configuration) as site:
        assert_stopped(
            site,
            site.approved(site.move(ALL, 1, namespace="shop/orders")),
            "refused",
            f"shedding: the brokers' own shedding would undo it: {strategy} takes from",
        )


def test_a_broker_that_tells_no_usage_may_have_any(tmp_path: Path) -> None:
    with managers_a_site(tmp_path, configuration=SHEDDING) as site:
        site.simulator.faults.add(Fault(Answer(500), path="/metrics/", broker_id=site.brokers[2], times=None))
        assert said(site.carry_out(site.approved(site.move(ALL, 1, namespace="shop/orders")))) == ["refused"]
        assert site.untouched()


def test_a_bundle_that_may_be_on_its_way_is_left_alone(tmp_path: Path) -> None:
    with managers_a_site(tmp_path, load_manager="extensible") as site:
        plan = site.approved(site.move(0, 1))
        with Writer(site.settings) as writer:
            writer.send(calls.unload(TC_NAMESPACE, site.tc_bundles[0], site.brokers[2]), permitted)
        assert site.owner(site.tc_bundles[0]) == site.brokers[2]
        assert said(site.carry_out(plan)) == ["drifted"]
        url = f"{site.simulator.admin_urls[0]}/admin/v2/namespaces/{TC_NAMESPACE}/{site.tc_bundles[1]}/unload"
        assert httpx.put(url).is_success
        (outcome,) = site.carry_out(site.approved(site.move(1)))
        assert outcome.outcome == "drifted"
        assert (
            "owner: no broker says that it owns pulsar/system/0x40000000_0x80000000: nobody does, or" in outcome.reason
        )


def test_topics_of_the_load_balancer_are_no_way_to_load_a_bundle(tmp_path: Path) -> None:
    with managers_a_site(tmp_path, load_manager="extensible", system_bundles=1) as site:
        assert said(site.carry_out(site.approved(site.move(ALL, 1)))) == ["done"]
        assert all("transaction_coordinator_assign" in path for path in site.lookups())


def test_a_group_is_kept_apart(tmp_path: Path) -> None:
    orders = replace(ORDERS, anti_affinity_group="apart")
    namespaces = (orders, replace(orders, name="shop/bills", owner=1))
    with managers_a_site(tmp_path, namespaces=namespaces) as site:
        assert_stopped(
            site,
            site.approved(site.move(ALL, 1, namespace="shop/orders")),
            "refused",
            f"anti_affinity: {site.brokers[1]} has bundles of 1 other namespace of the",
        )
        assert said(site.carry_out(site.approved(site.move(ALL, 2, namespace="shop/orders")))) == ["done"]
