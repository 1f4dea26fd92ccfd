"""Scenarios of the demo, by name: each breaks something that Steward heals."""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from lab import placement
from lab.admin import Admin
from lab.cluster import Lab
from lab.faults.fault import RealFault
from lab.faults.real.bundles import crowd, place_evenly
from lab.faults.real.ground import SHOWN_WITHIN_S, ground
from lab.faults.real.operator import shown_topics
from lab.faults.registry import REAL
from lab.model import LabOptions
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from lab.target import PulsarTarget
from lab.waiting import wait_until

Shown = dict[str, int]
"""Counts by broker, bundle or setting."""

BROKERS = 3
"""Of the demo's cluster, where its scenario says nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One trouble, on a real cluster and on a simulated one.

    Attributes:
        name: As ``make demo SCENARIO=...`` has it.
        trouble: What is done to the cluster, as a stage of the demo.
        counted: What `shown` counts.
        made: Makes it on a real lab for a ``with`` block, and returns once the brokers show it.
        spec: The simulated cluster.
        made_up: Makes it there, for a ``with`` block, where `spec` does not describe it already.
        shown: Counts what was broken, by the brokers' own word.
        healed: Whether it is well now, from what was shown before and after.
        observations: Snapshots until something is proposed.
        policy: Sections of the cluster's policy that are not the default, as a lab is small.
        marked: Sections that name something of the cluster, such as a broker.
        lab: What the real lab is beyond three brokers, as `lab.model.LabSpec` has it.
    """

    name: str
    trouble: str
    counted: str
    made: Callable[[Lab], AbstractContextManager[None]]
    spec: ClusterSpec = field(default_factory=ClusterSpec)
    made_up: Callable[[PulsarTarget], AbstractContextManager[None]] = lambda _target: nullcontext()
    shown: Callable[[PulsarTarget], Shown]
    healed: Callable[[Mapping[str, int], Mapping[str, int]], bool]
    observations: int = 1
    policy: dict[str, Any] = field(default_factory=dict)
    marked: Callable[[PulsarTarget], dict[str, Any]] = lambda _target: {}
    lab: LabOptions = field(default_factory=LabOptions)

    def broken(self, target: PulsarTarget) -> AbstractContextManager[None]:
        """Makes the trouble for a ``with`` block."""
        return self.made(target) if isinstance(target, Lab) else self.made_up(target)

    def policy_on(self, target: PulsarTarget) -> dict[str, Any]:
        """All sections of the policy that are not the default."""
        return self.policy | self.marked(target)


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
        brokers: How many a simulated cluster has, each on a host of its own where they are more than three.
    """

    name: str
    bundles: int
    partitions: int
    owner_of: Callable[[int], int]
    owner: int | None = None
    brokers: int = BROKERS

    @property
    def namespace(self) -> str:
        """The namespace's full name."""
        return f"public/{self.name}"

    @property
    def spec(self) -> ClusterSpec:
        """The simulated cluster that has it."""
        topic = TopicSpec("t", partitions=self.partitions, subscriptions=(SubscriptionSpec("s", consumers=1),))
        return ClusterSpec(
            brokers=self.brokers,
            hosts="same" if self.brokers == BROKERS else "distinct",
            namespaces=(NamespaceSpec(self.namespace, bundles=self.bundles, topics=(topic,), owner=self.owner),),
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


LOPSIDED = LoadedNamespace(name="lopsided", bundles=12, partitions=120, owner_of=lambda _: 0, owner=0)
SNAPSHOTS = 2
AT_MOST_TIMES_MEAN = 2


def _nearer(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    return sum(now.values()) == sum(before.values()) and max(now.values()) * len(now) < AT_MOST_TIMES_MEAN * sum(
        now.values()
    )


UNLOAD = Scenario(
    name="unload",
    trouble=f"moving all {LOPSIDED.bundles} bundles of {LOPSIDED.namespace} to one broker",
    counted=f"topics of {LOPSIDED.namespace} by broker",
    made=LOPSIDED.made,
    spec=LOPSIDED.spec,
    shown=LOPSIDED.topics_by_broker,
    healed=_nearer,
    observations=SNAPSHOTS,
    policy={
        "broker_load_skew": {"minimum_topics": LOPSIDED.partitions // 2},
        "bundle_balance_remedy": {"least_snapshots": SNAPSHOTS},
    },
)


HEALED_SPREAD = 1


@contextlib.contextmanager
def _piled_up(target: PulsarTarget) -> Iterator[None]:
    target.pile_up_tcs()
    yield


TC = Scenario(
    name="tc",
    trouble="piling all transaction coordinators up on one broker, as a rolling restart would",
    counted="transaction coordinators by broker",
    made=_piled_up,
    made_up=_piled_up,
    shown=lambda target: target.tc_placement(),
    healed=lambda before, now: (
        sum(now.values()) == sum(before.values()) and max(now.values()) - min(now.values()) <= HEALED_SPREAD
    ),
)


HARVEST = LoadedNamespace(name="harvest", bundles=12, partitions=36, owner_of=lambda number: number)


def _by_broker(target: PulsarTarget) -> Shown:
    """Topics of the namespace and coordinators together."""
    coordinators = target.tc_placement()
    return {broker: coordinators[broker] + topics for broker, topics in HARVEST.topics_by_broker(target).items()}


def _emptied(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    """True if one broker that held something holds nothing, and nothing is lost."""
    empty = [broker for broker, count in now.items() if not count]
    return len(empty) == 1 and before[empty[0]] > 0 and sum(now.values()) == sum(before.values())


DRAIN = Scenario(
    name="drain",
    trouble=(
        f"spreading {HARVEST.bundles} bundles of {HARVEST.namespace} over the brokers, and marking the last one as"
        " draining"
    ),
    counted=f"topics of {HARVEST.namespace} and transaction coordinators by broker",
    made=HARVEST.made,
    spec=HARVEST.spec,
    shown=_by_broker,
    healed=_emptied,
    # Brokers on one machine each report all of its CPU.
    policy={"broker_drain_remedy": {"most_usage_percent": 1000}},
    marked=lambda target: {"brokers": {"draining": [list(target.owned_bundles())[-1]]}},
)


PAYMENTS = LoadedNamespace(name="payments", bundles=12, partitions=36, owner_of=lambda number: number, brokers=6)
GROUP_OF = 2


def _group(target: PulsarTarget) -> list[str]:
    """The last brokers of the cluster, which are to serve payments and nothing else."""
    return sorted(target.owned_bundles())[-GROUP_OF:]


def _wanted_group(target: PulsarTarget) -> dict[str, Any]:
    hosts = [re.escape(broker.partition(":")[0]) for broker in _group(target)]
    wanted = {"namespaces": [PAYMENTS.namespace], "primary": hosts, "min_available_brokers": GROUP_OF}
    return {"brokers": {"groups": [{"name": PAYMENTS.name, **wanted}]}}


def _served_by_the_group(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    serving = [broker for broker, topics in now.items() if topics]
    return serving == sorted(now)[-GROUP_OF:] and sum(now.values()) == sum(before.values())


GROUPS = Scenario(
    name="groups",
    trouble=f"spreading {PAYMENTS.bundles} bundles of {PAYMENTS.namespace} over six brokers, where two are to serve it",
    counted=f"topics of {PAYMENTS.namespace} by broker",
    made=PAYMENTS.made,
    spec=PAYMENTS.spec,
    shown=PAYMENTS.topics_by_broker,
    healed=_served_by_the_group,
    # Brokers on one machine each report all of its CPU.
    policy={
        "cluster_placement": {"warning_cpu_percent_after_loss": 1000, "critical_cpu_percent_after_loss": 1000},
        "broker_drain_remedy": {"most_usage_percent": 1000},
    },
    marked=_wanted_group,
    lab={"brokers": PAYMENTS.brokers, "hosts": "distinct"},
)


BACKLOG_MESSAGES, MESSAGE_BYTES = 400_000, 100
KEPT_FOR_EVER: dict[str, object] = {"retention_policies": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}}


def _fault(name: str) -> RealFault:
    return next(fault for fault in REAL if fault.name == name)


def _unbounded(namespace: str, policies: dict[str, object]) -> ClusterSpec:
    subscription = SubscriptionSpec("s", backlog=BACKLOG_MESSAGES)
    topic = TopicSpec("t", producers=1, subscriptions=(subscription,), message_bytes=MESSAGE_BYTES)
    return ClusterSpec(namespaces=(NamespaceSpec(namespace, topics=(topic,), policies=policies),))


def _limits(namespace: str, target: PulsarTarget) -> Shown:
    """The size quota in bytes and the retention in minutes; a quota that is not there is 0."""
    policies = Admin(target.admin_urls[0], target.token).policies(namespace)
    quota = (policies.get("backlog_quota_map") or {}).get("destination_storage") or {}
    retention = policies.get("retention_policies") or {}
    return {
        "size quota, MB": int(quota.get("limitSize", 0)) // 1_000_000,
        "retention, minutes": int(retention.get("retentionTimeInMinutes", 0)),
    }


_NO_QUOTA, _FOR_EVER = _fault("no-quota"), _fault("retained-for-ever")

QUOTA = Scenario(
    name="quota",
    trouble="publishing 40 MB that nobody consumes, in a namespace without a backlog quota",
    counted="limits of public/no-quota",
    made=_NO_QUOTA.made,
    spec=_unbounded("public/no-quota", {}),
    shown=lambda target: _limits("public/no-quota", target),
    healed=lambda before, now: before["size quota, MB"] == 0 < now["size quota, MB"],
    policy=_NO_QUOTA.policy,
)
RETENTION = Scenario(
    name="retention",
    trouble="publishing 40 MB in a namespace that keeps everything for ever",
    counted="limits of public/retained-for-ever",
    made=_FOR_EVER.made,
    spec=_unbounded("public/retained-for-ever", KEPT_FOR_EVER),
    shown=lambda target: _limits("public/retained-for-ever", target),
    healed=lambda before, now: before["retention, minutes"] == -1 and now["retention, minutes"] > 0,
    policy=_FOR_EVER.policy,
)


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


def _one_bundle_full() -> ClusterSpec:
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
    spec=_one_bundle_full(),
    shown=_by_bundle,
    healed=_divided,
)


SCENARIOS = {each.name: each for each in (TC, SPLIT, UNLOAD, DRAIN, GROUPS, QUOTA, RETENTION)}
