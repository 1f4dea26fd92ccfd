"""The calls that change a cluster, as data: a dry run prints the same calls that the writer sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

import msgspec

from pulsar_steward.errors import InvalidName
from pulsar_steward.model.setting import (
    BacklogQuota,
    DelayedDelivery,
    Persistence,
    Retention,
    Setting,
    SettingName,
    TimeToLive,
)
from pulsar_steward.pulsar import paths

if TYPE_CHECKING:
    from pulsar_steward.model.isolation import IsolationPolicy


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request of the admin API, without host and credentials."""

    method: Literal["GET", "PUT", "POST", "DELETE"]
    path: str
    query: dict[str, str] = {}
    body: dict[str, Any] | int | None = None

    def __str__(self) -> str:
        query = f"?{urlencode(self.query, safe=':')}" if self.query else ""
        body = f" {msgspec.json.encode(self.body).decode()}" if self.body is not None else ""
        return f"{self.method} {self.path}{query}{body}"


DECODED_TWICE = frozenset("%+")
"""Characters that change in a subscription's name, as brokers decode the name twice (4.0.7)."""


def unload(namespace: str, bundle: str, destination: str) -> Call:
    """Unloads a bundle from its owner; the next lookup loads it on the destination (``host:webport``)."""
    path = paths.namespace(namespace, paths.segment(bundle), "unload")
    return Call(method="PUT", path=path, query={"destinationBroker": destination})


def split(namespace: str, bundle: str, algorithm: str) -> Call:
    """Splits a bundle in two; its owner keeps both halves."""
    path = paths.namespace(namespace, paths.segment(bundle), "split")
    return Call(method="PUT", path=path, query={"unload": "false", "splitAlgorithmName": algorithm})


def look_up(topic: str) -> Call:
    """Looks up a topic, so that a broker loads its bundle: the destination of a preceding unload, if any."""
    return Call(method="GET", path=paths.lookup(topic))


def delete_subscription(topic: str, subscription: str) -> Call:
    """Deletes a subscription of a topic or partition; without `force`, so brokers refuse it if a consumer is connected.

    Raises:
        InvalidName: If its name or the topic's cannot be a part of a path, or brokers would read another name.
    """
    if misread := sorted(set(subscription) & DECODED_TWICE):
        raise InvalidName(
            f"brokers decode the name of subscription {subscription!r} twice, and would read {' and '.join(misread)} in"
            " it as something else: delete it by hand"
        )
    return Call(method="DELETE", path=f"{paths.topic(topic)}/subscription/{paths.segment(subscription)}")


def set_to(holder: str, name: SettingName, value: Setting | None) -> Call:
    """Sets a setting of a namespace (``tenant/ns``) or topic (full name); the value None removes it there.

    Every field is sent. Seen on 4.0.7: a missing field of a topic's quota is stored as 0, and delayed delivery without
    `active` is off.
    """
    path = f"{paths.topic(holder) if '://' in holder else paths.namespace(holder)}/{_LAST[name]}"
    query = {"backlogQuotaType": name.quota_type} if _LAST[name] == _QUOTA else {}
    if value is None:
        return Call(method="DELETE", path=path, query=query)
    if isinstance(value, TimeToLive) and "://" in holder:
        return Call(method="POST", path=path, query={"messageTTL": str(value.seconds)})
    return Call(method="POST", path=path, query=query, body=_body(value))


def _body(value: Setting) -> dict[str, Any] | int:
    match value:
        case BacklogQuota():
            return {"limitSize": value.limit_bytes, "limitTime": value.limit_seconds, "policy": value.policy}
        case Retention():
            return {"retentionTimeInMinutes": value.minutes, "retentionSizeInMB": value.megabytes}
        case TimeToLive():
            return value.seconds
        case DelayedDelivery():
            return {
                "active": value.active,
                "tickTime": value.tick_milliseconds,
                "maxDeliveryDelayInMillis": value.longest_milliseconds,
            }
        case Persistence():
            stored = {} if value.storage_class is None else {"managedLedgerStorageClassName": value.storage_class}
            return {
                "bookkeeperEnsemble": value.ensemble,
                "bookkeeperWriteQuorum": value.write_quorum,
                "bookkeeperAckQuorum": value.ack_quorum,
                "managedLedgerMaxMarkDeleteRate": value.writes_per_second,
                **stored,
            }


def raise_coordinators(number: int) -> Call:
    """Raises the number of transaction coordinators; brokers refuse a number that is not higher (406)."""
    return Call(method="POST", path=paths.COORDINATORS, body=number)


def add_partitions(topic: str, number: int) -> Call:
    """Raises the number of a topic's partitions; brokers refuse a lower number (406, 409 or 422 by version).

    Brokers copy the subscriptions of the first partition to the new ones, from their beginning
    (`PersistentTopicsBase.internalUpdatePartitionedTopicAsync`). Without `force` they refuse it where a topic already
    has the name of a new partition.
    """
    return Call(method="POST", path=f"{paths.topic(topic)}/partitions", body=number)


def set_isolation(pulsar_cluster: str, name: str, policy: IsolationPolicy) -> Call:
    """Sets a namespace isolation policy so that no bundle is unloaded for it.

    Brokers before 3.0.7 and 3.3.2 do not know the scope, and may unload every namespace of the policy at once
    (docs/pulsar-behaviour.md).
    """
    body = {**msgspec.to_builtins(policy), "unload_scope": "none"}
    return Call(method="POST", path=paths.isolation(pulsar_cluster, name), body=body)


def delete_isolation(pulsar_cluster: str, name: str) -> Call:
    """Deletes a namespace isolation policy; no version unloads a bundle for that, and 204 is said of a missing one."""
    return Call(method="DELETE", path=paths.isolation(pulsar_cluster, name))


_QUOTA = "backlogQuota"
_LAST = {
    SettingName.SIZE_QUOTA: _QUOTA,
    SettingName.AGE_QUOTA: _QUOTA,
    SettingName.RETENTION: "retention",
    SettingName.TTL: "messageTTL",
    SettingName.DELAYED_DELIVERY: "delayedDelivery",
    SettingName.PERSISTENCE: "persistence",
}
