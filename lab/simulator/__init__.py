"""A made-up Pulsar cluster in one process: the admin API of any number of brokers, each on a port of its own.

It answers as a real 4.0.7 does, which ``tests/contract`` holds both to; it imports nothing of the library, so that a
misreading of the API cannot hide on both sides. Nothing here speaks the binary protocol: there are no clients. Bookies
and ZooKeeper are their metrics, served beside the cluster.
"""

from lab.simulator.cluster import Simulator, running_simulator
from lab.simulator.faults import Answer, BrokenJson, Delay, Drop, Fault, Without
from lab.simulator.load import LatencySpec, LoadSpec
from lab.simulator.model import RequestRecord
from lab.simulator.spec import (
    ClusterSpec,
    ConsumerSpec,
    CoordinatorSpec,
    NamespaceSpec,
    ReplicatorSpec,
    SubscriptionSpec,
    TopicSpec,
)
from lab.simulator.storage import AuditorSpec, BookieSpec, ServerSpec, ZooKeeperSpec, running_servers

__all__ = [
    "Answer",
    "AuditorSpec",
    "BookieSpec",
    "BrokenJson",
    "ClusterSpec",
    "ConsumerSpec",
    "CoordinatorSpec",
    "Delay",
    "Drop",
    "Fault",
    "LatencySpec",
    "LoadSpec",
    "NamespaceSpec",
    "ReplicatorSpec",
    "RequestRecord",
    "ServerSpec",
    "Simulator",
    "SubscriptionSpec",
    "TopicSpec",
    "Without",
    "ZooKeeperSpec",
    "running_servers",
    "running_simulator",
]
