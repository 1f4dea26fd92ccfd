"""Loads of bundles over several snapshots, so that a move is never based on a single moment.

Functions of a snapshot raise `SnapshotError` if a table cannot be read.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.facts.isolation import ISOLATION_UNKNOWN, Isolation, LoadOfBroker
from pulsar_steward.facts.room import Usage
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.isolation import isolation_policies
from pulsar_steward.planners.bundles.assignment import LoadAssignment
from pulsar_steward.planners.bundles.balance import PLANNER as BUNDLE_BALANCE
from pulsar_steward.planners.bundles.drain import PLANNER as BROKER_DRAIN
from pulsar_steward.planners.bundles.facts import LeavingFacts, Load, LoadFacts, OwnedBundlesLoad, PlacedBundle
from pulsar_steward.planners.bundles.groups import PLANNER as BROKER_GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pulsar_steward.facts.unknown import Unknown
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot

CANDIDATES_A_BROKER = 500
"""Number of a broker's heaviest bundles that are considered for a move."""

FIGURES = {
    # Whole numbers, so that sums do not depend on the order.
    "topics": "coalesce(topics, 0)",
    "bytes": "round_even(coalesce(throughput_in_bytes, 0) + coalesce(throughput_out_bytes, 0), 0)::bigint",
    "messages": "round_even(coalesce(message_rate_in, 0) + coalesce(message_rate_out, 0), 0)::bigint",
    "producers": "coalesce(producers, 0)",
    "consumers": "coalesce(consumers, 0)",
}
"""Fields of a `Load`, with their SQL for a row of the table `bundles`; for `topics`, all but the first."""


def load_of(figures: dict[str, str]) -> str:
    """SQL of a `Load`, from the SQL of its fields."""
    return "{" + ", ".join(f"'{field}': {sql}" for field, sql in figures.items()) + "}"


def _views(figure: str) -> str:
    """SQL of the three loads of a bundle or a broker; ``{}`` is replaced by a column of `over_time`."""
    return ", ".join(
        f"{load_of({field: figure.format(f'{view}_{field}') for field in FIGURES})} as {view}"
        for view in ("mean", "peak", "now")
    )


_OVER_TIME = f"""
    with each as (select look, namespace, bundle, owner,
            {", ".join(f"{sql} as {field}" for field, sql in FIGURES.items())}
        from bundles where not is_heartbeat(namespace)),
    over_time as (select now.namespace, now.bundle, now.owner,
            {", ".join(f"sum(each.{field})::bigint // count(*) as mean_{field}" for field in FIGURES)},
            {", ".join(f"max(each.{field}) as peak_{field}" for field in FIGURES)},
            {", ".join(f"any_value(now.{field}) as now_{field}" for field in FIGURES)},
            now.owner is not null and count(*) = $looks and bool_and(each.owner is not distinct from now.owner)
                as stayed
        from (from each where look = 0) now join each using (namespace, bundle)
        group by now.namespace, now.bundle, now.owner)"""
"""SQL: the bundles of the newest snapshot, with their loads, and whether their owner was always the same."""


def load_facts(snapshot: Snapshot, findings: Iterable[Finding], policy: Policy) -> LoadFacts | None:
    """The load over several snapshots; None: no finding needs it, or the snapshot is partial."""
    if not BUNDLE_BALANCE.answered(findings) or snapshot.meta().unread:
        return None
    remedy = policy.bundle_balance_remedy
    looked = snapshots_looked_at(snapshot, remedy.window_minutes, remedy.snapshots)
    if len(looked) < remedy.least_snapshots:
        return LoadFacts(snapshots=len(looked))
    listed = sorted(row.broker for row in snapshot.brokers() if row.read and row.broker not in policy.brokers.draining)
    brokers = tuple(broker_loads(looked, listed))
    stays = tuple(_stays(looked, brokers, policy))
    moved = "owner is not null and not stayed and namespace <> $coordinators"
    return LoadFacts(
        snapshots=len(looked),
        brokers=brokers,
        stays=stays,
        moved=sum(idle.bundles for idle in bundles_of_owners(looked, moved, coordinators=TC_NAMESPACE)),
        allowed=allowed_by_namespace(snapshot, {stay.namespace for stay in stays}),
    )


def snapshots_looked_at(snapshot: Snapshot, window_minutes: int, most: int) -> list[Snapshot]:
    """This snapshot and the earlier whole ones within the window, the newest first.

    Raises:
        SnapshotError: If a snapshot cannot be read.
    """
    since = snapshot.meta().taken_at - timedelta(minutes=window_minutes)
    looked = [snapshot]
    for each in snapshot.earlier(4 * most):
        meta = each.meta()
        if meta.taken_at < since or len(looked) == most:
            break
        if not meta.unread:
            looked.append(each)
    return looked[:most]


def broker_loads(looked: Sequence[Snapshot], brokers: Sequence[str]) -> Iterator[OwnedBundlesLoad]:
    """The load of each of these brokers, by the bundles that it owns in the first of these snapshots."""
    query = f"select owner as broker, {_views('sum({})::bigint')} from over_time where owner is not null group by owner"
    known = {row.broker: row for row in _selected(looked, query, OwnedBundlesLoad)}
    for broker in brokers:
        yield known.get(broker, OwnedBundlesLoad(broker=broker, mean=Load(), peak=Load(), now=Load()))


def placed_bundles(looked: Sequence[Snapshot], condition: str, **values: Any) -> list[PlacedBundle]:
    """Bundles of the first of these snapshots that match a condition on `over_time`, by name."""
    query = f"select namespace, bundle, owner, {_views('{}')} from over_time where {condition}"
    return sorted(_selected(looked, query, PlacedBundle, **values), key=lambda stay: stay.name)


class OwnersBundles(msgspec.Struct, frozen=True):
    """Number of bundles of a broker."""

    owner: str
    bundles: int


def bundles_of_owners(looked: Sequence[Snapshot], condition: str, **values: Any) -> list[OwnersBundles]:
    """Numbers of matching bundles by owner, in order."""
    query = f"select owner, count(*) as bundles from over_time where {condition} group by owner order by owner"
    return _selected(looked, query, OwnersBundles, **values)


def _selected(looked: Sequence[Snapshot], query: str, kind: type[Any], **values: Any) -> list[Any]:
    return looked[0].select(_OVER_TIME + query, kind, looked[1:], looks=len(looked), **values)


def _stays(looked: Sequence[Snapshot], brokers: Sequence[OwnedBundlesLoad], policy: Policy) -> Iterator[PlacedBundle]:
    """Bundles that a lookup could load elsewhere: with a topic, on a broker with more than its share."""
    if not brokers:
        return
    assignment = LoadAssignment(brokers, policy.broker_load_skew, policy.bundle_balance_remedy.within_percent)
    sources = [broker for broker in sorted(assignment.mean) if assignment.above_mean(broker)]
    free = "stayed and now_topics > 0 and namespace <> $coordinators and owner in (select unnest($sources::varchar[]))"
    stays: defaultdict[str, list[PlacedBundle]] = defaultdict(list)
    for stay in placed_bundles(looked, free, coordinators=TC_NAMESPACE, sources=sources):
        stays[stay.owner].append(stay)
    for broker in sources:
        yield from sorted(stays[broker], key=lambda stay: -assignment.weight(stay))[:CANDIDATES_A_BROKER]


def allowed_by_namespace(snapshot: Snapshot, namespaces: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Brokers allowed by isolation policies for these namespaces; namespaces that may use all brokers are absent."""
    rows = snapshot.namespaces(namespaces)
    return {row.namespace: row.allowed_brokers for row in rows if row.allowed_brokers is not None}


_LOADED = "(now_topics > 0 or (namespace = $coordinators and bundle in (select unnest($held::varchar[]))))"


def drain_facts(snapshot: Snapshot, findings: Iterable[Finding], policy: Policy) -> LeavingFacts | None:
    """Bundles to drain, with their load in several snapshots; None: no finding needs it, or the snapshot is partial.

    One snapshot is enough here: the reason to empty a broker is not its load.
    """
    if not BROKER_DRAIN.answered(findings) or snapshot.meta().unread:
        return None
    theirs = "owner in (select unnest($draining::varchar[]))"
    return _leaving(snapshot, policy, theirs, draining=policy.brokers.draining)


def group_facts(snapshot: Snapshot, findings: Iterable[Finding], policy: Policy) -> LeavingFacts | None:
    """Bundles of the namespaces of groups with findings, wherever they are; None as of `drain_facts`."""
    found = BROKER_GROUPS.answered(findings)
    if not found or snapshot.meta().unread:
        return None
    groups = [group.isolation for group in policy.brokers.groups if group.name in found]
    names = [name for name in snapshot.namespace_names() if any(group.claims(name) for group in groups)]
    return _leaving(
        snapshot, policy, "owner is not null and namespace in (select unnest($names::varchar[]))", names=names
    )


def isolation_facts(snapshot: Snapshot, findings: Iterable[Finding]) -> Isolation | Unknown:
    """The isolation policies, with what they divide; unknown: no finding needs it, or they were not read."""
    return isolation_of(snapshot) if BROKER_GROUPS.answered(findings) else ISOLATION_UNKNOWN


def isolation_of(snapshot: Snapshot) -> Isolation | Unknown:
    """The isolation policies, with every broker's load; unknown: they were not read."""
    document = snapshot.meta().isolation_json
    if document is None:
        return ISOLATION_UNKNOWN
    topics, throughput = defaultdict[str, dict[str, int]](dict), defaultdict[str, dict[str, float]](dict)
    for row in snapshot.select(_OWNED, _OwnedNamespace):
        topics[row.owner][row.namespace] = row.topics
        throughput[row.owner][row.namespace] = row.bytes
    return Isolation(
        policies=isolation_policies(decode(document, dict[str, Any])),
        loads={
            row.broker: LoadOfBroker(
                topics=None if row.topics is None else topics[row.broker],
                bytes=throughput[row.broker],
                used=Usage(cpu=row.cpu_percent, direct_memory=row.direct_memory_percent),
            )
            for row in snapshot.brokers()
            if row.read
        },
        # Right before the call all listed namespaces count: nobody asks then which cluster serves each.
        namespaces=tuple(sorted({*snapshot.namespace_names(), *(snapshot.meta().served_elsewhere or ())})),
    )


_OWNED = f"""
    select owner, namespace, sum({FIGURES["topics"]})::bigint as topics, sum({FIGURES["bytes"]})::bigint as bytes
    from bundles where owner is not null and not is_heartbeat(namespace) group by owner, namespace"""


class _OwnedNamespace(msgspec.Struct, frozen=True):
    owner: str
    namespace: str
    topics: int
    bytes: int


def _leaving(snapshot: Snapshot, policy: Policy, which: str, **values: Any) -> LeavingFacts:
    """The bundles that match a condition on `over_time`, and the load of all brokers."""
    remedy = policy.bundle_balance_remedy
    looked = snapshots_looked_at(snapshot, remedy.window_minutes, remedy.snapshots)
    read = [row for row in snapshot.brokers() if row.read]
    values |= {
        "held": [row.bundle for row in snapshot.coordinators() if row.bundle is not None],
        "coordinators": TC_NAMESPACE,
    }
    leaving = {each.name: each for each in placed_bundles(looked, f"{which} and {_LOADED}", **values)}
    return LeavingFacts(
        brokers=tuple(broker_loads(looked, [row.broker for row in read])),
        resources={row.broker: Usage(cpu=row.cpu_percent, direct_memory=row.direct_memory_percent) for row in read},
        leaving=leaving,
        idle={row.owner: row.bundles for row in bundles_of_owners(looked, f"{which} and not {_LOADED}", **values)},
        allowed=allowed_by_namespace(snapshot, {each.namespace for each in leaving.values()}),
    )
