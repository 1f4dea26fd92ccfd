"""Messages delayed beyond their time to live, on real brokers: kept once a longer one was approved, else lost."""

from __future__ import annotations

import time
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pulsar
import pytest

from lab.errors import NotReachedError
from lab.faults.clients.languages import clients
from lab.faults.clients.publishing import publish
from lab.faults.clients.work import Sending
from lab.faults.real.ages import PRECISE
from lab.faults.real.ground import COMMON_SETTINGS
from lab.waiting import wait_until
from pulsar_steward.errors import Refused
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import SettingName
from pulsar_steward.model.step import ChangeSetting
from tests.live.healing import Healer, found
from tests.live.plots import plot

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground
    from lab.pool import LabPool
    from pulsar_steward.model.plan import Batch

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended(
        "tests/unit/planners/test_persistence.py",
        "tests/live/test_remediations.py::test_quotas_and_retention_change_in_an_order_that_brokers_accept",
    ),
]

CHECK = "delayed-past-ttl"
MESSAGES = {"kept": 60, "lost": 40}
"""Delayed messages of each namespace."""

LIVE_S, DELAY_S = 60, 180
"""Time to live, and the delay beyond it."""

EXPIRY_EVERY_MINUTE = ("messageExpiryCheckIntervalInMinutes", "1")
EXPIRED_WITHIN_S = LIVE_S + 2 * 60.0
"""By the second look at the latest, as the first may come right before."""

SHOWN_WITHIN_S = 60.0
EARLY_MS = 2_000
"""Brokers deliver by ticks of a second."""

WEEK_S = 7 * 86_400
AS_THEY_WAIT: dict[str, Any] = {"delayed_past_ttl": {"warning_age_percent_of_ttl": 1}}
"""Found before a large share of a time to live has passed that is a minute here."""

OLD_ENOUGH_S = 2.0
"""By then messages have that share of it behind them, in whole seconds as brokers tell it."""


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Lab:
    """Brokers that know the age of each message, and let messages expire as often as they can be told to."""
    return labs.lab(broker_settings=dict((*COMMON_SETTINGS, *PRECISE, EXPIRY_EVERY_MINUTE)))


def waiting(here: Ground, messages: int) -> pulsar.Consumer:
    """Publishes messages that are due after their time to live; returns the consumer that waits for them."""
    topic = here.topic()
    here.admin.set_policy(here.namespace, "messageTTL", LIVE_S)
    consumer = here.shared(topic)
    publish(here.producer(topic, batched=False), messages, delay=lambda _: timedelta(seconds=DELAY_S))
    here.until_metric("pulsar_subscription_delayed", topic, messages, SHOWN_WITHIN_S)
    here.until(topic, lambda shown: shown["subscriptions"]["s"]["msgBacklog"] == messages, "all of them are shown")
    return consumer


def takes_delay(here: Ground, seconds: int) -> bool:
    """Whether brokers take a message that is delayed by so much.

    The client in Java says so. The one in Python connects anew and sends it again, without end
    (docs/pulsar-behaviour.md).
    """
    with clients("java", here.lab.service_url, here.lab.token, here.lab.home / "log" / "delays.log") as java:
        try:
            java.do(Sending(topic=here.topic("other"), count=1, delay_s=seconds))
        except NotReachedError:
            return False
    return True


def expired(here: Ground) -> int:
    return int(here.admin.statistics(here.topic())["subscriptions"]["s"]["totalMsgExpired"])


def foretold(batch: Batch) -> dict[str, int | None]:
    """Messages by topic that are lost if the time to live stays as it is."""
    (averts,) = (step.averts for step in batch.steps if isinstance(step.averts, Loss))
    return {each.topic: each.messages for each in averts.topics}


def test_delayed_messages_live_as_was_approved(lab: Lab, tmp_path: Path) -> None:
    with ExitStack() as stack:
        healer = stack.enter_context(Healer.on(lab, tmp_path, AS_THEY_WAIT, checks=(CHECK,)))
        kept, lost = (stack.enter_context(plot(lab, f"delayed-{name}")) for name in MESSAGES)
        takes, gets_none = (waiting(here, MESSAGES[name]) for here, name in ((kept, "kept"), (lost, "lost")))
        time.sleep(OLD_ENOUGH_S)
        snapshot = healer.observe()
        assert {(CHECK, kept.namespace), (CHECK, lost.namespace)} <= found(snapshot)
        plan = healer.plan(snapshot)
        batches = {batch.title.partition(":")[0]: batch for batch in plan.batches}
        approved, rejected = batches[kept.namespace], batches[lost.namespace]
        assert foretold(approved) == {kept.topic(): MESSAGES["kept"]}
        assert foretold(rejected) == {lost.topic(): MESSAGES["lost"]}
        assert f"{MESSAGES['lost']} entries" in healer.approval_text(plan, rejected)

        healer.reject(plan, rejected)
        before = lost.admin.policies(lost.namespace)
        with pytest.raises(Refused, match="rejected"):
            healer.apply(plan, rejected)
        assert lost.admin.policies(lost.namespace) == before
        healer.approve(plan, approved)
        outcomes = healer.apply(plan, approved)
        assert {row.outcome for row in outcomes} == {Outcome.DONE}, outcomes
        assert healer.verify(plan, approved).proved
        assert expired(kept) == expired(lost) == 0, "too slow: messages expired before the answer"

        now = kept.admin.policies(kept.namespace)
        changed = [step.change.name for step in approved.steps if isinstance(step.change, ChangeSetting)]
        assert changed == [SettingName.TTL, SettingName.DELAYED_DELIVERY]
        assert (
            now["delayed_delivery_policies"]["maxDeliveryDelayInMillis"]
            == 1000 * WEEK_S
            < (1000 * now["message_ttl_in_seconds"])
        )
        assert not takes_delay(kept, 2 * WEEK_S)
        assert takes_delay(lost, 2 * WEEK_S)

        wait_until(lambda: expired(lost) >= MESSAGES["lost"], "the others expire", EXPIRED_WITHIN_S, 1.0)
        assert expired(lost) == MESSAGES["lost"]
        assert expired(kept) == 0
        for _ in range(MESSAGES["kept"]):
            message = takes.receive(timeout_millis=1000 * DELAY_S)
            assert time.time() * 1000 >= message.publish_timestamp() + 1000 * DELAY_S - EARLY_MS
            takes.acknowledge(message)
        for consumer in (takes, gets_none):
            with pytest.raises(pulsar.Timeout):
                consumer.receive(timeout_millis=3_000)
        assert (expired(kept), expired(lost)) == (0, MESSAGES["lost"])
