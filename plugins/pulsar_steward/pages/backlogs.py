"""Backlogs of namespaces compared with their quotas and retention, and delayed messages, of the newest snapshot.

Quotas and retention apply to single topics, but a request reads no table of topics. The fullness of a namespace's
fullest topic comes from the findings of checks. Without a finding it comes from the fullest bundle: no topic of the
namespace holds more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.backlog.policies import IN_FORCE
from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.model.units import MIB
from pulsar_steward.pages.clusters import title_of

if TYPE_CHECKING:
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.snapshots.read import Snapshot

MAX_LISTED = 25
"""Maximum number of listed namespaces: those nearest to their quota, and those with most delayed messages."""

_OF_NAMESPACE = "if(contains(subject, '://'), namespace_of(subject), subject)"
_FIGURE = "try_cast(figures_json->>'{name}' as bigint) as {name}"

# A percentage that fits a bigint, whatever numbers were set.
_SHARE = "try_cast(floor({part} * 100::double / {whole}) as bigint)"
_RETAINED = f"retention_megabytes::double * {MIB}"

# A finding of several topics that grow together has no quota of its own, and so no share of one.
_PRESSED = f"""
select {_OF_NAMESPACE} as namespace, subject, severity,
    {", ".join(_FIGURE.format(name=name) for name in ("backlog_bytes", "limit_bytes", "seconds_to_quota"))},
    try_cast(figures_json->>'growth_bytes_per_second' as bigint) as rate, figures_json->>'topics' is null as alone,
    greatest(try_cast(figures_json->>'bytes_percent' as bigint), try_cast(figures_json->>'seconds_percent' as bigint),
        case when limit_bytes > 0 then {_SHARE.format(part="backlog_bytes", whole="limit_bytes")} end) as percent
from findings where check_id in ('backlog-near-quota', 'backlog-growing')"""

_NAMES = 'map_entries(from_json(more_json, \'{{"{0}": "MAP(VARCHAR, BIGINT)"}}\').{0})'

# Findings that are only counted, by namespace: they have no figures.
_UNLISTED = " union all ".join(
    f"select unnest({_NAMES.format(each)}).key as namespace, '{each}' as severity from verdicts"
    " where check_id in ('backlog-near-quota', 'backlog-growing')"
    for each in ("critical", "warning")
)

_NEAREST = f"""
with pressed as ({_PRESSED}),
unlisted as ({_UNLISTED}),
held as (
    select namespace, sum(topics)::bigint as topics, sum(backlog_bytes)::bigint as backlog_bytes,
        max(backlog_bytes) as fullest_bytes,
        bool_and(owner_known and (owner is null or backlog_bytes is not null)) as whole
    from bundles where not starts_with(namespace, 'pulsar/') and not is_heartbeat(namespace) group by namespace),
near as (
    select namespace, min(if(severity = 'critical', severity, 'warning')) as severity, max(percent) as percent,
        arg_max(subject, percent) as fullest, min(seconds_to_quota) as seconds_left,
        arg_min(subject, seconds_to_quota) as next, max(rate) as rate,
        max(rate) filter (alone) as rate_alone, arg_max(backlog_bytes, rate) filter (alone) as growing_bytes
    from (select * from pressed union all by name select * from unlisted) group by namespace)
select namespace, topics, held.backlog_bytes, severity, percent, coalesce(next, fullest) as topic,
    seconds_left, rate as bytes_per_second,
    case when percent is null and whole and limit_bytes > 0
        then {_SHARE.format(part="fullest_bytes", whole="limit_bytes")} end as at_most_percent,
    case when whole and retention_megabytes > 0
        then {_SHARE.format(part="fullest_bytes", whole=f"({_RETAINED})")} end as at_most_percent_of_retention,
    case when rate_alone > 0 and retention_megabytes > 0
        then try_cast(floor(greatest({_RETAINED} - growing_bytes, 0) / rate_alone) as bigint) end
        as seconds_to_retention,
    limit_bytes, bytes_policy, limit_seconds, seconds_policy, retention_minutes, retention_megabytes, whole,
    policies.namespace is not null as policies_known
from held left join near using (namespace) left join namespace_policies policies using (namespace)
order by severity nulls last, seconds_left nulls last, percent desc nulls last, at_most_percent desc nulls last,
    held.backlog_bytes desc nulls last, namespace
"""

# Findings about a namespace or its topics, and the topics' own statistics if they were read.
_DELAYED = f"""
with told as (
    select {_OF_NAMESPACE} as namespace, check_id, subject,
        try_cast(figures_json->>'delayed_messages' as bigint) as messages,
        try_cast(figures_json->>'subscriptions' as bigint) as subscriptions,
        try_cast(figures_json->>'longest_delay_seconds' as bigint) as longest_delay_seconds,
        try_cast(figures_json->>'held_bytes' as bigint) as held_bytes
    from findings where check_id in ('delayed-past-ttl', 'delayed-holds-ledgers')),
asked as (
    select namespace, sum(delayed_messages)::bigint as messages, count(*) as subscriptions,
        arg_max(topic, delayed_messages) as topic, max(delayed_messages) as most
    from drilled where delayed_messages > 0 group by namespace),
found as (
    select namespace, max(messages) filter (check_id = 'delayed-past-ttl') as messages,
        max(subscriptions) as subscriptions, max(longest_delay_seconds) as longest_delay_seconds,
        max(held_bytes) as held_bytes, arg_max(subject, held_bytes) as holder from told group by namespace)
select namespace, greatest(found.messages, asked.messages) as messages,
    greatest(found.subscriptions, asked.subscriptions) as subscriptions, asked.topic, asked.most,
    found.longest_delay_seconds, found.held_bytes, found.holder, ttl_seconds
from found full join asked using (namespace) left join namespace_policies using (namespace)
order by messages desc nulls last, held_bytes desc nulls last, namespace
"""


class BacklogRow(msgspec.Struct, frozen=True, kw_only=True):
    """Backlog of a namespace's loaded topics, and its limits.

    Attributes:
        severity: The worst finding about its quota; None: no finding.
        topics: Loaded topics.
        backlog_bytes: Backlog of all of them; None: not reported.
        whole: False: an unread broker may hold some of it.
        percent: Usage of the fullest topic's quota, in size or in age; None: no check found it near.
        at_most_percent: Without a finding, the share of the size quota in its fullest bundle, which no topic exceeds;
            None: not known, or there is no such quota.
        topic: The topic that reaches its quota next, or is nearest to it.
        seconds_left: Time until the first topic reaches its size quota, at its present growth; None: no such topic is
            known.
        bytes_per_second: Growth of the fastest growing topic, or group of topics.
        limit_bytes: Size quota of a topic; below 0: none; None: not known.
        limit_seconds: Age quota of a topic; 0 or below: none; None: not known.
        retention_minutes: Retention in time; -1: unlimited; None: not known.
        retention_megabytes: Retention in size; -1: unlimited; None: not known.
        at_most_percent_of_retention: Share of the retained size in its fullest bundle.
        seconds_to_retention: Time until a growing backlog exceeds the retention.
        policies_known: False: its policies could not be read.
    """

    namespace: str
    severity: Severity | None
    topics: int | None
    backlog_bytes: int | None
    whole: bool
    percent: int | None
    at_most_percent: int | None
    topic: str | None
    seconds_left: int | None
    bytes_per_second: int | None
    limit_bytes: int | None
    bytes_policy: str | None
    limit_seconds: int | None
    seconds_policy: str | None
    retention_minutes: int | None
    retention_megabytes: int | None
    at_most_percent_of_retention: int | None
    seconds_to_retention: int | None
    policies_known: bool


class NamespaceDelays(msgspec.Struct, frozen=True, kw_only=True):
    """Delayed messages of a namespace.

    Attributes:
        messages: Minimum number; None: not counted, only `held_bytes` is known.
        topic: The drilled topic with most of them.
        most: Number of the subscription with most.
        ttl_seconds: Time to live; 0: none; None: not known.
        longest_delay_seconds: Maximum delay; 0: unbounded; None: not reported.
        held_bytes: Consumed bytes that the topic `holder` cannot delete because of them.
    """

    namespace: str
    messages: int | None
    subscriptions: int | None
    topic: str | None
    most: int | None
    ttl_seconds: int | None
    longest_delay_seconds: int | None
    held_bytes: int | None
    holder: str | None


class DelayCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of one check of delayed messages in the cluster."""

    check_id: str
    title: str
    outlook: Outlook
    count: int
    reason: str


class Backlogs(msgspec.Struct, frozen=True, kw_only=True):
    """Backlogs of a cluster's namespaces, the nearest to their quota first, and its delayed messages.

    Attributes:
        namespaces: The nearest namespaces, out of `total`.
        total: Number of namespaces with bundles, without Pulsar's own.
        without_quota: Number of these without a quota in size or age.
        not_known: Number of these with an unknown quota.
        delayed: Namespaces with delayed messages, the most first, out of `delayed_total`.
        checks: Results of the checks that count delayed messages.
    """

    namespaces: tuple[BacklogRow, ...]
    total: int
    without_quota: int
    not_known: int
    delayed: tuple[NamespaceDelays, ...]
    delayed_total: int
    checks: tuple[DelayCheck, ...]


def backlogs(sources: Sources, snapshot: Snapshot) -> Backlogs:
    """Backlogs of a snapshot's namespaces."""
    return sources.kept_large.get(("backlogs", snapshot.uri), lambda: _read(sources, snapshot))


def _read(sources: Sources, snapshot: Snapshot) -> Backlogs:
    near = snapshot.select(_NEAREST, BacklogRow, views=IN_FORCE)
    delayed = snapshot.select(_DELAYED, NamespaceDelays, views=IN_FORCE)
    summary = sources.summary(snapshot)
    counting = [each for each in summary.verdicts if each.check_id in BY_ID and each.check_id.startswith("delayed-")]
    limits = [(row.limit_bytes, row.limit_seconds) for row in near]
    return Backlogs(
        namespaces=tuple(near[:MAX_LISTED]),
        total=len(near),
        without_quota=sum(size is not None and size < 0 and age is not None and age <= 0 for size, age in limits),
        not_known=sum(size is None or age is None for size, age in limits),
        delayed=tuple(delayed[:MAX_LISTED]),
        delayed_total=len(delayed),
        checks=tuple(
            DelayCheck(
                check_id=verdict.check_id,
                title=title_of(verdict.check_id),
                outlook=verdict.outlook,
                count=sum(each.count for (check, _), each in summary.found.items() if check == verdict.check_id),
                reason=verdict.reason,
            )
            for verdict in counting
        ),
    )
