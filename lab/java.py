"""The command line of every part: which class, which memory, which files."""

from pathlib import Path
from typing import NamedTuple, Self

from lab import jars, prerequisites, settings
from lab.model import LabState

DRIVERS = "org.apache.pulsar.metadata.bookkeeper"
OPENED = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/jdk.internal.misc",
    "java.base/sun.net",
    "java.base/sun.nio.ch",
    "java.management/sun.management",
)


class Runtime(NamedTuple):
    """A Java, and the folder of the jars of a version of Pulsar."""

    java: str
    jars: Path

    @classmethod
    def of(cls, pulsar_version: str) -> Self:
        """The one for a version.

        Raises:
            PrerequisiteMissingError: This machine has no Java that is new enough.
        """
        return cls(prerequisites.java(prerequisites.java_for(pulsar_version)), jars.folder(pulsar_version))


def zookeeper(runtime: Runtime, conf: Path, logging: Path) -> list[str]:
    """Runs ZooKeeper; ``logging`` is its log configuration, as of all parts."""
    return [*_java(runtime, logging, 256), "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(conf)]


def cluster_metadata(runtime: Runtime, state: LabState, logging: Path) -> list[str]:
    """Writes the cluster's metadata once, the partitions of the transaction coordinators included, and ends."""
    store = f"zk:{settings.zookeeper_address(state)}"
    first = state.brokers[0]
    tls = (
        "--web-service-url-tls",
        str(first.admin_url_tls),
        "--broker-service-url-tls",
        f"pulsar+ssl://{first.service_address_tls}",
    )
    return [
        *_java(runtime, logging, 256),
        "org.apache.pulsar.PulsarClusterMetadataSetup",
        *("--cluster", state.spec.cluster),
        *("--metadata-store", store),
        *("--configuration-metadata-store", f"zk:{settings.configuration_store(state)}"),
        *("--web-service-url", f"http://{first.broker_id}"),
        *("--broker-service-url", f"pulsar://{first.service_address}"),
        *(tls if first.admin_url_tls else ()),
        *("--initial-num-transaction-coordinators", str(state.spec.coordinators)),
    ]


def bookie(runtime: Runtime, conf: Path, logging: Path) -> list[str]:
    """Runs a bookie."""
    return [*_java(runtime, logging, 512, direct_mb=512), "org.apache.bookkeeper.server.Main", "--conf", str(conf)]


def broker(runtime: Runtime, conf: Path, logging: Path, heap_mb: int, hosts: Path | None = None) -> list[str]:
    """Runs a broker; ``hosts`` is a file of the only names that it can resolve."""
    names = [] if hosts is None else [f"-Djdk.net.hosts.file={hosts}"]
    starter = "org.apache.pulsar.PulsarBrokerStarter"
    # By SIGQUIT it prints what its heap holds, after a full collection: so one can be asked for.
    asked = "-XX:+PrintClassHistogram"
    return [
        *_java(runtime, logging, heap_mb, direct_mb=heap_mb // 2),
        asked,
        *names,
        starter,
        "--broker-conf",
        str(conf),
    ]


def _java(runtime: Runtime, logging: Path, heap_mb: int, direct_mb: int = 128) -> list[str]:
    return [
        runtime.java,
        *("-cp", f"{runtime.jars}/*"),
        f"-Xmx{heap_mb}m",
        f"-XX:MaxDirectMemorySize={direct_mb}m",
        # A lab lives for minutes on few cores: the small collector and the quick compiler start it soonest.
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Dlog4j2.configurationFile={logging}",
        f"-Dbookkeeper.metadata.bookie.drivers={DRIVERS}.PulsarMetadataBookieDriver",
        f"-Dbookkeeper.metadata.client.drivers={DRIVERS}.PulsarMetadataClientDriver",
        "-Dio.netty.tryReflectionSetAccessible=true",
        # A bookie of 5.0 takes the loopback interface's IPv6 address for its id, and dies of it.
        "-Djava.net.preferIPv4Stack=true",
        *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
    ]
