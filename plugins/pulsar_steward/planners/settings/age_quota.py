"""An age quota, with its computation as text; or the reason why none is proposed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.setting import BacklogQuota, Retention, SettingName, TimeToLive
from pulsar_steward.model.units import HOUR, seconds_in_words
from pulsar_steward.planners.settings.sizes import ProposedQuota, below

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.facts.backlogs import BacklogAges
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.policy.remedies import BacklogQuotaRemedy

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
