"""Facts of business bundles with findings and the risks of changing them, read from a snapshot and earlier ones."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.risks import COUNTED_TYPES, NON_PERSISTENT, SETTINGS, TRACKER, TopicFigures, surroundings_of
from pulsar_steward.model.bundles import CALM_LOAD_MANAGER
from pulsar_steward.model.measures import AGE, AGE_LIMIT, DELAYED_INDEX, SIZE_LIMIT
from pulsar_steward.model.setting import SettingName
from pulsar_steward.planners.bundles.crowds_from_snapshot import broker_limits, busy_bundles, crowds_of
from pulsar_steward.planners.bundles.facts import BundleFacts, RiskFigures
from pulsar_steward.planners.bundles.loads_from_snapshot import drain_facts, load_facts
from pulsar_steward.planners.bundles.split import troubles
from pulsar_steward.planners.settings.from_snapshot import own_policies
from pulsar_steward.pulsar.own_settings import NamespaceDocument

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pulsar_steward.facts.risks import Surroundings
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.setting import Setting
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
    around as (select unnest($names) as namespace, unnest($sizes::bigint[]) as size, unnest($ages::bigint[]) as age),
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
            coalesce(limit_seconds, none) as limit_seconds)
        from topics join chosen using (namespace, bundle) join around using (namespace) left join said using (topic)
        left join telling using (broker) left join read using (topic))
    select namespace, bundle, {{'topic': topic, 'producers': coalesce(producers, 0),
        'backlog_bytes': coalesce(backlog_bytes, 0), 'rate_in': coalesce(message_rate_in, 0),
        'age_seconds': age_seconds, 'limit_bytes': limit_bytes, 'limit_seconds': limit_seconds,
        'delayed_index_bytes': coalesce(delayed_index_bytes, 0), 'subscriptions': coalesce(readers, [])}}
        as figures
    from told where {_near("backlog_bytes", "coalesce(limit_bytes, size)", 0)}
        or {_near("age_seconds", "coalesce(limit_seconds, age)", 1)}
        or delayed_index_bytes > 0 or readers is not null or starts_with(topic, '{NON_PERSISTENT}')
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

    Raises:
        SnapshotError: If a table cannot be read.
    """
    if not bundles:
        return RiskFigures()
    namespaces, ranges = zip(*sorted(bundles), strict=True)
    around = _surroundings(snapshot, sorted(set(namespaces)), defaults)
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
        margin=policy.quota_margin_percent,
    ):
        figures[f"{row.namespace}/{row.bundle}"].append(row.figures)
    return RiskFigures(figures={name: tuple(each) for name, each in figures.items()}, around=around)


def _surroundings(
    snapshot: Snapshot, namespaces: list[str], defaults: Mapping[SettingName, Setting]
) -> dict[str, Surroundings]:
    running = snapshot.usual_settings((*SETTINGS, TRACKER))
    own = own_policies(snapshot, namespaces)
    return {
        name: surroundings_of({**defaults, **own.get(name, NamespaceDocument()).settings}, running)
        for name in namespaces
    }


def bundle_facts(
    snapshot: Snapshot, findings: Iterable[Finding], defaults: Mapping[SettingName, Setting], policy: Policy
) -> BundleFacts:
    """Facts of the bundles with findings; without such findings nothing is read.

    Args:
        snapshot: The snapshot, already diagnosed.
        findings: Its findings.
        defaults: Settings in force if a namespace sets nothing.
        policy: The cluster's policy.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    findings = tuple(findings)
    found = troubles(findings)
    crowds = crowds_of(snapshot, found, policy)
    load = load_facts(snapshot, findings, policy)
    drain = drain_facts(snapshot, findings, policy)
    owners = {suspect.owner for crowd in crowds for suspect in crowd.suspects if suspect.owner}
    named = {(crowd.namespace, suspect.bundle) for crowd in crowds for suspect in crowd.suspects}
    moving = (*(load.stays if load else ()), *(drain.leaving.values() if drain else ()))
    named |= {(stay.namespace, stay.bundle) for stay in moving}
    hot = any(trouble.hot for trouble in found.values())
    return BundleFacts(
        crowds=crowds,
        busy=busy_bundles(snapshot) if hot else BundleFacts().busy,
        limits=broker_limits(snapshot, owners) if hot else {},
        load=load,
        drain=drain,
        splits_keep_clients=bool(crowds) and CALM_LOAD_MANAGER in snapshot.meta().load_manager,
        risks=risk_figures(snapshot, named, defaults, policy.guards),
    )
