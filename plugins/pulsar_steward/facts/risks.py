"""Risks of moving or splitting a bundle besides reconnecting clients; for planning and calls.

A broker that unloads a topic stores the position of each subscription, and the acknowledged entries behind it, up to a
limit. It does not store which messages of a partly acknowledged batch are acknowledged: so such a batch is redelivered
whole (docs/pulsar-behaviour.md, What a move sets off).
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.loss import InFlight, room_for
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName
from pulsar_steward.model.topics import is_system_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pulsar_steward.model.setting import Setting
    from pulsar_steward.policy.schema import Policy


PERSISTED_HOLES = "managedLedgerMaxUnackedRangesToPersist"
HOLES_IN_STORE = "managedLedgerMaxUnackedRangesToPersistInMetadataStore"
AS_ARRAY = "managedLedgerPersistIndividualAckAsLongArray"
BATCH_INDEXES = "acknowledgmentAtBatchIndexLevelEnabled"

SETTINGS = (PERSISTED_HOLES, HOLES_IN_STORE, AS_ARRAY, BATCH_INDEXES)
"""Brokers' settings that decide which acknowledgements survive a move."""

COUNTED_TYPES = frozenset({"Shared", "Key_Shared"})
"""Types of subscriptions for which brokers count unacknowledged messages of consumers."""


class KeptAcks(msgspec.Struct, frozen=True, kw_only=True):
    """Acknowledgements that survive a move, by brokers' settings.

    Attributes:
        holes: Number of ack holes of a cursor up to which all acknowledgements survive.
        knows_batches: True if brokers know which messages of a batch are acknowledged, and keep that in memory.
    """

    holes: int = 10_000
    knows_batches: bool = False


def kept_acks(running: Mapping[str, str]) -> KeptAcks:
    """Acknowledgements that survive a move, by brokers' running settings; a missing setting has its default.

    If brokers write bit arrays, the limit counts acknowledged entries instead of holes, and whole ledgers of them are
    left out. A small number of holes is written to the metadata store, which has no arrays.
    """
    holes = _number(running.get(PERSISTED_HOLES), KeptAcks().holes)
    if running.get(AS_ARRAY) == "true":
        holes = min(holes, _number(running.get(HOLES_IN_STORE), 1_000))
    return KeptAcks(holes=holes, knows_batches=running.get(BATCH_INDEXES) == "true")


class SubscriptionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Acknowledgement figures of a loaded topic's subscription.

    Attributes:
        subscription: Its name.
        backlog_entries: Entries that are not wholly acknowledged; a batch is one entry.
        holes: Ranges of acknowledged entries after the first unacknowledged one
            (`totalNonContiguousDeletedMessagesRange`).
        entries_since_first_gap: Entries from the first unacknowledged one to the next one to be read.
        consumers: Connected consumers.
        held_messages: Messages that consumers received and did not acknowledge; None: brokers do not count them.
        messages_per_entry: Highest average of the consumers' recent messages per entry; 0: not known.
    """

    subscription: str
    backlog_entries: int = 0
    holes: int = 0
    entries_since_first_gap: int = 0
    consumers: int = 0
    held_messages: int | None = None
    messages_per_entry: int = 0

    def open_entries(self, kept: KeptAcks) -> int:
        """Maximum number of entries that may be partly acknowledged.

        Brokers that know batches keep this after the consumer left; else only connected consumers know it.
        """
        if kept.knows_batches:
            return max(self.backlog_entries, 0)
        return max(min(self.backlog_entries, self.entries_since_first_gap), 0) if self.consumers else 0

    def may_come_again(self, kept: KeptAcks, largest_batch: int) -> int | None:
        """Maximum of acknowledged messages in open batches; None: unknown, batches are larger than `largest_batch`."""
        entries = self.open_entries(kept)
        # Consumers' unacknowledged messages are no bound if brokers know batches: seen far below 0.
        held = None if kept.knows_batches or (self.held_messages or 0) < 0 else self.held_messages
        by_batches = entries * (largest_batch - 1) if self.messages_per_entry <= largest_batch else None
        bounds = [each for each in (held, by_batches) if each is not None]
        return min(bounds, default=None) if entries else 0


def _number(text: str | None, usual: int) -> int:
    return int(text) if text is not None and text.isdecimal() else usual


NON_PERSISTENT = "non-persistent://"
TRACKER = "delayedDeliveryTrackerFactoryClassName"

MAX_NAMED = 5
"""Maximum number of topics or subscriptions that are named, as there may be thousands."""


class HeldTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic over or near a `producer_*` quota: its producers could not reconnect.

    Attributes:
        topic: Full name.
        used_percent: Usage of its most used quota, by size or age.
        limit: That quota's limit and action, in words.
        producers: Connected producers.
    """

    topic: str
    used_percent: int
    limit: str
    producers: int


class HoleySubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription with more ack holes than its broker persists; the number of their messages is not reported.

    Attributes:
        topic: Full name.
        subscription: Its name.
        holes: Ranges of individual acknowledgements (`totalNonContiguousDeletedMessagesRange`).
        kept: Number of holes up to which all of them are persisted.
    """

    topic: str
    subscription: str
    holes: int
    kept: int


class OpenBatches(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription with entries that may be partly acknowledged, and are then redelivered whole.

    Attributes:
        topic: Full name.
        subscription: Its name.
        entries: Maximum number of these entries.
        may_come_again: Maximum of acknowledged messages in them; None: not known.
        messages_per_entry: Messages per entry that its consumers received lately; 0: not known.
    """

    topic: str
    subscription: str
    entries: int
    may_come_again: int | None
    messages_per_entry: int = 0


class Replicated(msgspec.Struct, frozen=True, kw_only=True):
    """A remote cluster that a topic is replicated to, and the entries that were not sent there yet; None: unknown."""

    cluster: str
    entries: int | None


class UnsentReplication(msgspec.Struct, frozen=True, kw_only=True):
    """A topic of which something may not have been sent to a cluster that its own policy alone names.

    Attributes:
        topic: Full name.
        cluster: The remote cluster.
        entries: Entries that wait; None: not known.
    """

    topic: str
    cluster: str
    entries: int | None


class MoveRisks(msgspec.Struct, frozen=True, kw_only=True):
    """Risks of a change of a bundle.

    Attributes:
        held: The worst topics with producers that could not reconnect, at most `MAX_NAMED`.
        held_count: Number of all these topics.
        holey: The worst subscriptions that lose acknowledgements, at most `MAX_NAMED`.
        open_batches: The worst subscriptions with redelivered messages of batches, at most `MAX_NAMED`.
        may_come_again: Redelivered messages of all subscriptions with open batches; None: not known.
        volatile_topics: Number of non-persistent topics.
        lost_messages: Messages that these may lose while their clients reconnect, at their present rates; None: not
            known.
        delayed_index_bytes: Size of delayed messages' indexes in memory, for which the backlog is read again.
        unsent: The worst topics whose unsent replication some brokers' versions lose (`drops_unsent`), at most
            `MAX_NAMED`.
        unsent_count: Number of all of them, each remote cluster counted.
        unknown: Unknown facts about the producers' return, in words.
    """

    held: tuple[HeldTopic, ...] = ()
    held_count: int = 0
    holey: tuple[HoleySubscription, ...] = ()
    open_batches: tuple[OpenBatches, ...] = ()
    may_come_again: int | None = 0
    volatile_topics: int = 0
    lost_messages: int | None = 0
    delayed_index_bytes: int = 0
    unsent: tuple[UnsentReplication, ...] = ()
    unsent_count: int = 0
    unknown: tuple[str, ...] = ()

    def with_room(self, most_again: int, *, consumed: bool) -> InFlight:
        """Messages in flight for the approval of a step, with room left, as their number changes all the time.

        Args:
            most_again: Acknowledged messages that may be redelivered by the policy.
            consumed: True if consumers are connected: even without an open batch now, there may be some later.
        """
        return InFlight(
            again=min(room_for(self.may_come_again or 0, can_grow=consumed), most_again),
            volatile_topics=self.volatile_topics,
            lost=room_for(self.lost_messages or 0, can_grow=self.volatile_topics > 0),
        )


class TopicFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a loaded topic for these risks.

    Attributes:
        topic: Full name.
        producers: Connected producers.
        backlog_bytes: Backlog of its slowest durable cursor: a subscription, a replicator, deduplication or compaction.
        age_seconds: Age of its oldest unconsumed message; None: not known.
        limit_bytes: Limit of the size quota in force for it; below 0: none; None: the namespace's limit.
        limit_seconds: Limit of the age quota in force for it; 0 or below: none; None: the namespace's limit.
        delayed_index_bytes: Size of its subscriptions' indexes of delayed messages.
        rate_in: Messages per second from producers; None: not known.
        subscriptions: Its subscriptions that are read.
        replicated: The remote clusters that it is replicated to.
    """

    topic: str
    producers: int
    backlog_bytes: int
    age_seconds: int | None = None
    limit_bytes: int | None = None
    limit_seconds: int | None = None
    delayed_index_bytes: int = 0
    rate_in: float | None = 0.0
    subscriptions: tuple[SubscriptionFigures, ...] = ()
    replicated: tuple[Replicated, ...] = ()

    @property
    def is_persistent(self) -> bool:
        """False for a topic that does not store its messages."""
        return not self.topic.startswith(NON_PERSISTENT)


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings in force for all topics of a bundle.

    Attributes:
        quotas: Quotas of the namespace: its own, or the brokers' defaults.
        kept_acks: Acknowledgements that survive a move.
        index_in_memory: True if delayed messages' indexes are in memory only.
        remotes: Clusters that the namespace's policies replicate to, this one included; None: not known.
    """

    quotas: dict[SettingName, BacklogQuota] = {}
    kept_acks: KeptAcks = KeptAcks()
    index_in_memory: bool = True
    remotes: frozenset[str] | None = None


def surroundings_of(
    settings: Mapping[SettingName, Setting], running: Mapping[str, str], remotes: Collection[str] | None
) -> Surroundings:
    """Settings in force for the topics of a namespace.

    Args:
        settings: Settings in force in the namespace: its own, or else the brokers' defaults.
        running: Brokers' running settings; a missing setting has its default.
        remotes: Clusters that the namespace's policies replicate to; None: not known.
    """
    return Surroundings(
        quotas={name: value for name, value in settings.items() if isinstance(value, BacklogQuota)},
        kept_acks=kept_acks(running),
        index_in_memory="Bucket" not in running.get(TRACKER, ""),
        remotes=None if remotes is None else frozenset(remotes),
    )


def move_risks_of(topics: Iterable[TopicFigures], around: Surroundings, policy: Policy) -> MoveRisks:
    """Risks of a change of a bundle with these topics.

    Args:
        topics: All loaded topics of the bundle.
        around: Settings in force for them.
        policy: The margin below a quota, the size of batches, and the time limit for clients to reconnect.
    """
    topics = tuple(topics)
    guards = policy.guards
    held = sorted(
        (each for topic in topics if (each := _held(topic, around, guards.quota_margin_percent))),
        key=lambda each: (-each.used_percent, each.topic),
    )
    volatile = [topic for topic in topics if not topic.is_persistent and not is_system_topic(topic.topic)]
    rates = [topic.rate_in for topic in volatile]
    lost = [ceil(max(rate, 0.0) * policy.health.return_seconds) for rate in rates if rate is not None]
    holey = sorted(_holey(topics, around.kept_acks), key=lambda each: (-each.holes, each.topic, each.subscription))
    batches = sorted(_open_batches(topics, around.kept_acks, guards.largest_batch_messages), key=_gravest)
    unsent = sorted(_unsent(topics, around.remotes), key=lambda each: (-(each.entries or 0), each.topic, each.cluster))
    again = [each.may_come_again for each in batches if each.may_come_again is not None]
    return MoveRisks(
        held=tuple(held[:MAX_NAMED]),
        held_count=len(held),
        holey=tuple(holey[:MAX_NAMED]),
        open_batches=tuple(batches[:MAX_NAMED]),
        may_come_again=sum(again) if len(again) == len(batches) else None,
        volatile_topics=len(volatile),
        lost_messages=sum(lost) if len(lost) == len(rates) else None,
        delayed_index_bytes=sum(topic.delayed_index_bytes for topic in topics) if around.index_in_memory else 0,
        unsent=tuple(unsent[:MAX_NAMED]),
        unsent_count=len(unsent),
    )


def _held(topic: TopicFigures, around: Surroundings, margin_percent: int) -> HeldTopic | None:
    """The topic with its most used quota, if that would refuse its producers; else None."""
    # Brokers ignore quotas for these topics; for non-persistent ones they report a size of 0.
    if not topic.is_persistent or is_system_topic(topic.topic):
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
    """Usage of a limit in percent; a limit of 0 is always used up, as brokers compare with ``>=``."""
    return used * 100 // limit if limit else 100


def _held_by(own: int | None, common: int, quota: BacklogQuota | None, *, least: int) -> list[tuple[int, str]]:
    """The limit and its action, if it refuses producers; a topic's own quota is assumed to refuse them.

    Args:
        own: The topic's limit; None: the namespace's limit.
        common: The namespace's limit.
        quota: The namespace's quota; None: none.
        least: A limit below this value means no limit.
    """
    limit = common if own is None else own
    if limit < least:
        return []
    if quota is None or limit != common:
        return [(limit, "a quota of its own")]
    return [] if quota.policy is QuotaPolicy.EVICT else [(limit, quota.policy.value)]


def _unsent(topics: Iterable[TopicFigures], remotes: frozenset[str] | None) -> Iterator[UnsentReplication]:
    """Topics with something to send, now or by the time of a move, to clusters that the namespace does not name."""
    for topic in topics:
        for each in topic.replicated:
            named = remotes is not None and each.cluster in remotes
            if topic.is_persistent and not named and (each.entries != 0 or topic.rate_in != 0):
                yield UnsentReplication(topic=topic.topic, cluster=each.cluster, entries=each.entries)


def _acknowledging(topics: Iterable[TopicFigures]) -> Iterator[tuple[str, SubscriptionFigures]]:
    """Subscriptions with their topics, without Pulsar's own topics: their readers keep their positions themselves."""
    for topic in topics:
        if topic.is_persistent and not is_system_topic(topic.topic):
            yield from ((topic.topic, each) for each in topic.subscriptions)


def _holey(topics: Iterable[TopicFigures], kept: KeptAcks) -> Iterator[HoleySubscription]:
    for topic, each in _acknowledging(topics):
        if each.holes > kept.holes:
            yield HoleySubscription(topic=topic, subscription=each.subscription, holes=each.holes, kept=kept.holes)


def _open_batches(topics: Iterable[TopicFigures], kept: KeptAcks, largest_batch: int) -> Iterator[OpenBatches]:
    for topic, each in _acknowledging(topics):
        if (again := each.may_come_again(kept, largest_batch)) != 0:
            yield OpenBatches(
                topic=topic,
                subscription=each.subscription,
                entries=each.open_entries(kept),
                may_come_again=again,
                messages_per_entry=each.messages_per_entry,
            )


def _gravest(each: OpenBatches) -> tuple[bool, int, str, str]:
    """Sort key: unknown numbers first, then most messages first."""
    return each.may_come_again is not None, -(each.may_come_again or 0), each.topic, each.subscription
