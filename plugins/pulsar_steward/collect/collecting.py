"""One observation of one cluster, from its brokers to a finished snapshot."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.collect.arrow import DRILL_TABLES, ELSEWHERE, NAMESPACE_TABLES, OWN_POLICIES, SUSPECTS, UNREAD
from pulsar_steward.collect.broker import BrokerTask, ReadScope
from pulsar_steward.collect.bundles import SystemBundle, all_bundles, placement, with_positions
from pulsar_steward.collect.drill import DrillTask, drill
from pulsar_steward.collect.metrics import read_endpoint
from pulsar_steward.collect.overview import Overview, PlacementInput, isolation_json, look_over, read_namespaces
from pulsar_steward.collect.reading import tables_of, together
from pulsar_steward.collect.suspects import drilled_of, held_by_rates, looked_into, tasks_of, wanted_of, worst_of
from pulsar_steward.errors import ConfigurationError, NobodyAnswered, OnlyFrontDoor
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.measures import DELAYED_BUCKETS
from pulsar_steward.model.tables import (
    BROKERS,
    BUNDLES,
    CLIENT_VERSIONS,
    CONFIGURATION,
    DRILLED,
    METRICS,
    NAMESPACES,
    SNAPSHOT,
    TRANSACTION_COORDINATORS,
)
from pulsar_steward.model.units import counted
from pulsar_steward.policy.schema import CollectPolicy
from pulsar_steward.pulsar.members import BEHIND_FRONT_DOOR
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.snapshots.database import rows_of, schema_of
from pulsar_steward.snapshots.folder import stamp_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.collect.reading import BrokerReading, Tables
    from pulsar_steward.model.tables import Table
    from pulsar_steward.pulsar.settings import AdminSettings
    from pulsar_steward.runtime.parallel import MapOver
    from pulsar_steward.snapshots.folder import SnapshotFolder

log = logging.getLogger(__name__)

NAMESPACES_A_TASK = 200
"""Number of namespaces that one task reads one after the other; each takes a few milliseconds."""


class CollectParameters(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of a collection.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        taken_at: Snapshot time: when collecting began, with its time zone.
        policy: Limits of collecting.
    """

    cluster: str
    taken_at: datetime
    policy: CollectPolicy = CollectPolicy()


def collect(
    settings: AdminSettings, order: CollectParameters, folder: SnapshotFolder, reading: BrokerReading, map_over: MapOver
) -> None:
    """Takes a snapshot. A broker or namespace that does not respond makes it partial.

    Args:
        settings: Admin API settings of the cluster.
        order: Parameters of the collection.
        folder: The snapshot's folder.
        reading: Reads the brokers.
        map_over: Runs all other requests in parallel.

    Raises:
        AdminError: If the cluster cannot be read at all.
        ConfigurationError: If the order cannot be carried out, or the token would travel unencrypted to a broker.
        NobodyAnswered: If no broker could be read, as behind a front door.
    """
    with Reader(settings) as reader:
        overview = look_over(reader)
        if settings.front_door:
            raise OnlyFrontDoor(f"no broker of {order.cluster} could be read: {BEHIND_FRONT_DOOR}")
        _require_one_url_each(reader, overview.brokers)
    collecting = Collecting(settings, order, overview, map_over)
    try:
        small = collecting.brokers(reading)
        folder.begin()
        written = collecting.tables(small, reading)
        reading.take_in()
        for name, (table, rows) in written.items():
            if name == METRICS.name:
                folder.add(table, rows)
            else:
                folder.write(table, rows)
        folder.finish()
    finally:
        reading.end()


def _require_one_url_each(reader: Reader, brokers: Sequence[str]) -> None:
    """Checks the addresses of brokers once, before any task reads one.

    Raises:
        ConfigurationError: If the token would travel unencrypted, or two brokers have the same address.
    """
    known: dict[str, str] = {}
    for broker in brokers:
        other = known.setdefault(url := reader.url_of(broker), broker)
        if other != broker:
            raise ConfigurationError(
                f"{other} and {broker} are both reached by {url}, where one of them answers: check `address_map`; for a"
                " balancer there is `front_door`"
            )


class Collecting:
    """One collection."""

    def __init__(
        self, settings: AdminSettings, order: CollectParameters, overview: Overview, map_over: MapOver
    ) -> None:
        self._settings, self._order, self._overview, self._map_over = settings, order, overview, map_over
        self._began = datetime.now(UTC)

    def brokers(self, reading: BrokerReading) -> Tables:
        """Reads all brokers, and returns their small tables."""
        began = time.monotonic()
        overview = self._overview
        tasks = [BrokerTask(name, overview.pulsar_cluster, name == overview.leader) for name in overview.brokers]
        small = reading.read(tasks, ReadScope(self._order.taken_at, self._order.policy))
        table = small[BROKERS.name]
        read = table.filter(pc.field("read"))
        if not read.num_rows:
            failure = table["failure"][0].as_py() if table.num_rows else "the cluster lists none"
            raise NobodyAnswered(f"no broker of {self._order.cluster} could be read: {failure}")
        for failure in table["failure"].drop_null().to_pylist():
            log.warning("not read, so the snapshot is partial: %s", failure)
        topics = pc.sum(read["topics"]).as_py()
        rate = topics / max(time.monotonic() - began, 0.001)
        log.info(
            "collected %s/%s, %s, %s topics/s",
            f"{read.num_rows:,}", counted(table.num_rows, "broker"), counted(topics, "topic"), f"{rate:,.0f}",
        )  # fmt: skip
        return small

    def tables(self, small: Tables, reading: BrokerReading) -> Mapping[str, tuple[Table, pa.Table]]:
        """All small tables, and the rows to add to the metrics."""
        brokers = small[BROKERS.name].sort_by("broker")
        unread = brokers.filter(~pc.field("read"))["broker"].to_pylist()
        asked = self._namespaces_and_endpoints()
        namespaces = asked[NAMESPACES.name].sort_by("namespace")
        bundles = all_bundles(namespaces, small[BUNDLES.name], partial=bool(unread))
        coordinators = self._coordinators(bundles)
        made = {
            DRILLED: self._drilled(small[SUSPECTS.name], namespaces, bundles, reading),
            NAMESPACES: namespaces,
            BUNDLES: with_positions(bundles, _computed(coordinators)),
            TRANSACTION_COORDINATORS: rows_of(TRANSACTION_COORDINATORS, coordinators),
            BROKERS: brokers,
            CLIENT_VERSIONS: small[CLIENT_VERSIONS.name].sort_by(
                [("namespace", "ascending"), ("client_version", "ascending"), ("broker", "ascending")]
            ),
            CONFIGURATION: small[CONFIGURATION.name].sort_by([("broker", "ascending"), ("key", "ascending")]),
            SNAPSHOT: rows_of(SNAPSHOT, [self._meta(unread, asked)]),
        }
        if self._order.policy.metrics_urls:
            made[METRICS] = asked[METRICS.name]
        return {table.name: (table, rows) for table, rows in made.items()}

    def _namespaces_and_endpoints(self) -> Tables:
        overview, policy = self._overview, self._order.policy
        asker = _ItemReader(
            self._settings, PlacementInput(overview.brokers, overview.policies, overview.pulsar_cluster), policy
        )
        names = overview.namespaces
        groups = [names[first : first + NAMESPACES_A_TASK] for first in range(0, len(names), NAMESPACES_A_TASK)]
        things = [*(_Item(namespaces=group) for group in groups), *(_Item(url=url) for url in policy.metrics_urls)]
        return together(self._map_over(asker, things, "namespaces"), (*NAMESPACE_TABLES, METRICS))

    def _drilled(self, suspects: pa.Table, namespaces: pa.Table, bundles: pa.Table, reading: BrokerReading) -> pa.Table:
        """Reads suspects from their owners."""
        policy = self._order.policy
        topics = worst_of(suspects, policy.drilled_topics)
        wanted = wanted_of(topics, namespaces, looked_into(suspects), held_by_rates(suspects))
        tasks = tasks_of(wanted, bundles, self._overview.pulsar_cluster)
        log.info("asking %s about %s", counted(len(tasks), "broker"), counted(len(topics), "suspect"))
        if not tasks:
            return schema_of(DRILLED).empty_table()
        answers = together(self._map_over(_Driller(self._settings, policy), tasks, "suspects"), DRILL_TABLES)
        return drilled_of(answers[DRILLED.name], answers[OWN_POLICIES.name], reading.samples(DELAYED_BUCKETS))

    def _meta(self, unread: Sequence[str], asked: Tables) -> dict[str, object]:
        overview, order = self._overview, self._order
        failed, elsewhere = (asked[table.name]["name"].to_pylist() for table in (UNREAD, ELSEWHERE))
        return {
            "snapshot_id": f"{order.cluster}-{stamp_of(order.taken_at)}",
            "cluster": order.cluster,
            "pulsar_cluster": overview.pulsar_cluster,
            "metadata_id": overview.identity.metadata_id,
            "metadata_store": overview.metadata_store,
            "taken_at": order.taken_at,
            "pulsar_version": overview.version,
            "load_manager": overview.load_manager,
            "unread_brokers": sorted(unread),
            "unread_namespaces": sorted([*overview.unread, *failed]),
            "served_elsewhere": sorted(elsewhere),
            "configuration_store_id": overview.configuration_store_id,
            "coordinators": overview.coordinators,
            "bookies": overview.bookies,
            "isolation_json": isolation_json(overview),
            "read_from": self._began,
            "read_until": datetime.now(UTC),
        }

    def _coordinators(self, bundles: pa.Table) -> list[dict[str, Any]]:
        system = bundles.filter(pc.field("namespace") == TC_NAMESPACE).select(["bundle", "owner", "owner_known"])
        known = [SystemBundle(**row) for row in system.to_pylist()]
        return [msgspec.structs.asdict(each) for each in placement(self._overview.coordinators, known)]


@dataclass(frozen=True)
class _Item:
    """Item of a task: some namespaces, or the address of a bookie or ZooKeeper."""

    namespaces: Sequence[str] = ()
    url: str | None = None


@dataclass(frozen=True)
class _ItemReader:
    """Reads namespaces, or the metrics of a bookie or ZooKeeper."""

    settings: AdminSettings
    placement: PlacementInput
    policy: CollectPolicy

    def __call__(self, asked: _Item) -> Tables:
        """Reads one item."""
        if asked.url is not None:
            pieces = read_endpoint(self.settings, asked.url, self.policy.metrics_megabytes)
        else:
            pieces = read_namespaces(self.settings, self.placement, asked.namespaces)
        return tables_of(pieces, (*NAMESPACE_TABLES, METRICS))


@dataclass(frozen=True)
class _Driller:
    """Reads suspects from their broker."""

    settings: AdminSettings
    policy: CollectPolicy

    def __call__(self, task: DrillTask) -> Tables:
        """Reads the suspects of one broker."""
        return tables_of(drill(self.settings, task, self.policy), DRILL_TABLES)


def _computed(coordinators: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Positions of the coordinators by bundle."""
    found: dict[str, list[int]] = defaultdict(list)
    for each in coordinators:
        if each["bundle"] is not None:
            found[each["bundle"]].append(each["position"])
    return found
