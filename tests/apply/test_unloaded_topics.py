"""Topics that no broker has loaded: a new quota meets their backlog once somebody has them loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.model.bundles import BundleRange, position_of
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Setting, SettingName
from pulsar_steward.model.step import ChangeSetting, Step
from tests.apply.refusals import assert_done_unless, outcome_on
from tests.apply.worksite import a_worksite, quick_policy
from tests.builders import a_step

if TYPE_CHECKING:
    from pathlib import Path


GIB = 1 << 30
NAMESPACE = "shop/orders"
SIZE, AGE = SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA
READ = SubscriptionSpec("reads-all")
STUCK = SubscriptionSpec("stuck", backlog=20)


def limited(policy: QuotaPolicy, **limits: int) -> BacklogQuota:
    return BacklogQuota(policy=policy, **limits)


def a_quota(name: SettingName, after: Setting, topic: str | None = None) -> Step:
    """A step that sets it, with a loss that is large enough for whatever is evicted."""
    change = ChangeSetting(namespace=NAMESPACE, topic=topic, name=name, before=None, after=after)
    return a_step(change, loss=Loss(messages=10**9, bytes=10**18))


def not_loaded(*topics: TopicSpec) -> ClusterSpec:
    """Two brokers and a namespace of these topics, none of which is loaded."""
    return ClusterSpec(brokers=2, namespaces=(NamespaceSpec(NAMESPACE, bundles=4, topics=topics, loaded=False),))


@pytest.mark.parametrize("name", [SIZE, AGE])
def test_what_nobody_subscribed_to_is_no_backlog(tmp_path: Path, name: SettingName) -> None:
    limit = {"limit_bytes": GIB} if name is SIZE else {"limit_seconds": 3600}
    topic = TopicSpec("t", storage_bytes=2 * GIB, stored_ago_s=7200)
    assert_done_unless(outcome_on(tmp_path, not_loaded(topic), a_quota(name, limited(QuotaPolicy.HOLD, **limit))), None)


@pytest.mark.parametrize("name", [SIZE, AGE])
def test_a_quota_that_evicts_is_not_set_over_them(tmp_path: Path, name: SettingName) -> None:
    limit = {"limit_bytes": GIB} if name is SIZE else {"limit_seconds": 3600}
    topics = (TopicSpec("a", subscriptions=(READ,)), TopicSpec("b", subscriptions=(STUCK,)), TopicSpec("c"))
    row = outcome_on(tmp_path, not_loaded(*topics), a_quota(name, limited(QuotaPolicy.EVICT, **limit)))
    assert_done_unless(row, f"2 topics of {NAMESPACE} are not loaded (")
    assert f"(persistent://{NAMESPACE}/a)" in row.reason


def test_more_of_them_than_may_be_asked_are_not_known(tmp_path: Path) -> None:
    few = quick_policy(backlog_quota_remedy={"most_topics_asked": 2})
    topics = tuple(TopicSpec(name, subscriptions=(READ,)) for name in "abc")
    step = a_quota(SIZE, limited(QuotaPolicy.HOLD, limit_bytes=GIB))
    row = outcome_on(tmp_path, not_loaded(*topics), step, policy=few)
    assert_done_unless(row, "3 topics of shop/orders are not loaded")
    assert "backlog_quota_remedy.most_topics_asked" in row.reason


def test_of_a_topics_own_quota_only_that_topic_counts(tmp_path: Path) -> None:
    other = TopicSpec("other", storage_bytes=2 * GIB, message_bytes=GIB // 10, subscriptions=(STUCK,))
    mine = TopicSpec("mine", partitions=2)
    spec = ClusterSpec(brokers=1, namespaces=(NamespaceSpec(NAMESPACE, bundles=4, topics=(mine, other)),))
    topic = f"persistent://{NAMESPACE}/mine"
    step = a_quota(SIZE, limited(QuotaPolicy.HOLD, limit_bytes=GIB), topic)
    with a_worksite(tmp_path, spec) as site:
        # Only its first partition's owner tells what is set on a topic.
        first = position_of(f"{topic}-partition-0")
        away = [bundle for bundle in site.tc_bundles if first not in BundleRange.parse(bundle)]
        for bundle in away:
            httpx.put(
                f"{site.simulator.admin_urls[0]}/admin/v2/namespaces/{NAMESPACE}/{bundle}/unload"
            ).raise_for_status()
        (outcome,) = site.carry_out(site.approved(step))
        assert any(position_of(f"persistent://{NAMESPACE}/other") in BundleRange.parse(bundle) for bundle in away)
        assert all(site.owner(bundle, NAMESPACE) is None for bundle in away)
    assert outcome.outcome == "done", outcome.reason
