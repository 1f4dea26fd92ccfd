"""Hundreds of topics in one bundle of a namespace, while its others are empty."""

import contextlib
from collections.abc import Iterator, Mapping

from lab import placement
from lab.admin import Admin
from lab.cluster import Lab
from lab.demo.scenarios.scenario import Scenario, Shown
from lab.faults.real.bundles import crowd, place_evenly
from lab.faults.real.ground import SHOWN_WITHIN_S, ground
from lab.faults.real.operator import shown_topics
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from lab.target import PulsarTarget
from lab.waiting import wait_until

NAME, NAMESPACE = "crowded", "public/crowded"
BUNDLES, TOPICS = 8, 200
TIMES_MEAN = 3
"""Default of `bundle_topic_skew.warning_times_mean`."""

FIRST = f"0x00000000_{0xFFFFFFFF // BUNDLES + 1:#010x}"


@contextlib.contextmanager
def _crowded(lab: Lab) -> Iterator[None]:
    with ground(lab, NAME, BUNDLES) as here:
        place_evenly(here)
        names = crowd(here, TOPICS)
        for topic in names:
            here.shared(topic, receiver_queue_size=1)  # without a subscription brokers delete it after a minute
        wait_until(lambda: set(names) <= shown_topics(lab).keys(), f"{TOPICS} topics are loaded", SHOWN_WITHIN_S, 1.0)
        yield


def _made_up() -> ClusterSpec:
    names = (f"t{number}" for number in range(TOPICS * BUNDLES * 2))
    full = [name for name in names if placement.holds(FIRST, f"persistent://{NAMESPACE}/{name}")][:TOPICS]
    topics = tuple(TopicSpec(name, subscriptions=(SubscriptionSpec("s", consumers=1),)) for name in full)
    return ClusterSpec(namespaces=(NamespaceSpec(NAMESPACE, bundles=BUNDLES, topics=topics),))


def _by_bundle(target: PulsarTarget) -> Shown:
    admin = Admin(target.admin_urls[0], target.token)
    return {bundle: len(admin.topics_in(NAMESPACE, bundle)) for bundle in admin.bundles(NAMESPACE)}


def _divided(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    fullest, topics = max(now.values()), sum(now.values())
    return topics == sum(before.values()) and fullest * len(now) < TIMES_MEAN * topics


SPLIT = Scenario(
    name="split",
    trouble=f"having {TOPICS} topics crowd in one of {BUNDLES} bundles of {NAMESPACE}",
    counted=f"topics by bundle of {NAMESPACE}",
    made=_crowded,
    spec=_made_up(),
    shown=_by_bundle,
    healed=_divided,
)
