"""A namespace all of whose bundles are on one broker, as after the others were restarted."""

import contextlib
from collections.abc import Iterator, Mapping

from lab.admin import Admin
from lab.cluster import Lab
from lab.demo.scenarios.scenario import Scenario, Shown
from lab.faults.real.ground import SHOWN_WITHIN_S, ground
from lab.faults.real.operator import shown_topics
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from lab.target import PulsarTarget
from lab.waiting import wait_until

NAME, NAMESPACE = "lopsided", "public/lopsided"
BUNDLES, PARTITIONS = 12, 120
SNAPSHOTS = 2
AT_MOST_TIMES_MEAN = 2


@contextlib.contextmanager
def _on_one_broker(lab: Lab) -> Iterator[None]:
    with ground(lab, NAME, BUNDLES) as here:
        for bundle in here.admin.bundles(NAMESPACE):
            here.admin.unload(NAMESPACE, bundle, lab.active_brokers()[0])
        topic = here.topic()
        here.admin.create_partitions(topic, PARTITIONS)
        here.shared(topic, receiver_queue_size=1)
        wait_until(lambda: len(_ours(lab)) == PARTITIONS, f"{PARTITIONS} topics are loaded", SHOWN_WITHIN_S, 1.0)
        yield


def _ours(lab: Lab) -> list[str]:
    return [topic for topic in shown_topics(lab) if topic.startswith(f"persistent://{NAMESPACE}/t-")]


def _made_up() -> ClusterSpec:
    topic = TopicSpec("t", partitions=PARTITIONS, subscriptions=(SubscriptionSpec("s", consumers=1),))
    return ClusterSpec(namespaces=(NamespaceSpec(NAMESPACE, bundles=BUNDLES, topics=(topic,), owner=0),))


def _by_broker(target: PulsarTarget) -> Shown:
    admin = Admin(target.admin_urls[0], target.token)
    topics = {f"{NAMESPACE}/{bundle}": admin.topics_in(NAMESPACE, bundle) for bundle in admin.bundles(NAMESPACE)}
    return {
        broker: sum(len(topics.get(bundle, ())) for bundle in owned) for broker, owned in target.owned_bundles().items()
    }


def _nearer(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    return sum(now.values()) == sum(before.values()) and max(now.values()) * len(now) < AT_MOST_TIMES_MEAN * sum(
        now.values()
    )


UNLOAD = Scenario(
    name="unload",
    trouble=f"moving all {BUNDLES} bundles of {NAMESPACE} to one broker",
    counted=f"topics of {NAMESPACE} by broker",
    made=_on_one_broker,
    spec=_made_up(),
    shown=_by_broker,
    healed=_nearer,
    observations=SNAPSHOTS,
    policy={
        "broker_load_skew": {"minimum_topics": PARTITIONS // 2},
        "bundle_balance_remedy": {"least_snapshots": SNAPSHOTS},
    },
)
