"""Size quota and retention in force, and where they are set (docs/knowledge.md; Pulsar 4.0.7's documents).

A namespace's document has `backlog_quota_map` `{}` where no quota is set, and lacks `retention_policies`. For a quota
of kind `destination_storage` the broker uses `limitSize` alone (`limit` before 2.8); under 0 there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pulsar_steward.model.broker_defaults import KEYS, broker_defaults, most_frequent
from pulsar_steward.model.tables import CONFIGURATION, DRILLED, NAMESPACES
from pulsar_steward.model.units import MIB
from pulsar_steward.report.checkup.measures.data import SetBy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pulsar_steward.snapshots.read import Snapshot

T = TypeVar("T")


class InForce(msgspec.Struct, frozen=True):
    """Limits in the form of `LimitedBacklog`."""

    quota_bytes: int | None = None
    quota_by: SetBy | None = None
    retention_bytes: int | None = None
    retention_by: SetBy | None = None


UNKNOWN = InForce()


class _Quota(msgspec.Struct, frozen=True):
    limitSize: int | None = None  # noqa: N815 - as the document has it
    limit: int | None = None


class _Retention(msgspec.Struct, frozen=True):
    retentionSizeInMB: int = -1  # noqa: N815 - as the document has it


class _Policies(msgspec.Struct, frozen=True):
    backlog_quota_map: dict[str, _Quota] | None = None
    retention_policies: _Retention | None = None

    @property
    def quota(self) -> _Quota | None:
        return (self.backlog_quota_map or {}).get("destination_storage")


def limits_of_namespaces(snapshot: Snapshot, names: Collection[str]) -> dict[str, InForce]:
    """Limits by namespace; a namespace whose document was not read is left out."""
    if not names:
        return {}
    defaults = _defaults(snapshot)
    rows = snapshot.table(NAMESPACES, ["namespace", "policies_json"], [("namespace", "in", set(names))]).to_pylist()
    read = ((row["namespace"], _decoded(row["policies_json"], _Policies)) for row in rows)
    return {name: _of_namespace(policies, defaults) for name, policies in read if policies is not None}


def _of_namespace(policies: _Policies, defaults: InForce) -> InForce:
    made = defaults
    if policies.quota is not None:
        quota = policies.quota
        size = quota.limit if quota.limitSize is None else quota.limitSize
        made = msgspec.structs.replace(made, quota_bytes=_limit(size), quota_by="namespace")
    if policies.retention_policies is not None:
        size = policies.retention_policies.retentionSizeInMB
        made = msgspec.structs.replace(made, retention_bytes=_limit(size, MIB), retention_by="namespace")
    return made


def limits_of_topics(snapshot: Snapshot, namespaces: Mapping[str, InForce]) -> dict[str, InForce]:
    """Limits by topic, for topics whose own statistics were read."""
    columns = ["topic", "namespace", "quota_limit_bytes", "topic_quota_json", "topic_retention_json"]
    rows = snapshot.table(DRILLED, columns).group_by(columns).aggregate([])  # a topic has one row per subscription
    return {row["topic"]: _of_topic(row, namespaces.get(row["namespace"], UNKNOWN)) for row in rows.to_pylist()}


def _of_topic(row: Mapping[str, Any], limits: InForce) -> InForce:
    own = "destination_storage" in (_decoded(row["topic_quota_json"], dict[str, object]) or {})
    quota_by: SetBy = "topic" if own else limits.quota_by or "default"
    limits = msgspec.structs.replace(limits, quota_bytes=_limit(row["quota_limit_bytes"]), quota_by=quota_by)
    set_to = _decoded(row["topic_retention_json"], dict[str, int]) or {}
    if "retentionSizeInMB" not in set_to:
        return limits
    size = _limit(set_to["retentionSizeInMB"], MIB)
    return msgspec.structs.replace(limits, retention_bytes=size, retention_by="topic")


def _defaults(snapshot: Snapshot) -> InForce:
    """Those of most brokers."""
    rows = snapshot.table(CONFIGURATION, ["key", "value"], [("key", "in", set(KEYS))]).to_pylist()
    told = broker_defaults(most_frequent((row["key"], row["value"]) for row in rows))
    return InForce(
        quota_bytes=_limit(told.limit_bytes),
        quota_by=None if told.limit_bytes is None else "default",
        retention_bytes=_limit(told.retention_megabytes, MIB),
        retention_by=None if told.retention_megabytes is None else "default",
    )


def _limit(size: int | None, unit: int = 1) -> int | None:
    """Bytes; under 0 there is no limit."""
    return None if size is None or size < 0 else size * unit


def _decoded(text: str | None, kind: type[T]) -> T | None:
    try:
        return None if text is None else msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError:
        return None
