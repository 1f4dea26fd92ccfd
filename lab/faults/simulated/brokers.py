"""Brokers that stand out among those of their cluster, or whose settings do not fit what they do."""

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import at, busy_topic, cluster, spread, strained
from lab.simulator import ClusterSpec, LatencySpec, NamespaceSpec

NO_SLOW_BROKER = "a broker of the lab cannot be slowed down steadily without the others on its machine"


def _published(slow_ms: float, usual_ms: float = 3.0) -> ClusterSpec:
    """Three brokers on which publishing takes so long, the second one apart; all write to bookies quickly."""
    usual, slow = (
        strained(writes=LatencySpec(300.0), publishes=LatencySpec(300.0, usual_ms=each)) for each in (usual_ms, slow_ms)
    )
    return cluster(usual=usual, broker_1=slow)


PEERS = (
    SimulatedFault(
        name="broker-slower-than-peers",
        about="On one of three brokers publishing takes 60 ms, on the others a few; none of it takes over 200 ms.",
        expected=(Expected("broker-slower-than-peers", at(1), "the time passes in the broker itself"),),
        specs=(_published(60.0),),
        observations=2,
        why=NO_SLOW_BROKER,
        quick=True,
    ),
    SimulatedFault(
        name="brokers-alike-slow",
        about="Healthy enough: on all brokers publishing takes 60 ms, as their disks are what they are.",
        specs=(_published(60.0, 60.0),),
        observations=2,
        why=NO_SLOW_BROKER,
        twin_of=("broker-slower-than-peers",),
    ),
    SimulatedFault(
        name="broker-a-little-slower",
        about="Healthy: on one of three brokers publishing takes 15 ms, on the others a few.",
        specs=(_published(15.0),),
        observations=2,
        why=NO_SLOW_BROKER,
        twin_of=("broker-slower-than-peers",),
    ),
)

ALIKE = "the brokers of a lab are configured alike"


def _configured(**of_the_first: str) -> ClusterSpec:
    """Three brokers, the first of which has other settings."""
    return cluster(own_settings=(of_the_first,))


SETTINGS = (
    SimulatedFault(
        name="broker-retains-longer",
        about="One of three brokers retains messages for a day where a namespace sets nothing, the others for none.",
        expected=(
            Expected("broker-settings-differ", "^defaultRetentionTimeInMinutes$", "1440 on 127.0.0.1:"),
            Expected("broker-settings-differ", "^defaultRetentionSizeInMB$", "-1 on 127.0.0.1:"),
        ),
        specs=(_configured(defaultRetentionTimeInMinutes="1440", defaultRetentionSizeInMB="-1"),),
        why=ALIKE,
        quick=True,
    ),
    SimulatedFault(
        name="broker-without-topic-policies",
        about="One of three brokers heeds no policies of single topics.",
        expected=(Expected("broker-settings-differ", "^topicLevelPoliciesEnabled$", "false on 127.0.0.1:"),),
        specs=(
            cluster(
                configuration={"topicLevelPoliciesEnabled": "true"},
                own_settings=({"topicLevelPoliciesEnabled": "false"},),
            ),
        ),
        observations=2,
        minutes_apart=90,
        why=ALIKE,
    ),
    SimulatedFault(
        name="settings-changed-broker-by-broker",
        about="Healthy: ten minutes ago all brokers had a TTL of a day; one has been restarted with two days since.",
        specs=(
            cluster(configuration={"ttlDurationDefaultInSeconds": "86400"}),
            cluster(
                configuration={"ttlDurationDefaultInSeconds": "86400"},
                own_settings=({"ttlDurationDefaultInSeconds": "172800"},),
            ),
        ),
        observations=2,
        why=ALIKE,
        twin_of=("broker-retains-longer", "broker-without-topic-policies"),
    ),
    SimulatedFault(
        name="broker-of-a-larger-machine",
        about="Healthy: one of three brokers has more threads and names of its own, as its machine is larger.",
        specs=(_configured(numIOThreads="16", advertisedListeners="internal:pulsar://a:6650"),),
        why=ALIKE,
        twin_of=("broker-retains-longer", "broker-without-topic-policies"),
    ),
    SimulatedFault(
        name="broker-of-a-new-version",
        about="Healthy: one of three brokers is upgraded already, and its version has another default.",
        specs=(cluster(versions=("4.2.4",), own_settings=({"maxUnackedMessagesPerConsumer": "60000"},)),),
        why=ALIKE,
        twin_of=("broker-retains-longer", "broker-without-topic-policies"),
    ),
)


def _busy(cache_megabytes: int) -> ClusterSpec:
    """Three brokers to each of which 19 MB/s are published, with such entry caches."""
    views = NamespaceSpec("shop/web", bundles=60, topics=(busy_topic("views", 200, rate=560.0),), owners=spread(60, 3))
    return cluster(views, configuration={"managedLedgerCacheSizeMB": str(cache_megabytes)})


CACHES = (
    SimulatedFault(
        name="entry-cache-too-small",
        about="Entry caches of 3 MiB on brokers to each of which 19 MB/s are published: a sixth of a second.",
        expected=tuple(Expected("entry-cache-size", at(number), "has 3 MiB") for number in range(3)),
        specs=(_busy(3),),
        why="one machine has no room for so much throughput",
        quick=True,
    ),
    SimulatedFault(
        name="entry-cache-large-enough",
        about="Healthy: entry caches of 64 MiB under the same load.",
        specs=(_busy(64),),
        why="one machine has no room for so much throughput",
        twin_of=("entry-cache-too-small", "direct-memory-promised-twice"),
    ),
)

FAULTS = (*PEERS, *SETTINGS, *CACHES)
