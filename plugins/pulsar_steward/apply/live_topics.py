"""Topics of the live cluster, from brokers' statistics and metrics: risks of a move, and connected clients."""

from __future__ import annotations

from collections import defaultdict
from math import isnan
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.apply.health import READY
from pulsar_steward.apply.live_reader import STATISTICS_SECONDS
from pulsar_steward.errors import AdminError
from pulsar_steward.facts.partitions import PartitionedTopic, ordering, partitions_unknown
from pulsar_steward.facts.protocol import not_recovered, not_served
from pulsar_steward.facts.risks import (
    COUNTED_TYPES,
    NON_PERSISTENT,
    MoveRisks,
    Replicated,
    SubscriptionFigures,
    TopicFigures,
    move_risks_of,
    surroundings_of,
)
from pulsar_steward.model.bundles import TC_NAMESPACE, BundleRange, position_of, tc_topic
from pulsar_steward.model.measures import AGE, AGE_LIMIT, DELAYED_INDEX, DELAYED_SERIES, SIZE_LIMIT
from pulsar_steward.model.subscription import COMPACTION
from pulsar_steward.model.topics import SEGMENT, is_system_topic, partitioned_topic
from pulsar_steward.model.units import counted
from pulsar_steward.pulsar.statistics import each_topic, loaded_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.facts.unknown import Unknown
    from pulsar_steward.model.step import AddPartitions, BundleChange, DeleteSubscription
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.pulsar.metrics import Sample
    from pulsar_steward.pulsar.statistics import SubscriptionStatistics, TopicStatistics

RESTING = {SIZE_LIMIT: -1.0, AGE_LIMIT: -1.0, AGE: -1.0, DELAYED_INDEX: 0.0}

MAX_TOPICS_ASKED = 100
"""Number of topics, those with the largest backlogs, that are read one by one if a broker's metrics have no topics."""


def owning(namespace: str, owned: Mapping[str, tuple[str, ...] | AdminError]) -> dict[str, frozenset[str]]:
    """The brokers that own a bundle of a namespace, with these bundles.

    Raises:
        AdminError: If a broker could not be read.
    """
    found: dict[str, frozenset[str]] = {}
    for broker, names in owned.items():
        if isinstance(names, AdminError):
            raise names
        found[broker] = frozenset(name for name in names if name.startswith(f"{namespace}/0x"))
    return {broker: names for broker, names in found.items() if names}


def move_risks(
    reader: LiveReader, owner: str, change: BundleChange, policy: Policy, require_owned: Callable[[], None]
) -> MoveRisks:
    """Risks of moving or splitting a bundle.

    Args:
        reader: Reads the cluster.
        owner: The bundle's owner.
        change: The change.
        policy: The margin below a quota, the size of batches, and the time limit for clients to reconnect.
        require_owned: Checks, before topics are read one by one, that the owner still owns them.

    Raises:
        AdminError: If the owner cannot be read.
    """
    topics = reader.topics(owner, change.namespace, change.bundle)
    if not topics:
        return MoveRisks()
    users = {name: each for name, each in topics.items() if not is_system_topic(name)}
    silent = [name for name, each in users.items() if not name.startswith(NON_PERSISTENT) and each.keeps_unknown]
    if silent:
        return MoveRisks(unknown=(keeping_unknown(silent, owner),))
    risky = {name for name, topic in topics.items() if topic.backlog_size or _delayed_or_holes(topic)}
    samples = reader.samples(owner, RESTING) if risky else ()
    unknown: tuple[str, ...] = ()
    if not risky or any(sample.series == SIZE_LIMIT for sample in samples):
        more = _figures_in_metrics(samples, risky)
    else:
        require_owned()
        largest = sorted(risky, key=lambda name: (-(topics[name].backlog_size or 0), name))
        more = {name: _figures_of_topic(reader, owner, name) for name in largest[:MAX_TOPICS_ASKED]}
        if rest := largest[MAX_TOPICS_ASKED:]:
            unknown = (f"which quotas {len(rest):,} of its topics have of their own, as {owner} tells none in metrics",)
    figures = [_figures(name, topic, more.get(name, {})) for name, topic in sorted(topics.items())]
    replicated = any(topic.replication for topic in topics.values())
    remotes = reader.remotes_of(change.namespace) if replicated else ()
    around = surroundings_of(reader.settings_of(change.namespace), reader.configuration(owner), remotes)
    risks = move_risks_of(figures, around, policy)
    return msgspec.structs.replace(risks, unknown=unknown)


def too_new(reader: LiveReader, owner: str, change: BundleChange, *, scalable: bool = False) -> str:
    """Words on loaded topics of a bundle that are not in its owner's statistics yet; empty: all are there.

    Brokers renew these statistics once a minute. Right after a move, the new owner's have no topic of the bundle.

    Args:
        reader: Reads the cluster.
        owner: The bundle's owner.
        change: The change.
        scalable: True if the namespace may have scalable topics: their segments are in no list of topics.

    Raises:
        AdminError: If the owner cannot be read.
    """
    if change.namespace == TC_NAMESPACE or not (scalable or _missing(reader, owner, change)):
        return ""
    now = reader.loaded_now(owner, change.namespace)
    if not _new(reader, owner, change, now, scalable=scalable):
        return ""
    reader.called()  # the kept statistics may be too old
    if not (new := _new(reader, owner, change, now, scalable=scalable)):
        return ""
    unnamed = new[0] == f"{SEGMENT}{change.namespace}/..."
    if unnamed and sum(name.startswith(f"{change.namespace}/0x") for name in reader.owned_by(owner)) > 1:
        return (
            f"whether {change.bundle} has {counted(len(new), 'loaded topic')} that {owner} does not show in its"
            " statistics cannot be told, as its metrics name no topics (exposeTopicLevelMetricsInPrometheus): they"
            f" count them for all its bundles of {change.namespace}"
        )
    return (
        f"{owner} does not show {counted(len(new), 'loaded topic')} in its statistics yet, such as {new[0]}: try again"
        " in a minute"
    )


def _new(
    reader: LiveReader, owner: str, change: BundleChange, now: tuple[frozenset[str], int], *, scalable: bool
) -> list[str]:
    """Loaded topics of a bundle that are not in its owner's statistics; without names, as many as there may be.

    Args:
        reader: Reads the cluster.
        owner: The bundle's owner.
        change: The change.
        now: Result of `LiveReader.loaded_now` for the namespace.
        scalable: True if the namespace may have scalable topics.
    """
    names, loaded = now
    missing = _missing(reader, owner, change)
    shown = loaded_topics(reader.statistics(owner), change.namespace, owner)
    if names:
        segments = (name for name in names - shown if name.startswith(SEGMENT))
        whole = BundleRange.parse(change.bundle)
        return sorted((names & missing).union(name for name in segments if position_of(name) in whole))
    more = max(loaded - len(shown), 0)
    return sorted(missing)[:more] or [f"{SEGMENT}{change.namespace}/..."][: more if scalable else 0]


def _missing(reader: LiveReader, owner: str, change: BundleChange) -> frozenset[str]:
    """Topics of a bundle, loaded or not, that are not in its owner's statistics; without Pulsar's own topics."""
    there = reader.topics_in(change.namespace, change.bundle)
    shown = reader.topics(owner, change.namespace, change.bundle)
    return frozenset(name for name in there if name not in shown and not is_system_topic(name))


def keeping_unknown(topics: Sequence[str], owner: str) -> str:
    """Words on topics without known sizes or backlogs in their owner's statistics."""
    return (
        f"what {counted(len(topics), 'topic')} {'keeps' if len(topics) == 1 else 'keep'} is not known, such as"
        f" {min(topics)}: the statistics of {owner} leave sizes or backlogs out, or tell them below 0"
    )


def delayed_messages(reader: LiveReader, namespace: str, owners: Iterable[str]) -> int | None:
    """Number of delayed messages of a namespace; None: an owner's metrics have no topics.

    Raises:
        AdminError: If an owner cannot be read.
    """
    total = 0
    for broker in owners:
        samples = reader.samples(broker, {DELAYED_SERIES: 0})
        if not samples:
            return None
        total += sum(int(each.value) for each in samples if each.labels.get("namespace") == namespace)
    return total


def consumers_beside(reader: LiveReader, change: DeleteSubscription, owners: Iterable[str]) -> int:
    """Consumers of the subscription with the same name on a topic's other partitions; 0 without partitions.

    Raises:
        AdminError: If an owner cannot be read.
    """
    whole = partitioned_topic(change.topic)
    if whole == change.topic:
        return 0
    found = (each_topic(reader.statistics(each), change.namespace, each, whole) for each in owners)
    return sum(
        len(topic.subscriptions[change.subscription].consumers)
        for topics in found
        for name, topic in topics
        if name != change.topic and change.subscription in topic.subscriptions
    )


def partitioned(reader: LiveReader, change: AddPartitions, owners: Iterable[str]) -> PartitionedTopic | Unknown:
    """A topic with partitions; unknown if one of them is not loaded, as its consumers cannot be told.

    Raises:
        AdminError: If an owner, or the topic's policies, cannot be read.
    """
    partitions, namespace, asked = reader.partitions(change.topic), change.namespace, tuple(owners)
    # By name: while a partition moves, two brokers may tell of it.
    loaded = {
        name: topic
        for owner in asked
        for name, topic in each_topic(reader.statistics(owner), namespace, owner, change.topic)
    }
    if len(loaded) < partitions:
        return partitions_unknown(change, f"{len(loaded):,} of {partitions:,} are loaded")
    types: defaultdict[str, list[str]] = defaultdict(list)
    for topic in loaded.values():
        for name, subscription in topic.subscriptions.items():
            types[name].append(subscription.type)
    elsewhere = {*reader.other_clusters(namespace), *(to for topic in loaded.values() for to in topic.replication)}
    (threshold,), most = reader.compaction_bytes(namespace, [change.topic]), reader.most_topics(namespace)
    return PartitionedTopic(
        partitions=partitions,
        subscriptions={name: ordering(*kinds) for name, kinds in types.items()},
        apart=tuple(sorted(name for name, kinds in types.items() if len(kinds) < len(loaded))),
        clusters=tuple(sorted(elsewhere)),
        compacted=threshold > 0 or COMPACTION in types,
        most_partitions=reader.most_partitions(),
        most_topics=most,
        topics=len(reader.topic_names(namespace)) if most else 0,
        statistics_seconds=max(map(reader.statistics_seconds, asked), default=STATISTICS_SECONDS),
        created=reader.stored_topic(f"{change.topic}-partition-0").created,
    )


def _delayed_or_holes(topic: TopicStatistics) -> bool:
    return any(
        each.msg_backlog or each.total_non_contiguous_deleted_messages_range for each in topic.subscriptions.values()
    )


def _figures_in_metrics(samples: Iterable[Sample], wanted: set[str]) -> dict[str, dict[str, int]]:
    """Figures by topic, from its series; a series at its resting value is left out, as the broker sets no limit."""
    fields = {
        SIZE_LIMIT: "limit_bytes",
        AGE_LIMIT: "limit_seconds",
        AGE: "age_seconds",
        DELAYED_INDEX: "delayed_index_bytes",
    }
    none = {"limit_bytes": -1, "limit_seconds": -1}
    figures: dict[str, dict[str, int]] = {name: dict(none) for name in wanted}
    for sample in samples:
        topic = figures.get(sample.topic or "")
        if topic is not None and not isnan(sample.value) and sample.value != RESTING[sample.series]:
            topic[fields[sample.series]] = int(sample.value)
    return figures


def _figures_of_topic(reader: LiveReader, owner: str, topic: str) -> dict[str, int]:
    detail = reader.details(owner, topic)
    age = detail.oldest_backlog_message_age_seconds
    index = sum(each.delayed_message_index_size_in_bytes or 0 for each in detail.subscriptions.values())
    told = {
        "limit_bytes": detail.backlog_quota_limit_size,
        "limit_seconds": detail.backlog_quota_limit_time,
        "age_seconds": None if age is None else max(age, 0),
    }
    return {name: value for name, value in told.items() if value is not None} | {"delayed_index_bytes": index}


def _figures(name: str, topic: TopicStatistics, more: Mapping[str, int]) -> TopicFigures:
    usual = TopicFigures(
        topic=name,
        producers=topic.producer_count,
        backlog_bytes=topic.backlog_size or 0,
        rate_in=topic.msg_rate_in,
        subscriptions=tuple(_acknowledgements(each, figures) for each, figures in topic.subscriptions.items()),
        replicated=tuple(
            Replicated(cluster=name, entries=each.replication_backlog) for name, each in topic.replication.items()
        ),
    )
    return msgspec.structs.replace(usual, **more)


def _acknowledgements(name: str, shown: SubscriptionStatistics) -> SubscriptionFigures:
    return SubscriptionFigures(
        subscription=name,
        backlog_entries=shown.msg_backlog,
        holes=shown.total_non_contiguous_deleted_messages_range or 0,
        entries_since_first_gap=shown.number_of_entries_since_first_not_acked_message or 0,
        consumers=len(shown.consumers),
        held_messages=shown.unacked_messages if shown.type in COUNTED_TYPES else None,
        messages_per_entry=max((each.avg_messages_per_entry for each in shown.consumers), default=0),
    )


def restless_coordinators(reader: LiveReader, owners: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Coordinators that no broker serves, or that have not recovered, each in words, in the order of their numbers.

    Args:
        reader: Reads the cluster.
        owners: Brokers that now own bundles of the coordinators' namespace, with these bundles.

    Raises:
        AdminError: If a coordinator cannot be read.
    """
    owner_of = {BundleRange.parse(name.rpartition("/")[2]): owner for owner, names in owners.items() for name in names}
    served: defaultdict[str, list[int]] = defaultdict(list)
    found: dict[int, str] = {}
    for number in range(reader.coordinators()):
        position = position_of(tc_topic(number))
        owner = next((owner for bundle, owner in owner_of.items() if position in bundle), None)
        if owner is None:
            found[number] = not_served(number)
        else:
            served[owner].append(number)
    for owner, numbers in served.items():
        states = reader.coordinator_states(owner, numbers)
        found |= {number: not_recovered(number, state) for number, state in states.items() if state != READY}
    return tuple(found[number] for number in sorted(found))
