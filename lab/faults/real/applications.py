"""Applications that consume: what they do with messages, looked at four times in four minutes.

Brokers tell rates of their last statistics interval. It is a minute here, as by default: in a shorter one every pause
would look like a standstill.
"""

import time
from collections.abc import Callable
from typing import Any

from lab.faults.clients.work import Kind
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


def taken(
    messages: int = 8_000,
    *,
    kind: Kind = "Shared",
    consumers: int = 1,
    flow: int = 0,
    size: int = 100,
    batch: int | None = None,
    **taking: Any,
) -> Arrange:
    """Messages that are taken so by these consumers, those sent before and so many a second after that.

    `batch` is the most messages of a batch of those sent before: a busy machine fills them to the client's limit, and
    nothing is acknowledged until a consumer is through with a batch.
    """

    def arrange(here: Ground) -> Change:
        topic = here.topic()
        for _ in range(consumers):
            here.take(topic, kind=kind, **taking)
        here.send(topic, messages, size, batch_messages=batch)
        if flow:
            here.flow(topic, flow, size)
        here.until(topic, lambda shown: "s" in shown["subscriptions"], "brokers tell of it", SHOWN_WITHIN_S)
        return a_minute_between_looks()

    return arrange


def taken_by_two(first: dict[str, Any], second: dict[str, Any]) -> Arrange:
    """Two consumers of a Shared subscription that treat messages differently, of which there are 100 a second."""

    def arrange(here: Ground) -> Change:
        topic = here.topic()
        here.take(topic, **first)
        here.take(topic, **second)
        here.flow(topic, 100)
        here.until(topic, lambda shown: "s" in shown["subscriptions"], "brokers tell of it", SHOWN_WITHIN_S)
        return a_minute_between_looks()

    return arrange


def restarted_once(here: Ground) -> Change:
    """A deployment: the application is started anew once, and works on."""
    topic = here.topic()
    here.flow(topic, 50)
    here.shared(topic).close()
    here.take(topic)
    here.until(topic, lambda shown: "s" in shown["subscriptions"], "brokers tell of it", SHOWN_WITHIN_S)
    return a_minute_between_looks()


def consuming(
    name: str,
    about: str,
    arrange: Arrange,
    *checks: str,
    **label: Any,
) -> RealFault:
    """A fault about a subscription with consumers, looked at four times in four minutes."""
    expected = tuple(Expected(check, rf"public/{name}/") for check in checks)
    return fault_on_ground(
        name,
        f"{about} {LOWERED}",
        arrange,
        expected=expected,
        settings=EACH_MINUTE,
        observations=LOOKS,
        policy=MINUTES,
        **label,
    )
