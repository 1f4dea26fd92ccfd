"""Arrow columns as planners need them: whole numbers, so that sums are the same in whatever order they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.model.bundles import HEARTBEAT

if TYPE_CHECKING:
    from collections.abc import Iterable

    Filter = list[tuple[str, str, object]]

FIGURES = (
    "topics",
    "producers",
    "consumers",
    "message_rate_in",
    "message_rate_out",
    "throughput_in_bytes",
    "throughput_out_bytes",
)
"""The columns of the table `bundles` that make a load."""


def whole(table: pa.Table, *names: str) -> pa.ChunkedArray:
    """The sum of columns, rounded to whole numbers; what is null counts as 0."""
    total = None
    for name in names:
        column = pc.fill_null(table[name], 0)
        total = column if total is None else pc.add(total, column)
    return pc.cast(pc.round(total), pa.int64())


def loads(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The fields of `Load`, by name, of bundles with the columns `FIGURES`."""
    return {
        "topics": whole(table, "topics"),
        "bytes": whole(table, "throughput_in_bytes", "throughput_out_bytes"),
        "messages": whole(table, "message_rate_in", "message_rate_out"),
        "producers": whole(table, "producers"),
        "consumers": whole(table, "consumers"),
    }


def without_heartbeats(table: pa.Table) -> pa.Table:
    """The rows of namespaces that are no broker's heartbeat."""
    return table.filter(pc.invert(pc.match_substring_regex(table["namespace"], HEARTBEAT)))


def of_bundles(named: Iterable[tuple[str, str]]) -> list[Filter]:
    """A filter, as `Snapshot.table` takes them, for rows of these bundles (namespace and range)."""
    by_namespace: dict[str, list[str]] = {}
    for namespace, bundle in sorted(named):
        by_namespace.setdefault(namespace, []).append(bundle)
    return [[("namespace", "=", name), ("bundle", "in", ranges)] for name, ranges in by_namespace.items()]
