"""Risks of moving or splitting a bundle beyond its clients' reconnecting; for plan and call alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName
from pulsar_steward.model.topics import is_system_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.model.setting import Setting
    from pulsar_steward.policy.guards import GuardsPolicy

PERSISTED_HOLES = "managedLedgerMaxUnackedRangesToPersist"
TRACKER = "delayedDeliveryTrackerFactoryClassName"

MAX_NAMED = 5
"""Topics or subscriptions that are named; there may be thousands."""


class HeldTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic whose producers could not come back: over a `producer_*` quota, or nearly.

    Attributes:
        topic: Full name.
        used_percent: Of the quota of which most is used, in size or age.
        limit: That quota's limit and what it does, in words.
        producers: Connected now.
    """

    topic: str
    used_percent: int
    limit: str
    producers: int


class HoleySubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription with more ack holes than its broker persists: what is behind them is delivered again.

    Attributes:
        topic: Full name.
        subscription: Its name.
        holes: Ranges of individual acknowledgements (`totalNonContiguousDeletedMessagesRange`).
        may_come_again: Entries from the first gap to what is read next, less the backlog: at most so many.
    """

    topic: str
    subscription: str
    holes: int
    may_come_again: int


class MoveRisks(msgspec.Struct, frozen=True, kw_only=True):
    """Risks of a change of a bundle.

    Attributes:
        held: The worst topics whose producers could not come back, at most `MAX_NAMED`.
        held_count: How many there are.
        holey: The worst subscriptions that would get acknowledged messages again, at most `MAX_NAMED`.
        may_come_again: Over all of these.
        delayed_index_bytes: Of delayed messages' indexes in memory, for which the backlog is read again.
        unknown: What could not be known, in words; a guard whose question it is does not pass then.
    """

    held: tuple[HeldTopic, ...] = ()
    held_count: int = 0
    holey: tuple[HoleySubscription, ...] = ()
    may_come_again: int = 0
    delayed_index_bytes: int = 0
    unknown: tuple[str, ...] = ()


class SubscriptionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription, as far as these risks go."""

    subscription: str
    backlog_entries: int
    holes: int
    entries_since_first_gap: int


class TopicFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A loaded topic, as far as these risks go.

    Attributes:
        topic: Full name.
        producers: Connected producers.
        backlog_bytes: Of its slowest subscription.
        age_seconds: Of its oldest message that is not consumed; None: not known.
        limit_bytes: Of the size quota in force for it; under 0: none; None: as its namespace's.
        limit_seconds: Of the age quota in force for it; 0 or under: none; None: as its namespace's.
        delayed_index_bytes: Of its subscriptions' delayed messages.
        subscriptions: Those with ack holes.
    """

    topic: str
    producers: int
    backlog_bytes: int
    age_seconds: int | None = None
    limit_bytes: int | None = None
    limit_seconds: int | None = None
    delayed_index_bytes: int = 0
    subscriptions: tuple[SubscriptionFigures, ...] = ()


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings in force for all topics of a bundle.

    Attributes:
        quotas: Of the namespace, its own or brokers' defaults.
        persisted_holes: Ack holes of a cursor that brokers persist (`managedLedgerMaxUnackedRangesToPersist`).
        index_in_memory: Whether delayed messages' indexes are in memory alone.
    """

    quotas: dict[SettingName, BacklogQuota] = {}
    persisted_holes: int = 10_000
    index_in_memory: bool = True


def surroundings_of(settings: Mapping[SettingName, Setting], persisted_holes: str, tracker: str) -> Surroundings:
    """Settings in force for the topics of a namespace.

    Args:
        settings: In force in the namespace: its own, and else brokers' defaults.
        persisted_holes: What brokers run with as `PERSISTED_HOLES`; empty: what is usual.
        tracker: And as `TRACKER`; empty: the one in memory.
    """
    return Surroundings(
        quotas={name: value for name, value in settings.items() if isinstance(value, BacklogQuota)},
        persisted_holes=int(persisted_holes or Surroundings().persisted_holes),
        index_in_memory="Bucket" not in tracker,
    )


def move_risks_of(topics: Iterable[TopicFigures], around: Surroundings, policy: GuardsPolicy) -> MoveRisks:
    """Risks of a change of a bundle with these topics.

    Args:
        topics: All loaded topics of the bundle.
        around: What is in force for them.
        policy: How near to a quota is too near.
    """
    topics = tuple(topics)
    held = sorted(
        (each for topic in topics if (each := _held(topic, around, policy.quota_margin_percent))),
        key=lambda each: (-each.used_percent, each.topic),
    )
    holey = sorted(
        (
            _holey(topic, each)
            for topic in topics
            for each in topic.subscriptions
            if each.holes > around.persisted_holes
        ),
        key=lambda each: (-each.may_come_again, each.topic, each.subscription),
    )
    return MoveRisks(
        held=tuple(held[:MAX_NAMED]),
        held_count=len(held),
        holey=tuple(holey[:MAX_NAMED]),
        may_come_again=sum(each.may_come_again for each in holey),
        delayed_index_bytes=sum(topic.delayed_index_bytes for topic in topics) if around.index_in_memory else 0,
    )


def _held(topic: TopicFigures, around: Surroundings, margin_percent: int) -> HeldTopic | None:
    """The quota of which most is used, where its producers would be kept out."""
    # Brokers look at no quota there; of non-persistent topics they tell a size of 0.
    if topic.topic.startswith("non-persistent://") or is_system_topic(topic.topic):
        return None
    size, age = (around.quotas.get(name) for name in (SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA))
    in_size = _held_by(topic.limit_bytes, size.limit_bytes if size else -1, size, least=0)
    in_age = _held_by(topic.limit_seconds, age.limit_seconds if age else -1, age, least=1)
    used = [
        *((_percent(topic.backlog_bytes, limit), f"{limit:,} bytes, {action}") for limit, action in in_size),
        *((_percent(topic.age_seconds or 0, limit), f"{limit:,} s, {action}") for limit, action in in_age),
    ]
    percent, words = max(used, default=(0, ""))
    if percent < 100 - margin_percent or not words:
        return None
    return HeldTopic(topic=topic.topic, used_percent=percent, limit=words, producers=topic.producers)


def _percent(used: int, limit: int) -> int:
    """Usage of a limit; one of 0 is used up at all times, as brokers compare with ``>=``."""
    return used * 100 // limit if limit else 100


def _held_by(own: int | None, common: int, quota: BacklogQuota | None, *, least: int) -> list[tuple[int, str]]:
    """The limit and its action, where that keeps producers out; of a topic's own quota that is taken for granted.

    Args:
        own: The topic's limit; None: as its namespace's.
        common: Its namespace's limit.
        quota: Its namespace's quota; None: none.
        least: A lower limit is none.
    """
    limit = common if own is None else own
    if limit < least:
        return []
    if quota is None or limit != common:
        return [(limit, "a quota of its own")]
    return [] if quota.policy is QuotaPolicy.EVICT else [(limit, quota.policy.value)]


def _holey(topic: TopicFigures, each: SubscriptionFigures) -> HoleySubscription:
    return HoleySubscription(
        topic=topic.topic,
        subscription=each.subscription,
        holes=each.holes,
        may_come_again=max(each.entries_since_first_gap - each.backlog_entries, 0),
    )
