"""Effects of a changed setting: on what the cluster shows, on the last snapshots, and on stored data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.backlogs import MAX_NAMED, loss_of
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName, in_words
from pulsar_steward.model.units import bytes_in_words, counted, seconds_in_words
from pulsar_steward.planners.settings.facts import MAX_BACKLOGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.model.step import ChangeSetting
    from pulsar_steward.planners.settings.facts import NamespaceFact


def effect(fact: NamespaceFact, change: ChangeSetting) -> str:
    """The new value, and the effect that it would have had in the last snapshots, as text."""
    words = f"the {change.name} of {change.holder} is {in_words(change.name, change.after)}"
    if not isinstance(change.after, BacklogQuota):
        return words
    if change.name is SettingName.AGE_QUOTA:
        return f"{words}; {_older(fact, change.after)}"
    return f"{words}; {_over(fact, change.after)}"


def undo_note(change: ChangeSetting) -> str:
    """The way to undo a change, as text; deleted data does not come back with it."""
    back = f"Set it back: {change.in_words(change.before)}."
    return f"{back} What was deleted meanwhile stays deleted." if change.loses_messages else back


def loss(fact: NamespaceFact, change: ChangeSetting) -> Loss | None:
    """The data that brokers delete at once; None: nothing, or more topics are concerned than are known."""
    if change.deletes_stored:
        return Loss(bytes=fact.consumed_bytes)
    if not change.evicts_by_size or not isinstance(change.after, BacklogQuota):
        return None
    limit = change.after.limit_bytes
    if len(fact.backlogs) == MAX_BACKLOGS and fact.backlogs[-1].bytes >= limit:
        return None
    return loss_of(fact.backlogs, limit)


def unread_loss(fact: NamespaceFact, delayed: Mapping[str, int] | None = None) -> Loss:
    """Data that nobody has read, by topic: all that expires where messages come to be older than their time to live.

    Args:
        fact: The namespace.
        delayed: Delayed messages by topic, to count these alone; None: whatever waits.
    """
    bytes_of = {each.topic: each.bytes for each in fact.backlogs}
    messages = {each.topic: sum(each.messages) for each in fact.backlogs} if delayed is None else delayed
    losses = [TopicLoss(topic=name, messages=many, bytes=bytes_of.get(name, 0)) for name, many in messages.items()]
    losses.sort(key=lambda each: (-(each.messages or 0), -each.bytes, each.topic))
    return Loss(
        topics=tuple(losses[:MAX_NAMED]),
        more=max(len(losses) - MAX_NAMED, 0),
        messages=sum(messages.values()),
        bytes=sum(each.bytes for each in losses),
    )


def _over(fact: NamespaceFact, quota: BacklogQuota) -> str:
    limit = quota.limit_bytes
    over = max(look.over(limit) for look in fact.looks)
    many = f"{over:,} or more" if over == MAX_BACKLOGS else f"{over:,}"
    topics = max(look.topics for look in fact.looks)
    last = "snapshot" if len(fact.looks) == 1 else counted(len(fact.looks), "snapshot")
    words = f"of {counted(topics, 'loaded topic')}, {many} would have been over it in the last {last}"
    if quota.policy is QuotaPolicy.EVICT:
        return f"{words}, and {bytes_in_words(max(look.evicted(limit) for look in fact.looks))} evicted"
    stopped = "held" if quota.policy is QuotaPolicy.HOLD else "refused"
    return f"{words}, and {counted(max(look.held(limit) for look in fact.looks), 'producer')} {stopped}"


def _older(fact: NamespaceFact, quota: BacklogQuota) -> str:
    """The ages of backlogs: none is known to be over a proposed quota, and the unknown ones are counted."""
    ages, older = fact.ages, int(fact.ages.oldest_seconds > quota.limit_seconds)
    words = f"of {counted(fact.looks[0].topics, 'loaded topic')}, {ages.waiting:,} had a backlog in the last snapshot"
    if ages.topic is not None:
        known = "estimated, from its size and what came in, at" if ages.estimated else "known to be"
        oldest = f"the oldest, of {ages.topic}, is {known} {seconds_in_words(ages.oldest_seconds)}"
        words += f", {older:,} known to be older than that; {oldest}"
    if ages.unknown:
        words += f"; of {ages.unknown:,} the age is not known, and brokers are asked for it right before the call"
    return words
