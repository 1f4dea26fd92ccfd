"""A broker that is about to be shut down, with coordinators and topics that clients use."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from lab.admin import Admin
from lab.cluster import Lab
from lab.demo.scenarios.scenario import Scenario, Shown
from lab.faults.real.ground import SHOWN_WITHIN_S, ground
from lab.faults.real.operator import shown_topics
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from lab.target import PulsarTarget
from lab.waiting import wait_until

NAME, NAMESPACE = "harvest", "public/harvest"
BUNDLES, PARTITIONS = 12, 36


@contextlib.contextmanager
def _on_all_brokers(lab: Lab) -> Iterator[None]:
    with ground(lab, NAME, BUNDLES) as here:
        brokers = lab.active_brokers()
        for number, bundle in enumerate(here.admin.bundles(NAMESPACE)):
            here.admin.unload(NAMESPACE, bundle, brokers[number % len(brokers)])
        topic = here.topic()
        here.admin.create_partitions(topic, PARTITIONS)
        here.shared(topic, receiver_queue_size=1)
        wait_until(lambda: len(_ours(lab)) == PARTITIONS, f"{PARTITIONS} topics are loaded", SHOWN_WITHIN_S, 1.0)
        yield


def _ours(lab: Lab) -> list[str]:
    return [topic for topic in shown_topics(lab) if topic.startswith(f"persistent://{NAMESPACE}/t-")]


def _made_up() -> ClusterSpec:
    topic = TopicSpec("t", partitions=PARTITIONS, subscriptions=(SubscriptionSpec("s", consumers=1),))
    return ClusterSpec(namespaces=(NamespaceSpec(NAMESPACE, bundles=BUNDLES, topics=(topic,)),))


def _by_broker(target: PulsarTarget) -> Shown:
    """Topics of the namespace and coordinators together."""
    admin = Admin(target.admin_urls[0], target.token)
    topics = {f"{NAMESPACE}/{bundle}": admin.topics_in(NAMESPACE, bundle) for bundle in admin.bundles(NAMESPACE)}
    coordinators = target.tc_placement()
    return {
        broker: coordinators[broker] + sum(len(topics.get(bundle, ())) for bundle in owned)
        for broker, owned in target.owned_bundles().items()
    }


def _emptied(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    """True if one broker that held something holds nothing, and nothing is lost."""
    empty = [broker for broker, count in now.items() if not count]
    return len(empty) == 1 and before[empty[0]] > 0 and sum(now.values()) == sum(before.values())


def _last_broker(target: PulsarTarget) -> dict[str, Any]:
    return {"brokers": {"draining": [list(target.owned_bundles())[-1]]}}


DRAIN = Scenario(
    name="drain",
    trouble=f"spreading {BUNDLES} bundles of {NAMESPACE} over the brokers, and marking the last one as draining",
    counted=f"topics of {NAMESPACE} and transaction coordinators by broker",
    made=_on_all_brokers,
    spec=_made_up(),
    shown=_by_broker,
    healed=_emptied,
    # Brokers on one machine each report all of its CPU.
    policy={"broker_drain_remedy": {"most_usage_percent": 1000}},
    marked=_last_broker,
)
