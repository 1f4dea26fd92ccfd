"""Clusters that nothing is wrong with: whatever is found there is a mistake."""

import contextlib
from collections.abc import Iterator

from lab.cluster import Lab
from lab.faults.fault import RealFault
from lab.faults.real.ground import Ground, ground
from lab.faults.real.operator import AGE, EVICTION, HOLD, SIZE
from lab.faults.real.traffic import steady

TOPICS = 6


def well_kept(here: Ground) -> None:
    """Quotas with room above any backlog, retention with room above the quotas, a time to live above the age quota."""
    here.admin.set_retention(here.namespace, minutes=3 * 24 * 60, megabytes=20_000)
    here.admin.set_quota(here.namespace, SIZE, 10_000_000_000, HOLD)
    here.admin.set_quota(here.namespace, AGE, 2 * 24 * 3600, EVICTION)
    here.admin.set_policy(here.namespace, "messageTTL", 7 * 24 * 3600)


@contextlib.contextmanager
def _busy(lab: Lab) -> Iterator[None]:
    with ground(lab, "busy") as here:
        well_kept(here)
        topics = [here.topic(f"t{number}") for number in range(TOPICS)]
        consumers = [here.shared(topic, name) for topic in topics for name in ("orders", "audit")]
        with steady([here.producer(topic) for topic in topics], consumers):
            for topic in topics:
                here.until(topic, lambda shown: shown["msgRateOut"] > shown["msgRateIn"] > 0, "it is consumed")
            yield


@contextlib.contextmanager
def _well_kept(lab: Lab) -> Iterator[None]:
    with ground(lab, "well-kept") as here:
        well_kept(here)
        topic = here.topic()
        here.shared(topic)
        here.producer(topic)
        here.until(topic, lambda shown: bool(shown["publishers"]), "it has a producer")
        yield


FAULTS = (
    RealFault(name="just-booted", about="Healthy: three brokers that started a moment ago.", own_lab=True),
    RealFault(name="idle", about="Healthy: three brokers that nobody uses."),
    RealFault(
        name="busy",
        about="Healthy: six topics with two subscriptions each, produced and consumed steadily.",
        quick=True,
        made=_busy,
    ),
    RealFault(
        name="well-kept",
        about="Healthy: quotas, retention and a time to live that leave each other room.",
        made=_well_kept,
    ),
)
