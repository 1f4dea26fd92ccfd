"""Facts about a cluster that is to be upgraded, from a diagnosed snapshot."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.clients.client_numbers import SEEN
from pulsar_steward.checks.delayed.partition_ceiling import COUNTED
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.facts.load_manager import BrokerUsage, LoadManager, Traffic, load_manager_of
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.broker_defaults import (
    BANDWIDTH_BEFORE_4,
    BEFORE_5,
    LIMITS,
    OF_UPGRADES,
    SHEDDER,
    WEIGHTS,
    default_in,
    is_default,
)
from pulsar_steward.model.pulsar_versions import line_of, numbers_of
from pulsar_steward.model.units import named
from pulsar_steward.planners.from_snapshot import load_manager_in, traffic_in, usages_in
from pulsar_steward.planners.restarts.facts import RestartFacts, restart_facts
from pulsar_steward.planners.upgrade.model import TARGET
from pulsar_steward.snapshots.rows import BrokerRow, SnapshotMeta

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.snapshots.read import Snapshot

_FIRST = (3, 0)
"""First line of releases that the report is about."""

PAUSED = ("loadBalancerSheddingEnabled", "loadBalancerAutoBundleSplitEnabled")
"""Settings that are off while brokers are upgraded."""

_SHEDDING = (*LIMITS["AvgShedder"], *WEIGHTS)

_IN_STORE = "managedLedgerMaxUnackedRangesToPersistInMetadataStore"
_PERSISTED = "managedLedgerMaxUnackedRangesToPersist"

_CURSORS = """
select coalesce(type, 'None') as type, count(*) as cursors, count(*) filter (ack_holes > $in_store) as over_store,
    count(*) filter (ack_holes > $persisted) as over_persisted,
    max(coalesce(ack_holes, 0)) as most_holes, max(coalesce(entries_since_first_gap, 0)) as most_entries
from subscriptions where not starts_with(topic, 'non-persistent://') group by all order by all
"""

_OF_BROKERS = """
select source, max(value)::bigint as memory, max(labels_json->>'version') as java
from metrics where source_kind = 'broker' and series in ('jvm_memory_direct_bytes_max', 'jvm_info')
group by source, series
"""


class Cursors(msgspec.Struct, frozen=True, kw_only=True):
    """Cursors of persistent topics' subscriptions of one type.

    Attributes:
        type: Type of the subscriptions.
        cursors: Number of them.
        over_store: Those with more ack holes than go to the metadata store today.
        over_persisted: Those with more ack holes than are kept today.
        most_holes: The most ack holes of one.
        most_entries: The most entries from the first that is not acknowledged to the next to be read.
    """

    type: str
    cursors: int
    over_store: int
    over_persisted: int
    most_holes: int
    most_entries: int


class Divided(msgspec.Struct, frozen=True):
    """A namespace and its number of bundles."""

    name: str
    bundles: int | None


class VersionClients(msgspec.Struct, frozen=True):
    """Number of producers and consumers of a version; an empty one where brokers know none."""

    version: str
    clients: int


class _OfBroker(msgspec.Struct, frozen=True):
    source: str
    memory: int
    java: str | None


class _Nodes(msgspec.Struct, frozen=True):
    nodes: int | None


class UpgradeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a cluster that is to be upgraded.

    Attributes:
        meta: The snapshot.
        brokers: Brokers that were read, by id.
        lines: Line of releases of those that are to be upgraded, by broker.
        settings: Values in force on them, by setting and broker.
        cursors: Cursors by type of subscription.
        topics: Number of loaded topics.
        namespaces: All namespaces, by name.
        direct_memory: Limit of direct memory in bytes, by broker.
        java: Version of Java, by broker.
        clients: Connected clients, the most frequent version first.
        manager: The brokers' load manager.
        shedder: The load manager with the shedding of 5.0, and today's values of what is set.
        usages: Figures that this shedding compares.
        owned: Traffic of each broker's bundles, by broker and name.
        metadata_nodes: Nodes of the metadata store; None: not told.
        restarts: What bears on restarts of its brokers.
    """

    meta: SnapshotMeta
    brokers: tuple[BrokerRow, ...]
    lines: dict[str, str]
    settings: dict[str, dict[str, str]]
    cursors: tuple[Cursors, ...]
    topics: int
    namespaces: tuple[Divided, ...]
    direct_memory: dict[str, int]
    java: dict[str, str]
    clients: tuple[VersionClients, ...]
    manager: LoadManager | Unknown
    shedder: LoadManager | Unknown
    usages: tuple[BrokerUsage, ...] | Unknown
    owned: dict[str, dict[str, Traffic]]
    metadata_nodes: int | None
    restarts: RestartFacts

    def value(self, key: str) -> str | None:
        """Value of a setting that all brokers share; None: not told, or they differ."""
        told = self.settings.get(key, {})
        values = set(told.values())
        return values.pop() if len(values) == 1 and told.keys() >= self.lines.keys() else None

    def cursors_of(self, *types: str) -> int:
        """Number of cursors of subscriptions of these types; of all without any."""
        return sum(each.cursors for each in self.cursors if not types or each.type in types)


def upgrade_facts(snapshot: Snapshot) -> UpgradeFacts:
    """Facts of a diagnosed snapshot.

    Args:
        snapshot: The snapshot.

    Raises:
        ConfigurationError: If no broker is left to be upgraded, or the report is not about such a cluster.
        SnapshotError: If it cannot be read.
    """
    meta = snapshot.meta()
    meta.require_pulsar()
    brokers = tuple(each for each in snapshot.brokers() if each.read)
    lines = _lines(brokers)
    settings: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in snapshot.configuration([*BEFORE_5, *OF_UPGRADES, *PAUSED, *BANDWIDTH_BEFORE_4.values()]):
        if row.value is not None and row.broker in lines:
            settings[row.key][row.broker] = row.value.strip()
    manager, shedder = load_manager_in(snapshot), _shedder(settings, lines)
    processes = snapshot.select(_OF_BROKERS, _OfBroker)
    (nodes,) = snapshot.select(COUNTED, _Nodes)
    restarts = restart_facts(snapshot)
    in_store, persisted = (_limit(key, settings, lines) for key in (_IN_STORE, _PERSISTED))
    versions = snapshot.select(f"select client_version as version, clients from ({SEEN})", VersionClients)
    return UpgradeFacts(
        meta=meta,
        brokers=brokers,
        lines=lines,
        settings=dict(settings),
        cursors=tuple(snapshot.select(_CURSORS, Cursors, in_store=in_store, persisted=persisted)),
        topics=sum(restarts.topics.values()),
        namespaces=tuple(snapshot.select("select namespace as name, bundles from namespaces order by 1", Divided)),
        direct_memory={each.source: each.memory for each in processes if each.java is None},
        java={each.source: each.java for each in processes if each.java is not None},
        clients=tuple(sorted(versions, key=lambda each: (-each.clients, each.version))),
        manager=manager,
        shedder=shedder,
        usages=usages_in(snapshot, shedder),
        owned=traffic_in(snapshot),
        metadata_nodes=nodes.nodes,
        restarts=restarts,
    )


def _shedder(settings: Mapping[str, Mapping[str, str]], lines: Mapping[str, str]) -> LoadManager | Unknown:
    """The shedding of 5.0: values that differ from their release's default are taken for set, and stay."""
    told = {"loadBalancerSheddingEnabled": "true", SHEDDER: default_in(SHEDDER, TARGET) or ""}
    for key in (*_SHEDDING, *BANDWIDTH_BEFORE_4.values()):
        of_brokers = settings.get(key, {})
        kept = [value for broker, value in of_brokers.items() if not is_default(key, lines[broker], value)]
        if value := next(iter(kept), None) or (default_in(key, TARGET) if key in _SHEDDING else None):
            told[key] = value
    return load_manager_of(told)


def versions_of(brokers: Sequence[BrokerRow]) -> tuple[str, ...]:
    """Versions of the brokers that were read, each once; a question mark for one that tells none.

    Raises:
        ConfigurationError: If no broker is left to be upgraded, or the report is not about such a cluster.
    """
    read = tuple(each for each in brokers if each.read)
    _lines(read)
    return tuple(sorted({each.pulsar_version or "?" for each in read}))


def _limit(key: str, settings: Mapping[str, Mapping[str, str]], lines: Mapping[str, str]) -> int:
    """Lowest limit in force; where none is told, the lowest default."""
    told = [value for value in settings.get(key, {}).values() if value.isdecimal()]
    return min(map(int, told or filter(None, (default_in(key, each) for each in lines.values()))), default=0)


def _lines(brokers: Sequence[BrokerRow]) -> dict[str, str]:
    """Line of releases of each broker that is to be upgraded; one that tells no version is left out."""
    versions = {each.broker: each.pulsar_version for each in brokers if each.pulsar_version}
    found = {broker: line for broker, version in versions.items() if (line := line_of(version))}
    every = named(sorted(set(versions.values())))
    if not found:
        raise ConfigurationError("no broker tells a version of Pulsar, so nothing can be compared")
    if min(map(numbers_of, found.values())) < _FIRST:
        raise ConfigurationError(f"brokers run {every}: the report begins with 3.0; go to 4.0 first")
    left = {broker: line for broker, line in found.items() if numbers_of(line) < numbers_of(TARGET)}
    if not left:
        raise ConfigurationError(f"brokers run {every}: none is left to be upgraded to {TARGET}")
    return left
