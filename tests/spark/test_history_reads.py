"""What is read of earlier snapshots: few tables, and few columns of these."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.model import measures
from pulsar_steward.model.tables import (
    BROKERS,
    BUNDLES,
    COLLECTED,
    DIAGNOSED,
    FINDINGS,
    METRICS,
    SNAPSHOT,
    TOPICS,
    TRENDS,
    VERDICTS,
)
from pulsar_steward.snapshots.read import open_snapshot
from steward_spark.checks.backlog._growth import grown_since, rises
from steward_spark.checks.placement._moves import away, owners
from steward_spark.checks.placement._moves import moves as moved
from steward_spark.diagnosing import DEFECT, diagnose
from steward_spark.frames import Frames
from tests.builders import CLUSTER, NOW, a_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pulsar_steward.model.tables import Table
    from steward_spark.place import SnapshotPlace

pytestmark = pytest.mark.spark

STEP = timedelta(minutes=15)
DAY = timedelta(days=1)
BEFORE_THE_WINDOWS = {SNAPSHOT}
WITHIN_THE_WINDOWS = {SNAPSHOT, BUNDLES, TOPICS, BROKERS, METRICS}
NEWEST = WITHIN_THE_WINDOWS | {FINDINGS, VERDICTS, TRENDS}


def rows(ago: timedelta, owner: str = "a:1", backlog_bytes: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Two brokers, a bundle that one of them owns, and a topic without a quota."""
    about = {"cluster": CLUSTER, "taken_at": NOW - ago, "unread_brokers": [], "unread_namespaces": []}
    topic = {"topic": "persistent://acme/orders/t", "namespace": "acme/orders", "backlog_bytes": backlog_bytes}
    return {
        "snapshot": [{**about, "coordinators": 0}],
        "brokers": [{"broker": name, "read": True} for name in ("a:1", "b:1")],
        "bundles": [{"namespace": "acme/orders", "bundle": "0x0_0x1", "owner": owner, "owner_known": True}],
        "namespaces": [{"namespace": "acme/orders", "policies_json": "{}"}],
        "topics": [topic],
        "metrics": [
            {"source": name, "source_kind": "broker", "series": "process_start_time_seconds", "value": 1.0}
            for name in ("a:1", "b:1")
        ],
        "configuration": [
            {"broker": "a:1", "key": "backlogQuotaDefaultLimitBytes", "value": "-1"},
            {"broker": "a:1", "key": "backlogQuotaDefaultLimitSecond", "value": "-1"},
        ],
    }


def spoil(place: SnapshotPlace, but: set[Table]) -> None:
    """Makes all tables of a snapshot unreadable, but a few."""
    for table in {*COLLECTED, *DIAGNOSED} - but:
        for file in Path(place.uri, table.name).glob("*.parquet"):
            file.write_bytes(b"not Parquet")


@pytest.mark.extended(
    "tests/spark/test_history_reads.py::test_queries_open_the_files_and_columns_that_they_need",
    "tests/spark/test_history.py::test_no_more_is_read_than_is_needed",
)
def test_tables_that_history_does_not_need_are_not_opened(
    spark: SparkSession, place_of: Callable[[dict[str, list[dict[str, Any]]]], SnapshotPlace]
) -> None:
    """Of snapshots before the windows only when they were taken, of the newest also what was found and recorded."""
    places = [place_of(rows(DAY))]
    for ago, owner in ((4, "a:1"), (3, "b:1"), (2, "a:1"), (1, "b:1"), (0, "a:1")):
        places.append(place_of(rows(ago * STEP, owner, (10 - ago) * 10**10)))
    *older, newest, now = places
    for place in older:
        diagnose(spark, place.uri, a_policy(), [])
    diagnose(spark, newest.uri, a_policy())
    for place, needed in zip(places, [BEFORE_THE_WINDOWS, *[WITHIN_THE_WINDOWS] * 3, NEWEST], strict=False):
        spoil(place, needed)

    snapshot = open_snapshot(diagnose(spark, now.uri, a_policy()))

    assert [each.check_id for each in snapshot.verdicts() if each.reason.startswith(DEFECT)] == []
    in_a_row = {finding.check_id: finding.snapshots_in_a_row for finding in snapshot.findings()}
    assert (in_a_row["bundle-flapping"], in_a_row["backlog-growing"]) == (2, 2)
    recorded = [row.taken_at for row in snapshot.trends() if row.measure == measures.CLUSTER_TOPICS]
    assert recorded == [NOW - DAY, *(NOW - ago * STEP for ago in (4, 3, 2, 1, 0))]


def bundles_moved(snapshots: Sequence[Frames]) -> DataFrame:
    """Bundles that changed their owner."""
    return moved(owners(snapshots))


def backlogs_grown(snapshots: Sequence[Frames]) -> DataFrame:
    """Topics that grew since the first of the snapshots."""
    before, *_, now = snapshots
    few = now.read(TOPICS).select("topic", "backlog_bytes").limit(1)
    return grown_since(few, now, before)


def backlogs_over_time(snapshots: Sequence[Frames]) -> DataFrame:
    """Backlogs of two topics."""
    return rises(snapshots, ["t", "u"])


@pytest.mark.parametrize(
    ("query", "opened", "columns"),
    [
        (bundles_moved, {(0, "bundles"), (1, "bundles"), (2, "bundles")}, {"namespace,bundle,owner"}),
        (backlogs_grown, {(0, "topics"), (2, "topics")}, {"topic,backlog_bytes"}),
        (backlogs_over_time, {(0, "topics"), (1, "topics"), (2, "topics")}, {"topic,backlog_bytes"}),
        (
            away,
            {(number, table) for number in range(3) for table in ("brokers", "bundles", "metrics")},
            {"broker", "broker,read", "namespace,owner", "source,source_kind,series,value"},
        ),
    ],
)
def test_queries_open_the_files_and_columns_that_they_need(
    place_of: Callable[[dict[str, list[dict[str, Any]]]], SnapshotPlace],
    query: Callable[[Sequence[Frames]], DataFrame],
    opened: set[tuple[int, str]],
    columns: set[str],
) -> None:
    """As Spark plans them on tables that are too large to be read into the driver as they are."""
    places = [place_of(rows(ago * STEP)) for ago in (2, 1, 0)]

    frame = query([Frames(place.read) for place in places])

    numbers = {place.name: number for number, place in enumerate(places)}
    files = [file.split("/")[-3:-1] for file in frame.inputFiles()]
    assert {(numbers[snapshot], table) for snapshot, table in files} == opened
    plan = frame._jdf.queryExecution().executedPlan().toString()
    schemas = re.findall(r"ReadSchema: struct<(.*?)>", plan)
    assert {re.sub(r":\w+", "", schema) for schema in schemas} == columns
