"""Facts of business bundles with findings and the risks of changing them, read from a snapshot and earlier ones.

Functions of a snapshot raise `SnapshotError` if a table cannot be read.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.risks import COUNTED_TYPES, NON_PERSISTENT, SETTINGS, TRACKER, TopicFigures, surroundings_of
from pulsar_steward.model.bundles import CALM_LOAD_MANAGER, position_of
from pulsar_steward.model.measures import AGE, AGE_LIMIT, DELAYED_INDEX, SIZE_LIMIT
from pulsar_steward.model.setting import SettingName
from pulsar_steward.model.units import MIB
from pulsar_steward.planners.bundles.facts import (
    BrokerLimits,
    BundleFacts,
    Busy,
    NamespaceToSplit,
    RiskFigures,
    SplitCandidate,
    TopicFact,
)
from pulsar_steward.planners.bundles.loads_from_snapshot import FIGURES, drain_facts, group_facts, load_facts, load_of
from pulsar_steward.planners.bundles.split import troubles
from pulsar_steward.planners.settings.from_snapshot import own_policies
from pulsar_steward.pulsar.own_settings import NamespaceDocument

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.planners.bundles.facts import BundleTrouble
    from pulsar_steward.policy.guards import GuardsPolicy
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot


class _Risk(msgspec.Struct, frozen=True):
    namespace: str
    bundle: str
    figures: TopicFigures


def _largest(series: str) -> str:
    """SQL of a metric's value for a topic, the largest if there are several; null if there is none."""
    return f"floor(max(value) filter (series = '{series}' and isfinite(value)))::bigint"


def _near(used: str, limit: str, least: int) -> str:
    """SQL: true if so much of a limit is used that the margin is not free; limits below `least` do not count."""
    return f"coalesce({limit} >= {least} and {used} * 100.0 >= {limit} * (100.0 - $margin), false)"


_RISKY = f"""
    with chosen as (select unnest($namespaces) as namespace, unnest($ranges) as bundle),
    around as (select unnest($names) as namespace, unnest($sizes::bigint[]) as size, unnest($ages::bigint[]) as age,
        unnest($remotes::varchar[][]) as remotes),
    samples as (select source, series, topic, value from metrics
        where source_kind = 'broker' and series in ('{SIZE_LIMIT}', '{AGE_LIMIT}', '{AGE}', '{DELAYED_INDEX}')),
    said as (select topic, {_largest(SIZE_LIMIT)} as limit_bytes, {_largest(AGE_LIMIT)} as limit_seconds,
            {_largest(AGE)} as age_seconds, {_largest(DELAYED_INDEX)} as delayed_index_bytes
        from samples where topic is not null group by topic),
    -- Owners whose metrics tell of topics: where they tell no limit of one, there is none.
    telling as (select distinct source as broker, -1 as none from samples where series = '{SIZE_LIMIT}'),
    -- Subscriptions with a backlog or ack holes: to others nothing is delivered again.
    read as (select topic, list({{'subscription': subscription, 'backlog_entries': coalesce(backlog_entries, 0),
            'holes': coalesce(ack_holes, 0), 'entries_since_first_gap': coalesce(entries_since_first_gap, 0),
            'consumers': coalesce(consumers, 0), 'messages_per_entry': coalesce(messages_per_entry, 0),
            'held_messages': case when type in {tuple(sorted(COUNTED_TYPES))} then unacked_messages end}}
            order by subscription) as readers
        from subscriptions where (backlog_entries > 0 or ack_holes > 0) and namespace in (select namespace from chosen)
        group by topic),
    told as (select * replace (coalesce(limit_bytes, none) as limit_bytes,
            coalesce(limit_seconds, none) as limit_seconds),
            -- Clusters that the topic's own policy alone names.
            list_filter(coalesce(json_transform(case when json_valid(replication_json) then replication_json end,
                '[{{"cluster": "VARCHAR", "backlog_entries": "BIGINT"}}]'), []),
                lambda each: not coalesce(list_contains(remotes, each.cluster), false)) as replicated
        from topics join chosen using (namespace, bundle) join around using (namespace) left join said using (topic)
        left join telling using (broker) left join read using (topic))
    select namespace, bundle, {{'topic': topic, 'producers': coalesce(producers, 0),
        'backlog_bytes': coalesce(backlog_bytes, 0), 'rate_in': message_rate_in,
        'age_seconds': age_seconds, 'limit_bytes': limit_bytes, 'limit_seconds': limit_seconds,
        'delayed_index_bytes': coalesce(delayed_index_bytes, 0), 'subscriptions': coalesce(readers, []),
        'replicated': list_transform(replicated,
            lambda each: {{'cluster': each.cluster, 'entries': each.backlog_entries}})}}
        as figures
    from told where {_near("backlog_bytes", "coalesce(limit_bytes, size)", 0)}
        or {_near("age_seconds", "coalesce(limit_seconds, age)", 1)}
        or delayed_index_bytes > 0 or readers is not null or starts_with(topic, '{NON_PERSISTENT}')
        or len(replicated) > 0
    order by namespace || '/' || bundle, topic"""
"""SQL: topics with a risk; a limit is null if the metrics of a topic's owner have no topic metrics."""


def risk_figures(
    snapshot: Snapshot,
    bundles: Collection[tuple[str, str]],
    defaults: Mapping[SettingName, Setting],
    policy: GuardsPolicy,
) -> RiskFigures:
    """Risks of changing these bundles.

    Args:
        snapshot: The snapshot.
        bundles: Namespaces and ranges.
        defaults: Settings in force if a namespace sets nothing.
        policy: Has the margin to quotas.
    """
    if not bundles:
        return RiskFigures()
    namespaces, ranges = zip(*sorted(bundles), strict=True)
    running, names = snapshot.usual_settings((*SETTINGS, TRACKER)), sorted(set(namespaces))
    own = own_policies(snapshot, names)
    theirs = {name: own.get(name, NamespaceDocument()) for name in names}
    around = {
        name: surroundings_of({**defaults, **each.settings}, running, each.replication_clusters)
        for name, each in theirs.items()
    }
    sizes = [each.quotas.get(SettingName.SIZE_QUOTA) for each in around.values()]
    ages = [each.quotas.get(SettingName.AGE_QUOTA) for each in around.values()]
    figures: defaultdict[str, list[TopicFigures]] = defaultdict(list)
    for row in snapshot.select(
        _RISKY,
        _Risk,
        namespaces=namespaces,
        ranges=ranges,
        names=list(around),
        sizes=[quota.limit_bytes if quota else -1 for quota in sizes],
        ages=[quota.limit_seconds if quota else -1 for quota in ages],
        remotes=[sorted(each.remotes or ()) for each in around.values()],
        margin=policy.quota_margin_percent,
    ):
        figures[f"{row.namespace}/{row.bundle}"].append(row.figures)
    return RiskFigures(figures={name: tuple(each) for name, each in figures.items()}, around=around)


def bundle_facts(
    snapshot: Snapshot, findings: Iterable[Finding], defaults: Mapping[SettingName, Setting], policy: Policy
) -> BundleFacts:
    """Facts of the bundles with findings; without such findings nothing is read.

    Args:
        snapshot: The snapshot, already diagnosed.
        findings: Its findings.
        defaults: Settings in force if a namespace sets nothing.
        policy: The cluster's policy.
    """
    findings = tuple(findings)
    found = troubles(findings)
    crowds = crowds_of(snapshot, found, policy)
    load = load_facts(snapshot, findings, policy)
    drain, groups = drain_facts(snapshot, findings, policy), group_facts(snapshot, findings, policy)
    owners = {suspect.owner for crowd in crowds for suspect in crowd.suspects if suspect.owner}
    named = {(crowd.namespace, suspect.bundle) for crowd in crowds for suspect in crowd.suspects}
    moving = [stay for facts in (drain, groups) if facts for stay in facts.leaving.values()]
    moving += load.stays if load else ()
    named |= {(stay.namespace, stay.bundle) for stay in moving}
    hot = any(trouble.hot for trouble in found.values())
    return BundleFacts(
        crowds=crowds,
        busy=busy_bundles(snapshot) if hot else BundleFacts().busy,
        limits=broker_limits(snapshot, owners) if hot else {},
        load=load,
        drain=drain,
        groups=groups,
        splits_keep_clients=bool(crowds) and CALM_LOAD_MANAGER in snapshot.meta().load_manager,
        risks=risk_figures(snapshot, named, defaults, policy.guards),
    )


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
    """The namespaces with these troubles, with the bundles that may have to be split."""
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
    """The load of all owned bundles without heartbeats, as `hot-bundle` compares it."""
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
    """The limits beyond which brokers would split a bundle automatically."""
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
