"""Checks on snapshots made of rows; in `make test-all` each also with every broker as a shard of its own."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pytest

from pulsar_steward.diagnose.runner import SnapshotSources, run_checks
from pulsar_steward.model.tables import SHARDED, SMALL_BEFORE
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import on_this_thread
from pulsar_steward.snapshots.database import schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pulsar_steward.checks.check import Check, Judgement
    from pulsar_steward.model.finding import Severity
    from pulsar_steward.model.tables import Table

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
"""As in `tests.builders`, which a copy of this file beside a guide's test does without."""

Rows = dict[str, list[dict[str, Any]]]
"""A snapshot by table; rows may leave columns out, and tables that are left out are empty."""


ABOUT: Rows = {"snapshot": [{"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}]}
"""What a snapshot is where its rows do not say it: a whole one."""


class Cutting:
    """Which rows of several brokers are also judged in shards, which takes twice as long as judging them whole.

    Attributes:
        each: All of them; False: only the first rows of each check.
        done: Checks whose rows were judged in shards in this process.
    """

    each = True
    done: ClassVar[set[str]] = set()


def pytest_configure(config: pytest.Config) -> None:
    """All rows are cut in `make test-all`."""
    Cutting.each = config.getoption("--tier", "all") == "all"


def judge_rows(check: Check, rows: Rows, policy: Policy | None = None, earlier: Sequence[Rows] = ()) -> Judgement:
    """Any check's judgement of a snapshot of rows, cut into shards the same; `earlier` ones are the newest first."""
    from pulsar_steward.checks.registry import VIEWS  # noqa: PLC0415 - checks of a subject may be tried without the others

    rows = ABOUT | rows

    def judged(*, by_broker: bool) -> Judgement:
        sources = _sources(rows, earlier, by_broker=by_broker)
        return run_checks(sources, policy or Policy(), [check], VIEWS, on_this_thread)[0].judgement

    whole = judged(by_broker=False)
    new = Cutting.each or check.check_id not in Cutting.done
    if new and any(len(_by_broker(each)) > 1 for each in (rows, *earlier)):  # else it is the same snapshot
        Cutting.done.add(check.check_id)
        assert judged(by_broker=True) == whole
    return whole


def minutes_ago(minutes: float, rows: Rows) -> Rows:
    """Rows as those of a snapshot that was taken so many minutes before."""
    return {"snapshot": [ABOUT["snapshot"][0] | {"taken_at": NOW - timedelta(minutes=minutes)}]} | rows


def outcome(judgement: Judgement) -> tuple[Severity | None, bool]:
    """The severity of the only finding, or of none, and whether the check cannot tell."""
    return severity_of(judgement), judgement.cannot_tell is not None


def severity_of(judgement: Judgement) -> Severity | None:
    """The severity of the only finding; None: there is none."""
    assert len(judgement.findings) <= 1
    return judgement.findings[0].severity if judgement.findings else None


def as_text(figures: Mapping[str, int]) -> str:
    """A finding's figures, a line each."""
    return "\n".join(f"{name}: {value!r}" for name, value in sorted(figures.items()))


def told(judgements: Mapping[str, Judgement]) -> str:
    """What is said of each case, by the rule that it shows: the first findings, how many more, what is not known."""
    lines = []
    for rule, each in judgements.items():
        lines.append(f"* {rule}")
        for one in each.findings[:3]:
            lines.append(f"  {one.severity} {one.subject}: {one.evidence}")
            lines.append(f"    {', '.join(as_text(one.figures).splitlines())}")
        lines += [f"  {len(each.findings)} findings, {each.more} more"] if len(each.findings) > 3 else []
        lines += [f"  quiet: {each.quiet}"] if not each.findings and each.quiet else []
        lines += [f"  cannot tell: {each.cannot_tell}"] if each.cannot_tell else []
    return "\n".join(lines)


def samples(
    values: Mapping[str, float | None], source: str = "a:1", kind: str = "broker", **labels: str
) -> list[dict[str, Any]]:
    """Samples of a process by series, with these labels; None: it does not tell the series."""
    about = {"source": source, "source_kind": kind, "labels_json": json.dumps(labels, sort_keys=True)}
    return [about | {"series": series, "value": float(value)} for series, value in values.items() if value is not None]


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


@pytest.fixture(name="judge_rows")
def _judge_rows() -> Callable[..., Judgement]:
    """The same for a test that is in no package, as that of docs/adding-a-check.md."""
    return judge_rows
