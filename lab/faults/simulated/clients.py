"""Too many clients, clients that do not stay, and cursors that cannot be persisted."""

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import at, cluster, strained
from lab.simulator import NamespaceSpec, SubscriptionSpec, TopicSpec

ONE_CROWD = "all clients are those of one partition, which makes its bundle and broker stand out"


def _crowd() -> NamespaceSpec:
    """A partition as those of knowledge.md C: 100 producers, 10,000 consumers, and a few ack holes."""
    feed = SubscriptionSpec("feed", consumers=10_000, backlog=2_000, unacked=1_500, ack_holes=800, rate_out=900.0)
    topic = TopicSpec("updates", partitions=1, producers=100, subscriptions=(feed,), message_bytes=300, rate_in=900.0)
    return NamespaceSpec("shop/push", topics=(topic,))


def _reconnecting(settled: int) -> NamespaceSpec:
    app = SubscriptionSpec("app", consumers=600, new_consumers=600 - settled, backlog=50, rate_out=100.0)
    topic = TopicSpec("sessions", producers=200, new_producers=180, subscriptions=(app,), rate_in=100.0)
    return NamespaceSpec("shop/app", topics=(topic,))


def _wide_cursor() -> NamespaceSpec:
    """A message that is never acknowledged, and 40 million behind it of which most are."""
    reader = SubscriptionSpec(
        "ledger",
        consumers=4,
        backlog=3_000_000,
        unacked=900,
        ack_holes=900,
        spans=40_000_000,
        ack_state_bytes=6_900_000,
        rate_out=700.0,
    )
    topic = TopicSpec("payments", producers=2, subscriptions=(reader,), message_bytes=200, rate_in=600.0)
    return NamespaceSpec("shop/money", topics=(topic,))


FAULTS = (
    SimulatedFault(
        name="ten-thousand-consumers",
        about="One partition has 10,000 consumers, all of them well.",
        expected=(Expected("consumer-fanout", "^persistent://shop/push/updates-partition-0$"),),
        allowed={"broker-load-skew": ONE_CROWD, "hot-bundle": ONE_CROWD},
        specs=(cluster(_crowd()),),
        why="10,000 consumers need more memory than the lab's machine has",
    ),
    SimulatedFault(
        name="clients-reconnect",
        about="Of 800 clients of a topic 700 connected within the last minute, on a broker that runs for a day.",
        expected=(Expected("connection-churn", "^persistent://shop/app/sessions$"),),
        specs=(cluster(_reconnecting(settled=80)),),
        why="clients on one machine share their connections, and a broker of the lab has only just started",
        quick=True,
    ),
    SimulatedFault(
        name="short-connections",
        about="A broker has opened and closed two million connections in a day, for the hundred that it has.",
        expected=(Expected("connection-churn", at(1)),),
        specs=(cluster(broker_1=strained(connections=100, connections_replaced=2_000_000)),),
        why="a day of short connections",
    ),
    SimulatedFault(
        name="cursor-too-large-to-persist",
        about="The ack state of a cursor over 40 million entries no longer fits an entry of BookKeeper.",
        expected=(Expected("cursor-not-persistable", "persistent://shop/money/payments"),),
        specs=(
            cluster(
                _wide_cursor(),
                version="4.2.4",
                configuration={"managedLedgerPersistIndividualAckAsLongArray": "true"},
            ),
        ),
        why="30 million messages take longer to write than the lab may run",
    ),
)
