"""Namespaces whose quota is missing, or that keep everything for ever."""

from collections.abc import Mapping

from lab.admin import Admin
from lab.demo.scenarios.scenario import Scenario, Shown
from lab.faults.fault import RealFault
from lab.faults.registry import REAL
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from lab.target import PulsarTarget

BACKLOG_MESSAGES, MESSAGE_BYTES = 400_000, 100
KEPT_FOR_EVER: dict[str, object] = {"retention_policies": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}}


def _fault(name: str) -> RealFault:
    return next(fault for fault in REAL if fault.name == name)


def _made_up(namespace: str, policies: dict[str, object]) -> ClusterSpec:
    subscription = SubscriptionSpec("s", backlog=BACKLOG_MESSAGES)
    topic = TopicSpec("t", producers=1, subscriptions=(subscription,), message_bytes=MESSAGE_BYTES)
    return ClusterSpec(namespaces=(NamespaceSpec(namespace, topics=(topic,), policies=policies),))


def _limits(namespace: str, target: PulsarTarget) -> Shown:
    """The size quota in bytes and the retention in minutes; a quota that is not there is 0."""
    policies = Admin(target.admin_urls[0], target.token).policies(namespace)
    quota = (policies.get("backlog_quota_map") or {}).get("destination_storage") or {}
    retention = policies.get("retention_policies") or {}
    return {
        "size quota, MB": int(quota.get("limitSize", 0)) // 1_000_000,
        "retention, minutes": int(retention.get("retentionTimeInMinutes", 0)),
    }


def _bounded(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    return before["size quota, MB"] == 0 < now["size quota, MB"]


def _no_longer_for_ever(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    return before["retention, minutes"] == -1 and now["retention, minutes"] > 0


_NO_QUOTA, _FOR_EVER = _fault("no-quota"), _fault("retained-for-ever")

QUOTA = Scenario(
    name="quota",
    trouble="publishing 40 MB that nobody consumes, in a namespace without a backlog quota",
    counted="limits of public/no-quota",
    made=_NO_QUOTA.made,
    spec=_made_up("public/no-quota", {}),
    shown=lambda target: _limits("public/no-quota", target),
    healed=_bounded,
    policy=_NO_QUOTA.policy,
)
RETENTION = Scenario(
    name="retention",
    trouble="publishing 40 MB in a namespace that keeps everything for ever",
    counted="limits of public/retained-for-ever",
    made=_FOR_EVER.made,
    spec=_made_up("public/retained-for-ever", KEPT_FOR_EVER),
    shown=lambda target: _limits("public/retained-for-ever", target),
    healed=_no_longer_for_ever,
    policy=_FOR_EVER.policy,
)
