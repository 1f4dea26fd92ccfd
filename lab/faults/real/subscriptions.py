"""Subscriptions that stand still though they have consumers, and such as only pause.

Brokers tell rates of their last statistics interval. It is a minute here, as by default: in a shorter one every pause
would look like a standstill.
"""

import time
from collections.abc import Callable
from typing import Any

from lab.faults.clients.work import Kind, Language
from lab.faults.fault import Change, Expected, RealFault
from lab.faults.real.ground import Ground, fault_on_ground

INTERVAL_S = 60
EACH_MINUTE = (("statsUpdateFrequencyInSecs", str(INTERVAL_S)),)
LOOKS = 4
SHOWN_WITHIN_S = 2.5 * INTERVAL_S
MINUTES: dict[str, object] = {
    "collect": {"recent_minutes": 1},
    "subscription_stalled": {"warning_minutes": 1, "critical_minutes": 3},
}
LOWERED = (
    "The ages from which clients and standstills count, ten minutes and an hour, are lowered to one and three, as a"
    " benchmark cannot wait for them."
)

Arrange = Callable[[Ground], Change]


def a_minute_between_looks() -> Change:
    """Waits until brokers have told of one more minute than at the look before."""
    last: list[float] = []

    def wait(_observed: int) -> None:
        if last:
            time.sleep(max(0.0, last[0] + INTERVAL_S + 2 - time.monotonic()))
        last[:] = [time.monotonic()]

    return wait


def _taken(
    messages: int = 8_000, *, kind: Kind = "Shared", consumers: int = 1, flow: int = 0, size: int = 100, **taking: Any
) -> Arrange:
    """Messages that are taken so by these consumers, those sent before and so many a second after that."""

    def arrange(here: Ground) -> Change:
        topic = here.topic()
        for _ in range(consumers):
            here.take(topic, kind=kind, **taking)
        here.send(topic, messages, size)
        if flow:
            here.flow(topic, flow, size)
        here.until(topic, lambda shown: "s" in shown["subscriptions"], "brokers tell of it", SHOWN_WITHIN_S)
        return a_minute_between_looks()

    return arrange


def _taken_by_two(first: dict[str, Any], second: dict[str, Any], flow: int) -> Arrange:
    """Two consumers of a Shared subscription that treat messages differently."""

    def arrange(here: Ground) -> Change:
        topic = here.topic()
        here.take(topic, **first)
        here.take(topic, **second)
        here.flow(topic, flow)
        here.until(topic, lambda shown: "s" in shown["subscriptions"], "brokers tell of it", SHOWN_WITHIN_S)
        return a_minute_between_looks()

    return arrange


def _restarted_once(here: Ground) -> Change:
    """A deployment: the application is started anew once, and works on."""
    topic = here.topic()
    here.flow(topic, 50)
    here.shared(topic).close()
    here.take(topic)
    here.until(topic, lambda shown: "s" in shown["subscriptions"], "brokers tell of it", SHOWN_WITHIN_S)
    return a_minute_between_looks()


def _standing(
    name: str,
    about: str,
    arrange: Arrange,
    *,
    healthy: bool = False,
    client: Language = "python",
    batched: bool | None = None,
    **label: Any,
) -> RealFault:
    """A fault about a subscription with consumers, looked at four times in four minutes."""
    expected = () if healthy else (Expected("subscription-stalled", rf"public/{name}/"),)
    return fault_on_ground(
        name,
        f"{about} {LOWERED}",
        arrange,
        expected=expected,
        client=client,
        batched=batched,
        settings=EACH_MINUTE,
        observations=LOOKS,
        policy=MINUTES,
        **label,
    )


HANG: dict[str, Any] = {"most": 1, "acknowledge": "never"}
"""The handler never returns from its first message."""

HUNG = (
    _standing(
        "stalled",
        "The consumer of a Shared subscription hangs, with a receiver queue of 100 and 5,000 entries behind it.",
        _taken(5_000, queue=100, **HANG),
        batched=False,
    ),
    _standing(
        "hung-shared",
        "The consumer of a Shared subscription hangs; its 8,000 messages are a handful of batches.",
        _taken(**HANG),
        batched=True,
    ),
    _standing(
        "hung-exclusive",
        "The consumer of an Exclusive subscription hangs; its 8,000 messages are a handful of batches.",
        _taken(kind="Exclusive", **HANG),
        batched=True,
    ),
    _standing(
        "hung-failover",
        "The active one of two consumers of a Failover subscription hangs.",
        _taken(kind="Failover", consumers=2, **HANG),
    ),
    _standing(
        "hung-key-shared",
        "Both consumers of a Key_Shared subscription hang.",
        _taken(kind="Key_Shared", consumers=2, **HANG),
        batched=False,
    ),
    _standing(
        "hung-shared-java",
        "The consumer of a Shared subscription hangs.",
        _taken(**HANG),
        client="java",
    ),
    _standing(
        "hung-exclusive-java",
        "The consumer of an Exclusive subscription hangs after 300 messages that it acknowledged.",
        _taken(most=300, kind="Exclusive"),
        client="java",
    ),
    _standing(
        "hung-failover-java",
        "The only consumer of a Failover subscription hangs, while messages keep coming.",
        _taken(2_000, kind="Failover", flow=20, **HANG),
        client="java",
    ),
    _standing(
        "hung-key-shared-java",
        "Both consumers of a Key_Shared subscription hang after 200 messages each.",
        _taken(kind="Key_Shared", consumers=2, most=200),
        client="java",
        batched=False,
    ),
    _standing(
        "hung-shared-go",
        "The consumer of a Shared subscription hangs.",
        _taken(**HANG),
        client="go",
    ),
    _standing(
        "hung-exclusive-go",
        "The consumer of an Exclusive subscription hangs, while messages keep coming.",
        _taken(3_000, kind="Exclusive", flow=20, **HANG),
        client="go",
        batched=False,
    ),
)

HALF_HUNG = (
    _standing(
        "one-of-two-hangs",
        "One of two consumers of a Shared subscription hangs with a full receiver queue, the other one works.",
        _taken_by_two(HANG, {}, 100),
    ),
    _standing(
        "one-of-two-hangs-java",
        "One of two consumers of a Shared subscription hangs with a full receiver queue, the other one works.",
        _taken_by_two(HANG, {}, 100),
        client="java",
    ),
    _standing(
        "one-of-two-is-slow",
        "Healthy: one of two consumers of a Shared subscription takes two seconds for a message, the other one none.",
        _taken_by_two({"pause_s": 2.0, "queue": 50}, {}, 100),
        healthy=True,
        twin_of=("one-of-two-hangs", "one-of-two-hangs-java"),
    ),
)

UNACKNOWLEDGED = (
    _standing(
        "forgets-to-acknowledge",
        "A consumer that works on each message and acknowledges none, while messages keep coming.",
        _taken(2_000, flow=20, acknowledge="never"),
    ),
    _standing(
        "forgets-to-acknowledge-java",
        "A consumer that works on each message and acknowledges none, while batches keep coming.",
        _taken(2_000, flow=50, kind="Failover", acknowledge="never"),
        client="java",
    ),
)

AGAIN_AND_AGAIN = (
    _standing(
        "refused-again-and-again",
        "A consumer refuses every message, and gets it again a second later.",
        _taken(1_500, acknowledge="negatively"),
        batched=True,
    ),
    _standing(
        "refused-again-and-again-java",
        "The consumers of a Key_Shared subscription refuse every message, and get it again.",
        _taken(1_500, kind="Key_Shared", consumers=2, acknowledge="negatively"),
        client="java",
        batched=False,
    ),
    _standing(
        "refused-again-and-again-go",
        "A consumer refuses every message, and gets it again a second later.",
        _taken(1_500, acknowledge="negatively"),
        client="go",
    ),
    _standing(
        "refused-while-more-comes",
        "A consumer refuses each message once, while more keep coming: pulsar-client 3.13 for Python puts off what was"
        " refused with every further refusal, so that nothing ever comes again.",
        _taken(1_000, flow=20, acknowledge="once-again"),
    ),
    _standing(
        "crash-loop",
        "A consumer crashes ten seconds after each start, and has acknowledged nothing by then.",
        _taken(5_000, acknowledge="never", lives_s=10),
        batched=True,
    ),
    _standing(
        "crash-loop-java",
        "The consumer of an Exclusive subscription crashes fifteen seconds after each start, with its first message.",
        _taken(5_000, kind="Exclusive", lives_s=15, **HANG),
        client="java",
    ),
)

WELL = (
    _standing(
        "slow-but-working",
        "Healthy: a consumer that takes half a second for each of 5,000 messages.",
        _taken(5_000, pause_s=0.5),
        healthy=True,
        twin_of=("stalled", "hung-shared-go"),
    ),
    _standing(
        "slow-but-working-java",
        "Healthy: a consumer that takes a tenth of a second for each of 8,000 messages, which are few batches.",
        _taken(pause_s=0.1),
        healthy=True,
        client="java",
        twin_of=("hung-shared-java",),
    ),
    _standing(
        "slow-exclusive",
        "Healthy: the consumer of an Exclusive subscription works for half a minute on each batch of hundreds.",
        _taken(kind="Exclusive", pause_s=0.08),
        healthy=True,
        batched=True,
        twin_of=("hung-exclusive", "hung-exclusive-java", "hung-exclusive-go"),
    ),
    _standing(
        "slow-key-shared",
        "Healthy: both consumers of a Key_Shared subscription take a second for each message.",
        _taken(4_000, kind="Key_Shared", consumers=2, pause_s=1.0),
        healthy=True,
        client="go",
        batched=False,
        twin_of=("hung-key-shared", "hung-key-shared-java"),
    ),
    _standing(
        "acknowledges-every-20-s",
        "Healthy: a consumer that acknowledges all it took every twenty seconds.",
        _taken(1_000, flow=50, acknowledge="later", every_s=20),
        healthy=True,
        twin_of=("forgets-to-acknowledge",),
    ),
    _standing(
        "acknowledges-every-20-s-java",
        "Healthy: the consumer of a Failover subscription acknowledges all it took every twenty seconds.",
        _taken(1_000, flow=50, kind="Failover", acknowledge="later", every_s=20),
        healthy=True,
        client="java",
        twin_of=("forgets-to-acknowledge-java",),
    ),
    _standing(
        "nothing-to-do",
        "Healthy: two consumers that have consumed everything, and nothing more comes.",
        _taken(2_000, consumers=2),
        healthy=True,
        batched=True,
        twin_of=("hung-shared",),
    ),
    _standing(
        "standing-by",
        "Healthy: of two consumers of a Failover subscription one works and one stands by.",
        _taken(1_000, flow=50, kind="Failover", consumers=2),
        healthy=True,
        twin_of=("hung-failover", "hung-failover-java"),
    ),
    _standing(
        "refused-once",
        "Healthy: a consumer refuses every message at first, and acknowledges it when it comes again.",
        _taken(1_000, flow=20, acknowledge="once-again"),
        healthy=True,
        client="go",
        twin_of=("refused-again-and-again", "refused-again-and-again-go", "refused-while-more-comes"),
    ),
    _standing(
        "refused-once-java",
        "Healthy: a consumer refuses every message at first, and acknowledges it when it comes again.",
        _taken(1_000, flow=20, acknowledge="once-again"),
        healthy=True,
        client="java",
        twin_of=("refused-again-and-again-java",),
    ),
    _standing(
        "starts-anew-and-works",
        "Healthy: a job that ends after ten seconds and begins again, acknowledging what it took.",
        _taken(1_000, flow=20, lives_s=10),
        healthy=True,
        twin_of=("crash-loop", "crash-loop-java"),
    ),
    _standing(
        "deployed-once",
        "Healthy: an application that was started anew once, and works on.",
        _restarted_once,
        healthy=True,
        twin_of=("crash-loop",),
    ),
)


FAULTS = (*HUNG, *HALF_HUNG, *UNACKNOWLEDGED, *AGAIN_AND_AGAIN, *WELL)
