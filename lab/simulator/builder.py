"""Fills a cluster's state from its description, once the brokers are registered."""

from dataclasses import replace
from typing import Any

from lab.simulator import ranges
from lab.simulator.model import Namespace, Topic
from lab.simulator.spec import NamespaceSpec, TopicSpec
from lab.simulator.state import ClusterState, namespace_of, tc_topics
from lab.simulator.topics_index import TopicIndex

SYSTEM = "pulsar/system"


def populate(state: ClusterState) -> None:
    """Makes the namespaces and topics of ``state.spec``, and gives the loaded bundles to brokers."""
    for namespace in _with_defaults(state):
        add_namespace(state, namespace)
        for topic in namespace.topics:
            add_topic(state, namespace.name, topic)
    if state.spec.tc_loaded:
        _own(state, [state.bundle_of(name) for name in tc_topics(state.coordinators)], state.spec.tc_owner)
    for namespace in state.spec.namespaces:
        if namespace.owners:
            _own_each(state, namespace)
        elif namespace.loaded:
            _own(state, _bundles_with_topics(state, namespace.name), namespace.owner)


def add_namespace(state: ClusterState, spec: NamespaceSpec) -> None:
    """Makes a namespace without its topics."""
    boundaries = spec.boundaries or ranges.even_boundaries(spec.bundles)
    state.tenants.add(spec.name.split("/")[0])
    state.namespaces[spec.name] = Namespace(name=spec.name, boundaries=boundaries, policies=dict(spec.policies))
    state.topics[spec.name] = TopicIndex()
    if spec.anti_affinity_group is not None:
        state.anti_affinity_groups[spec.name] = spec.anti_affinity_group
    if spec.bookie_group is not None:
        state.bookie_groups[spec.name] = spec.bookie_group


def add_topic(state: ClusterState, namespace: str, spec: TopicSpec) -> None:
    """Makes a topic, or all partitions of one; loads nothing."""
    name = f"{spec.domain}://{namespace}/{spec.name}"
    if spec.partitions:
        state.partitioned[name] = spec.partitions
    names = [f"{name}-partition-{index}" for index in range(spec.partitions)] or [name]
    for each in names:
        state.topics[namespace].put(Topic(name=each, position=ranges.position(each), spec=spec))


def change_subscription(state: ClusterState, topic: str, name: str, figures: dict[str, Any]) -> None:
    """Gives a subscription of a topic or partition other figures."""
    index = state.topics[namespace_of(topic)]
    before = index.by_name[topic]
    changed = (replace(each, **figures) if each.name == name else each for each in before.spec.subscriptions)
    index.put(replace(before, spec=replace(before.spec, subscriptions=tuple(changed))))


def _with_defaults(state: ClusterState) -> tuple[NamespaceSpec, ...]:
    given = {namespace.name for namespace in state.spec.namespaces}
    defaults = (NamespaceSpec(SYSTEM, bundles=state.spec.system_bundles), NamespaceSpec("public/default", bundles=16))
    return (*(namespace for namespace in defaults if namespace.name not in given), *state.spec.namespaces)


def _bundles_with_topics(state: ClusterState, namespace: str) -> list[str]:
    bundles = ranges.bundles_of(state.namespaces[namespace].boundaries)
    return [f"{namespace}/{bundle}" for bundle in bundles if state.topics_in(namespace, bundle)]


def _own(state: ClusterState, bundles: list[str], owner: int | None) -> None:
    brokers = list(state.brokers)
    for bundle in dict.fromkeys(bundles):
        if owner is None:
            state.load(bundle)
        else:
            state.ownership.give(bundle, brokers[owner])


def _own_each(state: ClusterState, namespace: NamespaceSpec) -> None:
    bundles, brokers = ranges.bundles_of(state.namespaces[namespace.name].boundaries), list(state.brokers)
    for bundle, owner in zip(bundles, namespace.owners, strict=True):
        state.ownership.give(f"{namespace.name}/{bundle}", brokers[owner])
