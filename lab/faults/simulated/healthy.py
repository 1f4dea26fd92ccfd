"""Clusters that are well, in which nothing may be found."""

from lab.faults.fault import SimulatedFault
from lab.faults.simulated._clusters import EIGHT_GIB, busy_topic, retained, spread, strained
from lab.simulator import ClusterSpec, LatencySpec, NamespaceSpec, SubscriptionSpec, TopicSpec

BROKERS = 100
TENANTS = 25


def _large() -> ClusterSpec:
    """30,000 partitions of 25 tenants, of which some are read late and some are not read at all."""
    late = SubscriptionSpec("reports", kind="Failover", consumers=1, backlog=400, rate_out=8.0)
    archive = TopicSpec(
        "archive", partitions=200, producers=1, subscriptions=(late,), storage_bytes=400_000_000, rate_in=8.0
    )
    namespaces = tuple(
        NamespaceSpec(
            f"team-{number}/work",
            bundles=BROKERS,
            topics=(busy_topic("jobs", 800), archive, TopicSpec("spare", partitions=200)),
            owners=spread(BROKERS, BROKERS),
            policies=retained(1440, 10_240),
        )
        for number in range(TENANTS)
    )
    load = strained(cpu_percent=90.0, writes=LatencySpec(5_000.0, 0.5), ledger_switches=LatencySpec(0.2, 2.0))
    return ClusterSpec(brokers=BROKERS, hosts="distinct", namespaces=namespaces, loads=(load,) * BROKERS)


def _young() -> ClusterSpec:
    """Brokers that just started: all clients are new, and much was collected already."""
    reader = SubscriptionSpec("app", consumers=150, new_consumers=150, backlog=20, rate_out=300.0)
    topic = TopicSpec("live", partitions=6, producers=150, new_producers=150, subscriptions=(reader,), rate_in=300.0)
    load = strained(
        uptime_s=90.0, gc_seconds=1.1, gc_count=12, full_gc_seconds=0.6, metadata_reads=600, metadata_read_ms=24.0
    )
    return ClusterSpec(
        hosts="distinct", namespaces=(NamespaceSpec("shop/live", bundles=6, topics=(topic,)),), loads=(load,) * 3
    )


FAULTS = (
    SimulatedFault(
        name="healthy-and-large",
        about="A hundred brokers with 30,000 busy partitions.",
        specs=(_large(),),
        why="a hundred brokers",
    ),
    SimulatedFault(
        name="healthy-and-idle",
        about="Three brokers that nobody uses.",
        specs=(ClusterSpec(hosts="distinct", loads=(EIGHT_GIB,) * 3),),
        why="a real cluster is idle too, but not for a day",
        quick=True,
    ),
    SimulatedFault(
        name="healthy-and-just-started",
        about="Brokers that started a minute and a half ago, and to which all clients came back at once.",
        specs=(_young(),),
        why="hundreds of clients at the very moment after a start",
    ),
)
