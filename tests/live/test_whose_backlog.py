"""What nobody subscribed to is not for the taking: a replicator's backlog, and an archive whose topic is not loaded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from lab.faults.clients.publishing import publish
from lab.faults.real.ground import COMMON_SETTINGS
from lab.faults.real.operator import EVICTION, HOLD, SIZE, operator_of
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName
from pulsar_steward.model.step import ChangeSetting
from tests.builders import a_step
from tests.live.hands import Hands
from tests.live.healing import Healer, found
from tests.live.plots import plot, unloaded
from tests.live.producers import SENT, send_by, until_cut_off

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended(
        "tests/attacks/test_whose_backlog.py",
        "tests/attacks/test_bounds.py",
        "tests/contract/test_holders.py",
        "tests/unit/guards/test_new_guards.py",
    ),
]

AWAY = "away"
MESSAGES, BYTES = 2_500, 1_000
LIMIT = 500_000
SMALL_LEDGERS = (("managedLedgerMaxEntriesPerLedger", "500"), ("managedLedgerMinLedgerRolloverTimeMinutes", "0"))
COMPACTED_SOON = (("brokerServiceCompactionMonitorIntervalInSeconds", "1"),)
DEDUPLICATED_LATE = (
    ("brokerDeduplicationEntriesInterval", "1000000"),
    ("brokerDeduplicationSnapshotFrequencyInSeconds", "0"),
)
"""Cursors of deduplication move with its snapshots, and none is taken."""

EARLY = {
    "backlog_quota_missing": {"warning_backlog_bytes": MESSAGES * BYTES // 2},
    "backlog_quota_remedy": {"minimum_megabytes": 1},
}
SENT_ON_S = 6.0
"""Three looks of brokers at their quotas."""

MIB = 1 << 20


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[Lab]:
    """Brokers whose ledgers are small, and a cluster beside them that is away."""
    lab = labs.lab(broker_settings=dict((*COMMON_SETTINGS, *SMALL_LEDGERS, *COMPACTED_SOON, *DEDUPLICATED_LATE)))
    yield lab
    labs.discard(lab)


@pytest.fixture
def hands(lab: Lab, tmp_path: Path) -> Iterator[Hands]:
    with Hands.on(lab, tmp_path) as hands:
        yield hands


def test_what_was_never_replicated_is_not_evicted(lab: Lab, hands: Hands) -> None:
    away = operator_of(lab).cluster_that_is_away(AWAY)
    with away, plot(lab, "not-replicated", 1, replication_clusters=[lab.cluster, AWAY]) as here:
        topic = here.topic()
        publish(here.producer(topic, batched=False), MESSAGES, BYTES)
        here.until(topic, lambda each: each["replication"][AWAY]["replicationBacklog"] == MESSAGES, "it waits")
        quota = BacklogQuota(limit_bytes=LIMIT, policy=QuotaPolicy.EVICT)
        change = ChangeSetting(
            namespace=here.namespace, topic=topic, name=SettingName.SIZE_QUOTA, before=None, after=quota, inherited=None
        )
        reason = hands.refused_by("own_cursors", a_step(change, loss=Loss(messages=10**9, bytes=10**18)))
        assert f"that were never replicated to {AWAY}" in reason
        here.admin.set_quota(topic, SIZE, LIMIT, EVICTION)
        here.until(topic, lambda each: each["replication"][AWAY]["replicationBacklog"] < MESSAGES // 4, "it is gone")
        here.admin.set_policy(here.namespace, "replication", [lab.cluster])


def test_no_quota_shuts_out_what_compaction_holds(lab: Lab, hands: Hands) -> None:
    with plot(lab, "compacted", 1, compaction_threshold=LIMIT) as here:
        topic = here.topic()
        producer = here.producer(topic, batched=False)
        publish(producer, 100, BYTES)
        here.until(topic, lambda each: "__compaction" in each["subscriptions"], "it has the cursor of compaction")
        hands.refused_by("quota_held", _holding(here, LIMIT))
        hands.heal(hands.plan_of(_holding(here, 6 * LIMIT)))
        for _ in range(8):
            publish(producer, 1_000, BYTES)
            here.until(topic, lambda each: each["backlogSize"] < 2 * LIMIT, "it is compacted")


def test_no_plan_shuts_out_who_is_compacted_not_replicated_or_deduplicated(lab: Lab, tmp_path: Path) -> None:
    with (
        operator_of(lab).cluster_that_is_away(AWAY),
        plot(lab, "subscribed", 1) as subscribed,
        plot(lab, "held-compacted", 1, compaction_threshold=1 << 30) as compacted,
        plot(lab, "behind", 1, replication_clusters=[lab.cluster, AWAY]) as behind,
        plot(lab, "deduplicated", 1, deduplicationEnabled=True) as deduplicated,
        Healer.on(lab, tmp_path, EARLY, checks=("backlog-quota-missing",)) as healer,
    ):
        holders = {
            compacted: "compaction",
            behind: f"the replicator to {AWAY}",
            deduplicated: "deduplication (pulsar.dedup)",
        }
        subscribed.subscription(subscribed.topic())
        producers = {here: here.producer(here.topic(), batched=False) for here in (subscribed, *holders)}
        compacted.until(
            compacted.topic(), lambda each: "__compaction" in each["subscriptions"], "it is to be compacted"
        )
        for here, producer in producers.items():
            publish(producer, MESSAGES, BYTES)
            here.until(here.topic(), lambda each: each["backlogSize"] >= MESSAGES * BYTES, "it waits")
            here.until_quiet(here.topic())
        snapshot = healer.observe()
        assert found(snapshot) >= {("backlog-quota-missing", here.namespace) for here in producers}
        healer.heal(healer.plan(snapshot))

        limit = subscribed.admin.policies(subscribed.namespace)["backlog_quota_map"][SIZE]["limitSize"]
        for here, holder in holders.items():
            assert holder in healer.refused_by("quota_held", _holding(here, limit))
            publish(producers[here], MESSAGES, BYTES)
        ends = time.monotonic() + SENT_ON_S
        while time.monotonic() < ends:
            assert {send_by(producers[here]) for here in holders} == {SENT}

        for here in holders:
            here.admin.set_quota(here.namespace, SIZE, limit, HOLD)
        for here in (compacted, behind):
            until_cut_off(here)
        topic = deduplicated.topic()
        deduplicated.until(topic, lambda each: each["backlogSize"] < limit, "its broker took a snapshot instead")
        behind.admin.set_policy(behind.namespace, "replication", [lab.cluster])


def _holding(here: Ground, limit: int) -> ChangeSetting:
    quota = BacklogQuota(limit_bytes=limit, policy=QuotaPolicy.HOLD)
    return ChangeSetting(
        namespace=here.namespace, name=SettingName.SIZE_QUOTA, before=None, after=quota, inherited=None
    )


def test_an_archive_that_is_not_loaded_is_counted(lab: Lab, hands: Hands) -> None:
    with plot(lab, "archived", retention_policies={"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}) as here:
        topic = here.topic()
        producer = here.producer(topic, batched=False)
        publish(producer, MESSAGES, 8 * BYTES)
        here.until(topic, lambda each: each["storageSize"] >= MESSAGES * 8 * BYTES, "all is stored")
        here.close()
        unloaded(here, topic)
        before, after = Retention(minutes=-1, megabytes=-1), Retention(minutes=-1, megabytes=1)
        change = ChangeSetting(namespace=here.namespace, name=SettingName.RETENTION, before=before, after=after)
        hands.refused_by("loss_as_approved", a_step(change, loss=Loss(messages=0, bytes=2 * MIB)))
        hands.heal(hands.plan_of(a_step(change, loss=Loss(messages=0, bytes=20 * MIB))))
        here.admin.statistics(topic)  # which loads it
        here.admin.trim(topic)
        here.until(topic, lambda each: each["storageSize"] < 5 * MIB, "what is beyond it is gone")
