"""Risks of a move are read from the live cluster right before the call, and stop it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lab.simulator import NamespaceSpec, SubscriptionSpec, TopicSpec, running_simulator
from pulsar_steward.apply.live_topics import _figures_in_metrics
from pulsar_steward.model.measures import SIZE_LIMIT
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.pulsar.metrics import Sample
from tests.apply.worksite import SKEWED, Worksite, quick_policy, said
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.ledger.rows import StepOutcome
    from pulsar_steward.policy.schema import Policy

WHOLE = "0x00000000_0xffffffff"
IN_MEMORY = {
    "delayedDeliveryTrackerFactoryClassName": "org.apache.pulsar.broker.delayed.InMemoryDelayedDeliveryTrackerFactory"
}


def quota(limit: int, action: str, limit_time: int = -1) -> dict[str, object]:
    """A namespace's size quota, in its policies document."""
    document = {"limitSize": limit, "limitTime": limit_time, "policy": action}
    return {"backlog_quota_map": {"destination_storage": document}}


def topic(**subscription: Any) -> TopicSpec:
    """A topic with two producers, whose messages are of 100 bytes, and a subscription."""
    return TopicSpec("t", producers=2, subscriptions=(SubscriptionSpec("s", **subscription),))


CASES: dict[str, tuple[TopicSpec, dict[str, object], dict[str, str], Policy, str | None]] = {
    "over a quota that holds": (
        topic(backlog=200),
        quota(10_000, "producer_request_hold"),
        {},
        quick_policy(),
        "producers_return: PRODUCERS COULD NOT COME BACK to 1 of its topics: persistent://shop/orders/t uses 200 %",
    ),
    "near it": (
        topic(backlog=95),
        quota(10_000, "producer_exception"),
        {},
        quick_policy(),
        "producers_return: PRODUCERS COULD NOT COME BACK",
    ),
    "far from it": (topic(backlog=50), quota(10_000, "producer_exception"), {}, quick_policy(), None),
    "over one that evicts": (topic(backlog=200), quota(10_000, "consumer_backlog_eviction"), {}, quick_policy(), None),
    "over the brokers' own": (
        topic(backlog=200),
        {},
        {"backlogQuotaDefaultLimitBytes": "10000", "backlogQuotaDefaultRetentionPolicy": "producer_exception"},
        quick_policy(),
        "producers_return: PRODUCERS COULD NOT COME BACK",
    ),
    "ack holes that are not persisted": (
        topic(backlog=10, ack_holes=12_000, spans=40_000),
        {},
        {},
        quick_policy(guards={"most_redelivered_messages": 10**9}),
        "ack_holes: how many acknowledged messages would be delivered again is not known: s of persistent://shop/ord",
    ),
    "an index in memory": (
        topic(backlog=5_000_000, delayed=5_000_000),
        {},
        IN_MEMORY,
        quick_policy(),
        "delayed_index: 114.44 MiB of delayed messages' indexes are in memory alone, more than 64 MiB",
    ),
    "an index in buckets": (topic(backlog=5_000_000, delayed=5_000_000), {}, {}, quick_policy(), None),
}


@pytest.mark.parametrize("told", [True, False], ids=["told in metrics", "asked by topic"])
@pytest.mark.parametrize(("spec", "policies", "running", "policy", "words"), CASES.values(), ids=CASES)
def test_a_move_that_would_do_harm_is_refused(
    tmp_path: Path,
    spec: TopicSpec,
    policies: dict[str, object],
    running: dict[str, str],
    policy: Policy,
    words: str | None,
    *,
    told: bool,
) -> None:
    """A move is refused if its topics are at risk on the live cluster, also where metrics do not list topics."""
    namespace = NamespaceSpec("shop/orders", bundles=1, owner=0, topics=(spec,), policies=policies)
    configuration = {**running, "exposeTopicLevelMetricsInPrometheus": str(told).lower()}
    with running_simulator(replace(SKEWED, namespaces=(namespace,), configuration=configuration)) as simulator:
        engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
        site = Worksite(simulator, engine, policy=policy)
        (outcome,) = site.carry_out(site.approved(site.move(WHOLE, namespace="shop/orders")))
        engine.dispose()

        assert (outcome.outcome == "refused") is (words is not None), outcome.reason
        assert site.untouched() is (words is not None)
        assert words is None or outcome.reason.startswith(words)


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
    """A setting is refused if it would delete delayed messages, or if a single broker does not check quotas."""
    namespace = NamespaceSpec("shop/orders", bundles=4, topics=(topic(**subscription),))
    with running_simulator(replace(SKEWED, namespaces=(namespace,), own_settings=({}, {}, last))) as simulator:
        engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
        site = Worksite(simulator, engine)
        outcomes: tuple[StepOutcome, ...] = site.carry_out(site.approved(change))
        engine.dispose()

        assert said(outcomes) == (["done"] if words is None else ["refused"]), outcomes[0].reason
        assert site.untouched() is (words is not None)
        assert words is None or outcomes[0].reason.startswith(words)


@pytest.mark.parametrize(("backlog", "outcome"), [(8, "done"), (95, "refused")], ids=["small", "large"])
def test_a_topics_own_quota_is_held_against_its_own_backlog(tmp_path: Path, backlog: int, outcome: str) -> None:
    """A topic's own quota is compared with the backlog of its largest partition, and of no other topic."""
    ours = TopicSpec("ours", partitions=2, producers=1, subscriptions=(SubscriptionSpec("s", backlog=backlog),))
    other = TopicSpec("ours-too", subscriptions=(SubscriptionSpec("s", backlog=10_000),))
    namespace = NamespaceSpec("shop/orders", bundles=2, topics=(ours, other))
    change = ChangeSetting(
        namespace="shop/orders",
        topic="persistent://shop/orders/ours",
        name=SettingName.SIZE_QUOTA,
        before=None,
        after=BacklogQuota(limit_bytes=10_000, policy=QuotaPolicy.HOLD),
    )
    with running_simulator(replace(SKEWED, namespaces=(namespace,))) as simulator:
        engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
        site = Worksite(simulator, engine)
        (came_to,) = site.carry_out(site.approved(change))
        engine.dispose()

        assert came_to.outcome == outcome, came_to.reason
        assert outcome == "done" or came_to.reason.startswith("quota_room: ")
        assert outcome == "done" or "9.28 KiB" in came_to.reason


def test_series_with_a_label_for_the_partition_are_put_to_their_partition() -> None:
    """A topic's own limit is found also where brokers give partitions a label of their own."""
    whole, second = "persistent://shop/orders/t", "persistent://shop/orders/t-partition-1"
    samples = [
        Sample(SIZE_LIMIT, {"topic": whole, "partition": "1"}, 1000.0),
        Sample(SIZE_LIMIT, {"topic": whole, "partition": "-1"}, 2000.0),
    ]
    found = _figures_in_metrics(samples, {whole, second})
    assert (found[whole]["limit_bytes"], found[second]["limit_bytes"]) == (2000, 1000)
