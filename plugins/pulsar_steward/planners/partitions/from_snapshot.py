"""Facts of topics that are too much for the partitions they have, read from a snapshot.

Functions of a snapshot raise `SnapshotError` if a table cannot be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.placement.bundle_load import HOT_BUNDLE
from pulsar_steward.facts.partitions import MOST_OF_NAMESPACE, MOST_OF_TOPIC, PartitionedTopic, ordering
from pulsar_steward.model.broker_defaults import COMPACTION_BYTES, broker_defaults
from pulsar_steward.model.subscription import COMPACTION
from pulsar_steward.model.topics import namespace_of, partitioned_topic
from pulsar_steward.planners.partitions.facts import Partition, PartitionedFact
from pulsar_steward.planners.partitions.raising import PLANNER
from pulsar_steward.planners.settings.from_snapshot import own_policies
from pulsar_steward.pulsar.own_settings import NamespaceDocument

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot

LIMITS = (MOST_OF_TOPIC, MOST_OF_NAMESPACE, COMPACTION_BYTES)
"""Brokers' settings that are looked at."""


_HOTTEST = """
    select namespace || '/' || bundle as subject,
        first(topic order by coalesce(throughput_in_bytes, 0) + coalesce(throughput_out_bytes, 0) desc, topic) as topic
    from topics where namespace || '/' || bundle in (select unnest($subjects::varchar[]))
    group by namespace, bundle
    having max(coalesce(throughput_in_bytes, 0) + coalesce(throughput_out_bytes, 0)) * 100
        >= $percent * sum(coalesce(throughput_in_bytes, 0) + coalesce(throughput_out_bytes, 0))
    order by 1"""

_PARTITIONS = """
    with named as (select unnest($topics::varchar[]) as base),
    parts as (select base, topics.* from named join topics on starts_with(topic, base || '-partition-')
        and try_cast(substr(topic, length(base || '-partition-') + 1) as bigint) is not null),
    used as (select base, subscription, list(distinct coalesce(type, 'None') order by coalesce(type, 'None')) as types
        from subscriptions join (select base, topic from parts) using (topic) group by base, subscription)
    select base as topic, list({'index': substr(topic, length(base || '-partition-') + 1)::bigint,
            'bytes': round_even(coalesce(throughput_in_bytes, 0) + coalesce(throughput_out_bytes, 0), 0)::bigint,
            'producers': coalesce(producers, 0), 'consumers': coalesce(consumers, 0)}
            order by substr(topic, length(base || '-partition-') + 1)::bigint) as partitions,
        coalesce((select list({'subscription': subscription, 'types': types} order by subscription) from used
            where used.base = parts.base), []) as subscriptions,
        count(replication_json) > 0 as replicated
    from parts group by base order by base"""

_TOPICS = """
    select namespace, count(*) as topics from topics where namespace in (select unnest($names::varchar[]))
    group by namespace order by namespace"""


class _Hottest(msgspec.Struct, frozen=True):
    subject: str
    topic: str


class _Used(msgspec.Struct, frozen=True):
    subscription: str
    types: tuple[str, ...]


class _Partitioned(msgspec.Struct, frozen=True):
    topic: str
    partitions: tuple[Partition, ...]
    subscriptions: tuple[_Used, ...]
    replicated: bool


class _Counted(msgspec.Struct, frozen=True):
    namespace: str
    topics: int


def partitioned_facts(snapshot: Snapshot, findings: Iterable[Finding], policy: Policy) -> tuple[PartitionedFact, ...]:
    """Facts of the partitioned topics with findings, by name; nothing is read where the policy permits no raise."""
    if not policy.guards.most_partitions:
        return ()
    named = _named(snapshot, findings, policy)
    if not named:
        return ()
    bases = sorted({partitioned_topic(each) for each in named.values()})
    names = sorted({namespace_of(each) for each in bases})
    own, usual = own_policies(snapshot, names), snapshot.usual_settings(LIMITS)
    counted = {row.namespace: row.topics for row in snapshot.select(_TOPICS, _Counted, names=names)}
    return tuple(
        PartitionedFact(
            topic=row.topic,
            namespace=(namespace := namespace_of(row.topic)),
            named_by={subject: topic for subject, topic in named.items() if partitioned_topic(topic) == row.topic},
            partitions=row.partitions,
            state=_state(row, own.get(namespace, NamespaceDocument()), usual, counted.get(namespace, 0), snapshot),
        )
        for row in snapshot.select(_PARTITIONS, _Partitioned, topics=bases)
    )


def _named(snapshot: Snapshot, findings: Iterable[Finding], policy: Policy) -> dict[str, str]:
    """Topics by the subject of the finding that names them, or the bundle that they dominate."""
    serious = [finding for found in PLANNER.answered(findings).values() for finding in found]
    named = {each.subject: each.subject for each in serious if each.check_id != HOT_BUNDLE.check_id}
    subjects = sorted(each.subject for each in serious if each.check_id == HOT_BUNDLE.check_id)
    if subjects:
        percent = policy.hot_bundle.dominating_topic_percent
        rows = snapshot.select(_HOTTEST, _Hottest, subjects=subjects, percent=percent)
        named |= {row.subject: row.topic for row in rows}
    return {subject: topic for subject, topic in named.items() if partitioned_topic(topic) != topic}


def _state(
    row: _Partitioned, own: NamespaceDocument, usual: Mapping[str, str], topics: int, snapshot: Snapshot
) -> PartitionedTopic:
    threshold, most = own.compaction_threshold, own.max_topics_per_namespace
    if threshold is None:
        threshold = broker_defaults(usual).compaction_bytes or 0
    if most is None:
        most = int(usual.get(MOST_OF_NAMESPACE, "0"))
    elsewhere = own.clusters - {snapshot.meta().identity.name}
    return PartitionedTopic(
        partitions=row.partitions[-1].index + 1,
        subscriptions={each.subscription: ordering(*each.types) for each in row.subscriptions},
        clusters=tuple(sorted(elsewhere)) or (("another cluster",) if row.replicated else ()),
        compacted=threshold > 0 or any(each.subscription == COMPACTION for each in row.subscriptions),
        most_partitions=int(usual.get(MOST_OF_TOPIC, "0")),
        most_topics=most,
        topics=topics if most else 0,
    )
