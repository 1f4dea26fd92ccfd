"""The settings that a namespace should have, each with the reason and its computation as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.backlog.backlog_growing import CHECK as BACKLOG_GROWING
from pulsar_steward.checks.backlog.quota_settings import BACKLOG_QUOTA_MISSING, QUOTA_OVER_RETENTION, TTL_BEFORE_QUOTA
from pulsar_steward.checks.backlog.quotas_exceeded import BACKLOG_NEAR_QUOTA, PRODUCER_HOLD_RESTART_RISK
from pulsar_steward.checks.backlog.retention import RETENTION_TOO_LONG, RETENTION_TOO_SHORT, RETENTION_UNBOUNDED
from pulsar_steward.model import topics
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import (
    BacklogQuota,
    QuotaPolicy,
    Retention,
    Setting,
    SettingName,
    TimeToLive,
    in_words,
)
from pulsar_steward.model.units import HOUR, MIB, bytes_in_words, seconds_in_words
from pulsar_steward.planners.settings.facts import unread_loss
from pulsar_steward.planners.settings.sizes import INFLOW_UNKNOWN, above, age_quota, below, needed, shorter_retention

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.settings.facts import NamespaceFact
    from pulsar_steward.policy.schema import Policy

_RESOLVED = (QUOTA_OVER_RETENTION, RETENTION_TOO_LONG, RETENTION_TOO_SHORT, RETENTION_UNBOUNDED, TTL_BEFORE_QUOTA)
ANSWERED = frozenset(check.check_id for check in (BACKLOG_QUOTA_MISSING, *_RESOLVED))
"""Checks whose findings are resolved by settings of a namespace or of a topic."""


def is_of_topic(finding: Finding) -> bool:
    """True for a finding about a topic's own quota: the topic's settings have to change."""
    return finding.check_id == QUOTA_OVER_RETENTION.check_id and "://" in finding.subject


OF_FULL_TOPICS = frozenset(info.check_id for info in (BACKLOG_GROWING, BACKLOG_NEAR_QUOTA, PRODUCER_HOLD_RESTART_RISK))
"""Checks whose findings are about topics with a quota that may be too small."""


def may_need_more(finding: Finding) -> bool:
    """True for a finding about a topic that may need a larger quota of its own."""
    return finding.check_id in OF_FULL_TOPICS and finding.severity.rank >= Severity.WARNING.rank


def namespace_of(finding: Finding) -> str:
    """The namespace whose settings resolve a finding; the subject itself for a finding about a topic's own quota."""
    if "://" not in finding.subject or is_of_topic(finding):
        return finding.subject
    return topics.namespace_of(finding.subject)


class TargetSettings(msgspec.Struct):
    """The settings that a namespace should have, as far as computed.

    Attributes:
        target: The settings that should be in force, by name.
        why: Reasons of changes with their computations, by name.
        notes: Reasons for settings that are not proposed.
        averted: Unread data that brokers may delete without a longer time to live; None: it is not raised.
    """

    target: dict[SettingName, Setting]
    why: dict[SettingName, str] = {}
    notes: list[str] = []
    averted: Loss | None = None

    def put(self, name: SettingName, value: Setting, why: str) -> None:
        """Decides a setting."""
        self.target[name] = value
        self.why[name] = why


def target_settings(
    fact: NamespaceFact, checks: frozenset[str], defaults: Mapping[SettingName, Setting], policy: Policy
) -> TargetSettings:
    """The settings that should be in force in a namespace with findings of these checks."""
    decided = TargetSettings({**defaults, **fact.own})
    if RETENTION_UNBOUNDED.check_id in checks:
        _bound_retention(decided, fact, policy)
    if RETENTION_TOO_SHORT.check_id in checks:
        _lengthen_retention(decided, fact, policy)
    if BACKLOG_QUOTA_MISSING.check_id in checks:
        _add_size_quota(decided, fact, policy)
    if QUOTA_OVER_RETENTION.check_id in checks:
        _part_size_quota_and_retention(decided, fact, policy)
        _part_age_quota_and_retention(decided, policy)
    if RETENTION_TOO_LONG.check_id in checks:
        _shorten_retention(decided, fact, policy)
    if TTL_BEFORE_QUOTA.check_id in checks:
        _raise_ttl(decided, fact, policy)
    if BACKLOG_QUOTA_MISSING.check_id in checks:
        _add_age_quota(decided, fact, {**defaults, **fact.own}, policy)
    return decided


def _bound_retention(decided: TargetSettings, fact: NamespaceFact, policy: Policy) -> None:
    hours = policy.retention_remedy.keep_hours
    now = decided.target.get(SettingName.RETENTION)
    size = now.megabytes if isinstance(now, Retention) else -1
    why = (
        f"consumed messages are kept for ever now, and its loaded topics store {bytes_in_words(fact.stored_bytes)};"
        f" {hours} h are kept then, and older ones are deleted at once (retention_remedy.keep_hours)"
    )
    decided.put(SettingName.RETENTION, Retention(minutes=hours * 60, megabytes=size), why)


def _lengthen_retention(decided: TargetSettings, fact: NamespaceFact, policy: Policy) -> None:
    """Makes the retention as long and as large as the worst backlog seen, with headroom; no limit remains no limit."""
    now, (largest, oldest) = decided.target.get(SettingName.RETENTION), fact.outgrown
    if not isinstance(now, Retention):
        return
    percent = 100 + policy.backlog_quota_remedy.peak_headroom_percent
    megabytes, minutes = (-(-seen * percent // (100 * unit)) for seen, unit in ((largest, MIB), (oldest, 60)))
    longer = Retention(
        minutes=max(now.minutes, minutes) if now.minutes > 0 else now.minutes,
        megabytes=max(now.megabytes, megabytes) if now.megabytes > 0 else now.megabytes,
    )
    if longer == now:
        decided.notes.append("its retention is too short for a backlog, which is set on the topic: change it there")
        return
    why = (
        f"a backlog of {bytes_in_words(largest)}, or {seconds_in_words(oldest)} old, is more than is retained; with"
        f" {policy.backlog_quota_remedy.peak_headroom_percent} % of headroom each topic may store up to"
        f" {in_words(SettingName.RETENTION, longer)}"
    )
    decided.put(SettingName.RETENTION, longer, why)


def _add_size_quota(decided: TargetSettings, fact: NamespaceFact, policy: Policy) -> None:
    """Adds a size quota, unless one is in force: then the finding is about topics with settings of their own."""
    remedy, now = policy.backlog_quota_remedy, decided.target.get(SettingName.SIZE_QUOTA)
    if isinstance(now, BacklogQuota) and now.limit_bytes >= 0:
        decided.notes.append(
            f"it has a size quota already ({in_words(SettingName.SIZE_QUOTA, now)}): topics without one have a"
            " setting of their own; look at these by hand"
        )
        return
    need = needed(fact, remedy)
    if need is None:
        decided.notes.append(f"no size quota is proposed: {INFLOW_UNKNOWN}")
        return
    limit, why = need.bytes, f"no quota bounds the backlog of its topics; {need.words}"
    evicted = remedy.eviction_most_megabytes * MIB
    if remedy.policy is QuotaPolicy.EVICT and evicted and limit > evicted:
        words = f"; but {remedy.policy} is to leave no more than {bytes_in_words(evicted)}"
        why += f"{words} (backlog_quota_remedy.eviction_most_megabytes)"
        limit = evicted
    retained = retained_bytes(decided)
    if retained is not None and limit > (most := below(retained, remedy.retention_margin_percent)):
        seen = min(fact.peak * (100 + remedy.peak_headroom_percent) // 100, limit)  # less if the quota evicts
        if most >= max(seen, remedy.minimum_megabytes * MIB):
            limit = most
            why += (
                f"; but the retention of {bytes_in_words(retained)} less {remedy.retention_margin_percent} % leaves"
                f" {bytes_in_words(most)}"
            )
        else:
            raise_retained(decided, limit, policy)
    decided.put(SettingName.SIZE_QUOTA, BacklogQuota(limit_bytes=limit, policy=remedy.policy), why)


def _add_age_quota(
    decided: TargetSettings, fact: NamespaceFact, now: Mapping[SettingName, Setting], policy: Policy
) -> None:
    """Adds an age quota below the retention, before and after the other changes, as it is a batch of its own."""
    quota = now.get(SettingName.AGE_QUOTA)
    if isinstance(quota, BacklogQuota) and quota.limit_seconds > 0:
        return
    proposed = age_quota(now, decided.target, fact.ages, policy.backlog_quota_remedy)
    if proposed.quota is None:
        decided.notes.append(proposed.words)
    else:
        decided.put(SettingName.AGE_QUOTA, proposed.quota, proposed.words)


def _part_size_quota_and_retention(decided: TargetSettings, fact: NamespaceFact, policy: Policy) -> None:
    remedy, quota = policy.backlog_quota_remedy, decided.target.get(SettingName.SIZE_QUOTA)
    retained = retained_bytes(decided)
    if not isinstance(quota, BacklogQuota) or retained is None or quota.limit_bytes < retained:
        return
    most = below(retained, remedy.retention_margin_percent)
    if fact.peak * (100 + remedy.peak_headroom_percent) // 100 > most:
        raise_retained(decided, quota.limit_bytes, policy)
        return
    why = (
        f"{bytes_in_words(quota.limit_bytes)} is not below the retention of {bytes_in_words(retained)}; less"
        f" {remedy.retention_margin_percent} % that leaves {bytes_in_words(most)}, and the largest backlog seen is"
        f" {bytes_in_words(fact.peak)}"
    )
    decided.put(SettingName.SIZE_QUOTA, msgspec.structs.replace(quota, limit_bytes=most), why)


def _shorten_retention(decided: TargetSettings, fact: NamespaceFact, policy: Policy) -> None:
    """Lowers the retention, after the quotas, as it has to stay above them; not if another finding raised it."""
    shorter = None if SettingName.RETENTION in decided.why else shorter_retention(decided.target, fact, policy)
    if shorter is None:
        decided.notes.append("its retention is not lowered, as quota, outage or another finding needs the present one")
    else:
        decided.put(SettingName.RETENTION, *shorter)


def raise_retained(decided: TargetSettings, quota_bytes: int, policy: Policy) -> None:
    """Raises a retention as far as a size quota requires."""
    now = decided.target[SettingName.RETENTION]
    if isinstance(now, Retention):
        margin = policy.backlog_quota_remedy.retention_margin_percent
        size = -(-above(quota_bytes, margin) // MIB)
        why = (
            f"a quota of {bytes_in_words(quota_bytes)} is needed, and has to be below the retention by {margin} %:"
            f" {bytes_in_words(size * MIB)} instead of {bytes_in_words(now.megabytes * MIB)}"
        )
        decided.put(SettingName.RETENTION, msgspec.structs.replace(now, megabytes=size), why)


def raise_retained_time(decided: TargetSettings, kept: Retention, quota_seconds: int, policy: Policy) -> None:
    """Raises a retention with a time limit as far as an age quota requires."""
    margin = policy.backlog_quota_remedy.retention_margin_percent
    minutes = -(-above(quota_seconds, margin) // 60)
    why = (
        f"an age quota of {seconds_in_words(quota_seconds)} has to be below the retention by {margin} %:"
        f" {seconds_in_words(minutes * 60)} instead of {seconds_in_words(kept.minutes * 60)}; each topic keeps what is"
        " consumed for as long"
    )
    if SettingName.RETENTION in decided.why:
        why = f"{decided.why[SettingName.RETENTION]}; {why}"
    decided.put(SettingName.RETENTION, msgspec.structs.replace(kept, minutes=minutes), why)


def _part_age_quota_and_retention(decided: TargetSettings, policy: Policy) -> None:
    """Raises the retention above the age quota: a lower quota could act at once, as not all ages are known."""
    quota, kept = decided.target.get(SettingName.AGE_QUOTA), decided.target.get(SettingName.RETENTION)
    if not isinstance(quota, BacklogQuota) or not isinstance(kept, Retention) or kept.minutes <= 0:
        return
    if quota.limit_seconds < kept.minutes * 60:
        return
    if quota.limit_seconds <= (most := policy.backlog_quota_remedy.raise_most_hours * HOUR):
        raise_retained_time(decided, kept, quota.limit_seconds, policy)
        return
    decided.notes.append(
        f"its age quota of {seconds_in_words(quota.limit_seconds)} is not below its retention of"
        f" {seconds_in_words(kept.minutes * 60)}, which is raised by hand where the quota is longer than"
        f" {seconds_in_words(most)} (backlog_quota_remedy.raise_most_hours); a lower age quota could act at once"
    )


def _raise_ttl(decided: TargetSettings, fact: NamespaceFact, policy: Policy) -> None:
    """Raises the time to live above the age quota, and above the oldest unread message of a slow subscription."""
    quota, ttl = decided.target.get(SettingName.AGE_QUOTA), decided.target.get(SettingName.TTL)
    if not isinstance(quota, BacklogQuota) or not isinstance(ttl, TimeToLive):
        return
    delay_seconds, oldest = fact.age_quota_delay_seconds, fact.ages.oldest_seconds
    acts_after = max(quota.limit_seconds + delay_seconds, oldest)
    seconds = -(-above(acts_after, policy.backlog_quota_remedy.retention_margin_percent) // HOUR) * HOUR
    why = (
        f"messages expire after {in_words(SettingName.TTL, ttl)}, before the age quota of"
        f" {seconds_in_words(quota.limit_seconds)} can act"
    )
    if delay_seconds:
        why += f", up to {seconds_in_words(delay_seconds)} later where little is produced (a ledger has to close first)"
    if acts_after == oldest:
        known = "is estimated, from its size and what comes in, to be" if fact.ages.estimated else "is"
        why += f"; the oldest backlog, of {fact.ages.topic}, {known} {seconds_in_words(oldest, rounded=True)} old"
    decided.averted = unread_loss(fact)
    decided.put(SettingName.TTL, TimeToLive(seconds=seconds), why)


def retained_bytes(decided: TargetSettings) -> int | None:
    """Bytes of a retention that the broker compares with a size quota; None: it compares none."""
    kept = decided.target.get(SettingName.RETENTION)
    return kept.megabytes * MIB if isinstance(kept, Retention) and kept.megabytes > 0 else None
