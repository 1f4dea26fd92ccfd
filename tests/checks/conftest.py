"""Checks on snapshots made of rows; in `make test-all` each also with every broker as a shard of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pytest

from pulsar_steward.diagnose.runner import SnapshotSources, run_checks
from pulsar_steward.model.tables import SHARDED, SMALL_BEFORE
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import on_this_thread
from pulsar_steward.snapshots.database import schema_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import Check, Judgement
    from pulsar_steward.checks.views import SqlView
    from pulsar_steward.model.tables import Table

Rows = dict[str, list[dict[str, Any]]]
"""A snapshot by table; rows may leave columns out, and tables that are left out are empty."""


class JudgeRows(Protocol):
    """A check's judgement of a snapshot of rows."""

    def __call__(
        self, check: Check, rows: Rows, policy: Policy | None = None, earlier: Sequence[Rows] = ()
    ) -> Judgement:
        """Judges; `earlier` snapshots are the newest first."""


CUT: set[str] = set()
"""Checks whose rows were judged in shards in this process."""


def judging(views: Sequence[SqlView], *, cut_each: bool = True) -> JudgeRows:
    """Judges with these views.

    Args:
        views: The views.
        cut_each: Rows of several brokers are judged in shards each time, and the judgement must be the same; False:
            only the first time of each check, as that takes twice as long as judging them whole.
    """

    def judge(check: Check, rows: Rows, policy: Policy | None = None, earlier: Sequence[Rows] = ()) -> Judgement:
        def judged(*, by_broker: bool) -> Judgement:
            sources = _sources(rows, earlier, by_broker=by_broker)
            return run_checks(sources, policy or Policy(), [check], views, on_this_thread)[0].judgement

        whole = judged(by_broker=False)
        new = cut_each or check.check_id not in CUT
        if new and any(len(_by_broker(each)) > 1 for each in (rows, *earlier)):  # else it is the same snapshot
            CUT.add(check.check_id)
            assert judged(by_broker=True) == whole
        return whole

    return judge


def arrow_of(table: Table, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """A table of rows that may leave columns out."""
    columns = {name: [row.get(name) for row in rows] for name in table.names}
    return pa.Table.from_pydict(columns, schema=schema_of(table))


def _sources(rows: Rows, earlier: Sequence[Rows] = (), *, by_broker: bool) -> SnapshotSources:
    small = {table.name: arrow_of(table, rows.get(table.name, [])) for table in SMALL_BEFORE}
    parts = _by_broker(rows) if by_broker else [rows]
    shards = [{table.name: arrow_of(table, part.get(table.name, [])) for table in SHARDED} for part in parts]
    return SnapshotSources(small, shards, [_sources(each, by_broker=by_broker) for each in earlier])


def _by_broker(rows: Rows) -> list[Rows]:
    """The large tables, a part for each broker, one for what is of none."""
    owners = {row["topic"]: row.get("broker") for row in rows.get("topics", [])}
    parts: dict[str | None, Rows] = {}
    for table in SHARDED:
        for row in rows.get(table.name, []):
            source = row.get("source") if table.name == "metrics" else owners.get(row["topic"])
            parts.setdefault(source, {}).setdefault(table.name, []).append(row)
    return list(parts.values()) or [{}]


@pytest.fixture
def judge_rows(pytestconfig: pytest.Config) -> JudgeRows:
    """Any check's judgement of rows."""
    from pulsar_steward.checks.registry import VIEWS  # noqa: PLC0415 - checks of a subject may be tried without the others

    return judging(VIEWS, cut_each=pytestconfig.getoption("--tier", "all") == "all")
