"""Backlogs that grow from one look to the next, and such as only seem to."""

import time
from collections.abc import Callable
from typing import Any

from lab.faults.clients.work import Language
from lab.faults.fault import Change, Expected, RealFault
from lab.faults.real.ground import Ground, fault_on_ground
from lab.faults.real.operator import HOLD, SIZE, recently_shown
from lab.waiting import wait_until

LOOKS = 5
APART_S = 22.0
QUOTA_BYTES = 500_000_000
BYTES_A_SECOND = 50_000
GROWN_WITHIN_S = 120.0

Arrange = Callable[[Ground], Change]


def apart() -> Change:
    """Waits until the look before is some time ago."""
    last: list[float] = []

    def wait(_observed: int) -> None:
        if last:
            time.sleep(max(0.0, last[0] + APART_S - time.monotonic()))
        last[:] = [time.monotonic()]

    return wait


def growing(rate_bytes: int, policy: str | None = None, quota: int = QUOTA_BYTES, partitions: int = 0) -> Arrange:
    """A backlog that grows by so many bytes a second, over all partitions."""

    def arrange(here: Ground) -> Change:
        topic = here.topic()
        if policy is not None:
            here.admin.set_quota(here.namespace, SIZE, quota, policy)
        if partitions:
            here.admin.create_partitions(topic, partitions)
        here.subscription(topic)
        here.send(topic, max(1, partitions) * 1500, 1000)
        here.flow(topic, rate_bytes // 1000, 1000)
        _until_it_flows(here, topic)
        return apart()

    return arrange


def _until_it_flows(here: Ground, topic: str) -> None:
    wait_until(
        lambda: any(
            shown["msgRateIn"] > 0 for name, shown in recently_shown(here.lab).items() if name.startswith(topic)
        ),
        f"messages flow into {topic}",
        GROWN_WITHIN_S,
        1.0,
    )


def sawtooth(partitions: int = 0) -> Arrange:
    """A backlog that grows for eight seconds, is acknowledged as a whole, and grows again."""

    def arrange(here: Ground) -> Change:
        topic = here.topic()
        here.admin.set_quota(here.namespace, SIZE, QUOTA_BYTES, HOLD)
        if partitions:
            here.admin.create_partitions(topic, partitions)
        here.take(topic, acknowledge="later", every_s=8, queue=5000)
        here.flow(topic, BYTES_A_SECOND // 1000, 1000)
        _until_it_flows(here, topic)
        return apart()

    return arrange


def standing(here: Ground) -> Change:
    """A backlog that nobody consumes and nobody adds to."""
    topic = here.topic()
    here.admin.set_quota(here.namespace, SIZE, QUOTA_BYTES, HOLD)
    here.subscription(topic)
    here.send(topic, 5_000, 1000)
    return apart()


def burst(here: Ground) -> Change:
    """A backlog that comes at once after the second look, and grows no more."""
    topic, wait = here.topic(), apart()
    here.admin.set_quota(here.namespace, SIZE, QUOTA_BYTES, HOLD)
    here.subscription(topic)
    here.send(topic, 200, 1000)

    def change(observed: int) -> None:
        if observed == 2:  # two looks are done
            here.send(topic, 8_000, 1000)
        wait(observed)

    return change


def drained(here: Ground) -> Change:
    """A large backlog that a slow consumer brings down, while more comes."""
    topic = here.topic()
    here.admin.set_quota(here.namespace, SIZE, QUOTA_BYTES, HOLD)
    here.subscription(topic)
    here.send(topic, 20_000, 1000)
    here.take(topic, pause_s=0.005)
    here.flow(topic, 10, 1000)
    _until_it_flows(here, topic)
    return apart()


def trend(
    name: str,
    about: str,
    arrange: Arrange,
    *checks: str,
    client: Language | None = "python",
    batched: bool | None = None,
    policy: dict[str, object] | None = None,
    **label: Any,
) -> RealFault:
    """A fault that is looked at five times."""
    expected = tuple(Expected(check, rf"public/{name}\b") for check in checks)
    return fault_on_ground(
        name,
        about,
        arrange,
        expected=expected,
        client=client,
        batched=batched,
        observations=LOOKS,
        policy=policy or {},
        **label,
    )
