"""Quotas that would act the moment that they are set: by age, and by evicting; each with what brokers then do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from benchmarks.observing import settings_of
from lab.faults.clients.publishing import publish, receive
from lab.faults.real.ages import PRECISE
from lab.faults.real.ground import COMMON_SETTINGS
from lab.faults.real.operator import AGE, HOLD, SIZE
from lab.waiting import wait_until
from pulsar_steward.facts.backlogs import backlog_of, evicted
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.pulsar.owner import OwnerReader
from tests.builders import a_step
from tests.live.plots import plot, unloaded
from tests.live.producers import SENT, filled, send_by, until_cut_off

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground
    from lab.pool import LabPool
    from pulsar_steward.facts.backlogs import Backlog
    from pulsar_steward.model.loss import Loss
    from pulsar_steward.model.plan import Plan
    from tests.live.hands import Hands

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended(
        "tests/apply/test_settings.py::test_an_age_quota_is_set_where_no_message_is_too_old",
        "tests/apply/test_settings.py::test_a_new_topic_counts_before_it_is_in_statistics",
        "tests/apply/test_guards_before_calls.py::test_a_topics_own_quota_is_held_against_its_own_backlog",
    ),
]

WITHIN_S = 60.0
OLD_S = 10
MESSAGE_BYTES = 1_000
EVICTED_ABOVE = 600_000


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Lab:
    """Brokers that look at the age of each message, and so act on it at once."""
    return labs.lab(auth="token", broker_settings=dict((*COMMON_SETTINGS, *PRECISE)))


def by_age(here: Ground, seconds: int) -> ChangeSetting:
    """The change that sets an age quota, which holds producers."""
    quota = BacklogQuota(limit_seconds=seconds, policy=QuotaPolicy.HOLD)
    return ChangeSetting(namespace=here.namespace, name=SettingName.AGE_QUOTA, before=None, after=quota)


def published(hands: Hands, here: Ground) -> dict[str, int]:
    """When the oldest message of a ground's topic was published, asked of each broker that says so."""
    found: dict[str, int] = {}
    for broker, bundles in hands.lab.owned_bundles().items():
        if any(bundle.startswith(f"{here.namespace}/") for bundle in bundles):
            with OwnerReader(settings_of(hands.lab, hands.policy), broker) as owner:
                told = owner.statistics(here.topic(), ages=True).subscriptions.values()
                found[broker] = min(each.earliest_msg_publish_time_in_backlog for each in told if each.msg_backlog)
    return found


def test_an_age_quota_that_a_message_is_too_old_for_stops_its_producer(
    lab: Lab, hands_with: Callable[..., Hands]
) -> None:
    hands = hands_with()
    with plot(lab, "too-old", 1) as here, filled(here, 0.1) as producer:
        wait_until(lambda: age_of(hands, here) > OLD_S, "the oldest message is too old", WITHIN_S, 0.5)
        reason = hands.refused_by("age_room", by_age(here, OLD_S))
        assert "producer_request_hold would act at once" in reason
        assert here.admin.policies(here.namespace)["backlog_quota_map"] == {}
        assert send_by(producer) == SENT
        here.admin.set_quota(here.namespace, AGE, OLD_S, HOLD)
        until_cut_off(here)
        assert send_by(producer) != SENT


def age_of(hands: Hands, here: Ground) -> float:
    """Seconds since the oldest message was published, by this machine's clock, which the lab's brokers read as well."""
    (oldest,) = published(hands, here).values()
    return time.time() - oldest / 1000


def test_an_age_quota_is_set_and_taken_back(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with()
    with plot(lab, "young-enough", 1) as here, filled(here, 0.1) as producer:
        before = here.admin.policies(here.namespace)
        plan = hands.plan_of(by_age(here, 3600))
        hands.heal(plan)
        quota = here.admin.policies(here.namespace)["backlog_quota_map"][AGE]
        assert (quota["limitTime"], quota["policy"]) == (3600, HOLD)
        assert send_by(producer) == SENT
        hands.heal(hands.rollback_plan(plan, plan.batches[0]))
        assert here.admin.policies(here.namespace) == before


def test_asking_for_the_age_changes_nothing(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with()
    with plot(lab, "only-looked", 1) as here, filled(here, 0.1):
        consumer = here.shared(here.topic(), "reads-all")
        for message in receive(consumer, 10):
            consumer.acknowledge(message)
        consumer.close()
        (oldest,) = published(hands, here).values()
        assert oldest  # of subscription s, as the other one has read everything
        assert set(here.admin.statistics(here.topic())["subscriptions"]) == {"s", "reads-all"}


def test_a_topic_that_nobody_loaded_keeps_a_quota_away(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with()
    with plot(lab, "asleep") as here:
        with filled(here, 0.5) as producer:
            producer.close()
        backlog = shown(here).bytes
        unloaded(here, here.topic())
        hands.refused_by("quota_room", _sized(here, backlog, QuotaPolicy.HOLD))
        assert here.admin.policies(here.namespace)["backlog_quota_map"] == {}


def _sized(here: Ground, limit: int, policy: QuotaPolicy) -> ChangeSetting:
    quota = BacklogQuota(limit_bytes=limit, policy=policy)
    return ChangeSetting(namespace=here.namespace, name=SettingName.SIZE_QUOTA, before=None, after=quota)


def evicting(hands: Hands, here: Ground, limit: int, loss: Loss) -> Plan:
    """A plan of a quota that evicts, for which this loss is approved."""
    quota = BacklogQuota(limit_bytes=limit, policy=QuotaPolicy.EVICT)
    change = ChangeSetting(namespace=here.namespace, name=SettingName.SIZE_QUOTA, before=None, after=quota)
    return hands.plan_of(a_step(change, loss=loss))


def shown(here: Ground) -> Backlog:
    """A ground's topic as its broker's statistics show it, which are what guards and snapshots see."""
    topic = here.admin.statistics(here.topic())
    subscriptions = {name: each["msgBacklog"] for name, each in topic["subscriptions"].items()}
    return backlog_of(here.topic(), topic["backlogSize"], subscriptions, {})


def unread(backlog: Backlog) -> int:
    """Entries that wait, each counted for every subscription that has not consumed it."""
    return sum(each.entries or 0 for each in backlog.holders)


def test_what_is_evicted_is_what_was_approved_and_no_more(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with()
    with plot(lab, "evicted", 1) as here:
        topic = here.topic()
        for name in ("slow", "slower"):
            here.subscription(topic, name)
        producer = here.producer(topic, batched=False)
        publish(producer, 1000, MESSAGE_BYTES)
        consumer = here.shared(topic, "slow")
        for message in receive(consumer, 300):
            consumer.acknowledge(message)
        consumer.close()
        here.until(topic, lambda each: each["subscriptions"]["slow"]["msgBacklog"] == 700, "it is shown")
        here.until_quiet(topic)
        seen = shown(here)
        lost = evicted([seen], EVICTED_ABOVE).loss
        assert lost.messages is not None
        plan = evicting(hands, here, EVICTED_ABOVE, lost)
        text = hands.approval_text(plan, plan.batches[0]).replace("\\", "")
        assert f"AT ONCE UP TO {lost.messages:,} ENTRIES" in text
        assert f"{topic}: {lost.messages:,} entries" in text
        assert "held by subscription slower" in text

        less = msgspec.structs.replace(lost, messages=lost.messages - 1)
        outcome, reason = hands.refusal(evicting(hands, here, EVICTED_ABOVE, less))
        assert (outcome, reason.partition(":")[0]) == (Outcome.REFUSED, "loss_as_approved"), reason
        assert here.admin.policies(here.namespace)["backlog_quota_map"] == {}

        hands.heal(plan)
        here.until(topic, lambda each: each["backlogSize"] < EVICTED_ABOVE, "it was evicted")
        gone = unread(seen) - unread(shown(here))
        assert 0 < gone <= lost.messages


def test_a_topics_own_quota_is_compared_with_its_own_retention(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with()
    kept = {"retentionTimeInMinutes": 60, "retentionSizeInMB": 10}
    with plot(lab, "of-its-own", 1, retention_policies=kept) as here, filled(here, 0.1):
        here.admin.set_quota(here.namespace, SIZE, 5 << 20, HOLD)
        here.admin.set_retention(here.topic(), 600, 1000)
        wait_until(lambda: here.admin.has_policy(here.topic(), "retention"), "the topic retains more", WITHIN_S, 0.5)
        quota = BacklogQuota(limit_bytes=500 << 20, policy=QuotaPolicy.HOLD)
        change = ChangeSetting(
            namespace=here.namespace, topic=here.topic(), name=SettingName.SIZE_QUOTA, before=None, after=quota
        )
        plan = hands.plan_of(change)
        hands.heal(plan)
        in_force = here.admin.statistics(here.topic())["backlogQuotaLimitSize"]
        assert in_force == quota.limit_bytes
        hands.heal(hands.rollback_plan(plan, plan.batches[0]))
        wait_until(
            lambda: here.admin.statistics(here.topic())["backlogQuotaLimitSize"] == 5 << 20,
            "its namespace's quota is in force again",
            WITHIN_S,
            0.5,
        )
