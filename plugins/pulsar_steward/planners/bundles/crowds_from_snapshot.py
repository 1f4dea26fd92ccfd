"""Crowded and hot bundles of a snapshot: their hash positions and topics, and the load for comparison."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.bundles import position_of
from pulsar_steward.model.units import MIB
from pulsar_steward.planners.bundles.facts import BrokerLimits, Busy, NamespaceToSplit, SplitCandidate, TopicFact
from pulsar_steward.planners.bundles.loads_from_snapshot import FIGURES, load_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pulsar_steward.planners.bundles.facts import BundleTrouble
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot

MAX_TOPICS = 250_000
"""Number of topics that are read one by one for a plan; the bundle that exceeds it is the last."""

LIMITS = {
    "loadBalancerNamespaceBundleMaxSessions": "clients",
    "loadBalancerNamespaceBundleMaxMsgRate": "messages",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes": "bytes",
}
"""Brokers' settings for automatic splits, and their fields in `BrokerLimits`."""


_BUNDLES = f"""
    select namespace, {{'bundle': bundle, 'owner': owner, 'load': {load_of(FIGURES)},
        'positions': list_sort(positions)}} as candidate
    from bundles where namespace in (select unnest($names)) order by namespace"""

_TOPICS = f"""
    select namespace, bundle, topic,
        {", ".join(f"{sql} as {field}" for field, sql in FIGURES.items() if field != "topics")}
    from topics join (select unnest($namespaces) as namespace, unnest($ranges) as bundle) using (namespace, bundle)"""

_BUSY = f"""
    select coalesce(list(bytes order by bytes) filter (bytes > 0), []) as bytes,
        coalesce(list(clients order by clients) filter (clients > 0), []) as clients, count(distinct owner) as brokers
    from (select owner, {FIGURES["bytes"]} as bytes, {FIGURES["producers"]} + {FIGURES["consumers"]} as clients
        from bundles where owner is not null and not is_heartbeat(namespace))"""


class _Bundle(msgspec.Struct, frozen=True):
    namespace: str
    candidate: SplitCandidate


class _Topic(msgspec.Struct, frozen=True, gc=False):
    namespace: str
    bundle: str
    topic: str
    bytes: int
    messages: int
    producers: int
    consumers: int


class _OwnedBundles(msgspec.Struct, frozen=True):
    """Throughput and clients of the owned bundles with any, rising."""

    bytes: tuple[int, ...]
    clients: tuple[int, ...]
    brokers: int


def crowds_of(
    snapshot: Snapshot, troubles: Mapping[str, BundleTrouble], policy: Policy
) -> tuple[NamespaceToSplit, ...]:
    """The namespaces with these troubles, with the bundles that may have to be split.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    if not troubles:
        return ()
    bundles: defaultdict[str, list[SplitCandidate]] = defaultdict(list)
    for row in snapshot.select(_BUNDLES, _Bundle, names=sorted(troubles)):
        bundles[row.namespace].append(row.candidate)
    crowds = [_crowd(bundles[name], name, troubles[name], policy) for name in sorted(bundles)]
    suspects = [(crowd.namespace, suspect) for crowd in crowds for suspect in crowd.suspects]
    topics = _topics(snapshot, _within_budget([pair for pair in suspects if pair[1].positions is not None]))
    return tuple(
        msgspec.structs.replace(
            crowd,
            suspects=tuple(
                msgspec.structs.replace(each, topics=tuple(topics.get((crowd.namespace, each.bundle), ())))
                for each in crowd.suspects
            ),
        )
        for crowd in crowds
    )


def busy_bundles(snapshot: Snapshot) -> Busy:
    """The load of all owned bundles without heartbeats, as `hot-bundle` compares it.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    (owned,) = snapshot.select(_BUSY, _OwnedBundles)
    # Without the busiest tenth.
    flows, clients = (each[: len(each) - len(each) // 10] for each in (owned.bytes, owned.clients))
    return Busy(
        bytes=sum(flows),
        with_bytes=len(flows),
        clients=sum(clients),
        with_clients=len(clients),
        all_bytes=sum(owned.bytes),
        all_clients=sum(owned.clients),
        brokers=owned.brokers,
    )


def broker_limits(snapshot: Snapshot, brokers: Collection[str]) -> dict[str, BrokerLimits]:
    """The limits beyond which brokers would split a bundle automatically.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in snapshot.configuration(LIMITS):
        if row.broker in brokers and row.value is not None and row.value.isdecimal():
            unit = MIB if LIMITS[row.key] == "bytes" else 1
            found[row.broker][LIMITS[row.key]] = int(row.value) * unit
    return {broker: BrokerLimits(**found[broker]) for broker in sorted(found)}


def _crowd(rows: list[SplitCandidate], name: str, trouble: BundleTrouble, policy: Policy) -> NamespaceToSplit:
    remedy, skew = policy.bundle_split_remedy, policy.for_namespace(name).bundle_topic_skew
    rows = sorted(rows, key=lambda row: (-row.load.topics, row.bundle))
    topics = sum(row.load.topics for row in rows)
    # At most so many bundles can be split, and each new bundle lowers the mean: below this, no bundle can get too full.
    by_mean = skew.warning_times_mean * topics // (len(rows) + remedy.most_splits)
    least = min(skew.warning_topics_per_bundle, by_mean) * (100 - remedy.room_percent) // 100
    full = [row for row in rows[: remedy.most_splits] if row.load.topics >= max(least, remedy.least_topics)]
    chosen = {row.bundle for row in (full if trouble.by_topics else ())} | trouble.hot
    return NamespaceToSplit(
        namespace=name,
        bundles=len(rows),
        topics=topics,
        rest_topics=max((row.load.topics for row in rows if row.bundle not in chosen), default=0),
        suspects=tuple(row for row in rows if row.bundle in chosen),
    )


def _within_budget(suspects: Sequence[tuple[str, SplitCandidate]]) -> list[tuple[str, str]]:
    chosen, total = [], 0
    for namespace, suspect in sorted(suspects, key=lambda pair: (-pair[1].load.topics, pair[0], pair[1].bundle)):
        if total >= MAX_TOPICS:
            break
        chosen.append((namespace, suspect.bundle))
        total += suspect.load.topics
    return chosen


def _topics(snapshot: Snapshot, bundles: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], list[TopicFact]]:
    """Loaded topics of these bundles, by position."""
    found: defaultdict[tuple[str, str], list[TopicFact]] = defaultdict(list)
    if not bundles:
        return found
    namespaces, ranges = zip(*bundles, strict=True)
    for row in snapshot.select(_TOPICS, _Topic, namespaces=namespaces, ranges=ranges):
        fact = TopicFact(position_of(row.topic), row.topic, row.bytes, row.messages, row.producers, row.consumers)
        found[row.namespace, row.bundle].append(fact)
    for topics in found.values():
        topics.sort(key=lambda each: (each.position, each.topic))
    return found
