"""What the planner of settings is given, read from a snapshot and those before it: only of namespaces with findings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.admin.own_settings import NamespaceDocument
from pulsar_steward.errors import SnapshotError
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.tables import CONFIGURATION, NAMESPACES, TOPICS
from pulsar_steward.planners.settings.facts import MOST_BACKLOGS, Look, NamespaceFact
from pulsar_steward.planners.settings.wanted import ANSWERED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.snapshots.read import Snapshot

LOOK_BACK = 12
"""Earlier snapshots in which backlogs are looked at."""

_GIB = 1 << 30


def namespace_facts(snapshot: Snapshot, findings: Iterable[Finding]) -> tuple[NamespaceFact, ...]:
    """Facts of the namespaces that findings about settings name, by name.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    names = sorted({finding.subject for finding in findings if finding.check_id in ANSWERED})
    if not names:
        return ()
    known = _documents(snapshot, names)
    looked = [(each.meta().taken_at, _topics(each, names)) for each in (snapshot, *snapshot.earlier(LOOK_BACK))]
    now = looked[0][1]
    return tuple(
        NamespaceFact(
            namespace=name,
            own=known[name],
            looks=tuple(_look(taken_at, _of(topics, name)) for taken_at, topics in looked),
            busiest_bytes_per_second=_most(_of(now, name)["throughput_in_bytes"]),
            stored_bytes=int(pc.sum(_of(now, name)["storage_bytes"]).as_py() or 0),
        )
        for name in names
        if name in known
    )


def defaults_of(snapshot: Snapshot) -> dict[SettingName, Setting]:
    """What most brokers do where a namespace sets nothing; what is not known or means "nothing" is absent.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    counts: dict[str, Counter[str]] = {}
    for row in snapshot.table(CONFIGURATION, ["key", "value"]).to_pylist():
        if row["value"] is not None:
            counts.setdefault(row["key"], Counter())[row["value"]] += 1
    values = {key: min(found, key=lambda value: (-found[value], value)) for key, found in counts.items()}
    return dict(_defaults(values))


def _defaults(values: Mapping[str, str]) -> Iterable[tuple[SettingName, Setting]]:
    policy = values.get("backlogQuotaDefaultRetentionPolicy", "")
    gigabytes = _number(values, "backlogQuotaDefaultLimitGB")
    size = int(gigabytes * _GIB) if gigabytes > 0 else int(_number(values, "backlogQuotaDefaultLimitBytes"))
    age = int(_number(values, "backlogQuotaDefaultLimitSecond"))
    if policy in set(QuotaPolicy) and size > 0:
        yield SettingName.SIZE_QUOTA, BacklogQuota(limit_bytes=size, policy=QuotaPolicy(policy))
    if policy in set(QuotaPolicy) and age > 0:
        yield SettingName.AGE_QUOTA, BacklogQuota(limit_seconds=age, policy=QuotaPolicy(policy))
    minutes, megabytes = (
        int(_number(values, key)) for key in ("defaultRetentionTimeInMinutes", "defaultRetentionSizeInMB")
    )
    if minutes or megabytes:
        yield SettingName.RETENTION, Retention(minutes=minutes, megabytes=megabytes)
    if (seconds := int(_number(values, "ttlDurationDefaultInSeconds"))) > 0:
        yield SettingName.TTL, TimeToLive(seconds=seconds)


def _number(values: Mapping[str, str], key: str) -> float:
    try:
        return max(float(values[key]), -1.0)
    except (KeyError, ValueError):
        return 0.0


def _documents(snapshot: Snapshot, names: Sequence[str]) -> dict[str, dict[SettingName, Setting]]:
    rows = snapshot.table(NAMESPACES, ["namespace", "policies_json"], [("namespace", "in", names)]).to_pylist()
    try:
        return {
            row["namespace"]: msgspec.json.decode(row["policies_json"], type=NamespaceDocument).settings
            for row in rows
            if row["policies_json"] is not None
        }
    except msgspec.DecodeError as error:
        raise SnapshotError(f"{snapshot.uri}: the policies of a namespace are of another shape: {error}") from error


def _topics(snapshot: Snapshot, names: Sequence[str]) -> pa.Table:
    columns = ["namespace", "backlog_bytes", "throughput_in_bytes", "storage_bytes"]
    return snapshot.table(TOPICS, columns, [("namespace", "in", names)])


def _of(topics: pa.Table, name: str) -> pa.Table:
    return topics.filter(pc.field("namespace") == name)


def _look(taken_at: datetime, topics: pa.Table) -> Look:
    backlogs = pc.drop_null(topics["backlog_bytes"]).combine_chunks()
    largest = pc.select_k_unstable(backlogs, k=min(MOST_BACKLOGS, len(backlogs)), sort_keys=[("x", "descending")])
    return Look(taken_at=taken_at, topics=topics.num_rows, backlogs=tuple(backlogs.take(largest).to_pylist()))


def _most(column: pa.ChunkedArray) -> float:
    return float(pc.max(column).as_py() or 0.0)
