"""Backlogs of a namespace's topics in a snapshot: their sizes and ages, and stored data that nobody waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.admin.own_settings import own_settings_in
from pulsar_steward.facts.backlogs import Backlog, TopicAge, ages_of
from pulsar_steward.model.setting import BacklogQuota, SettingName
from pulsar_steward.model.tables import DRILLED, SUBSCRIPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.facts.backlogs import BacklogAges
    from pulsar_steward.snapshots.read import Snapshot

WHY_UNKNOWN = "brokers tell it only where an age quota is set, and nothing comes in by which it could be estimated"


def waiting_subscriptions(snapshot: Snapshot, namespaces: Sequence[str]) -> pa.Table:
    """Subscriptions with a backlog of these namespaces: `topic` and `backlog_entries`.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    filters = [("namespace", "in", namespaces), ("backlog_entries", ">", 0)]
    return snapshot.table(SUBSCRIPTIONS, ["topic", "backlog_entries"], filters)


def drilled_ages(snapshot: Snapshot, namespaces: Sequence[str]) -> dict[str, int]:
    """Seconds of the oldest message of a backlog, by topic, of those that brokers told it of.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    rows = snapshot.table(DRILLED, ["topic", "oldest_backlog_age_seconds"], [("namespace", "in", namespaces)])
    known = rows.filter(pc.is_valid(rows["oldest_backlog_age_seconds"])).to_pylist()
    return {row["topic"]: row["oldest_backlog_age_seconds"] for row in known}


def topic_quotas(snapshot: Snapshot, namespaces: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Largest limits in bytes and in seconds of drilled topics under their namespace's retention, by namespace.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    columns = ["namespace", "topic_quota_json", "topic_retention_json"]
    found: dict[str, tuple[int, int]] = {}
    for row in snapshot.table(DRILLED, columns, [("namespace", "in", namespaces)]).to_pylist():
        own = own_settings_in(row["topic_quota_json"] or "{}", row["topic_retention_json"] or "{}")
        if SettingName.RETENTION in own:
            continue
        size, age = (own.get(name) for name in (SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA))
        most = found.get(row["namespace"], (0, 0))
        found[row["namespace"]] = (
            max(most[0], size.limit_bytes if isinstance(size, BacklogQuota) else 0),
            max(most[1], age.limit_seconds if isinstance(age, BacklogQuota) else 0),
        )
    return found


def consumed_bytes(topics: pa.Table) -> int:
    """Stored bytes of topics that none of their subscriptions waits for."""
    stored, waits = (pc.fill_null(topics[name], 0) for name in ("storage_bytes", "backlog_bytes"))
    return int(pc.sum(pc.max_element_wise(pc.subtract(stored, waits), 0)).as_py() or 0)


def backlogs_of(topics: pa.Table, subscriptions: pa.Table, most: int) -> tuple[Backlog, ...]:
    """The largest backlogs of topics, falling, with the messages of each subscription.

    Args:
        topics: `topic` and `backlog_bytes`.
        subscriptions: The result of `waiting_subscriptions`.
        most: The largest number of backlogs that is returned.
    """
    waiting = topics.filter(pc.greater(pc.fill_null(topics["backlog_bytes"], 0), 0)).select(["topic", "backlog_bytes"])
    order = [("backlog_bytes", "descending"), ("topic", "ascending")]
    largest = waiting.take(pc.select_k_unstable(waiting, min(most, len(waiting)), sort_keys=order))
    messages: dict[str, list[int]] = {name: [] for name in largest["topic"].to_pylist()}
    ours = subscriptions.filter(pc.is_in(subscriptions["topic"], largest["topic"].combine_chunks()))
    for row in ours.to_pylist():
        messages[row["topic"]].append(row["backlog_entries"])
    return tuple(
        Backlog(topic=row["topic"], bytes=row["backlog_bytes"], messages=tuple(sorted(messages[row["topic"]])))
        for row in largest.to_pylist()
    )


def namespace_ages(topics: pa.Table, drilled: dict[str, int]) -> BacklogAges:
    """Ages of backlogs: as brokers told them, and else the time that they take to come in at the present rate.

    Args:
        topics: `topic`, `backlog_bytes` and `throughput_in_bytes`.
        drilled: The result of `drilled_ages`.
    """
    waiting = topics.filter(pc.greater(pc.fill_null(topics["backlog_bytes"], 1), 0))
    is_told = pc.is_in(waiting["topic"], pa.array(sorted(drilled), pa.string()))
    told = [TopicAge(drilled[name], name) for name in waiting.filter(is_told)["topic"].to_pylist()]
    others = waiting.filter(pc.invert(is_told))
    flowing = others.filter(
        pc.and_(pc.greater(pc.fill_null(others["throughput_in_bytes"], 0.0), 0.0), pc.is_valid(others["backlog_bytes"]))
    )
    unknown = len(others) - len(flowing)
    return ages_of(
        [*told, *_slowest_to_fill(flowing)],
        waiting=len(waiting),
        unknown=unknown,
        why_unknown=WHY_UNKNOWN if unknown else "",
    )


def _slowest_to_fill(topics: pa.Table) -> list[TopicAge]:
    if not len(topics):
        return []
    seconds = pc.divide(pc.cast(topics["backlog_bytes"], pa.float64()), topics["throughput_in_bytes"])
    whole = pc.cast(pc.min_element_wise(pc.ceil(seconds), float(1 << 40)), pa.int64())
    longest = pc.max(whole).as_py()
    topic = pc.max(topics.filter(pc.equal(whole, longest))["topic"]).as_py()
    return [TopicAge(longest, topic, estimated=True)]
