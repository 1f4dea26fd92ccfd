"""Risks of a move are read from the live cluster right before the call, and stop it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.apply.live_topics import _figures_in_metrics
from pulsar_steward.model.measures import SIZE_LIMIT
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.pulsar.metrics import Sample
from tests.apply.refusals import assert_done_unless, outcome_on
from tests.apply.worksite import SKEWED

if TYPE_CHECKING:
    from pathlib import Path


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
