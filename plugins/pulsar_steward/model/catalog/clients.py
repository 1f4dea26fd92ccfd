"""Checks of consumers, producers and acknowledgements."""

from __future__ import annotations

from pulsar_steward.model.catalog.info import CheckInfo, Scope

SUBSCRIPTION_BLOCKED = CheckInfo(
    check_id="subscription-blocked",
    title="Consumers get nothing more until they acknowledge what they have",
    advice=(
        "Look at the consumers that the evidence names: a branch of their code that never acknowledges, or a hang.",
        "See who holds what: `pulsar-admin topics stats TOPIC` (unackedMessages of each consumer).",
        "Restart a consumer that hangs: what it held goes to the others.",
        "Set an ack timeout or negative acknowledgements and a dead-letter topic in clients whose handlers may fail.",
        "Raise `maxUnackedMessagesPerConsumer` or `...PerSubscription` only where handlers are slow by nature.",
    ),
    source="docs/knowledge.md C; docs/checks/subscription-blocked.md; apache/pulsar#14337",
    scope=Scope.NAMESPACE,
)

SUBSCRIPTION_STALLED = CheckInfo(
    check_id="subscription-stalled",
    title="A subscription with a backlog and consumers stands still",
    advice=(
        "Look at the consumers that the evidence names, on their hosts: a thread dump shows where their handlers hang.",
        "No permits left: the client is not asking for more, its handlers are stuck or its receiver queue is full.",
        "Permits left: the broker does not dispatch; see `pulsar-admin topics stats-internal TOPIC` and its log.",
        "Restart the consumer that is stuck first; unload the topic only when its ack holes are few (ack-holes).",
    ),
    source="docs/knowledge.md C; docs/checks/subscription-stalled.md; apache/pulsar#14337",
    scope=Scope.NAMESPACE,
)

ACK_HOLES = CheckInfo(
    check_id="ack-holes",
    title="Acknowledgements are about to be lost at the next restart or move: too many ack holes",
    advice=(
        "Beyond the limit: do not unload or restart anything of this topic before the holes are fewer.",
        "Find who holds the first message that is not acknowledged: `pulsar-admin topics stats-internal TOPIC`.",
        "Use fewer consumers on the subscription, and quicker ones; acknowledge failures negatively, not never.",
        "Raise `managedLedgerMaxUnackedRangesToPersist` (brokers restart for it); 10,000 is low for Shared and delays.",
        "Send messages with long delays to a topic of their own: each of them is a hole.",
    ),
    source="docs/knowledge.md C; docs/checks/ack-holes.md; apache/pulsar#25540, apache/pulsar#742, apache/pulsar#25992",
    scope=Scope.NAMESPACE,
)

CURSOR_NOT_PERSISTABLE = CheckInfo(
    check_id="cursor-not-persistable",
    title="The ack state of a cursor comes near what one BookKeeper entry can hold",
    advice=(
        "Find the message that holds the cursor back: `pulsar-admin topics stats-internal TOPIC`, markDeletePosition.",
        "Let it be acknowledged, or skip it: `pulsar-admin topics skip TOPIC --subscription SUB --count N`.",
        "Do not unload or restart before: what was not persisted is delivered again.",
        "Set `managedLedgerPersistIndividualAckAsLongArray=false` where few holes span many entries.",
        "Spread the topic over more partitions: each has a cursor of its own.",
    ),
    source="docs/checks/cursor-not-persistable.md; apache/pulsar#25985, apache/pulsar#19966",
    scope=Scope.NAMESPACE,
)

CONSUMER_FANOUT = CheckInfo(
    check_id="consumer-fanout",
    title="Thousands of consumers on one partition",
    advice=(
        "Use fewer consumers with more threads or larger receiver queues, or more partitions.",
        "Watch the ack holes of its subscriptions: they grow with the number of consumers (check ack-holes).",
        "Count the clients before you move its bundle: all of them reconnect at once.",
        "Set `maxConsumersPerTopic` or `maxConsumersPerSubscription` so that it cannot grow without end.",
    ),
    source="docs/knowledge.md C; docs/checks/consumer-fanout.md",
    scope=Scope.NAMESPACE,
)

PRODUCER_FANOUT = CheckInfo(
    check_id="producer-fanout",
    title="Thousands of producers on one partition",
    advice=(
        "Share one producer in a process, and keep it: it is safe for threads.",
        "Let producers of a partitioned topic start lazily, so that each connects only to partitions that it uses.",
        "Give the topic more partitions, or put a service between that sends for many.",
        "Set `maxProducersPerTopic` so that it cannot grow without end.",
    ),
    source="docs/knowledge.md C; docs/checks/producer-fanout.md",
    scope=Scope.NAMESPACE,
)

CONNECTION_CHURN = CheckInfo(
    check_id="connection-churn",
    title="Clients connect anew again and again",
    advice=(
        "See whether a deployment or a bundle move explains it; then it is gone in the next snapshot.",
        "Look at the clients first: CPU that is used up, containers that restart, one client made for each message.",
        "Look at the broker next: stuck IO threads drop clients that they do not hear (check io-threads-stuck).",
        "Renew old SDKs: Java 2.6.2 makes consumers anew after partitions were added; old Go ones drop needlessly.",
    ),
    source="docs/knowledge.md C; docs/checks/connection-churn.md",
)

CHECKS = (
    SUBSCRIPTION_BLOCKED,
    SUBSCRIPTION_STALLED,
    ACK_HOLES,
    CURSOR_NOT_PERSISTABLE,
    CONSUMER_FANOUT,
    PRODUCER_FANOUT,
    CONNECTION_CHURN,
)
"""In the order in which reports list them."""
