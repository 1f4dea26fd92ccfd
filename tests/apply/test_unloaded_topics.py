"""Topics that no broker has loaded: a new quota meets their backlog once somebody has them loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec, running_simulator
from pulsar_steward.model.bundles import BundleRange, position_of
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Setting, SettingName
from pulsar_steward.model.step import ChangeSetting, Step
from tests.apply.worksite import Worksite, quick_policy
from tests.builders import a_step
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.policy.schema import Policy

GIB = 1 << 30
NAMESPACE = "shop/orders"
SIZE, AGE = SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA
READ = SubscriptionSpec("reads-all")
STUCK = SubscriptionSpec("stuck", backlog=20)


def limited(policy: QuotaPolicy, **limits: int) -> BacklogQuota:
    """A quota of that policy."""
    return BacklogQuota(policy=policy, **limits)


def a_quota(name: SettingName, after: Setting, topic: str | None = None) -> Step:
    """A step that sets it, with a loss that is large enough for whatever is evicted."""
    change = ChangeSetting(namespace=NAMESPACE, topic=topic, name=name, before=None, after=after)
    return a_step(change, loss=Loss(messages=10**9, bytes=10**18))


def outcome_of(tmp_path: Path, step: Step, *topics: TopicSpec, policy: Policy | None = None) -> tuple[str, str, bool]:
    """Outcome and reason of a step where these topics are not loaded; and whether nothing was called or loaded."""
    spec = ClusterSpec(brokers=2, namespaces=(NamespaceSpec(NAMESPACE, bundles=4, topics=topics, loaded=False),))
    with running_simulator(spec) as simulator:
        engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
        site = Worksite(simulator, engine, policy or quick_policy())
        (outcome,) = site.carry_out(site.approved(step))
        nothing_owned = all(site.owner(bundle, NAMESPACE) is None for bundle in site.tc_bundles)
        untouched = site.untouched()
        engine.dispose()
    assert nothing_owned
    return outcome.outcome, outcome.reason, untouched


@pytest.mark.parametrize("name", [SIZE, AGE])
def test_what_nobody_subscribed_to_is_no_backlog(tmp_path: Path, name: SettingName) -> None:
    """A quota that holds producers is set if topics that are not loaded have no cursor."""
    limit = {"limit_bytes": GIB} if name is SIZE else {"limit_seconds": 3600}
    topic = TopicSpec("t", storage_bytes=2 * GIB, stored_ago_s=7200)
    assert outcome_of(tmp_path, a_quota(name, limited(QuotaPolicy.HOLD, **limit)), topic)[0] == "done"


@pytest.mark.parametrize("policy", [QuotaPolicy.EVICT, QuotaPolicy.HOLD])
@pytest.mark.parametrize("name", [SIZE, AGE])
def test_a_quota_is_not_set_over_them(tmp_path: Path, name: SettingName, policy: QuotaPolicy) -> None:
    """A quota that evicts, or stops producers, is refused while topics with a cursor are not loaded."""
    quota = limited(policy, **({"limit_bytes": GIB} if name is SIZE else {"limit_seconds": 3600}))
    topics = (TopicSpec("a", subscriptions=(READ,)), TopicSpec("b", subscriptions=(STUCK,)), TopicSpec("c"))
    outcome, reason, untouched = outcome_of(tmp_path, a_quota(name, quota), *topics)

    assert (outcome, untouched) == ("refused", True)
    assert f"what 2 topics of {NAMESPACE} hold is not known" in reason
    assert f"(persistent://{NAMESPACE}/a)" in reason


def test_more_of_them_than_may_be_asked_are_not_known(tmp_path: Path) -> None:
    """A quota is refused if more topics are not loaded than may be asked, and the reason names the policy's key."""
    few = quick_policy(backlog_quota_remedy={"most_topics_asked": 2})
    topics = tuple(TopicSpec(name, subscriptions=(READ,)) for name in "abc")
    step = a_quota(SIZE, limited(QuotaPolicy.HOLD, limit_bytes=GIB))
    outcome, reason, untouched = outcome_of(tmp_path, step, *topics, policy=few)

    assert (outcome, untouched) == ("refused", True)
    assert "3 topics of shop/orders are not loaded" in reason
    assert "backlog_quota_remedy.most_topics_asked" in reason


def test_of_a_topics_own_quota_only_that_topic_counts(tmp_path: Path) -> None:
    """A topic's own quota is set even if another topic of its namespace, not loaded, has a large backlog."""
    other = TopicSpec("other", storage_bytes=2 * GIB, message_bytes=GIB // 10, subscriptions=(STUCK,))
    mine = TopicSpec("mine", partitions=2)
    spec = ClusterSpec(brokers=1, namespaces=(NamespaceSpec(NAMESPACE, bundles=4, topics=(mine, other)),))
    topic = f"persistent://{NAMESPACE}/mine"
    step = a_quota(SIZE, limited(QuotaPolicy.HOLD, limit_bytes=GIB), topic)
    with running_simulator(spec) as simulator:
        engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
        site = Worksite(simulator, engine)
        # Only its first partition's owner tells what is set on a topic.
        first = position_of(f"{topic}-partition-0")
        away = [bundle for bundle in site.tc_bundles if first not in BundleRange.parse(bundle)]
        for bundle in away:
            httpx.put(f"{simulator.admin_urls[0]}/admin/v2/namespaces/{NAMESPACE}/{bundle}/unload").raise_for_status()
        (outcome,) = site.carry_out(site.approved(step))
        assert any(position_of(f"persistent://{NAMESPACE}/other") in BundleRange.parse(bundle) for bundle in away)
        assert all(site.owner(bundle, NAMESPACE) is None for bundle in away)
        engine.dispose()
    assert outcome.outcome == "done", outcome.reason
