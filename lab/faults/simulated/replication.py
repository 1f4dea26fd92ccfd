"""Replication to a second cluster, west, of which nothing but what brokers here tell is made up."""

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import cluster
from lab.simulator import ClusterSpec, NamespaceSpec, ReplicatorSpec, SubscriptionSpec, TopicSpec

LONG = "no benchmark waits for half an hour; of two real clusters, `replication-cut` and its twins show a minute of it"
WEST, TO_WEST = "west", "^shop/geo to west$"


def _replicating(
    *backlogs: int, connected: bool = True, rate: float = 20.0, sent: float = 20.0
) -> tuple[ClusterSpec, ...]:
    """A cluster a look: 12 topics whose backlog for west is that many entries each."""
    return tuple(_with(ReplicatorSpec(WEST, backlog, connected, sent), rate) for backlog in backlogs)


def _with(replicator: ReplicatorSpec, rate: float) -> ClusterSpec:
    reader = SubscriptionSpec("billing", consumers=2, backlog=25, unacked=20, rate_out=rate)
    topic = TopicSpec(
        "orders",
        partitions=12,
        producers=2,
        subscriptions=(reader,),
        storage_bytes=50_000_000,
        rate_in=rate,
        replicators=(replicator,),
    )
    return cluster(NamespaceSpec("shop/geo", topics=(topic,), policies={"replication_clusters": ["local", WEST]}))


FAULTS = (
    SimulatedFault(
        name="replication-disconnected",
        about="Twelve topics have had no producer in the other cluster for half an hour, and nobody was told.",
        expected=(Expected("replication-stopped", TO_WEST),),
        specs=_replicating(3_000, 15_000, 27_000, 39_000, connected=False, sent=0.0),
        observations=4,
        why=LONG,
        quick=True,
    ),
    SimulatedFault(
        name="replication-hangs",
        about="Twelve topics are connected to the other cluster, and have sent nothing for half an hour.",
        expected=(Expected("replication-stopped", TO_WEST),),
        specs=_replicating(3_000, 15_000, 27_000, 39_000, sent=0.0),
        observations=4,
        why=LONG,
    ),
    SimulatedFault(
        name="replication-falls-behind",
        about="Twelve topics send to the other cluster a third of what is published.",
        expected=(Expected("replication-stopped", TO_WEST),),
        specs=_replicating(60_000, 100_000, 140_000, 180_000, 220_000, sent=7.0),
        observations=5,
        minutes_apart=20,
        why=LONG,
    ),
    SimulatedFault(
        name="replication-with-a-short-backlog",
        about="Healthy: twelve topics send to the other cluster what is published; a handful is always on its way.",
        specs=_replicating(40, 25, 60, 35),
        observations=4,
        why=LONG,
        twin_of=("replication-disconnected", "replication-hangs", "replication-falls-behind"),
    ),
    SimulatedFault(
        name="replication-rests",
        about="Healthy: nobody publishes, so that brokers have given up their producers in the other cluster.",
        specs=_replicating(0, 0, 0, 0, connected=False, rate=0.0, sent=0.0),
        observations=4,
        why=LONG,
        twin_of=("replication-disconnected",),
    ),
    SimulatedFault(
        name="replication-catches-up",
        about="Healthy again: what was left from an outage of the other cluster becomes less.",
        specs=_replicating(900_000, 700_000, 500_000, 300_000, sent=180.0),
        observations=4,
        why=LONG,
        twin_of=("replication-falls-behind",),
    ),
    SimulatedFault(
        name="replication-after-a-restart",
        about="Healthy: right when it is looked at, brokers that were restarted have not yet connected.",
        specs=(*_replicating(40, 25, 60), *_replicating(1_500, connected=False, sent=0.0)),
        observations=4,
        why=LONG,
        twin_of=("replication-disconnected",),
    ),
)
