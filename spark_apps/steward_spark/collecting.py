"""One observation of one cluster, from its brokers to a finished snapshot."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.admin.reader import Reader
from pulsar_steward.collect.arrow import UNREAD, schema_of
from pulsar_steward.collect.broker import BrokerTask, Scope
from pulsar_steward.collect.coordinators import SystemBundle, placement
from pulsar_steward.collect.namespace import Placement
from pulsar_steward.collect.overview import Overview, look_over
from pulsar_steward.collect.suspects import worst_of
from pulsar_steward.errors import StewardError
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.tables import (
    BROKERS,
    BUNDLES,
    DRILLED,
    METRICS,
    NAMESPACES,
    SNAPSHOT,
    TRANSACTION_COORDINATORS,
)
from pulsar_steward.policy.schema import CollectPolicy
from steward_spark.answers import answers_to
from steward_spark.bundles import all_bundles, with_positions
from steward_spark.drilling import drilled, tasks_of, wanted_of
from steward_spark.gather import BrokerQuestions, ask_endpoints, ask_namespaces, ask_owners, rows_of, table_of
from steward_spark.place import SnapshotPlace, snapshot_uri, stamp_of
from steward_spark.progress import watched
from steward_spark.tuning import tuned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.model.tables import Table

log = logging.getLogger(__name__)


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be collected, and where it goes.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        out: URI of the folder of snapshots.
        taken_at: When collecting began, with its time zone.
        at_once: Brokers asked at the same time, at most; None: a few for each of Spark's cores.
        policy: How much is looked at.
    """

    cluster: str
    out: str
    taken_at: datetime
    at_once: int | None = None
    policy: CollectPolicy = CollectPolicy()


class NobodyAnswered(StewardError):
    """No broker that the cluster lists could be read."""


def collect(spark: SparkSession, settings: AdminSettings, order: Order) -> str:
    """Takes a snapshot and returns its URI. A broker or namespace that does not answer makes it partial.

    Raises:
        AdminError: If the cluster cannot be read at all.
        ConfigurationError: If the order cannot be carried out, or the token would travel unencrypted to a broker.
        NobodyAnswered: If not one broker could be read.
    """
    place = SnapshotPlace(spark, snapshot_uri(order.out, order.cluster, order.taken_at))
    with Reader(settings) as reader:
        overview = look_over(reader)
    for broker in overview.brokers:
        settings.token_for(settings.base_of(broker))  # told here, and not by each task that would ask one
    collecting = _Collecting(spark, settings, order, overview, place)
    try:
        with tuned(spark, collecting.tuning):
            brokers = collecting.brokers()
            place.begin()
            collecting.write(brokers)
            place.finish()
    finally:
        collecting.end()
    return place.uri


class _Collecting:
    """One collection; what the brokers answered is kept, so that each of them is asked once."""

    def __init__(
        self, spark: SparkSession, settings: AdminSettings, order: Order, overview: Overview, place: SnapshotPlace
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._order = order
        self._overview = overview
        self._place = place
        tasks = [BrokerTask(name, overview.pulsar_cluster, name == overview.leader) for name in overview.brokers]
        scope = Scope(order.taken_at, order.policy)
        self._answers = answers_to(BrokerQuestions(spark, settings, tasks, scope, order.at_once), place)
        where = Placement(overview.brokers, overview.policies)
        self._namespaces = ask_namespaces(spark, settings, where, overview.namespaces)
        self._bundles: DataFrame | None = None
        self._details: DataFrame | None = None

    @property
    def tuning(self) -> Mapping[str, str]:
        """Spark's settings meanwhile."""
        return self._answers.tuning

    def brokers(self) -> pa.Table:
        """Asks all brokers, and returns the table `brokers`."""
        began = time.monotonic()
        with watched(self._spark, "brokers"):
            table = self._answers.brokers()
        read = table.filter(table["read"])
        if not read.num_rows:
            failure = table["failure"][0].as_py() if table.num_rows else "the cluster lists none"
            raise NobodyAnswered(f"no broker of {self._order.cluster} could be read: {failure}")
        for failure in table["failure"].drop_null().to_pylist():
            log.warning("not read, so the snapshot is partial: %s", failure)
        topics = pc.sum(read["topics"]).as_py()
        rate = topics / max(time.monotonic() - began, 0.001)
        log.info(
            "collected %s/%s brokers, %s topics, %s topics/s",
            f"{read.num_rows:,}", f"{table.num_rows:,}", f"{topics:,}", f"{rate:,.0f}",
        )  # fmt: skip
        return table

    def write(self, brokers: pa.Table) -> None:
        """Writes every table."""
        place, unread = self._place, brokers.filter(pc.invert(brokers["read"]))["broker"].to_pylist()
        answers = self._namespaces.toArrow()
        namespaces = self._spark.createDataFrame(table_of(answers, NAMESPACES))
        failed = table_of(answers, UNREAD)["name"].to_pylist()
        self._bundles = all_bundles(namespaces, self._answers.owned(), partial=bool(unread)).persist()
        coordinators = self._coordinators(self._bundles)
        self._answers.write()
        if self._order.policy.metrics_urls:
            place.add(METRICS, rows_of(ask_endpoints(self._spark, self._settings, self._order.policy), METRICS))
        place.write(DRILLED, self._drilled(namespaces, self._bundles))
        place.write(NAMESPACES, namespaces.coalesce(1))
        place.write(BUNDLES, self._with_positions(self._bundles, coordinators))
        place.write(TRANSACTION_COORDINATORS, self._frame(TRANSACTION_COORDINATORS, coordinators))
        place.write(BROKERS, self._spark.createDataFrame(brokers).coalesce(1))
        place.write(SNAPSHOT, self._frame(SNAPSHOT, [self._meta(unread, failed)]))

    def end(self) -> None:
        """Gives back what was kept."""
        self._answers.end()
        for kept in (self._bundles, self._details):
            if kept is not None:
                kept.unpersist()

    def _drilled(self, namespaces: DataFrame, bundles: DataFrame) -> DataFrame:
        """Asks owners about suspects."""
        policy, metrics = self._order.policy, self._place.read(METRICS)
        topics = worst_of(self._answers.suspects(), policy.drilled_topics)
        tasks = tasks_of(wanted_of(topics, namespaces), bundles, self._overview.pulsar_cluster)
        log.info("%s suspects on %s brokers are asked about", f"{len(topics):,}", f"{len(tasks):,}")
        if not tasks:
            return self._frame(DRILLED, [])
        self._details = ask_owners(self._spark, self._settings, tasks, policy).persist()
        return drilled(self._details, metrics).coalesce(1)

    def _meta(self, unread: Sequence[str], failed: Sequence[str]) -> dict[str, object]:
        overview, order = self._overview, self._order
        return {
            "snapshot_id": f"{order.cluster}-{stamp_of(order.taken_at)}",
            "cluster": order.cluster,
            "pulsar_cluster": overview.pulsar_cluster,
            "metadata_id": overview.identity.metadata_id,
            "taken_at": order.taken_at,
            "pulsar_version": overview.version,
            "load_manager": overview.load_manager,
            "unread_brokers": sorted(unread),
            "unread_namespaces": sorted([*overview.unread, *failed]),
            "coordinators": overview.coordinators,
            "tcs_by_bundle": overview.tcs_by_bundle,
        }

    def _coordinators(self, bundles: DataFrame) -> list[dict[str, Any]]:
        system = bundles.where(bundles["namespace"] == TC_NAMESPACE).select("bundle", "owner", "owner_known")
        known = [SystemBundle(*row) for row in system.collect()]
        return [msgspec.structs.asdict(each) for each in placement(self._overview.coordinators, known)]

    def _with_positions(self, bundles: DataFrame, coordinators: Sequence[Mapping[str, Any]]) -> DataFrame:
        found: dict[str, list[int]] = defaultdict(list)
        for each in coordinators:
            if each["bundle"] is not None:
                found[each["bundle"]].append(each["position"])
        if not found:
            return bundles
        rows = [{"bundle": bundle, "computed": sorted(positions)} for bundle, positions in found.items()]
        return with_positions(bundles, self._spark.createDataFrame(pa.Table.from_pylist(rows)))

    def _frame(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
        return self._spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=schema_of(table))).coalesce(1)
