"""A Kafka cluster of three nodes, each broker and controller: started, killed by node, and stopped."""

from __future__ import annotations

import base64
import contextlib
import os
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lab import jars, process
from lab.errors import PartFailedError
from lab.kafka import KAFKA_VERSION
from lab.kafka.hands import KafkaHands
from lab.ports import LOOPBACK, Ports
from lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from lab.model import ProcessId

NODES = 3
STARTED_WITHIN_S = 180.0
FORMATTED_WITHIN_S = 180.0
GRACE_S = 10.0

# Small, and quick to see a broker that ended; nothing evens leaders by itself.
SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "default.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "num.io.threads": "2",
    "num.network.threads": "1",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "replica.lag.time.max.ms": "5000",
}

LOGGING = """<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN">
  <Appenders><Console name="console"><PatternLayout pattern="%d{HH:mm:ss.SSS} %p %c{1} %m%n"/></Console></Appenders>
  <Loggers><Root level="WARN"><AppenderRef ref="console"/></Root></Loggers>
</Configuration>
"""


class KafkaLab:
    """A running cluster. Use `running_kafka`.

    Attributes:
        servers: ``host:port`` of all nodes, divided by commas.
    """

    def __init__(self, home: Path, settings: Mapping[str, str]) -> None:
        self._home = home
        self._jars = jars.folder(KAFKA_VERSION, jars.KAFKA)
        ports = Ports(None)
        nodes = range(1, NODES + 1)
        self._ports = {node: ports.take(LOOPBACK, f"Kafka node {node}") for node in nodes}
        self._controllers = {node: ports.take(LOOPBACK, f"controller of Kafka node {node}") for node in nodes}
        self._processes: dict[int, ProcessId] = {}
        self._settings = {**SETTINGS, **settings}
        self.servers = ",".join(f"{LOOPBACK}:{port}" for port in self._ports.values())

    def start(self) -> None:
        """Formats the nodes' folders and starts all nodes.

        Raises:
            PartFailedError: If a folder could not be formatted.
            NotReachedError: If not all nodes are listed in time.
        """
        logging = self._home / "log4j2.xml"
        logging.write_text(LOGGING, encoding="utf-8")
        cluster_id = base64.urlsafe_b64encode(b"S" + os.urandom(15)).decode().rstrip("=")
        formatting = []
        for node in self._ports:
            conf = self._conf(node)
            conf.parent.mkdir(parents=True)
            conf.write_text("\n".join(f"{name}={value}" for name, value in self._properties(node).items()), "utf-8")
            words = ("kafka.tools.StorageTool", "format", "--cluster-id", cluster_id, "--config", str(conf))
            formatting.append(process.spawn(self._java(*words), self._log(node), tied=True))
        for node, each in zip(self._ports, formatting, strict=True):
            wait_until(lambda each=each: process.condition(each) == "gone", "folders are formatted", FORMATTED_WITHIN_S)  # type: ignore[misc]
            if not (self._conf(node).parent / "data" / "meta.properties").is_file():
                raise PartFailedError(f"node {node} could not be formatted:\n{process.tail(self._log(node))}")
        for node in self._ports:
            self.start_node(node)
        self.wait_for(list(self._ports))

    def start_node(self, node: int) -> None:
        """Starts one node, formatted already."""
        command = self._java("kafka.Kafka", str(self._conf(node)))
        self._processes[node] = process.spawn(command, self._log(node), tied=True)

    def kill(self, node: int) -> None:
        """Ends one node by SIGKILL, and waits until the cluster does not list it."""
        process.kill([self._processes.pop(node)])
        self.wait_for([each for each in self._ports if each in self._processes])

    def wait_for(self, nodes: list[int]) -> None:
        """Waits until the cluster lists exactly these nodes."""
        wait_until(
            lambda: self._listed() == nodes, f"Kafka lists nodes {nodes}", STARTED_WITHIN_S, 0.3, instead=self._listed
        )

    def stop(self) -> None:
        """Ends all nodes."""
        process.end(self._processes.values(), GRACE_S)

    def admin(self) -> AdminClient:
        """An admin client that may change the cluster."""
        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def hands(self) -> KafkaHands:
        """Makes topics, messages and faults."""
        return KafkaHands(self.admin(), self.servers)

    def _listed(self) -> list[int] | None:
        try:
            return sorted(self.admin().list_topics(timeout=3).brokers)
        except KafkaException:
            return None

    def _conf(self, node: int) -> Path:
        return self._home / f"node-{node}" / "server.properties"

    def _log(self, node: int) -> Path:
        return self._home / f"node-{node}.log"

    def _properties(self, node: int) -> dict[str, Any]:
        voters = (f"{each}@{LOOPBACK}:{port}" for each, port in self._controllers.items())
        own = f"PLAINTEXT://{LOOPBACK}:{self._ports[node]}"
        return {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": ",".join(voters),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{own},CONTROLLER://{LOOPBACK}:{self._controllers[node]}",
            "advertised.listeners": own,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self._conf(node).parent / "data",
            **self._settings,
        }

    def _java(self, *words: str) -> list[str]:
        return [
            "java",
            *("-cp", f"{self._jars}/*"),
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-Dlog4j2.configurationFile={self._home / 'log4j2.xml'}",
            *words,
        ]


@contextlib.contextmanager
def running_kafka(
    home: Path, progress: Callable[[str], None], settings: Mapping[str, str] | None = None
) -> Iterator[KafkaLab]:
    """A cluster for the length of a ``with`` statement.

    Args:
        home: An empty folder for it.
        progress: Told what happens, a line at a time.
        settings: Further settings of its nodes, or other values of `SETTINGS`.
    """
    jars.fetch(KAFKA_VERSION, progress, jars.KAFKA)
    lab = KafkaLab(home, settings or {})
    try:
        lab.start()
        yield lab
    finally:
        lab.stop()
