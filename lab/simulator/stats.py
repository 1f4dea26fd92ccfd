"""The figures of a topic as ``/stats`` and ``/internalStats`` give them, from its description."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from lab.simulator.model import Topic
from lab.simulator.spec import BUCKET_MESSAGES, ReplicatorSpec, SubscriptionSpec, TopicSpec

CONNECTED = "2026-01-01T00:00:00Z"
MEMORY = (
    "nonContiguousDeletedMessagesRanges",
    "nonContiguousDeletedMessagesRangesSerializedSize",
    "delayedMessageIndexSizeInBytes",
)

Document = dict[str, Any]
ALWAYS_ZERO = (
    "bytesInCounter",
    "systemTopicBytesInCounter",
    "bytesOutCounter",
    "bytesOutInternalCounter",
    "publishRateLimitedTimes",
    "earliestMsgPublishTimeInBacklogs",
    "offloadedStorageSize",
    "lastOffloadLedgerId",
    "lastOffloadSuccessTimeStamp",
    "lastOffloadFailureTimeStamp",
    "ongoingTxnCount",
    "abortedTxnCount",
    "committedTxnCount",
    "msgInCounter",
    "msgOutCounter",
    "waitingPublishers",
)
SUBSCRIPTION_ALWAYS_ZERO = (
    "bytesOutCounter",
    "msgOutCounter",
    "earliestMsgPublishTimeInBacklog",
    "msgInReplay",
    "totalMsgExpired",
    "lastExpireTimestamp",
    "lastConsumedFlowTimestamp",
    "lastMarkDeleteAdvancedTimestamp",
    "drainingHashesCount",
    "drainingHashesClearedTotal",
    "drainingHashesUnackedMessages",
    "filterProcessedMsgCount",
    "filterAcceptedMsgCount",
    "filterRejectedMsgCount",
    "filterRescheduledMsgCount",
    "dispatchThrottledMsgEventsBySubscriptionLimit",
    "dispatchThrottledBytesEventsBySubscriptionLimit",
    "dispatchThrottledMsgEventsByTopicLimit",
    "dispatchThrottledBytesEventsByTopicLimit",
    "dispatchThrottledMsgEventsByBrokerLimit",
    "dispatchThrottledBytesEventsByBrokerLimit",
)


def topic_document(topic: Topic, owner: str, limits: tuple[int, int], just_now: str) -> Document:
    """``/stats`` of one topic or partition.

    Args:
        topic: Which.
        owner: The broker id in ``ownerBroker``.
        limits: Its backlog quota, see `lab.simulator.quotas.limits`.
        just_now: When new clients connected.
    """
    own = {"backlogQuotaLimitSize": limits[0], "backlogQuotaLimitTime": limits[1], "ownerBroker": owner}
    return {**_shape(topic.spec, new_since(topic.spec, just_now)), **own}


def with_publish_times(document: Document, spec: TopicSpec, now_ms: int) -> Document:
    """The same with when the oldest message of each backlog was published: ``getEarliestTimeInBacklog=true``.

    Where the specification has no age, it was published just now.
    """
    published = now_ms - max(spec.backlog_age_s, 0) * 1000
    subscriptions = {
        each.name: {
            **document["subscriptions"][each.name],
            "earliestMsgPublishTimeInBacklog": published if each.backlog else -1,
        }
        for each in spec.subscriptions
    }
    return {**document, "subscriptions": subscriptions}


def replicator(spec: ReplicatorSpec) -> Document:
    """Replication to one remote cluster, in ``/stats`` and in the document of all of a broker's topics alike."""
    # In the document of all topics, a real broker writes an empty text where nobody is connected.
    inbound = {"inboundConnection": address(0), "inboundConnectedSince": CONNECTED}
    return {
        "connected": spec.connected,
        "msgRateExpired": spec.expired_rate,
        "msgRateIn": spec.rate_in,
        "msgRateOut": spec.rate_out,
        "msgThroughputIn": 0.0,
        "msgThroughputOut": 0.0,
        "replicationBacklog": spec.backlog,
        "replicationDelayInSeconds": spec.delay_s,
        **(inbound if spec.inbound else dict.fromkeys(inbound, "")),
    }


def new_since(spec: TopicSpec, just_now: str) -> str:
    """When the topic's new clients connected; empty where it has none, as its documents are the same for ever then."""
    if not (spec.new_producers or any(each.new_consumers for each in spec.subscriptions)):
        return ""
    if not spec.new_clients_ago_s:
        return just_now
    since = datetime.fromisoformat(just_now) - timedelta(seconds=spec.new_clients_ago_s)
    return since.strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=4096)
def _shape(spec: TopicSpec, just_now: str) -> Document:
    rate_out = sum(subscription.rate_out for subscription in spec.subscriptions)
    return {
        "msgRateIn": spec.rate_in,
        "msgThroughputIn": spec.rate_in * spec.message_bytes,
        "msgRateOut": rate_out,
        "msgThroughputOut": rate_out * spec.message_bytes,
        "averageMsgSize": float(spec.message_bytes) if spec.rate_in else 0.0,
        "msgChunkPublished": False,
        "storageSize": spec.storage,
        "backlogSize": spec.backlog,
        "oldestBacklogMessageAgeSeconds": spec.backlog_age_s,
        **_slowest(spec),
        **dict.fromkeys(ALWAYS_ZERO, 0),
        "publishers": [_publisher(spec, number, just_now) for number in range(spec.producers)],
        "subscriptions": {each.name: _subscription(each, spec, just_now) for each in spec.subscriptions},
        "replication": {each.cluster: replicator(each) for each in spec.replicators},
        "deduplicationStatus": "Disabled" if spec.dedup_behind is None else "Enabled",
        **_memory(spec.subscriptions),
        "compaction": {
            "lastCompactionRemovedEventCount": 0,
            "lastCompactionSucceedTimestamp": 0,
            "lastCompactionFailedTimestamp": 0,
            "lastCompactionDurationTimeInMills": 0,
        },
        **dict(spec.told),
    }


def _slowest(spec: TopicSpec) -> Document:
    """The subscription of the oldest message, where the broker looks at ages at all."""
    if spec.backlog_age_s < 0 or not spec.subscriptions:
        return {}
    return {"oldestBacklogMessageSubscriptionName": max(spec.subscriptions, key=lambda each: each.backlog).name}


def _memory(subscriptions: Iterable[SubscriptionSpec]) -> Document:
    each = [(spec.ack_holes, spec.persisted_bytes, spec.index_bytes) for spec in subscriptions]
    return {name: sum(values[place] for values in each) for place, name in enumerate(MEMORY)}


def _publisher(spec: TopicSpec, number: int, just_now: str) -> Document:
    rate = spec.rate_in / spec.producers
    return {
        "accessMode": "Shared",
        "msgRateIn": rate,
        "msgThroughputIn": rate * spec.message_bytes,
        "averageMsgSize": float(spec.message_bytes),
        "chunkedMessageRate": 0.0,
        "producerId": number,
        "supportsPartialProducer": False,
        "producerName": f"producer-{number}",
        "address": address(number),
        "connectedSince": connected(number, spec.new_producers, just_now),
        **version(spec.client_version),
        "metadata": {},
    }


def _subscription(spec: SubscriptionSpec, topic: TopicSpec, just_now: str) -> Document:
    active = {"activeConsumerName": f"{spec.name}-0"} if spec.has_active_consumer else {}
    return {
        "msgRateOut": spec.rate_out,
        "msgThroughputOut": spec.rate_out * topic.message_bytes,
        "msgRateRedeliver": spec.redeliver_rate,
        "messageAckRate": spec.acks,
        "chunkedMessageRate": 0.0,
        "msgRateExpired": 0.0,
        "msgBacklog": spec.backlog,
        "backlogSize": spec.unread * topic.message_bytes,
        "msgBacklogNoDelayed": spec.backlog - spec.delayed,
        "blockedSubscriptionOnUnackedMsgs": spec.blocked,
        "msgDelayed": spec.delayed,
        "unackedMessages": spec.unacked,
        "type": spec.kind,
        **active,
        **dict.fromkeys(SUBSCRIPTION_ALWAYS_ZERO, 0),
        "lastConsumedTimestamp": spec.consumed_ms,
        "lastAckedTimestamp": spec.acked_ms,
        "consumers": [_consumer(spec, number, topic, just_now) for number in range(spec.consumers)],
        "isDurable": spec.durable,
        "durable": spec.durable,
        "isReplicated": spec.replicated,
        "replicated": spec.replicated,
        "allowOutOfOrderDelivery": False,
        "consumersAfterMarkDeletePosition": {},
        "subscriptionProperties": {},
        **_memory([spec]),
        **dict(spec.told),
    }


def _consumer(spec: SubscriptionSpec, number: int, topic: TopicSpec, just_now: str) -> Document:
    own = spec.consumer(number)
    return {
        "msgRateOut": own.rate_out,
        "msgThroughputOut": own.rate_out * topic.message_bytes,
        "bytesOutCounter": 0,
        "msgOutCounter": 0,
        "msgRateRedeliver": 0.0,
        "messageAckRate": own.ack_rate,
        "chunkedMessageRate": 0.0,
        "consumerName": f"{spec.name}-{number}",
        "availablePermits": own.permits,
        "unackedMessages": own.unacked,
        "avgMessagesPerEntry": spec.messages_per_entry,
        "blockedConsumerOnUnackedMsgs": own.blocked,
        "address": address(number),
        "connectedSince": consumer_connected(spec, number, just_now),
        **version(spec.client_version),
        "lastAckedTimestamp": own.acked_ms,
        "lastConsumedTimestamp": own.consumed_ms,
        "lastConsumedFlowTimestamp": own.consumed_ms,
        "metadata": {},
        **dict(own.told),
    }


def connected(number: int, new: int, just_now: str) -> str:
    """Time at which a client connected: the first ``new`` of them just now, the others long ago."""
    return just_now if number < new else CONNECTED


def consumer_connected(spec: SubscriptionSpec, number: int, just_now: str) -> str:
    """Time at which a consumer connected."""
    own_ms = spec.consumer(number).connected_ms
    if own_ms:
        return datetime.fromtimestamp(own_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return connected(number, spec.new_consumers, just_now)


def version(client_version: str) -> Document:
    """Field of a client's version in its statistics; none where the broker knows no version."""
    return {"clientVersion": client_version} if client_version else {}


def address(number: int) -> str:
    """Address of a made-up client."""
    return f"/10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}:40000"


def internal_document(topic: Topic, now_ms: int) -> Document:
    """``/internalStats`` of one topic or partition: all that it stores in a closed ledger, and an open one."""
    spec, entries = topic.spec, topic.spec.storage // topic.spec.message_bytes
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_ms // 1000))
    flags = {"offloaded": False, "underReplicated": False}
    return {
        "entriesAddedCounter": entries,
        "numberOfEntries": entries,
        "totalSize": spec.storage,
        "currentLedgerEntries": 0,
        "currentLedgerSize": 0,
        "lastLedgerCreatedTimestamp": created,
        "waitingCursorsCount": 0,
        "pendingAddEntriesCount": 0,
        "lastConfirmedEntry": f"1:{entries - 1}",
        "state": "LedgerOpened",
        "ledgers": [
            *([{"ledgerId": 1, "entries": entries, "size": spec.storage, **flags}] if entries else []),
            *({"ledgerId": number, "entries": 0, "size": 0, **flags} for number in range(2, max(spec.ledgers, 2) + 1)),
        ],
        "cursors": {
            **{each.name: _cursor(each, entries) for each in spec.subscriptions},
            **{name: _own_cursor(behind, entries) for name, behind in spec.own_cursors},
        },
        "schemaLedgers": [],
        "compactedLedger": {"ledgerId": -1, "entries": -1, "size": -1, **flags},
    }


def stored_document(topic: Topic, now_ms: int) -> Document:
    """``/internal-info`` of one topic or partition: all that it stores in a closed ledger, and an open one.

    One that was just made has the open one alone, of which no size is known.
    """
    spec, entries = topic.spec, topic.spec.storage // topic.spec.message_bytes
    closed_ms = now_ms - spec.stored_ago_s * 1000
    closed = {"ledgerId": 1, "entries": entries, "size": spec.storage, "timestamp": closed_ms, "isOffloaded": False}
    last = {"ledgerId": 2, "timestamp": now_ms, "isOffloaded": False}
    subscriptions = {each.name: each for each in spec.subscriptions}
    made = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat() if spec.just_made else CONNECTED
    return {
        "version": 1,
        "creationDate": made,
        "modificationDate": CONNECTED,
        "ledgers": [closed, last] if entries and not spec.just_made else [last],
        "cursors": {
            name: {
                "version": 1,
                "creationDate": subscriptions[name].made if name in subscriptions else CONNECTED,
                "modificationDate": CONNECTED,
                "cursorsLedgerId": subscriptions[name].cursor_ledger if name in subscriptions else -1,
                "markDelete": {"ledgerId": 1, "entryId": entries - behind - 1},
            }
            for name, behind in spec.durable_cursors
        },
    }


def _cursor(spec: SubscriptionSpec, entries: int) -> Document:
    """A cursor whose holes are every other message after the mark-delete position."""
    first = entries - spec.unread - spec.ack_holes
    holes = ",".join(f"(1:{first + 2 * n}..1:{first + 2 * n + 1}]" for n in range(spec.ack_holes))
    return {
        "markDeletePosition": f"1:{first - 1}",
        "readPosition": f"1:{entries}",
        "waitingReadOp": bool(spec.consumers),
        "pendingReadOps": 0,
        "messagesConsumedCounter": entries - spec.backlog,
        "cursorLedger": spec.cursor_ledger,
        "cursorLedgerLastEntry": spec.cursor_entry,
        "individuallyDeletedMessages": f"[{holes}]",
        "state": "NoLedger" if spec.cursor_ledger < 0 else "Open",
        "active": bool(spec.consumers),
        "numberOfEntriesSinceFirstNotAckedMessage": spec.entries_since_gap,
        "totalNonContiguousDeletedMessagesRange": spec.ack_holes,
        "subscriptionHavePendingRead": bool(spec.consumers),
        "subscriptionHavePendingReplayRead": False,
        "properties": _bucket_properties(spec),
    }


def _own_cursor(behind: int, entries: int) -> Document:
    """A cursor of Pulsar's own, which is in no statistics but these."""
    return {**_cursor(SubscriptionSpec("", backlog=behind), entries), "subscriptionHavePendingRead": False}


def _bucket_properties(spec: SubscriptionSpec) -> Document:
    """A property for each sealed bucket: from which entry on, up to which, and the ledger that it is in."""
    buckets = range(spec.delayed_buckets)
    ends = ((number * BUCKET_MESSAGES, (number + 1) * BUCKET_MESSAGES - 1) for number in buckets)
    return {f"#pulsar.internal.delayed.bucket_{first}_{last}": number for number, (first, last) in enumerate(ends)}


def partitioned_document(partitions: dict[str, Document], *, per_partition: bool) -> Document:
    """``/partitioned-stats``: sums over all partitions, and each of them unless told not to."""
    first = next(iter(partitions.values()))
    skipped = {"ownerBroker", "deduplicationStatus", "subscriptions", "publishers"}
    total = {key: _summed(key, partitions) for key in first if key not in skipped}
    names = first["subscriptions"]
    subscriptions = {
        name: {
            key: _summed(key, {part: each["subscriptions"][name] for part, each in partitions.items()}) for key in keys
        }
        for name, keys in names.items()
    }
    return {
        **total,
        "publishers": [],
        "subscriptions": subscriptions,
        "metadata": {"partitions": len(partitions), "deleted": False},
        "partitions": partitions if per_partition else {},
    }


NOT_SUMMED = {"backlogQuotaLimitSize", "backlogQuotaLimitTime", "oldestBacklogMessageAgeSeconds", "averageMsgSize"}


def _summed(key: str, documents: dict[str, Document]) -> Any:
    values = [document[key] for document in documents.values()]
    if key in NOT_SUMMED:
        return max(values)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return sum(values) if numbers else values[0]
