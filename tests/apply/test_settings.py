"""Settings of a namespace or topic: changed exactly as approved, proved, and left alone where somebody was quicker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec, running_simulator
from pulsar_steward.apply.verify import verify
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from tests.apply.worksite import Worksite, said

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
NAMESPACE, TOPIC = "shop/orders", "persistent://shop/orders/t"
QUOTA = BacklogQuota(limit_bytes=GIB, policy=QuotaPolicy.HOLD)
AGE = BacklogQuota(limit_seconds=3600, policy=QuotaPolicy.EVICT)
KEPT = Retention(minutes=1440, megabytes=10_240)
VALUES: list[tuple[SettingName, Setting]] = [
    (SettingName.SIZE_QUOTA, QUOTA),
    (SettingName.AGE_QUOTA, AGE),
    (SettingName.RETENTION, KEPT),
    (SettingName.TTL, TimeToLive(seconds=600)),
]


def setting(name: SettingName, after: Setting | None, before: Setting | None = None) -> ChangeSetting:
    """A change of the namespace's own setting."""
    return ChangeSetting(namespace=NAMESPACE, name=name, before=before, after=after)


def own(site: Worksite, change: ChangeSetting) -> Setting | None:
    """What the brokers say is set there."""
    with site.bench() as bench:
        return bench.look.own_setting(change)


@pytest.mark.parametrize("topic", [None, TOPIC], ids=["namespace", "topic"])
@pytest.mark.parametrize(("name", "value"), VALUES, ids=lambda each: str(each) if isinstance(each, SettingName) else "")
def test_a_setting_is_set_proved_and_taken_back(
    site: Worksite, name: SettingName, value: Setting, topic: str | None
) -> None:
    """What was not set is set, and its inverse removes it again, so that the former state is back exactly."""
    change = ChangeSetting(namespace=NAMESPACE, topic=topic, name=name, before=None, after=value)
    if not (topic is None or name in {SettingName.RETENTION, SettingName.TTL}):
        keep = ChangeSetting(namespace=NAMESPACE, topic=topic, name=SettingName.RETENTION, before=None, after=KEPT)
        assert said(site.carry_out(site.approved(keep))) == ["done"]
    elif name in {SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA}:
        assert said(site.carry_out(site.approved(setting(SettingName.RETENTION, KEPT)))) == ["done"]

    assert said(site.carry_out(site.approved(change))) == ["done"]
    assert own(site, change) == value
    assert said(site.carry_out(site.approved(change.inverse))) == ["done"]
    assert own(site, change) is None


def test_what_somebody_else_set_is_not_overwritten(site: Worksite) -> None:
    """The step is drifted, nothing is called, and the reason names both values."""
    theirs = setting(SettingName.TTL, TimeToLive(seconds=7200))
    site.carry_out(site.approved(theirs))
    sent = len(site.changes())

    (outcome,) = site.carry_out(site.approved(setting(SettingName.TTL, TimeToLive(seconds=60))))

    assert outcome.outcome == "drifted"
    assert "2 h" in outcome.reason
    assert "not set" in outcome.reason
    assert len(site.changes()) == sent


def test_a_quota_over_the_retention_is_refused_by_the_broker(site: Worksite) -> None:
    """The broker refuses it with 412; the ledger has its words, and nothing is set."""
    site.carry_out(site.approved(setting(SettingName.RETENTION, Retention(minutes=60, megabytes=100))))
    change = setting(SettingName.SIZE_QUOTA, QUOTA)

    (outcome,) = site.carry_out(site.approved(change))

    assert outcome.outcome == "drifted"
    assert "exceeds configured retention quota" in outcome.reason
    assert own(site, change) is None


def test_a_quota_that_would_act_at_once_is_not_set(tmp_path: Path) -> None:
    """What the topics hold now is asked right before the call, whatever the plan knew."""
    topic = TopicSpec("t", backlog_bytes=2 * GIB, subscriptions=(SubscriptionSpec("s", backlog=10),))
    spec = ClusterSpec(brokers=1, namespaces=(NamespaceSpec(NAMESPACE, bundles=1, topics=(topic,)),))
    with running_simulator(spec) as simulator:
        engine = open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
        site = Worksite(simulator, engine)
        (outcome,) = site.carry_out(site.approved(setting(SettingName.SIZE_QUOTA, QUOTA)))
        engine.dispose()

    assert outcome.outcome == "refused"
    assert "the largest backlog of a topic is 2 GiB" in outcome.reason
    assert "producer_request_hold would act at once" in outcome.reason
    assert site.untouched()


def test_settings_are_proved_together(site: Worksite) -> None:
    """A batch of two settings is proved from the brokers when it is over, and needs no placement of bundles."""
    plan = site.approved(setting(SettingName.RETENTION, KEPT), setting(SettingName.SIZE_QUOTA, QUOTA))
    site.carry_out(plan)
    with site.bench() as bench:
        proof = verify(bench, plan.plan_id, "b1")

    assert proof.proved
    assert proof.shown["placement"] == {}
    assert proof.shown["steps"]["b1.s02"] == "the size quota of shop/orders is 1 GiB, then producer_request_hold"
