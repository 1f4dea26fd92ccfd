"""Too many clients, clients that do not stay, and cursors that cannot be persisted."""

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import at, cluster, strained
from lab.simulator import LatencySpec, LoadSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

NO_OLD_CLIENTS = "the lab has the newest client libraries only"
ONE_CROWD = "all clients are those of one partition, which makes its bundle and broker stand out"


def _crowd(partitions: int = 1) -> NamespaceSpec:
    """Clients like those of knowledge.md C: 100 producers a partition, 10,000 consumers in all, few ack holes."""
    consumers, rate = 10_000 // partitions, 900.0 / partitions
    feed = SubscriptionSpec("feed", consumers=consumers, backlog=2_000, unacked=1_500, ack_holes=800, rate_out=rate)
    topic = TopicSpec(
        "updates", partitions=partitions, producers=100, subscriptions=(feed,), message_bytes=300, rate_in=rate
    )
    return NamespaceSpec("shop/push", topics=(topic,))


def _reconnecting(settled: int, new_producers: int = 180) -> NamespaceSpec:
    app = SubscriptionSpec("app", consumers=600, new_consumers=600 - settled, backlog=50, rate_out=100.0)
    topic = TopicSpec("sessions", producers=200, new_producers=new_producers, subscriptions=(app,), rate_in=100.0)
    return NamespaceSpec("shop/app", topics=(topic,))


def _wide_cursor(spans: int = 40_000_000, ack_state_bytes: int = 6_900_000, backlog: int = 3_000_000) -> NamespaceSpec:
    """A message that is never acknowledged, and 40 million behind it of which most are."""
    reader = SubscriptionSpec(
        "ledger",
        consumers=4,
        backlog=backlog,
        unacked=900,
        ack_holes=900,
        spans=spans,
        ack_state_bytes=ack_state_bytes,
        rate_out=700.0,
    )
    topic = TopicSpec("payments", producers=2, subscriptions=(reader,), message_bytes=200, rate_in=600.0)
    return NamespaceSpec("shop/money", topics=(topic,))


def _written(cursors: float, entries: float = 1_000.0) -> LoadSpec:
    """A broker that gives bookies so many writes of cursors a second, and so many entries of messages."""
    return strained(cursor_writes=cursors, writes=LatencySpec(entries))


def _of_version(version: str, consumers: int = 40, producers: int = 4) -> NamespaceSpec:
    """Clients of one version on one topic."""
    app = SubscriptionSpec("app", consumers=consumers, backlog=50, rate_out=100.0, client_version=version)
    topic = TopicSpec("carts", producers=producers, subscriptions=(app,), rate_in=100.0, client_version=version)
    return NamespaceSpec("shop/app", topics=(topic,))


FAULTS = (
    SimulatedFault(
        name="clients-with-a-known-bug",
        about="Forty-four clients of a namespace have Java 2.6.2, which makes consumers anew without end.",
        expected=(Expected("client-versions", "^shop/app$"),),
        specs=(cluster(_of_version("2.6.2")),),
        why=NO_OLD_CLIENTS,
        quick=True,
    ),
    SimulatedFault(
        name="producers-with-a-known-bug",
        about="Twenty producers of a namespace have Go 0.16.0; its consumers are new.",
        expected=(Expected("client-versions", "^shop/app$"),),
        specs=(
            cluster(
                NamespaceSpec(
                    "shop/app",
                    topics=(TopicSpec("carts", producers=20, rate_in=100.0, client_version="Pulsar-Go-v0.16.0"),),
                )
            ),
        ),
        why=NO_OLD_CLIENTS,
    ),
    SimulatedFault(
        name="clients-of-the-version-after",
        about="Healthy: forty-four clients of a namespace have Java 2.10.4, whose number looks much alike.",
        specs=(cluster(_of_version("2.10.4")),),
        why=NO_OLD_CLIENTS,
        twin_of=("clients-with-a-known-bug",),
    ),
    SimulatedFault(
        name="clients-without-a-version",
        about="Healthy, as far as is known: brokers know no version of some clients, and Go ones are of 0.18.0.",
        specs=(
            cluster(
                _of_version(""),
                NamespaceSpec(
                    "shop/go",
                    topics=(TopicSpec("carts", producers=20, rate_in=100.0, client_version="Pulsar-Go-v0.18.0"),),
                ),
            ),
        ),
        why=NO_OLD_CLIENTS,
        twin_of=("clients-with-a-known-bug", "producers-with-a-known-bug"),
    ),
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
        expected=(Expected("connection-churn", at(1), "; 5,000 lookups failed; 30 connections are throttled now"),),
        specs=(
            cluster(
                broker_1=strained(
                    connections=100, connections_replaced=2_000_000, lookups_failed=5_000, connections_throttled=30
                )
            ),
        ),
        why="a day of short connections",
    ),
    SimulatedFault(
        name="cursor-too-large-to-persist",
        about="The ack state of a cursor over 40 million entries no longer fits an entry of BookKeeper.",
        expected=(Expected("cursor-not-persistable", "persistent://shop/money/payments"),),
        specs=(
            cluster(
                _wide_cursor(), version="4.2.4", configuration={"managedLedgerPersistIndividualAckAsLongArray": "true"}
            ),
        ),
        why="30 million messages take longer to write than the lab may run",
    ),
    SimulatedFault(
        name="ten-thousand-consumers-over-partitions",
        about="Healthy: 10,000 consumers, 500 on each of 20 partitions.",
        specs=(cluster(_crowd(partitions=20)),),
        why="10,000 consumers need more memory than the lab's machine has",
        twin_of=("ten-thousand-consumers",),
    ),
    SimulatedFault(
        name="some-clients-reconnect",
        about="Healthy: of 800 clients of a topic 200 connected within the last minute.",
        specs=(cluster(_reconnecting(settled=500, new_producers=100)),),
        why="clients on one machine share their connections, and a broker of the lab has only just started",
        twin_of=("clients-reconnect",),
    ),
    SimulatedFault(
        name="long-connections",
        about="Healthy: a broker has opened and closed 20,000 connections in a day, for the thousand that it has.",
        specs=(cluster(broker_1=strained(connections=1_000, connections_replaced=20_000)),),
        why="a day of short connections",
        twin_of=("short-connections",),
    ),
    SimulatedFault(
        name="cursor-that-can-be-persisted",
        about="Healthy: the ack state of a cursor over a million entries.",
        specs=(
            cluster(
                _wide_cursor(spans=1_000_000, ack_state_bytes=170_000, backlog=80_000),
                version="4.2.4",
                configuration={"managedLedgerPersistIndividualAckAsLongArray": "true"},
            ),
        ),
        why="30 million messages take longer to write than the lab may run",
        twin_of=("cursor-too-large-to-persist",),
    ),
    SimulatedFault(
        name="cursors-written-often",
        about="Nothing limits how often cursors are written: of 8,000 writes a second to bookies, 6,000 are theirs.",
        expected=(Expected("ack-state-often", "^shop/orders$", "6,000 times a second"),),
        specs=(
            cluster(
                broker_0=_written(2_500.0, 500.0),
                broker_1=_written(3_500.0, 1_500.0),
                broker_2=_written(0.0, 0.0),
                configuration={"managedLedgerDefaultMarkDeleteRateLimit": "0"},
            ),
        ),
        why="one bookie of a lab does not bear so many writes",
        quick=True,
    ),
    SimulatedFault(
        name="cursors-written-with-much-else",
        about="Healthy: 6,000 writes of cursors a second, beside 24,000 entries of messages.",
        specs=(cluster(usual=_written(2_000.0, 8_000.0)),),
        why="one bookie of a lab does not bear so many writes",
        twin_of=("cursors-written-often",),
        quick=True,
    ),
    SimulatedFault(
        name="few-cursors-written",
        about="Healthy: cursors are most of what is written, and that is 300 writes a second.",
        specs=(cluster(usual=_written(100.0, 20.0)),),
        why="one bookie of a lab does not bear so many writes, and these are told apart by their number",
        twin_of=("cursors-written-often",),
    ),
)
