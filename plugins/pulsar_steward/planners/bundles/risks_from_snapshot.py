"""Risks of changing bundles, from a snapshot: only topics with a risk become objects.

At the call the guards look again, at the owner's own statistics and metrics.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.facts.risks import (
    PERSISTED_HOLES,
    TRACKER,
    SubscriptionFigures,
    TopicFigures,
    surroundings_of,
)
from pulsar_steward.model.series import AGE, AGE_LIMIT, DELAYED_INDEX, SIZE_LIMIT
from pulsar_steward.model.setting import SettingName
from pulsar_steward.model.tables import CONFIGURATION, METRICS, SUBSCRIPTIONS, TOPICS
from pulsar_steward.planners.bundles.columns import of_bundles
from pulsar_steward.planners.bundles.facts import RiskFigures
from pulsar_steward.planners.settings.from_snapshot import own_settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pulsar_steward.facts.risks import Surroundings
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.policy.guards import GuardsPolicy
    from pulsar_steward.snapshots.read import Snapshot


def risk_figures(
    snapshot: Snapshot,
    bundles: Collection[tuple[str, str]],
    defaults: Mapping[SettingName, Setting],
    policy: GuardsPolicy,
) -> RiskFigures:
    """Risks of changing these bundles.

    Args:
        snapshot: The snapshot.
        bundles: Namespaces and ranges.
        defaults: Settings in force where a namespace sets nothing.
        policy: The margin to quotas.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    if not bundles:
        return RiskFigures()
    around = _surroundings(snapshot, sorted({namespace for namespace, _ in bundles}), defaults)
    columns = ["topic", "namespace", "bundle", "broker", "producers", "subscriptions", "backlog_bytes"]
    topics = snapshot.table(TOPICS, columns, of_bundles(bundles))
    topics = topics.filter(
        pc.and_(pc.greater(topics["subscriptions"], 0), pc.greater_equal(topics["backlog_bytes"], 0))
    )
    told = _told(snapshot, topics)
    holey = _holey(snapshot, topics, around)
    risky = told.filter(_risky(told, around, holey, policy.quota_margin_percent))
    figures: defaultdict[str, list[TopicFigures]] = defaultdict(list)
    for row in risky.sort_by("topic").to_pylist():
        figures[f"{row['namespace']}/{row['bundle']}"].append(_figures(row, holey.get(row["topic"], ())))
    return RiskFigures(figures={name: tuple(each) for name, each in sorted(figures.items())}, around=around)


def _figures(row: dict[str, Any], subscriptions: tuple[SubscriptionFigures, ...]) -> TopicFigures:
    return TopicFigures(
        topic=row["topic"],
        producers=row["producers"] or 0,
        backlog_bytes=row["backlog_bytes"],
        age_seconds=row["age_seconds"],
        limit_bytes=row["limit_bytes"],
        limit_seconds=row["limit_seconds"],
        delayed_index_bytes=row["delayed_index_bytes"] or 0,
        subscriptions=subscriptions,
    )


def _told(snapshot: Snapshot, topics: pa.Table) -> pa.Table:
    """The topics with figures of metrics; a limit is null where its owner's metrics hold nothing of topics."""
    wanted = [("series", "in", [SIZE_LIMIT, AGE_LIMIT, AGE, DELAYED_INDEX]), ("source_kind", "=", "broker")]
    samples = snapshot.table(METRICS, ["source", "series", "topic", "value"], wanted)
    telling = pc.unique(samples.filter(pc.field("series") == SIZE_LIMIT)["source"])
    tells = pc.is_in(topics["broker"], value_set=telling)
    none = pc.if_else(tells, pa.scalar(-1, pa.int64()), pa.scalar(None, pa.int64()))
    said = {
        name: _series(samples.filter(pc.field("series") == series), topics["topic"])
        for name, series in {
            "limit_bytes": SIZE_LIMIT,
            "limit_seconds": AGE_LIMIT,
            "age_seconds": AGE,
            "delayed_index_bytes": DELAYED_INDEX,
        }.items()
    }
    for name in ("limit_bytes", "limit_seconds"):
        said[name] = pc.coalesce(said[name], none)
    return pa.table({**{name: topics[name] for name in topics.column_names}, **said})


def _series(samples: pa.Table, topics: pa.ChunkedArray) -> pa.ChunkedArray:
    """A series' value for each topic, the largest where it is told several times; null where it is not told."""
    kept = samples.filter(pc.and_(pc.is_valid(samples["topic"]), pc.is_finite(samples["value"])))
    largest = kept.group_by("topic").aggregate([("value", "max")])
    values = pc.take(largest["value_max"], pc.index_in(topics, value_set=largest["topic"]))
    return pc.cast(pc.floor(values), pa.int64())


def _risky(
    topics: pa.Table,
    around: Mapping[str, Surroundings],
    holey: Mapping[str, tuple[SubscriptionFigures, ...]],
    margin_percent: int,
) -> pa.ChunkedArray:
    """True for topics that add anything to the sum of risks."""
    sizes = {name: each.quotas.get(SettingName.SIZE_QUOTA) for name, each in around.items()}
    ages = {name: each.quotas.get(SettingName.AGE_QUOTA) for name, each in around.items()}
    most_bytes = {name: quota.limit_bytes if quota else -1 for name, quota in sizes.items()}
    most_seconds = {name: quota.limit_seconds if quota else -1 for name, quota in ages.items()}
    by_size = _near(topics["backlog_bytes"], _in_force(topics, "limit_bytes", most_bytes), margin_percent, least=0)
    by_age = _near(topics["age_seconds"], _in_force(topics, "limit_seconds", most_seconds), margin_percent, least=1)
    indexed = pc.fill_null(pc.greater(topics["delayed_index_bytes"], 0), fill_value=False)
    with_holes = pc.is_in(topics["topic"], value_set=pa.array(sorted(holey), pa.string()))
    return pc.or_(pc.or_(by_size, by_age), pc.or_(indexed, with_holes))


def _in_force(topics: pa.Table, column: str, common: Mapping[str, int]) -> pa.ChunkedArray:
    """A topic's limit; where its owner tells none, the namespace's."""
    limits = pa.array(common.values(), pa.int64())
    index = pc.index_in(topics["namespace"], value_set=pa.array(common.keys(), pa.string()))
    return pc.coalesce(topics[column], pc.take(limits, index))


def _near(used: pa.ChunkedArray, limit: pa.ChunkedArray, margin_percent: int, *, least: int) -> pa.ChunkedArray:
    """True where so much of a limit is used that the margin is not free; a limit below the least one is none."""
    full = pc.multiply(pc.cast(limit, pa.float64()), 100.0 - margin_percent)
    used_up = pc.greater_equal(pc.multiply(pc.cast(used, pa.float64()), 100.0), full)
    near = pc.and_(pc.greater_equal(limit, least), used_up)
    return pc.fill_null(near, fill_value=False)


def _holey(
    snapshot: Snapshot, topics: pa.Table, around: Mapping[str, Surroundings]
) -> dict[str, tuple[SubscriptionFigures, ...]]:
    """Subscriptions with more ack holes than are persisted, by topic."""
    least = min(each.persisted_holes for each in around.values())
    columns = ["topic", "namespace", "subscription", "backlog_entries", "ack_holes", "entries_since_first_gap"]
    wanted = [("ack_holes", ">", least), ("namespace", "in", sorted(around))]
    table = snapshot.table(SUBSCRIPTIONS, columns, wanted)
    ours = table.filter(pc.is_in(table["topic"], value_set=topics["topic"]))
    found: defaultdict[str, list[SubscriptionFigures]] = defaultdict(list)
    for row in ours.sort_by([("topic", "ascending"), ("subscription", "ascending")]).to_pylist():
        found[row["topic"]].append(
            SubscriptionFigures(
                subscription=row["subscription"],
                backlog_entries=row["backlog_entries"] or 0,
                holes=row["ack_holes"],
                entries_since_first_gap=row["entries_since_first_gap"] or 0,
            )
        )
    return {topic: tuple(each) for topic, each in found.items()}


def _surroundings(
    snapshot: Snapshot, namespaces: list[str], defaults: Mapping[SettingName, Setting]
) -> dict[str, Surroundings]:
    rows = snapshot.table(CONFIGURATION, ["key", "value"], [("key", "in", [PERSISTED_HOLES, TRACKER])]).to_pylist()
    holes = _usual(row["value"] for row in rows if row["key"] == PERSISTED_HOLES)
    tracker = _usual(row["value"] for row in rows if row["key"] == TRACKER)
    own = own_settings(snapshot, namespaces)
    persisted = holes if holes.isdecimal() else ""
    return {name: surroundings_of({**defaults, **own.get(name, {})}, persisted, tracker) for name in namespaces}


def _usual(values: Iterable[str | None]) -> str:
    """The value of most brokers; of equals, the first in order."""
    counts = Counter(value for value in values if value)
    return min(counts, key=lambda value: (-counts[value], value), default="")
