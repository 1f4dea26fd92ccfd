"""Collection of all charts' data from one snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.report.checkup.measures.data import Measures
from pulsar_steward.report.checkup.measures.limits import limited_backlogs
from pulsar_steward.report.checkup.measures.placement import broker_loads, crowded_namespaces, largest_backlogs
from pulsar_steward.report.checkup.measures.subscriptions import delayed, holed
from pulsar_steward.report.checkup.measures.trends import trends

if TYPE_CHECKING:
    from pulsar_steward.snapshots.read import Snapshot


def measures_of(snapshot: Snapshot) -> Measures:
    """Reads the charts' data; DuckDB processes a table of a million topics, not Python row by row.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    return Measures(
        brokers=broker_loads(snapshot),
        crowded=crowded_namespaces(snapshot),
        backlog=largest_backlogs(snapshot),
        limited=limited_backlogs(snapshot),
        ack_holes=holed(snapshot),
        delayed=delayed(snapshot),
        trends=trends(snapshot),
    )
