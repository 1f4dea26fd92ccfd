"""A namespace of a scenario with loaded topics that have a client: one partitioned topic over its bundles."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lab.admin import Admin
from lab.cluster import Lab
from lab.demo.scenarios.scenario import Shown
from lab.faults.real.ground import SHOWN_WITHIN_S, ground
from lab.faults.real.operator import shown_topics
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from lab.target import PulsarTarget
from lab.waiting import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedNamespace:
    """A namespace with topics that are loaded.

    Attributes:
        name: Its name within the tenant ``public``.
        bundles: Number of its bundles.
        partitions: Number of its topics.
        owner_of: Number of the broker that owns a bundle, by the bundle's number; it may be too large by multiples of
            the number of brokers.
        owner: Number of the broker that owns all of it on a simulated cluster; None: they are spread there.
    """

    name: str
    bundles: int
    partitions: int
    owner_of: Callable[[int], int]
    owner: int | None = None

    @property
    def namespace(self) -> str:
        """The namespace's full name."""
        return f"public/{self.name}"

    @property
    def spec(self) -> ClusterSpec:
        """The simulated cluster that has it."""
        topic = TopicSpec("t", partitions=self.partitions, subscriptions=(SubscriptionSpec("s", consumers=1),))
        return ClusterSpec(
            namespaces=(NamespaceSpec(self.namespace, bundles=self.bundles, topics=(topic,), owner=self.owner),)
        )

    @contextlib.contextmanager
    def made(self, lab: Lab) -> Iterator[None]:
        """Makes it on a real lab for a ``with`` block, and returns once the brokers show its topics."""
        with ground(lab, self.name, self.bundles) as here:
            brokers = lab.active_brokers()
            for number, bundle in enumerate(here.admin.bundles(self.namespace)):
                here.admin.unload(self.namespace, bundle, brokers[self.owner_of(number) % len(brokers)])
            topic = here.topic()
            here.admin.create_partitions(topic, self.partitions)
            here.shared(topic, receiver_queue_size=1)
            loaded = f"{self.partitions} topics are loaded"
            wait_until(lambda: self._loaded(lab) == self.partitions, loaded, SHOWN_WITHIN_S, 1.0)
            yield

    def _loaded(self, lab: Lab) -> int:
        return sum(topic.startswith(f"persistent://{self.namespace}/t-") for topic in shown_topics(lab))

    def topics_by_broker(self, target: PulsarTarget) -> Shown:
        """Its topics by the broker that owns their bundles, by the brokers' own word."""
        admin = Admin(target.admin_urls[0], target.token)
        topics = {
            f"{self.namespace}/{bundle}": admin.topics_in(self.namespace, bundle)
            for bundle in admin.bundles(self.namespace)
        }
        return {
            broker: sum(len(topics.get(bundle, ())) for bundle in owned)
            for broker, owned in target.owned_bundles().items()
        }
