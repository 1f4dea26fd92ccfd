"""A lower retention in place of a far too long one, with its computation as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.setting import BacklogQuota, Retention, SettingName, in_words
from pulsar_steward.model.units import HOUR, MIB, bytes_in_words, seconds_in_words
from pulsar_steward.planners.settings.sizes import above, needed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.model.setting import Setting
    from pulsar_steward.planners.settings.facts import NamespaceFact
    from pulsar_steward.policy.schema import Policy


def shorter_retention(
    target: Mapping[SettingName, Setting], fact: NamespaceFact, policy: Policy
) -> tuple[Retention, str] | None:
    """A retention that still outlasts an outage and is above every quota; None: it cannot be lowered.

    Args:
        target: Other settings that will be in force.
        fact: The namespace.
        policy: Minimum time and size to keep.
    """
    now = target.get(SettingName.RETENTION)
    if not isinstance(now, Retention):
        return None
    seconds, in_time = _time(target, fact, policy)
    size, in_size = _size(target, fact, policy)
    minutes, megabytes = -(-seconds // 60), -(-size // MIB)
    shorter = Retention(
        minutes=min(now.minutes, minutes) if now.minutes > 0 else now.minutes,
        megabytes=min(now.megabytes, megabytes) if now.megabytes > 0 else now.megabytes,
    )
    if shorter == now:
        return None
    sums = [words for limit, words in ((now.minutes, in_time), (now.megabytes, in_size)) if limit > 0]
    why = (
        f"{in_words(SettingName.RETENTION, now)} are kept of each topic, and its loaded topics store"
        f" {bytes_in_words(fact.consumed_bytes)} over the cluster that every subscription has consumed, before copies;"
        f" {', and '.join(sums)} are enough, and what is beyond that is deleted at once"
    )
    return shorter, why


def _time(target: Mapping[SettingName, Setting], fact: NamespaceFact, policy: Policy) -> tuple[int, str]:
    remedy, keep = policy.backlog_quota_remedy, policy.retention_remedy.keep_hours * HOUR
    outage = remedy.survive_outage_hours * HOUR * (100 + remedy.outage_headroom_percent) // 100
    quota = max(_limit(target, SettingName.AGE_QUOTA), fact.topic_quotas[1])
    most = max(keep, outage, above(quota, remedy.retention_margin_percent))
    words = (
        f"{seconds_in_words(most)}, the largest of {seconds_in_words(keep)} (retention_remedy.keep_hours), an outage of"
        f" {remedy.survive_outage_hours} h + {remedy.outage_headroom_percent} % = {seconds_in_words(outage)}, and"
        f" {_above(seconds_in_words(quota) if quota else None, remedy.retention_margin_percent, 'age')}"
    )
    return most, words


def _size(target: Mapping[SettingName, Setting], fact: NamespaceFact, policy: Policy) -> tuple[int, str]:
    remedy = policy.backlog_quota_remedy
    need = needed(fact, remedy)
    quota = max(_limit(target, SettingName.SIZE_QUOTA), fact.topic_quotas[0])
    most = above(max(need.bytes, quota), remedy.retention_margin_percent)
    words = (
        f"{bytes_in_words(most)} a topic, {remedy.retention_margin_percent} % above the larger of"
        f" {bytes_in_words(need.bytes)} ({need.words}) and {bytes_in_words(quota) if quota else 'no size quota'}"
    )
    return most, words


def _above(quota: str | None, margin_percent: int, kind: str) -> str:
    return f"the {kind} quota of {quota} with a margin of {margin_percent} %" if quota else f"no {kind} quota"


def _limit(target: Mapping[SettingName, Setting], name: SettingName) -> int:
    quota = target.get(name)
    if not isinstance(quota, BacklogQuota):
        return 0
    return max(quota.limit_bytes if name is SettingName.SIZE_QUOTA else quota.limit_seconds, 0)
