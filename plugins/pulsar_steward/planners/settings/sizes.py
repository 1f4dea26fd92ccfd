"""Sizes and ages of quotas and retention, with the computation as text that an approver can check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.setting import BacklogQuota, Retention, SettingName, TimeToLive, in_words
from pulsar_steward.model.units import HOUR, MIB, bytes_in_words, counted, seconds_in_words
from pulsar_steward.planners.settings.facts import TopicSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.facts.backlogs import BacklogAges
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.planners.settings.facts import NamespaceFact
    from pulsar_steward.policy.remedies import BacklogQuotaRemedy
    from pulsar_steward.policy.schema import Policy


class SizeSum(msgspec.Struct, frozen=True):
    """A size, and its computation as text."""

    bytes: int
    words: str


class ProposedQuota(msgspec.Struct, frozen=True):
    """A quota with its computation as text; or no quota, and the reason."""

    quota: BacklogQuota | None
    words: str


INFLOW_UNKNOWN = "how much comes in is not known, as no number is told for the throughput of a topic"


def needed(fact: NamespaceFact | TopicSettings, remedy: BacklogQuotaRemedy) -> SizeSum | None:
    """Room that a topic's backlog needs: for an outage of its consumers, and for more than the largest backlog seen.

    None if it is not known how much comes in: a quota that is too small stops producers.
    """
    flow = fact.busiest_bytes_per_second
    if flow is None:
        return None
    outage = int(flow * remedy.survive_outage_hours * HOUR)
    peak = fact.peak * (100 + remedy.peak_headroom_percent) // 100
    snapshots = fact.snapshots if isinstance(fact, TopicSettings) else len(fact.looks)
    who = "its busiest partition" if isinstance(fact, TopicSettings) else "the busiest topic"
    least = remedy.minimum_megabytes * MIB
    largest = max(outage, peak, least)
    whole = -(-largest // MIB) * MIB
    words = (
        f"the largest of {bytes_in_words(int(flow))}/s of {who} for"
        f" {remedy.survive_outage_hours} h = {bytes_in_words(outage)}, the largest backlog seen in"
        f" {counted(snapshots, 'snapshot')} {bytes_in_words(fact.peak)} + {remedy.peak_headroom_percent} % ="
        f" {bytes_in_words(peak)}, and at least {bytes_in_words(least)}"
    )
    return SizeSum(whole, words)


def below(limit: int, margin_percent: int) -> int:
    """The largest value that leaves the margin below a limit."""
    return limit * (100 - margin_percent) // 100


def above(value: int, margin_percent: int) -> int:
    """The smallest limit at which a value leaves the margin free, rounded up."""
    return -(-value * 100 // (100 - margin_percent))


NONE = "no age quota is proposed: "


def age_quota(
    now: Mapping[SettingName, Setting],
    then: Mapping[SettingName, Setting],
    ages: BacklogAges,
    remedy: BacklogQuotaRemedy,
) -> ProposedQuota:
    """A share of the retention time that outlasts an outage, with no backlog known to be near it.

    Args:
        now: Settings in force in a namespace without an age quota.
        then: Settings that will be in force.
        ages: Ages of its backlogs.
        remedy: The policy.
    """
    retained = min((seconds for each in (now, then) if (seconds := _retained(each)) is not None), default=None)
    if retained is None or _retained(then) is None:
        return ProposedQuota(None, f"{NONE}its retention has no limit in time that it could be below")
    share, most = retained * remedy.age_share_percent // 100, below(retained, remedy.retention_margin_percent)
    outage = remedy.survive_outage_hours * HOUR * (100 + remedy.outage_headroom_percent) // 100
    if outage > most:
        words = (
            f"{NONE}it has to outlast an outage of {remedy.survive_outage_hours} h + {remedy.outage_headroom_percent} %"
            f" = {seconds_in_words(outage)}, and the retention of {seconds_in_words(retained)} less"
            f" {remedy.retention_margin_percent} % leaves {seconds_in_words(most)}"
        )
        return ProposedQuota(None, words)
    seconds = min(max(share, outage), most)
    if objection := _objection(seconds, then, ages, remedy):
        return ProposedQuota(None, NONE + objection)
    words = (
        f"no quota bounds the age of its backlogs; the larger of {remedy.age_share_percent} % of the"
        f" {seconds_in_words(retained)} that are retained = {seconds_in_words(share)}, and an outage of"
        f" {remedy.survive_outage_hours} h + {remedy.outage_headroom_percent} % = {seconds_in_words(outage)}, but no"
        f" more than the retention less {remedy.retention_margin_percent} % = {seconds_in_words(most)}"
    )
    return ProposedQuota(BacklogQuota(limit_seconds=seconds, policy=remedy.policy), words)


def _objection(
    seconds: int, then: Mapping[SettingName, Setting], ages: BacklogAges, remedy: BacklogQuotaRemedy
) -> str | None:
    """The reason why a quota of so many seconds cannot be set: it would never act, or would act at once."""
    ttl = then.get(SettingName.TTL)
    if isinstance(ttl, TimeToLive) and 0 < ttl.seconds <= seconds:
        expiry = seconds_in_words(ttl.seconds)
        return f"messages expire after {expiry}, before one of {seconds_in_words(seconds)} could act"
    if ages.oldest_seconds > below(seconds, remedy.room_percent):
        known = "is estimated, from its size and what comes in now, to be" if ages.estimated else "is"
        return (
            f"a backlog of {ages.topic} {known} {seconds_in_words(ages.oldest_seconds)} old, and one of"
            f" {seconds_in_words(seconds)} could act at once"
        )
    return None


def _retained(settings: Mapping[SettingName, Setting]) -> int | None:
    """Seconds of retention; None: no limit, or nothing is retained."""
    kept = settings.get(SettingName.RETENTION)
    return kept.minutes * 60 if isinstance(kept, Retention) and kept.minutes > 0 and kept.megabytes != 0 else None


def shorter_retention(
    target: Mapping[SettingName, Setting], fact: NamespaceFact, policy: Policy
) -> tuple[Retention, str] | None:
    """A retention that outlasts an outage and is above every quota of the `target`; None: it cannot be lowered.

    Its size stays where it is not known how much comes in.
    """
    now = target.get(SettingName.RETENTION)
    if not isinstance(now, Retention):
        return None
    seconds, in_time = _time(target, fact, policy)
    size, in_size = _size(target, fact, policy) or (now.megabytes * MIB, "the size as it is")
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
    margin = f"the age quota of {seconds_in_words(quota)} with a margin of {remedy.retention_margin_percent} %"
    words = (
        f"{seconds_in_words(most)}, the largest of {seconds_in_words(keep)} (retention_remedy.keep_hours), an outage of"
        f" {remedy.survive_outage_hours} h + {remedy.outage_headroom_percent} % = {seconds_in_words(outage)}, and"
        f" {margin if quota else 'no age quota'}"
    )
    return most, words


def _size(target: Mapping[SettingName, Setting], fact: NamespaceFact, policy: Policy) -> tuple[int, str] | None:
    remedy = policy.backlog_quota_remedy
    need = needed(fact, remedy)
    if need is None:
        return None
    quota = max(_limit(target, SettingName.SIZE_QUOTA), fact.topic_quotas[0])
    most = above(max(need.bytes, quota), remedy.retention_margin_percent)
    words = (
        f"{bytes_in_words(most)} a topic, {remedy.retention_margin_percent} % above the larger of"
        f" {bytes_in_words(need.bytes)} ({need.words}) and {bytes_in_words(quota) if quota else 'no size quota'}"
    )
    return most, words


def _limit(target: Mapping[SettingName, Setting], name: SettingName) -> int:
    quota = target.get(name)
    if not isinstance(quota, BacklogQuota):
        return 0
    return max(quota.limit_bytes if name is SettingName.SIZE_QUOTA else quota.limit_seconds, 0)
