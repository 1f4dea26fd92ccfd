"""Trouble that no single look shows: a backlog that grows from one to the next, a bundle that does not stay."""

import contextlib
from collections.abc import Iterator

from lab import placement
from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.ground import ground
from lab.faults.real.operator import HOLD, SIZE, operator_of, shown_topics
from lab.faults.real.traffic import steady
from lab.waiting import wait_until

GROWING = "persistent://public/backlog-growing/t"
QUOTA_BYTES = 500_000_000
BYTES_A_SECOND = 50_000
STEP_BYTES = 25 * BYTES_A_SECOND
GROWN_WITHIN_S = 120.0

RESTLESS = "persistent://public/to-and-fro/t"
MOVED_WITHIN_S = 30.0


@contextlib.contextmanager
def _growing(lab: Lab) -> Iterator[None]:
    with ground(lab, "backlog-growing") as here:
        here.admin.set_quota(here.namespace, SIZE, QUOTA_BYTES, HOLD)
        here.subscription(GROWING)
        with steady([here.producer(GROWING)], rate=BYTES_A_SECOND // 1000, size=1000):
            _until_grown(lab, 0)
            yield


def _until_grown(lab: Lab, observed: int) -> None:
    """Waits until the backlog grew by a step for each observation."""
    wait_until(
        lambda: shown_topics(lab).get(GROWING, {}).get("backlogSize", 0) > (observed + 1) * STEP_BYTES,
        f"the backlog grew to {(observed + 1) * STEP_BYTES:,} bytes",
        GROWN_WITHIN_S,
        1.0,
    )


@contextlib.contextmanager
def _with_a_client(lab: Lab) -> Iterator[None]:
    with ground(lab, "to-and-fro") as here:
        here.shared(RESTLESS)
        here.until(RESTLESS, lambda shown: bool(shown["subscriptions"]), "its consumer is connected", MOVED_WITHIN_S)
        yield


def _moved(lab: Lab, observed: int) -> None:
    """Moves the bundle to the first or the second broker in turn, neither of which it is on."""
    brokers = [broker.broker_id for broker in lab.brokers]
    owner = _owner(lab)
    target = next(broker for broker in (*brokers[observed % 2 :], *brokers) if broker != owner)
    admin = operator_of(lab)
    namespace = RESTLESS.partition("://")[2].rpartition("/")[0]
    bundle = placement.bundle_of(RESTLESS, admin.bundles(namespace))
    admin.unload(namespace, str(bundle), target)
    admin.look_up(RESTLESS)
    wait_until(lambda: _owner(lab) == target, f"{RESTLESS} is on {target}", MOVED_WITHIN_S)
    wait_until(lambda: RESTLESS in shown_topics(lab), f"{target} shows {RESTLESS}", MOVED_WITHIN_S, 0.5)


def _owner(lab: Lab) -> str | None:
    namespace = RESTLESS.partition("://")[2].rpartition("/")[0]
    return placement.owners([RESTLESS], namespace, lab.owned_bundles()).get(RESTLESS)


FAULTS = (
    RealFault(
        name="backlog-growing",
        about="A backlog that grows steadily and will reach its quota within hours. The ten minutes over which it has"
        " to grow are lowered to one, as a benchmark cannot wait for them.",
        expected=(Expected("backlog-growing", GROWING),),
        observations=4,
        policy={"backlog_growing": {"minimum_minutes": 1}},
        made=_growing,
        between=_until_grown,
    ),
    RealFault(
        name="to-and-fro",
        about="A bundle that somebody moves between two looks, again and again.",
        expected=(Expected("bundle-flapping", r"public/to-and-fro"),),
        observations=5,
        made=_with_a_client,
        between=_moved,
    ),
)
