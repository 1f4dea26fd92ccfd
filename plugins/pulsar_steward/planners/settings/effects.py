"""Effects of a changed setting: on the cluster, on the last snapshots, and on stored data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.backlogs import NOTHING_TAKEN, Taken, evicted, evicting_from, expired, summed
from pulsar_steward.facts.unknown import Unknown, loss_unknown
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName, in_words
from pulsar_steward.model.units import bytes_in_words, counted, seconds_in_words
from pulsar_steward.planners.settings.facts import MAX_BACKLOGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.model.step import ChangeSetting
    from pulsar_steward.planners.settings.facts import NamespaceFact


def effect(fact: NamespaceFact, change: ChangeSetting) -> str:
    """The new value, and its effect if it had been in force in the last snapshots, as text."""
    words = f"the {change.name} of {change.holder} is {in_words(change.name, change.after)}"
    if not isinstance(change.after, BacklogQuota):
        return words
    if change.name is SettingName.AGE_QUOTA:
        return f"{words}; {_older(fact, change.after)}"
    return f"{words}; {_over(fact, change.after)}"


def undo_note(change: ChangeSetting) -> str:
    """The way to undo a change, as text; deleted data does not return."""
    back = f"Set it back: {change.in_words(change.before)}."
    return f"{back} What was deleted meanwhile stays deleted." if change.loses_messages else back


def taken_from(fact: NamespaceFact, change: ChangeSetting) -> Taken | Unknown:
    """Data that brokers delete at once; not known if the change concerns more topics than are known.

    A lower retention deletes all stored consumed data, as the age of each ledger is not known. A shorter time to live
    deletes the whole backlog. An evicting age quota deletes nothing, as it is only set if it would not (`age_room`).
    """
    after = change.after_in_force
    if isinstance(after, msgspec.UnsetType):
        return loss_unknown(change)
    if change.deletes_stored:
        return Taken(loss=Loss(messages=0, bytes=fact.consumed_bytes))
    if not change.may_delete or change.name is SettingName.AGE_QUOTA:
        return NOTHING_TAKEN
    least = evicting_from(after.limit_bytes) if isinstance(after, BacklogQuota) else 0
    if len(fact.backlogs) == MAX_BACKLOGS and fact.backlogs[-1].bytes >= least:
        return loss_unknown(change)
    return evicted(fact.backlogs, after.limit_bytes) if isinstance(after, BacklogQuota) else expired(fact.backlogs)


def unread_loss(fact: NamespaceFact, delayed: Mapping[str, int] | None = None) -> Loss:
    """Unread data that is lost, by topic: all that expires if messages get older than their time to live.

    Args:
        fact: The namespace.
        delayed: Delayed messages by topic, if only they count; None: the whole backlog counts.
    """
    if delayed is None:
        return expired(fact.backlogs).loss
    bytes_of = {each.topic: each.bytes for each in fact.backlogs}
    losses = [TopicLoss(topic=name, messages=many, bytes=bytes_of.get(name, 0)) for name, many in delayed.items()]
    return summed(sorted(losses, key=lambda each: -(each.messages or 0)))


def _over(fact: NamespaceFact, quota: BacklogQuota) -> str:
    limit = quota.limit_bytes
    over = max(look.over(limit) for look in fact.looks)
    many = f"{over:,} or more" if over == MAX_BACKLOGS else f"{over:,}"
    topics = max(look.topics for look in fact.looks)
    last = "snapshot" if len(fact.looks) == 1 else counted(len(fact.looks), "snapshot")
    words = f"of {counted(topics, 'loaded topic')}, {many} would have been over it in the last {last}"
    if quota.policy is QuotaPolicy.EVICT:
        return f"{words}, and up to {bytes_in_words(max(look.evicted(limit) for look in fact.looks))} evicted"
    stopped = "held" if quota.policy is QuotaPolicy.HOLD else "refused"
    return f"{words}, and {counted(max(look.held(limit) for look in fact.looks), 'producer')} {stopped}"


def _older(fact: NamespaceFact, quota: BacklogQuota) -> str:
    """The ages of backlogs: no backlog is known to be over a proposed quota, and unknown ages are counted."""
    ages, older = fact.ages, int(fact.ages.oldest_seconds > quota.limit_seconds)
    words = f"of {counted(fact.looks[0].topics, 'loaded topic')}, {ages.waiting:,} had a backlog in the last snapshot"
    if ages.topic is not None:
        known = "estimated, from its size and what came in, at" if ages.estimated else "known to be"
        oldest = f"the oldest, of {ages.topic}, is {known} {seconds_in_words(ages.oldest_seconds)}"
        words += f", {older:,} known to be older than that; {oldest}"
    if ages.unknown:
        words += f"; of {ages.unknown:,} the age is not known, and brokers are asked for it right before the call"
    return words
