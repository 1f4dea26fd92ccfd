"""Backlogs of namespaces against their quotas and their retention, and what is delayed, of the newest snapshot.

A quota and a retention are of a topic. A request reads no table of topics: how full a namespace's fullest topic is
comes from the checks, and of a namespace that they did not find from its fullest bundle, of which no topic holds more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from pulsar_steward.checks.backlog.policies import VIEWS
from pulsar_steward.checks.registry import GROUPS
from pulsar_steward.checks.views import MACROS
from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.model.tables import BUNDLES, CONFIGURATION, DRILLED, FINDINGS, NAMESPACES
from pulsar_steward.model.units import MIB
from pulsar_steward.pages.clusters import title_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.model.tables import Table
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.snapshots.read import Snapshot

MAX_LISTED = 25
"""Namespaces that are listed, those nearest to their quota, and those with most delayed messages."""

_READ: Mapping[Table, tuple[str, ...]] = {
    NAMESPACES: ("namespace", "policies_json"),
    CONFIGURATION: ("broker", "key", "value"),
    BUNDLES: ("namespace", "owner", "owner_known", "topics", "backlog_bytes"),
    DRILLED: ("topic", "namespace", "delayed_messages"),
    FINDINGS: ("check_id", "severity", "subject", "figures_json"),
}
"""Columns by table; none of these grows with topics."""

_VIEWS = tuple(view for view in VIEWS if view.name in {"broker_defaults", "namespace_policies"})
"""The checks' own, so that a page and a check never differ in what is in force."""

_CHECKS = ("backlog-near-quota", "backlog-growing", "delayed-past-ttl", "delayed-holds-ledgers")
"""Checks whose figures are taken; each lists at most `pulsar_steward.checks.check.MAX_FINDINGS`."""

_OF_NAMESPACE = "if(contains(subject, '://'), namespace_of(subject), subject)"
_FIGURE = "try_cast(figures_json->>'{name}' as bigint) as {name}"

# A share of something, whatever numbers somebody has set.
_SHARE = "try_cast(floor({part} * 100::double / {whole}) as bigint)"
_RETAINED = f"retention_megabytes::double * {MIB}"

# A finding of several topics that grow together has no quota of its own, and so no share of one.
_PRESSED = f"""
select {_OF_NAMESPACE} as namespace, subject, severity,
    {", ".join(_FIGURE.format(name=name) for name in ("backlog_bytes", "limit_bytes", "seconds_to_quota"))},
    try_cast(figures_json->>'growth_bytes_per_second' as bigint) as rate, figures_json->>'topics' is null as alone,
    greatest(try_cast(figures_json->>'bytes_percent' as bigint), try_cast(figures_json->>'seconds_percent' as bigint),
        case when limit_bytes > 0 then {_SHARE.format(part="backlog_bytes", whole="limit_bytes")} end) as percent
from findings where check_id in ('backlog-near-quota', 'backlog-growing')
"""  # noqa: S608 - of this file's own words

_NEAREST = f"""
with held as (
    select namespace, sum(topics)::bigint as topics, sum(backlog_bytes)::bigint as backlog_bytes,
        max(backlog_bytes) as fullest_bytes,
        bool_and(owner_known and (owner is null or backlog_bytes is not null)) as whole
    from bundles where not starts_with(namespace, 'pulsar/') and not is_heartbeat(namespace) group by namespace),
near as (
    select namespace, max(case severity when 'critical' then 2 else 1 end) as rank, max(percent) as percent,
        arg_max(subject, percent) as fullest, min(seconds_to_quota) as seconds_left,
        arg_min(subject, seconds_to_quota) as next, max(rate) as rate,
        max(rate) filter (alone) as rate_alone, arg_max(backlog_bytes, rate) filter (alone) as growing_bytes
    from pressed group by namespace)
select namespace, topics, held.backlog_bytes, coalesce(rank, 0) as rank, percent, coalesce(next, fullest) as topic,
    seconds_left, rate,
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
order by rank desc, seconds_left nulls last, percent desc nulls last, at_most_percent desc nulls last,
    held.backlog_bytes desc nulls last, namespace
"""  # noqa: S608 - as above

# What the checks say of a namespace or of topics in it, and what topics that were asked say of themselves.
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
"""  # noqa: S608 - as above


class BacklogRow(msgspec.Struct, frozen=True, kw_only=True):
    """Backlog of a namespace's loaded topics, and what bounds it.

    Attributes:
        severity: The worst of what checks found about its quota; None: nothing.
        topics: Loaded topics.
        backlog_bytes: Of all of them; None: not told.
        whole: False: an unread broker may hold some of it.
        percent: How full the fullest topic's quota is, in size or in age; None: no check found it near.
        at_most_percent: If no check did: the share of the size quota that its fullest bundle holds, which no topic
            exceeds; None: not known, or there is no such quota.
        topic: The topic that reaches its quota next, or is nearest to it.
        seconds_left: Until the first topic reaches its size quota, as fast as it grows; None: none is known to.
        bytes_per_second: Growth of the topic, or of topics together, that grows fastest.
        limit_bytes: Size quota of a topic; under 0: none; None: not known.
        limit_seconds: Age quota of a topic; 0 or under: none; None: not known.
        retention_minutes: Retention in time; -1: unlimited; None: not known.
        retention_megabytes: Retention in size; -1: unlimited; None: not known.
        at_most_percent_of_retention: Share of the retained size that its fullest bundle holds.
        seconds_to_retention: Until what grows is more than is retained.
        policies_known: False: its policies were not read.
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
        messages: At least so many; None: not counted, only what they hold is known.
        topic: The topic with most of those that were asked about.
        most: Its subscription with most has so many.
        ttl_seconds: Time to live; 0: none; None: not known.
        longest_delay_seconds: Longest delay that is allowed; 0: unbounded; None: not told.
        held_bytes: Consumed bytes that `holder`, a topic, cannot delete for them.
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
    """Backlogs of a cluster's namespaces, those nearest to their quota first, and its delayed messages.

    Attributes:
        namespaces: The nearest; of `total`.
        total: Namespaces with bundles, Pulsar's own left out.
        without_quota: Those of them without a quota in size or age.
        not_known: Those of them whose quota is not known.
        delayed: Namespaces with delayed messages, those with most first; of `delayed_total`.
        checks: What the checks say that count delayed messages.
    """

    namespaces: tuple[BacklogRow, ...]
    total: int
    without_quota: int
    not_known: int
    delayed: tuple[NamespaceDelays, ...]
    delayed_total: int
    checks: tuple[DelayCheck, ...]


def backlogs(sources: Sources, snapshot: Snapshot) -> Backlogs:
    """Backlogs of a snapshot's namespaces.

    Raises:
        SnapshotError: If it cannot be read.
    """
    return sources.kept_large.get(("backlogs", snapshot.uri), lambda: _read(sources, snapshot))


def _read(sources: Sources, snapshot: Snapshot) -> Backlogs:
    with duckdb.connect(config={"threads": 1, "autoinstall_known_extensions": False}) as connection:
        for macro in MACROS:
            connection.execute(macro)
        for table, columns in _READ.items():
            some = [("check_id", "in", _CHECKS)] if table is FINDINGS else None
            connection.register(table.name, snapshot.table(table, columns, some))
        for view in _VIEWS:
            connection.execute(f"create temp view {view.name} as {view.sql}")
        connection.execute(f"create temp view pressed as {_PRESSED}")
        near, delayed = _rows(connection, _NEAREST), _rows(connection, _DELAYED)
    limits = [(row["limit_bytes"], row["limit_seconds"]) for row in near]
    return Backlogs(
        namespaces=tuple(_namespace(row) for row in near[:MAX_LISTED]),
        total=len(near),
        without_quota=sum(size is not None and size < 0 and age is not None and age <= 0 for size, age in limits),
        not_known=sum(size is None or age is None for size, age in limits),
        delayed=tuple(NamespaceDelays(**row) for row in delayed[:MAX_LISTED]),
        delayed_total=len(delayed),
        checks=_checks(sources, snapshot),
    )


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = connection.sql(query).to_arrow_table().to_pylist()
    return rows


def _namespace(row: dict[str, Any]) -> BacklogRow:
    rank = row.pop("rank")
    rate = row.pop("rate")
    return BacklogRow(**row, bytes_per_second=rate, severity=(None, Severity.WARNING, Severity.CRITICAL)[rank])


def _checks(sources: Sources, snapshot: Snapshot) -> tuple[DelayCheck, ...]:
    summary = sources.summary(snapshot)
    ours = {check.check_id for group in GROUPS for check in group.checks if check.check_id.startswith("delayed-")}
    return tuple(
        DelayCheck(
            check_id=verdict.check_id,
            title=title_of(verdict.check_id),
            outlook=verdict.outlook,
            count=sum(each.count for (check, _), each in summary.found.items() if check == verdict.check_id),
            reason=verdict.reason,
        )
        for verdict in summary.verdicts
        if verdict.check_id in ours
    )
