"""Descriptions of a made-up cluster, frozen, that a test or the command line writes down."""

from dataclasses import dataclass, field
from typing import Any, Literal

from lab.simulator.load import LoadSpec

Policies = dict[str, object]
"""Parts of a namespace's policies document, by their names there: ``retention_policies``, ``backlog_quota_map``."""

CLIENT = "Pulsar-Java-v4.0.7"
ACK_HOLE_BYTES = 12  # measured: 7 holes took 84 bytes
INDEX_ENTRY_BYTES = 24  # three longs; the arrays grow in leaps, so that real brokers show up to 36 (measured: 35)
SMALLEST_INDEX_BYTES = 768  # measured: 3 delayed messages take as much
BUCKET_MESSAGES, SEGMENT_MESSAGES = 50_000, 5_000


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """One consumer of a subscription whose consumers differ.

    Attributes:
        unacked: Messages that it holds (``unackedMessages``).
        permits: Messages that it has asked for and not been sent (``availablePermits``).
        rate_out: Messages a second to it.
        ack_rate: Its acknowledgements a second (``messageAckRate``).
        blocked: ``blockedConsumerOnUnackedMsgs``.
        consumed_ms: Time of the last message that was sent to it; 0: none was.
        acked_ms: Time of its last acknowledgement; 0: there was none.
        connected_ms: When it connected; 0: long ago.
        told: Further members in its topic's ``/stats``, by the names of the admin API.
    """

    unacked: int = 0
    permits: int = 1000
    rate_out: float = 0.0
    ack_rate: float = 0.0
    blocked: bool = False
    consumed_ms: int = 0
    acked_ms: int = 0
    connected_ms: int = 0
    told: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class SubscriptionSpec:
    """One subscription on every partition of a topic.

    Attributes:
        kind: As the API names it; ``None`` as long as no consumer has come since the bundle was loaded.
        consumers: Connected consumers.
        backlog: Entries not yet acknowledged (``msgBacklog``), as the broker counts them.
        behind: The same by its cursor's position, where that count is wrong; None: it is right.
        unacked: Messages delivered and not acknowledged (``unackedMessages``).
        messages_per_entry: Messages of a batch, on average, at its consumers (``avgMessagesPerEntry``).
        ack_holes: Ranges of acknowledged messages beyond the first gap (``totalNonContiguousDeletedMessagesRange``).
        delayed: Messages that wait for their time (``msgDelayed``).
        blocked: ``blockedSubscriptionOnUnackedMsgs``.
        rate_out: Messages a second.
        ack_rate: Acknowledgements a second (``messageAckRate``); by default as many as messages are sent.
        each: Its consumers, where they are not all alike; see `of`.
        redeliver_rate: Messages delivered again, a second (``msgRateRedeliver``).
        new_consumers: Of the consumers, those that connected within the last minute.
        spans: ``numberOfEntriesSinceFirstNotAckedMessage``; by default one more than the backlog and the holes are.
        ack_state_bytes: What was persisted of the holes; by default what they take.
        client_version: What its consumers say; empty: brokers know none.
        delayed_buckets: Sealed buckets of the delayed index; the one that still fills is not among them.
        consumed_ms: Time of the last message that was sent to a consumer (``lastConsumedTimestamp``); 0: none was.
        acked_ms: Time of the last acknowledgement (``lastAckedTimestamp``); 0: there was none.
        told: Further members of its ``/stats``, by the names of the admin API.
        replicated: Whether its position is replicated to other clusters (``isReplicated``).
        made: When the metadata store got its cursor (``creationDate``).
        cursor_ledger: Ledger of its cursor (``cursorLedger``); -1: nothing was written since the topic was loaded.
        cursor_entry: Last entry of that.
        durable: Whether it holds what it has not consumed; a reader's does not.
    """

    name: str
    kind: Literal["Exclusive", "Shared", "Failover", "Key_Shared", "None"] = "Shared"
    consumers: int = 0
    backlog: int = 0
    unacked: int = 0
    ack_holes: int = 0
    delayed: int = 0
    blocked: bool = False
    rate_out: float = 0.0
    redeliver_rate: float = 0.0
    new_consumers: int = 0
    spans: int | None = None
    ack_state_bytes: int | None = None
    delayed_buckets: int = 0
    client_version: str = CLIENT
    consumed_ms: int = 0
    acked_ms: int = 0
    replicated: bool = False
    made: str = "2026-01-02T03:04:05.6Z"
    cursor_ledger: int = -1
    cursor_entry: int = -1
    messages_per_entry: int = 1
    durable: bool = True
    told: tuple[tuple[str, object], ...] = ()
    ack_rate: float | None = None
    behind: int | None = None
    each: tuple[ConsumerSpec, ...] = ()

    @classmethod
    def of(cls, name: str, *each: ConsumerSpec, **figures: Any) -> "SubscriptionSpec":
        """A subscription with these consumers, whose own figures are the sums and the latest of theirs."""
        own = {
            "consumers": len(each),
            "unacked": sum(consumer.unacked for consumer in each),
            "rate_out": sum(consumer.rate_out for consumer in each),
            "ack_rate": sum(consumer.ack_rate for consumer in each),
            "consumed_ms": max((consumer.consumed_ms for consumer in each), default=0),
            "acked_ms": max((consumer.acked_ms for consumer in each), default=0),
        }
        return cls(name, each=each, **(own | figures))

    @property
    def unread(self) -> int:
        """Entries that are not acknowledged by its cursor's position."""
        return self.backlog if self.behind is None else self.behind

    @property
    def acks(self) -> float:
        """Acknowledgements a second."""
        return self.rate_out if self.ack_rate is None else self.ack_rate

    def consumer(self, number: int) -> ConsumerSpec:
        """Figures of one consumer; where they are alike, its share."""
        if self.each:
            return self.each[number]
        unacked = self.unacked // self.consumers + (number < self.unacked % self.consumers)
        rate_out, ack_rate = self.rate_out / self.consumers, self.acks / self.consumers
        return ConsumerSpec(unacked, rate_out=rate_out, ack_rate=ack_rate, blocked=self.blocked)

    @property
    def is_shared(self) -> bool:
        """True if several consumers get messages at a time."""
        return self.kind in {"Shared", "Key_Shared"}

    @property
    def has_active_consumer(self) -> bool:
        """True if one consumer among those connected gets all messages."""
        return self.consumers > 0 and self.kind in {"Exclusive", "Failover"}

    @property
    def entries_since_gap(self) -> int:
        """``numberOfEntriesSinceFirstNotAckedMessage``: 1 when nothing waits."""
        return self.unread + self.ack_holes + 1 if self.spans is None else self.spans

    @property
    def persisted_bytes(self) -> int:
        """``nonContiguousDeletedMessagesRangesSerializedSize``."""
        return self.ack_holes * ACK_HOLE_BYTES if self.ack_state_bytes is None else self.ack_state_bytes

    @property
    def index_entries(self) -> int:
        """Delayed messages whose index is in memory: of each sealed bucket one segment, and the one that fills."""
        if not self.delayed_buckets:
            return self.delayed
        return min(self.delayed, BUCKET_MESSAGES + self.delayed_buckets * SEGMENT_MESSAGES)

    @property
    def index_bytes(self) -> int:
        """``delayedMessageIndexSizeInBytes``."""
        return max(SMALLEST_INDEX_BYTES, self.index_entries * INDEX_ENTRY_BYTES) if self.delayed else 0


@dataclass(frozen=True, slots=True)
class ReplicatorSpec:
    """Replication of every partition of a topic to one remote cluster.

    Attributes:
        cluster: The remote cluster.
        backlog: Entries that it has not been sent (``replicationBacklog``).
        connected: Whether its producer there is connected.
        rate_out: Messages a second to it.
        expired_rate: Messages a second that expire before they are sent.
        delay_s: Seconds that what is on its way has been (``replicationDelayInSeconds``).
        inbound: Whether a producer of that cluster is connected here (``inboundConnection``).
        rate_in: Messages a second from there.
    """

    cluster: str
    backlog: int = 0
    connected: bool = True
    rate_out: float = 0.0
    expired_rate: float = 0.0
    delay_s: int = 0
    inbound: bool = False
    rate_in: float = 0.0


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """One topic, or a partitioned one whose partitions are all alike.

    Attributes:
        name: Its last part only.
        partitions: 0 for a topic that is not partitioned.
        producers: Connected producers on each partition.
        message_bytes: The size of an average message.
        backlog_bytes: ``backlogSize`` of each partition; by default that of the largest backlog.
        storage_bytes: ``storageSize`` of each partition; by default the backlog's.
        backlog_age_s: ``oldestBacklogMessageAgeSeconds``; -1 where no age is looked at.
        rate_in: Messages a second on each partition.
        slow_entries: Entries of each partition that took from 200 ms to a second to publish, in the last minute.
        stalled_entries: The same, over a second.
        new_producers: Of the producers, those that connected within the last minute.
        new_clients_ago_s: Seconds by which its new clients connected earlier than that.
        client_version: What the producers say; empty: brokers know none.
        replicators: To which clusters it is replicated.
        dedup_behind: Entries since the last snapshot of its deduplication; None: it has none.
        ledgers: Ledgers that each partition still has, all but the first of them empty.
        stored_ago_s: How long ago all that it stores was in a closed ledger.
        just_made: True for one that was made this moment, and is in no statistics of its broker yet.
        told: Further members of its ``/stats``, by the names of the admin API.
        persistent: False for one that only passes on what it gets: ``non-persistent://``, without a backlog.
        segment: True for a segment of a scalable topic, ``segment://``.
    """

    name: str
    partitions: int = 0
    producers: int = 0
    subscriptions: tuple[SubscriptionSpec, ...] = ()
    message_bytes: int = 100
    backlog_bytes: int | None = None
    storage_bytes: int | None = None
    backlog_age_s: int = -1
    rate_in: float = 0.0
    slow_entries: int = 0
    stalled_entries: int = 0
    new_producers: int = 0
    new_clients_ago_s: int = 0
    client_version: str = CLIENT
    replicators: tuple[ReplicatorSpec, ...] = ()
    dedup_behind: int | None = None
    ledgers: int = 2
    stored_ago_s: int = 0
    just_made: bool = False
    persistent: bool = True
    segment: bool = False
    told: tuple[tuple[str, object], ...] = ()

    @property
    def domain(self) -> str:
        """Begin of its name: ``persistent``, ``non-persistent`` or ``segment``."""
        return "segment" if self.segment else "persistent" if self.persistent else "non-persistent"

    @property
    def backlog(self) -> int:
        """``backlogSize`` of each partition: that of the slowest durable cursor, whosever it is."""
        if self.backlog_bytes is not None:
            return self.backlog_bytes
        of_subscriptions = (each.unread for each in self.subscriptions if each.durable)
        return max((*of_subscriptions, *(behind for _, behind in self.own_cursors)), default=0) * self.message_bytes

    @property
    def durable_cursors(self) -> tuple[tuple[str, int], ...]:
        """Names of all durable cursors, with the entries that each has not consumed."""
        return (
            *((each.name, each.unread + each.ack_holes) for each in self.subscriptions if each.durable),
            *self.own_cursors,
        )

    @property
    def own_cursors(self) -> tuple[tuple[str, int], ...]:
        """The same of those that are no subscriptions: replicators and deduplication."""
        replicators = ((f"pulsar.repl.{each.cluster}", each.backlog) for each in self.replicators)
        return (*replicators, *(() if self.dedup_behind is None else (("pulsar.dedup", self.dedup_behind),)))

    @property
    def storage(self) -> int:
        """``storageSize`` of each partition."""
        return self.backlog if self.storage_bytes is None else self.storage_bytes

    @property
    def entries(self) -> int:
        """Entries that each partition stores, one a message."""
        return self.storage // self.message_bytes

    @property
    def consumers(self) -> int:
        """Consumers on each partition."""
        return sum(subscription.consumers for subscription in self.subscriptions)

    @property
    def index_bytes(self) -> int:
        """``delayedMessageIndexSizeInBytes`` of all subscriptions."""
        return sum(subscription.index_bytes for subscription in self.subscriptions)


@dataclass(frozen=True, slots=True)
class NamespaceSpec:
    """One namespace, ``tenant/name``.

    Attributes:
        boundaries: Exact bounds, the first 0 and the last 0xffffffff; else ``bundles`` equal ones.
        owner: The number of the broker (0 for the first) that owns every loaded bundle; None spreads them.
        owners: The number of the broker of each bundle, in their order; where given, ``owner`` does not count.
        loaded: Whether bundles with topics are owned from the start, as they are with clients connected.
        anti_affinity_group: The group that it is in.
        bookie_group: The group of bookies that its ledgers keep to.
        scalable: Its scalable topics (``topic://...``), which brokers of 5.0 list.
    """

    name: str
    bundles: int = 4
    topics: tuple[TopicSpec, ...] = ()
    boundaries: tuple[int, ...] | None = None
    policies: Policies = field(default_factory=dict)
    owner: int | None = None
    owners: tuple[int, ...] = ()
    loaded: bool = True
    anti_affinity_group: str | None = None
    bookie_group: str | None = None
    scalable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CoordinatorSpec:
    """Counters of a transaction coordinator that clients use.

    Attributes:
        opened: Transactions that were opened since it was loaded.
        still_open: Those of them that are open.
        timed_out: Those of them that it aborted, as their time was over.
    """

    opened: int = 0
    still_open: int = 0
    timed_out: int = 0


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A whole cluster.

    Attributes:
        coordinators: Transaction coordinators, the partitions of ``transaction_coordinator_assign``.
        transactions: Counters of those coordinators that clients use, by number; their owners tell them.
        bookies: Bookies that belong to the cluster.
        bookie_groups: By name, the numbers of the bookies in each group (0 for the first).
        tc_owner: The number of the broker that owns all of them; None spreads them.
        tc_loaded: False leaves every bundle of ``pulsar/system`` unowned, as on a cluster that no client has used.
        namespaces: ``pulsar/system`` and ``public/default`` are added when they are not given.
        others: Further clusters of its configuration store, at made-up addresses, which all tenants may use as well.
        migrates_to: Service address that Pulsar's own migration sends clients to; empty: nobody ever set one.
        version: Pulsar version of all brokers beyond `versions`.
        versions: Pulsar versions of the first brokers, as while a cluster is being upgraded.
        configuration: Overrides of ``/admin/v2/brokers/configuration/runtime``; every value is a string there.
        own_settings: What differs from it on each broker, the first one first; beyond the end, nothing does.
        isolation_policies: By name, the documents that ``namespaceIsolationPolicies`` answers; None: never set.
        load_manager: ``extensible`` hands bundles over by itself, and keeps no load reports.
        hosts: ``distinct`` puts broker N on 127.0.0.N, as isolation policies match hosts; Linux only.
        compress: Whether clients that accept gzip get it, as from a real broker.
        now_ms: A fixed clock for byte-identical documents; None follows the machine's.
        loads: How busy each broker is, the first one first; those beyond the end are `LoadSpec()`.
        steady: Whether a broker's statistics, load report and metrics are put together once and stay so, whatever
            happens: for measurements, in which the simulator must not be what takes the time. A file without a
            name holds them all then.
    """

    brokers: int = 3
    coordinators: int = 16
    transactions: dict[int, CoordinatorSpec] = field(default_factory=dict)
    system_bundles: int = 16
    bookies: int = 5
    bookie_groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    tc_owner: int | None = None
    tc_loaded: bool = True
    namespaces: tuple[NamespaceSpec, ...] = ()
    cluster: str = "local"
    others: tuple[str, ...] = ()
    migrates_to: str = ""
    version: str = "4.0.7"
    versions: tuple[str, ...] = ()
    configuration: dict[str, str] = field(default_factory=dict)
    own_settings: tuple[dict[str, str], ...] = ()
    isolation_policies: dict[str, dict[str, object]] | None = None
    load_manager: Literal["modular", "extensible"] = "modular"
    hosts: Literal["same", "distinct"] = "same"
    compress: bool = True
    now_ms: int | None = None
    loads: tuple[LoadSpec, ...] = ()
    steady: bool = False

    @property
    def is_extensible(self) -> bool:
        """True if the brokers run `ExtensibleLoadManagerImpl`."""
        return self.load_manager == "extensible"

    def version_of(self, number: int) -> str:
        """Version of the broker with a number."""
        return self.versions[number] if number < len(self.versions) else self.version

    def own_settings_of(self, number: int) -> dict[str, str]:
        """Settings of the broker with a number that differ from those of all."""
        return self.own_settings[number] if number < len(self.own_settings) else {}

    def load_of(self, number: int) -> LoadSpec:
        """Load of the broker with a number."""
        return self.loads[number] if number < len(self.loads) else LoadSpec()
