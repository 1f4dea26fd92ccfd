"""Guards of backlog quotas: none acts at once, and the brokers check them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.unknown import inherited_unknown
from pulsar_steward.guards.kinds import Objection, SettingGuard, known
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName, in_words
from pulsar_steward.model.subscription import Holder, slowest
from pulsar_steward.model.units import bytes_in_words, counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.facts.backlogs import Backlog, BacklogAges
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import ChangeSetting, GuardResult
    from pulsar_steward.policy.schema import Policy


KEY = "policy key backlog_quota_remedy.room_percent"


# Seen on 4.0.7: at its next check, the broker disconnects the producers of such a topic (docs/pulsar-behaviour.md). The
# guard `loss_as_approved` checks the loss by a quota that evicts.
class QuotaRoom(SettingGuard):
    """Compares the largest backlog of a topic with the quota, less the policy's margin."""

    name = "quota_room"
    objection = Objection.REFUSED

    def check_change(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a `producer_*` size quota that a topic exceeds or nears (`backlog_quota_remedy.room_percent`)."""
        quota = change.after_in_force
        if change.name is SettingName.SIZE_QUOTA and isinstance(quota, msgspec.UnsetType):
            return self.result(inherited_unknown(change).reason, passed=False)
        if change.name is not SettingName.SIZE_QUOTA or not isinstance(quota, BacklogQuota) or quota.limit_bytes < 0:
            return self.result("no size quota is set", passed=True)
        if quota.policy is QuotaPolicy.EVICT:
            return self.result("the size quota stops no producer", passed=True)
        largest = known(facts.largest_backlog(change))
        percent = policy.backlog_quota_remedy.room_percent
        most = quota.limit_bytes * (100 - percent) // 100
        # A broker acts from the limit itself on (`>=`), so that a limit of 0 is full without a message.
        passed = largest.bytes <= most and largest.bytes < quota.limit_bytes
        held = f" ({largest.topic}, held by {largest.held_by})" if largest.held_by else ""
        words = (
            f"the largest backlog of a topic is {bytes_in_words(largest.bytes)}{held}, the quota"
            f" {bytes_in_words(quota.limit_bytes)}, of which {percent} % have to be free ({KEY})"
        )
        return self.result(words if passed else f"{words}: {quota.policy} would act at once", passed=passed)


# Brokers do not compare age quotas with the retention (docs/pulsar-behaviour.md, Quotas). They report the age of a
# backlog only after an age quota is set. So the oldest message is read first, from the owner of each topic with a
# backlog.
class AgeRoom(SettingGuard):
    """Compares the oldest backlog of a topic with the quota, less the policy's margin."""

    name = "age_room"
    objection = Objection.REFUSED

    def check_change(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes an age quota that a backlog exceeds or nearly reaches, or, right before the call, may exceed."""
        quota = change.after_in_force
        if change.name is SettingName.AGE_QUOTA and isinstance(quota, msgspec.UnsetType):
            return self.result(inherited_unknown(change).reason, passed=False)
        if change.name is not SettingName.AGE_QUOTA or not isinstance(quota, BacklogQuota) or quota.limit_seconds <= 0:
            return self.result("no age quota is set", passed=True)
        return self._of_quota(quota, change, facts, policy)

    def _of_quota(self, quota: BacklogQuota, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        limit, retained = quota.limit_seconds, facts.retained_seconds(change)
        if retained is not None and limit >= retained:
            words = f"{seconds_in_words(limit)} is not below the retention of {seconds_in_words(retained)}"
            return self.result(words, passed=False)
        ages = known(facts.backlog_ages(change))
        percent = policy.backlog_quota_remedy.room_percent
        if ages.oldest_seconds > limit * (100 - percent) // 100:
            words = (
                f"{_oldest(ages)}, the quota {seconds_in_words(limit)}, of which {percent} % have to be free ({KEY}):"
                f" {quota.policy} would act at once"
            )
            return self.result(words, passed=False)
        if not ages.unknown:
            return self.result(f"{_oldest(ages)}, of {seconds_in_words(limit)} less {percent} % ({KEY})", passed=True)
        words = (
            f"{_oldest(ages)}; of {counted(ages.unknown, 'topic')} with a backlog its age is not known:"
            f" {ages.why_unknown}"
        )
        return self.result(
            f"{words}; brokers are asked right before the call" if facts.planning else words, passed=facts.planning
        )


def _oldest(ages: BacklogAges) -> str:
    if ages.topic is None:
        return "no backlog is known to be old" if ages.unknown else "no topic has a backlog"
    words = "is estimated, from its size and what comes in now, to be" if ages.estimated else "is"
    old = f"the oldest backlog known, of {ages.topic}, {words} {seconds_in_words(ages.oldest_seconds)} old"
    if not ages.holder:
        return old
    holder = Holder(name=ages.holder, entries=None)
    return f"{old} at most (held by {holder.words}: {holder.remedy})"


MOST_OWN_PERCENT = 10
"""Share of a new quota that one of Pulsar's own cursors may hold: more is no passing lag."""


# A cursor of compaction holds all that came since the last compaction, and brokers compact a topic only from its
# threshold on. A replicator that is away, or deduplication between two snapshots, holds what nobody can consume. A
# quota that these fill shuts producers out for as long (apache/pulsar#11003, apache/pulsar#11672, apache/pulsar#6438).
class QuotaHeld(SettingGuard):
    """Looks for Pulsar's own cursors that fill a quota, or would fill it before their topic is compacted."""

    name = "quota_held"
    objection = Objection.REFUSED
    not_asked_of_rollbacks = "the former quota is restored as it was, also where Pulsar's own cursors may fill it"

    def check_change(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a quota at or below a compaction threshold, or of which Pulsar's own cursors fill more than 10 %."""
        quota, by_size = change.after_in_force, change.name is SettingName.SIZE_QUOTA
        if not isinstance(quota, BacklogQuota) or (quota.limit_bytes < 0 if by_size else quota.limit_seconds <= 0):
            return self.result("no quota is set", passed=True)
        held = known(facts.held_by_pulsar(change))
        if held.compaction_bytes and not (by_size and held.compaction_bytes < quota.limit_bytes):
            words = (
                f"topics are compacted only from {bytes_in_words(held.compaction_bytes)} on, and their cursor of"
                f" compaction holds all messages until then: a quota of {in_words(change.name, quota)} may act before"
            )
            return self.result(words, passed=False)
        objection = _held_bytes(held.backlog, quota.limit_bytes) if by_size else self._held_for(change, facts, quota)
        return self.result(objection or "no cursor of Pulsar's own fills it", passed=objection is None)

    @staticmethod
    def _held_for(change: ChangeSetting, facts: ClusterFacts, quota: BacklogQuota) -> str | None:
        ages = known(facts.backlog_ages(change))
        if not ages.holder or ages.oldest_seconds * 100 <= quota.limit_seconds * MOST_OWN_PERCENT:
            return None
        old = seconds_in_words(ages.oldest_seconds, rounded=True)
        return _mend_first(Holder(name=ages.holder, entries=None), f"messages of {ages.topic} that are {old} old")


def _held_bytes(backlog: Backlog | None, limit_bytes: int) -> str | None:
    holder = slowest(backlog.holders) if backlog else None
    if backlog is None or holder is None or backlog.bytes * 100 <= limit_bytes * MOST_OWN_PERCENT:
        return None
    return _mend_first(holder, f"{bytes_in_words(backlog.bytes)} of {backlog.topic}")


def _mend_first(holder: Holder, held: str) -> str:
    return f"{holder.words} holds {held}, which no application can consume: first {holder.remedy}"


FIX = "set backlogQuotaCheckEnabled=true in broker.conf and restart the brokers one by one first"


class QuotasChecked(SettingGuard):
    """Reads brokers' setting: without checks, producers may be refused, but nothing evicted (docs/knowledge.md B)."""

    name = "quotas_checked"
    objection = Objection.REFUSED
    not_asked_of_rollbacks = "the former quota is restored as it was, also where brokers do not check it"

    def check_change(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a quota if `backlogQuotaCheckEnabled` is false on a broker, or unknown."""
        if not isinstance(change.after, BacklogQuota):
            return self.result("no quota is set", passed=True)
        checked = known(facts.quotas_are_checked())
        if checked:
            return self.result("brokers check backlog quotas", passed=True)
        return self.result(f"brokers do not check backlog quotas: {FIX}", passed=False)
