"""Trouble that no single look shows: a backlog that grows from one to the next, a bundle that does not stay."""

import time
from collections.abc import Callable
from typing import Any

from lab import placement
from lab.cluster import Lab
from lab.faults.clients.work import Language
from lab.faults.fault import Change, Expected, RealFault
from lab.faults.real.ground import Ground, fault_on_ground
from lab.faults.real.operator import EVICTION, EXCEPTION, HOLD, SIZE, recently_shown
from lab.waiting import wait_until

LOOKS = 5
APART_S = 22.0
QUOTA_BYTES = 500_000_000
BYTES_A_SECOND = 50_000
GROWN_WITHIN_S = 120.0
MOVED_WITHIN_S = 90.0

A_MINUTE: dict[str, object] = {"backlog_growing": {"minimum_minutes": 1}}
SOONER = "The ten minutes over which it has to grow are lowered to one, as a benchmark cannot wait for them."
SLOWER: dict[str, object] = {"backlog_growing": {"minimum_minutes": 1, "warning_bytes_per_second": 100_000}}
LESS = f"{SOONER} So is the rate, from 1 MiB/s to 100 kB/s, as a lab's disk is no place for that."
TOGETHER: dict[str, object] = {
    "backlog_growing": {
        "minimum_minutes": 1,
        "warning_bytes_per_second": 200_000,
        "warning_bytes_per_second_together": 200_000,
    }
}
LESS_TOGETHER = (
    f"{SOONER} So are the rates, of one topic and of all together, to 200 kB/s: a lab's disk is no place for more."
)

Arrange = Callable[[Ground], Change]


def apart() -> Change:
    """Waits until the look before is some time ago."""
    last: list[float] = []

    def wait(_observed: int) -> None:
        if last:
            time.sleep(max(0.0, last[0] + APART_S - time.monotonic()))
        last[:] = [time.monotonic()]

    return wait


def _growing(rate_bytes: int, policy: str | None = None, quota: int = QUOTA_BYTES, partitions: int = 0) -> Arrange:
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


def _sawtooth(partitions: int = 0) -> Arrange:
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


def _standing(here: Ground) -> Change:
    """A backlog that nobody consumes and nobody adds to."""
    topic = here.topic()
    here.admin.set_quota(here.namespace, SIZE, QUOTA_BYTES, HOLD)
    here.subscription(topic)
    here.send(topic, 5_000, 1000)
    return apart()


def _burst(here: Ground) -> Change:
    """A backlog that comes at once after the second look, and grows no more."""
    topic, wait = here.topic(), apart()
    here.admin.set_quota(here.namespace, SIZE, QUOTA_BYTES, HOLD)
    here.subscription(topic)
    here.send(topic, 200, 1000)

    def change(observed: int) -> None:
        if observed == 2:  # noqa: PLR2004 - two looks are done
            here.send(topic, 8_000, 1000)
        wait(observed)

    return change


def _drained(here: Ground) -> Change:
    """A large backlog that a slow consumer brings down, while more comes."""
    topic = here.topic()
    here.admin.set_quota(here.namespace, SIZE, QUOTA_BYTES, HOLD)
    here.subscription(topic)
    here.send(topic, 20_000, 1000)
    here.take(topic, pause_s=0.005)
    here.flow(topic, 10, 1000)
    _until_it_flows(here, topic)
    return apart()


def _restless(moves: Callable[[int], bool]) -> Arrange:
    """A topic with a client whose bundle is moved before those looks."""

    def arrange(here: Ground) -> Change:
        topic = here.topic()
        here.shared(topic)
        here.until(topic, lambda shown: bool(shown["subscriptions"]), "its consumer is connected", MOVED_WITHIN_S)

        def change(observed: int) -> None:
            if moves(observed):
                _move(here, topic, observed)

        return change

    return arrange


def _move(here: Ground, topic: str, observed: int) -> None:
    """Moves the bundle to the first or the second broker in turn, neither of which it is on."""
    brokers = [broker.broker_id for broker in here.lab.brokers]
    owner = _owner(here.lab, topic, here.namespace)
    target = next(broker for broker in (*brokers[observed % 2 :], *brokers) if broker != owner)
    bundle = placement.bundle_of(topic, here.admin.bundles(here.namespace))
    here.admin.unload(here.namespace, str(bundle), target)
    here.admin.look_up(topic)
    wait_until(
        lambda: _owner(here.lab, topic, here.namespace) == target, f"{topic} is on {target}", MOVED_WITHIN_S, 0.5
    )
    wait_until(lambda: topic in recently_shown(here.lab), f"{target} shows {topic}", MOVED_WITHIN_S, 0.5)


def _owner(lab: Lab, topic: str, namespace: str) -> str | None:
    return placement.owners([topic], namespace, lab.owned_bundles()).get(topic)


def _trend(
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


GROWING = (
    _trend(
        "backlog-growing",
        f"A backlog that grows steadily and will reach its quota within hours. {SOONER}",
        _growing(BYTES_A_SECOND, HOLD),
        "backlog-growing",
        policy=A_MINUTE,
    ),
    _trend(
        "backlog-growing-eviction",
        f"A backlog that grows steadily and will be evicted within hours. {SOONER}",
        _growing(BYTES_A_SECOND, EVICTION),
        "backlog-growing",
        policy=A_MINUTE,
        batched=True,
    ),
    _trend(
        "backlog-growing-java",
        f"A backlog that grows steadily and will have its producers refused within the hour. {SOONER}",
        _growing(2 * BYTES_A_SECOND, EXCEPTION, 200_000_000),
        "backlog-growing",
        policy=A_MINUTE,
        client="java",
    ),
    _trend(
        "growing-without-quota",
        f"A backlog that grows fast, and no quota bounds it. {LESS}",
        _growing(200_000),
        "backlog-growing",
        policy=SLOWER,
        client="go",
    ),
    _trend(
        "growing-over-partitions",
        f"Five partitions whose backlogs grow by 60 kB/s each, and no quota bounds them. {LESS_TOGETHER}",
        _growing(300_000, partitions=5),
        "backlog-growing",
        policy=TOGETHER,
        batched=True,
    ),
    _trend(
        "growing-over-partitions-java",
        f"Eight partitions whose backlogs grow by 50 kB/s each, and no quota bounds them. {LESS_TOGETHER}",
        _growing(400_000, partitions=8),
        "backlog-growing",
        policy=TOGETHER,
        client="java",
    ),
)

NOT_GROWING = (
    _trend(
        "growing-slowly",
        f"Healthy: a backlog that grows so slowly that its quota lasts for days. {SOONER}",
        _growing(1000, HOLD),
        policy=A_MINUTE,
        twin_of=("backlog-growing",),
    ),
    _trend(
        "sawtooth",
        f"Healthy: a backlog that is consumed as a whole every few seconds. {SOONER}",
        _sawtooth(),
        policy=A_MINUTE,
        twin_of=("backlog-growing",),
    ),
    _trend(
        "sawtooth-over-partitions",
        f"Healthy: eight partitions whose backlogs are consumed as a whole every few seconds. {LESS_TOGETHER}",
        _sawtooth(8),
        policy=TOGETHER,
        client="java",
        twin_of=("growing-over-partitions-java", "growing-over-partitions"),
    ),
    _trend(
        "standing-backlog",
        f"Healthy enough: a backlog of 5 MB that nobody adds to. {SOONER}",
        _standing,
        policy=A_MINUTE,
        batched=True,
        twin_of=("backlog-growing-eviction", "growing-without-quota"),
    ),
    _trend(
        "burst",
        f"Healthy: a backlog that came at once and grows no more. {SOONER}",
        _burst,
        policy=A_MINUTE,
        client="go",
        twin_of=("backlog-growing",),
    ),
    _trend(
        "drained-slowly",
        f"Healthy: a large backlog that a slow consumer brings down. {SOONER}",
        _drained,
        policy=A_MINUTE,
        client="java",
        twin_of=("backlog-growing-java",),
    ),
)

MOVING = (
    _trend(
        "to-and-fro",
        "A bundle that somebody moves between two looks, again and again.",
        _restless(bool),
        "bundle-flapping",
        client=None,
    ),
    _trend(
        "moved-once",
        "Healthy: a bundle that somebody moved once.",
        _restless(lambda observed: observed == 2),  # noqa: PLR2004 - two looks are done
        client=None,
        twin_of=("to-and-fro",),
    ),
)

FAULTS = (*GROWING, *NOT_GROWING, *MOVING)
