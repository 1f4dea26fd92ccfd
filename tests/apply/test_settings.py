"""Settings of a namespace or topic: changed exactly as approved, proved, and left alone where somebody was quicker."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import msgspec
import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.apply.verify import verify
from pulsar_steward.changes import kind_of
from pulsar_steward.changes.setting import BeforeSetting
from pulsar_steward.model.bundles import BundleRange, position_of
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import (
    BacklogQuota,
    DelayedDelivery,
    Persistence,
    QuotaPolicy,
    Retention,
    Setting,
    SettingName,
    TimeToLive,
)
from pulsar_steward.model.step import ChangeSetting, Step
from pulsar_steward.pulsar.calls import set_to
from pulsar_steward.pulsar.writer import Writer
from tests.apply.refusals import assert_done_unless, outcome_on
from tests.apply.worksite import SKEWED, Worksite, a_worksite, permitted, quick_policy, said
from tests.builders import a_step

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
NAMESPACE, TOPIC = "shop/orders", "persistent://shop/orders/t"
QUOTA = BacklogQuota(limit_bytes=GIB, policy=QuotaPolicy.HOLD)
AGE = BacklogQuota(limit_seconds=3600, policy=QuotaPolicy.EVICT)
KEPT = Retention(minutes=1440, megabytes=10_240)
TWO_COPIES = Persistence.of((2, 2, 2), 0.2)
"""As the simulator's brokers keep by default, with cursors that are written more seldom."""
VALUES: list[tuple[SettingName, Setting]] = [
    (SettingName.SIZE_QUOTA, QUOTA),
    (SettingName.AGE_QUOTA, AGE),
    (SettingName.RETENTION, KEPT),
    (SettingName.TTL, TimeToLive(seconds=600)),
    (SettingName.DELAYED_DELIVERY, DelayedDelivery(active=True, tick_milliseconds=1000, longest_milliseconds=60_000)),
    (SettingName.PERSISTENCE, TWO_COPIES),
]
APART = {SettingName.RETENTION, SettingName.TTL, SettingName.DELAYED_DELIVERY, SettingName.PERSISTENCE}
"""Settings that are compared with no other."""


def setting(name: SettingName, after: Setting | None, before: Setting | None = None) -> ChangeSetting:
    return ChangeSetting(namespace=NAMESPACE, name=name, before=before, after=after)


def own(site: Worksite, change: ChangeSetting) -> Setting | None:
    """Value that is set there, by the brokers' word."""
    with site.context() as context:
        return context.reader.own_setting(change)


def removing(site: Worksite, change: ChangeSetting) -> ChangeSetting:
    """The change that removes a setting again, with what applies then."""
    with site.context() as context:
        return msgspec.structs.replace(change.inverse, inherited=context.reader.inherited(change))


@pytest.mark.parametrize("topic", [None, TOPIC], ids=["namespace", "topic"])
@pytest.mark.parametrize(("name", "value"), VALUES, ids=lambda each: str(each) if isinstance(each, SettingName) else "")
def test_a_setting_is_set_proved_and_taken_back(
    site: Worksite, name: SettingName, value: Setting, topic: str | None
) -> None:
    change = ChangeSetting(namespace=NAMESPACE, topic=topic, name=name, before=None, after=value)
    if name is SettingName.PERSISTENCE:
        with site.context() as context:
            change = msgspec.structs.replace(change, inherited=context.reader.inherited(change))
    if not (topic is None or name in APART):
        keep = ChangeSetting(namespace=NAMESPACE, topic=topic, name=SettingName.RETENTION, before=None, after=KEPT)
        assert said(site.carry_out(site.approved(keep))) == ["done"]
    elif name in {SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA}:
        assert said(site.carry_out(site.approved(setting(SettingName.RETENTION, KEPT)))) == ["done"]
    assert said(site.carry_out(site.approved(change))) == ["done"]
    assert own(site, change) == value
    assert said(site.carry_out(site.approved(removing(site, change)))) == ["done"]
    assert own(site, change) is None


def test_what_somebody_else_set_is_not_overwritten(site: Worksite) -> None:
    site.carry_out(site.approved(setting(SettingName.TTL, TimeToLive(seconds=7200))))
    sent = len(site.changes())
    (outcome,) = site.carry_out(site.approved(setting(SettingName.TTL, TimeToLive(seconds=60))))
    assert outcome.outcome == "drifted"
    assert "2 h" in outcome.reason
    assert "not set" in outcome.reason
    assert len(site.changes()) == sent


def test_a_quota_over_the_retention_is_refused_by_the_broker(site: Worksite) -> None:
    site.carry_out(site.approved(setting(SettingName.RETENTION, Retention(minutes=60, megabytes=100))))
    change = setting(SettingName.SIZE_QUOTA, QUOTA)
    (outcome,) = site.carry_out(site.approved(change))
    assert outcome.outcome == "drifted"
    assert re.search("412 .*exceeds configured retention quota", outcome.reason), outcome.reason
    assert own(site, change) is None


def test_a_quota_that_would_act_at_once_is_not_set(tmp_path: Path) -> None:
    """A quota is refused if the backlog that a topic has right before the call is above it already."""
    topic = TopicSpec("t", backlog_bytes=2 * GIB, subscriptions=(SubscriptionSpec("s", backlog=10),))
    spec = ClusterSpec(brokers=1, namespaces=(NamespaceSpec(NAMESPACE, bundles=1, topics=(topic,)),))
    row = outcome_on(tmp_path, spec, setting(SettingName.SIZE_QUOTA, QUOTA))
    assert_done_unless(row, "of a topic is 2 GiB")
    assert "producer_request_hold would act at once" in row.reason


def test_settings_are_proved_together(site: Worksite) -> None:
    plan = site.approved(setting(SettingName.RETENTION, KEPT), setting(SettingName.SIZE_QUOTA, QUOTA))
    site.carry_out(plan)
    with site.context() as context:
        proof = verify(context, plan.plan_id, "b1")
    assert proof.proved
    assert proof.shown["placement"] == {}
    assert proof.shown["steps"]["b1.s02"] == "the size quota of shop/orders is 1 GiB; when exceeded, hold producers"


def aged(name: str, seconds: int) -> TopicSpec:
    """A topic whose oldest message is so old."""
    return TopicSpec(name, backlog_age_s=seconds, subscriptions=(SubscriptionSpec("s", backlog=10),))


BUSY = TopicSpec("idle", backlog_age_s=9_999_999, subscriptions=(SubscriptionSpec("s", backlog=0),))


@pytest.mark.parametrize(
    ("topics", "policy", "words"),
    [
        ((aged("t", 3000), BUSY), {}, None),
        ((aged("t", 10), aged("u", 3600)), {}, "producer_request_hold would act at once"),
        ((aged("t", 3), aged("u", 2), aged("v", 1)), {"most_topics_asked": 2}, "of 1 topic with a backlog its age is"),
    ],
    ids=["young", "too old", "more than may be asked"],
)
def test_an_age_quota_is_set_where_no_message_is_too_old(
    tmp_path: Path, topics: tuple[TopicSpec, ...], policy: dict[str, int], words: str | None
) -> None:
    spec = ClusterSpec(brokers=2, namespaces=(NamespaceSpec(NAMESPACE, bundles=4, topics=topics),))
    after = BacklogQuota(limit_seconds=3600, policy=QuotaPolicy.HOLD)
    limits = quick_policy(backlog_quota_remedy=policy)
    row = outcome_on(tmp_path, spec, setting(SettingName.AGE_QUOTA, after), policy=limits)
    assert_done_unless(row, words)
    assert words is None or row.reason.startswith("age_room: ")


def test_an_age_quota_stays_below_a_retention_that_was_lowered_meanwhile(site: Worksite) -> None:
    site.carry_out(site.approved(setting(SettingName.RETENTION, Retention(minutes=60, megabytes=-1))))
    after = BacklogQuota(limit_seconds=3600, policy=QuotaPolicy.HOLD)
    (outcome,) = site.carry_out(site.approved(setting(SettingName.AGE_QUOTA, after)))
    assert outcome.outcome == "refused"
    assert "age_room: 1 h is not below" in outcome.reason


EVICT = BacklogQuota(limit_bytes=GIB, policy=QuotaPolicy.EVICT)
LARGE = GIB // 10
"""Bytes of a message, 20 of which are twice that quota."""
TOO_MUCH = "loss_as_approved: 20 entries (2 GiB)"


@pytest.mark.parametrize(
    ("quota", "agreed", "guard"),
    [
        (EVICT, 20, None),
        (EVICT, 19, TOO_MUCH),
        (QUOTA, None, "quota_room: "),
        (BacklogQuota(limit_seconds=101, policy=QuotaPolicy.HOLD), None, "age_room: "),
        (BacklogQuota(limit_seconds=101, policy=QuotaPolicy.EVICT), None, "age_room: "),
        (BacklogQuota(limit_seconds=900, policy=QuotaPolicy.HOLD), None, None),
    ],
    ids=["as approved", "a message less", "holds producers", "too old", "too old to keep", "young enough"],
)
def test_a_new_topic_counts_before_it_is_in_statistics(
    tmp_path: Path, quota: BacklogQuota, agreed: int | None, guard: str | None
) -> None:
    slow = SubscriptionSpec("s", backlog=20)
    topic = TopicSpec("t", message_bytes=LARGE, subscriptions=(slow,), backlog_age_s=100, just_made=True)
    spec = ClusterSpec(brokers=1, namespaces=(NamespaceSpec(NAMESPACE, bundles=1, topics=(topic,)),))
    loss = msgspec.UNSET if agreed is None else Loss(messages=agreed, bytes=2 * GIB)
    name = SettingName.AGE_QUOTA if quota.limit_seconds > 0 else SettingName.SIZE_QUOTA
    assert_done_unless(outcome_on(tmp_path, spec, a_step(setting(name, quota), loss=loss)), guard)


def test_a_quota_is_raised_with_its_retention_and_both_go_back(site: Worksite) -> None:
    own_before = [setting(SettingName.RETENTION, KEPT), setting(SettingName.SIZE_QUOTA, QUOTA)]
    assert said(site.carry_out(site.approved(*own_before))) == ["done", "done"]
    wide = msgspec.structs.replace(KEPT, megabytes=40_960)
    more = msgspec.structs.replace(QUOTA, limit_bytes=30 * GIB)
    retention, quota = setting(SettingName.RETENTION, wide, KEPT), setting(SettingName.SIZE_QUOTA, more, QUOTA)
    assert said(site.carry_out(site.approved(quota))) == ["drifted"]
    assert said(site.carry_out(site.approved(retention, quota))) == ["done", "done"]
    assert [own(site, change) for change in (retention, quota)] == [wide, more]
    assert said(site.carry_out(site.approved(quota.inverse, retention.inverse))) == ["done", "done"]
    assert [own(site, change) for change in (retention, quota)] == [KEPT, QUOTA]


def test_a_topic_whose_bundle_nobody_owns_is_not_proved_and_says_why(site: Worksite) -> None:
    change = ChangeSetting(
        namespace=NAMESPACE, topic=TOPIC, name=SettingName.TTL, before=None, after=TimeToLive(seconds=60)
    )
    plan = site.approved(change)
    assert said(site.carry_out(plan)) == ["done"]
    site.simulator.stop_broker(site.brokers[0])
    with site.context() as context:
        proof = verify(context, plan.plan_id, "b1")
    assert not proof.proved
    assert "nobody owns the topic's bundle, and asking would load it" in proof.reason


@pytest.mark.parametrize(
    ("quorums", "words"),
    [
        ((3, 3, 3), "E 3 of 5 bookies that may take writes, and only 0 of them are known to"),
        ((6, 1, 1), "E 6 of 5 bookies that may take writes: no ledger could be made"),
        ((1, 2, 1), "E has to be at least Qw"),
    ],
)
def test_no_more_bookies_are_asked_for_than_take_writes(
    site: Worksite, quorums: tuple[int, int, int], words: str
) -> None:
    """Right before the call brokers are asked for the bookies; without enough of them nothing is sent."""
    with site.context() as context:
        inherited = context.reader.inherited(setting(SettingName.PERSISTENCE, None))
    change = msgspec.structs.replace(
        setting(SettingName.PERSISTENCE, Persistence.of(quorums, 1.0)), inherited=inherited
    )
    (outcome,) = site.carry_out(site.approved(change))
    assert (outcome.outcome, site.untouched()) == ("refused", True)
    assert words in outcome.reason


def test_only_bookies_of_the_namespaces_own_group_count(tmp_path: Path) -> None:
    """A namespace with an affinity group is given no E that its group cannot hold, however many bookies there are."""
    group = {"gold": (0, 1), "silver": (2, 3, 4)}
    spec = ClusterSpec(brokers=1, bookie_groups=group, namespaces=(NamespaceSpec(NAMESPACE, bookie_group="gold"),))
    with a_worksite(tmp_path, spec, policy=quick_policy(guards={"versions_tried_here": ["4.0"]})) as site:
        with site.context() as context:
            inherited = context.reader.inherited(setting(SettingName.PERSISTENCE, None))
        change = setting(SettingName.PERSISTENCE, Persistence.of((3, 1, 1), 1.0))
        (outcome,) = site.carry_out(site.approved(msgspec.structs.replace(change, inherited=inherited)))
        assert (outcome.outcome, site.untouched()) == ("refused", True)
        of_group = f"E 3 of 2 bookies of {NAMESPACE}'s affinity group (gold) that may take writes: no ledger could"
        assert of_group in outcome.reason


def test_a_policy_set_otherwise_is_put_back_as_it_was(site: Worksite) -> None:
    """Whatever rate somebody had set comes back to the last digit, and when it takes effect is said."""
    theirs = Persistence.of((2, 2, 2), 1 / 120)
    with site.context() as context:
        inherited = context.reader.inherited(setting(SettingName.PERSISTENCE, None))
    first = msgspec.structs.replace(setting(SettingName.PERSISTENCE, theirs), inherited=inherited)
    second = setting(SettingName.PERSISTENCE, TWO_COPIES, theirs)
    assert said(site.carry_out(site.approved(first))) == ["done"]
    assert said(site.carry_out(site.approved(second))) == ["done"]
    with site.context() as context:
        back = kind_of(second).inverse(BeforeSetting(value=theirs), context.reader)
    assert "loaded topics write their cursors so at once" in back.effect
    assert said(site.carry_out(site.approved(back.change))) == ["done"]
    assert own(site, second) == theirs


def test_no_copies_are_given_up_under_a_policy_that_keeps_them(site: Worksite) -> None:
    """A plan that lowers Qw is refused right before its call, and the former policy stays."""
    theirs = Persistence.of((2, 2, 2), 1.0)
    with Writer(site.settings) as writer:
        writer.send(set_to(NAMESPACE, SettingName.PERSISTENCE, theirs), permitted)
    change = setting(SettingName.PERSISTENCE, Persistence.of((2, 1, 1), 1.0), theirs)
    (outcome,) = site.carry_out(site.approved(change))
    assert outcome.outcome == "refused"
    assert "copies_kept: E 2, Qw 1, Qa 1 are fewer copies than E 2, Qw 2, Qa 2" in outcome.reason
    assert own(site, change) == theirs


def test_no_copies_are_given_up_where_brokers_defaults_differ(tmp_path: Path) -> None:
    """A namespace that sets nothing has the copies of each topic's broker: all of them are read before a call."""
    more = {"managedLedgerDefaultEnsembleSize": "3", "managedLedgerDefaultWriteQuorum": "3"}
    spec = replace(SKEWED, own_settings=({}, {}, more))
    with a_worksite(tmp_path, spec, policy=quick_policy(guards={"versions_tried_here": ["4.0"]})) as site:
        usual = Persistence.of((2, 2, 2), 1.0)
        change = msgspec.structs.replace(setting(SettingName.PERSISTENCE, TWO_COPIES), inherited=usual)
        (outcome,) = site.carry_out(site.approved(change))
        assert (outcome.outcome, site.untouched()) == ("drifted", True)
        assert "the persistence is E 3, Qw 3, Qa 2" in outcome.reason


def test_a_quota_waits_for_a_known_threshold_of_compaction(tmp_path: Path) -> None:
    """Where brokers tell no threshold, topics may be compacted only after the quota is full: it is not set."""
    spec = replace(SKEWED, configuration={"brokerServiceCompactionThresholdInBytes": ""})
    with a_worksite(tmp_path, spec) as site:
        (outcome,) = site.carry_out(site.approved(setting(SettingName.SIZE_QUOTA, QUOTA)))
        assert site.untouched()
        assert "from which size on topics are compacted is not known" in outcome.reason


SIZE, UNLOADED_AGE = SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA
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


@pytest.mark.parametrize("name", [SIZE, UNLOADED_AGE])
def test_what_nobody_subscribed_to_is_no_backlog(tmp_path: Path, name: SettingName) -> None:
    limit = {"limit_bytes": GIB} if name is SIZE else {"limit_seconds": 3600}
    topic = TopicSpec("t", storage_bytes=2 * GIB, stored_ago_s=7200)
    assert_done_unless(outcome_on(tmp_path, not_loaded(topic), a_quota(name, limited(QuotaPolicy.HOLD, **limit))), None)


@pytest.mark.parametrize("name", [SIZE, UNLOADED_AGE])
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
