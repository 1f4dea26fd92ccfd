"""A namespace as a snapshot shows it, for moving it to another cluster."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.checks.backlog.replication_stopped import BACKLOGS
from pulsar_steward.decoding import decode
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.facts.namespace_look import ClientGroup, LoadedTopic, NamespaceLook, Position, Replicating
from pulsar_steward.model.subscription import HolderKind, kind_of_cursor
from pulsar_steward.model.topics import partitioned_topic
from pulsar_steward.snapshots.rows import NamespaceRow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.snapshots.read import Snapshot

_OF = (
    "coalesce(namespace, namespace_of(topic)) = $namespace and starts_with(topic, 'persistent://') and of_users(topic)"
)

_TOPICS = f"select topic from topics where {_OF}"

_SUBSCRIPTIONS = f"""
with flags as (
    select topic, subscription, bool_or(replicated) as replicated from drilled where replicated is not null
    group by all)
select topic, subscription, backlog_entries as entries, consumers, messages_per_entry, replicated
from subscriptions left join flags using (topic, subscription) where {_OF}
"""

_REPLICATORS = f"""
select topic, remote, connected, backlog_entries as entries, message_rate_out as rate_out, delay_seconds as delay,
    inbound from replicators where {_OF}
"""

_CLIENTS = """
select client_version as version, coalesce(sum(producers), 0)::bigint as producers,
    coalesce(sum(consumers), 0)::bigint as consumers, coalesce(any_value(busiest_hosts[1]), '') as host
from client_versions where namespace = $namespace group by client_version
having sum(coalesce(producers, 0) + coalesce(consumers, 0)) > 0
"""

_SERVED = "select namespace, allowed_brokers, policies_json from namespaces"


class _Topic(msgspec.Struct, frozen=True):
    topic: str


class _Subscription(msgspec.Struct, frozen=True):
    topic: str
    subscription: str
    entries: int | None
    consumers: int | None
    messages_per_entry: int | None
    replicated: bool | None


class _Replicator(msgspec.Struct, frozen=True):
    topic: str
    remote: str
    connected: bool | None
    entries: int | None
    rate_out: float | None
    delay: int | None
    inbound: bool | None


def look_in(snapshot: Snapshot, namespace: str, elsewhere: NamespaceLook | None = None) -> NamespaceLook:
    """A namespace as a snapshot shows it.

    Args:
        snapshot: Of a Pulsar cluster.
        namespace: ``tenant/namespace``.
        elsewhere: The same at another cluster, whose policies this one has too if both share a configuration store.

    Raises:
        ConfigurationError: If the snapshot does not tell the namespace's policies.
        SnapshotError: If it cannot be read.
    """
    meta, brokers = snapshot.meta(), snapshot.brokers()
    meta.require_pulsar()
    served = snapshot.select(_SERVED, NamespaceRow)
    own = next((each for each in served if each.namespace == namespace), None)
    untold = bool(meta.unread) if own is None else own.policies_json is None
    if untold:
        raise ConfigurationError(f"the snapshot of {meta.cluster} does not tell the policies of {namespace}")
    policies: dict[str, Any] | None = decode(own.policies_json, dict[str, Any]) if own and own.policies_json else None
    store = meta.configuration_store_id or ""
    if own is None and elsewhere and store == elsewhere.store and namespace in (meta.served_elsewhere or ()):
        policies = elsewhere.policies
    clusters = {name for each in served for name in _replicated_to(each.policies_json)}
    loaded = _loaded(snapshot, namespace)
    return NamespaceLook(
        cluster=meta.cluster,
        pulsar_name=meta.pulsar_cluster,
        url=_address_of(next((each.broker for each in brokers if each.read), "BROKER:PORT")),
        version=meta.pulsar_version,
        store=store,
        clusters=frozenset({meta.pulsar_cluster, *clusters}),
        tenant_clusters=None,
        policies=policies,
        topics=_counted(loaded),
        loaded=loaded,
        clients=tuple(snapshot.select(_CLIENTS, ClientGroup, namespace=namespace)),
        unread=tuple(f"broker {each}" for each in meta.unread_brokers),
        snapshot_at=meta.taken_at,
    )


def _address_of(broker: str) -> str:
    """Admin address of a broker; brokers list their port for TLS where they have no other one."""
    return f"{'https' if broker.endswith('443') else 'http'}://{broker}"


def _replicated_to(policies: str | None) -> Iterable[str]:
    named = decode(policies, dict[str, Any]).get("replication_clusters") if policies else None
    return named or ()


def _counted(loaded: Iterable[str]) -> dict[str, int]:
    """Loaded topics with the number of their loaded partitions."""
    found: defaultdict[str, int] = defaultdict(int)
    for name in loaded:
        found[partitioned_topic(name)] += name != partitioned_topic(name)
    return dict(sorted(found.items()))


def _loaded(snapshot: Snapshot, namespace: str) -> dict[str, LoadedTopic]:
    positions: defaultdict[str, dict[str, Position]] = defaultdict(dict)
    for each in snapshot.select(_SUBSCRIPTIONS, _Subscription, namespace=namespace):
        if kind_of_cursor(each.subscription) is HolderKind.SUBSCRIPTION:
            positions[each.topic][each.subscription] = Position(
                entries=max(each.entries or 0, 0),
                consumers=each.consumers or 0,
                messages_per_entry=each.messages_per_entry or None,
                replicated=each.replicated,
            )
    replication: defaultdict[str, dict[str, Replicating]] = defaultdict(dict)
    for link in snapshot.select(_REPLICATORS, _Replicator, views=BACKLOGS, namespace=namespace):
        replication[link.topic][link.remote] = Replicating(
            connected=link.connected,
            entries=max(link.entries or 0, 0),
            rate_out=link.rate_out,
            delay_seconds=link.delay if link.connected else None,
            inbound=bool(link.inbound),
        )
    names = sorted(each.topic for each in snapshot.select(_TOPICS, _Topic, namespace=namespace))
    return {name: LoadedTopic(positions=positions[name], replication=replication[name]) for name in names}
