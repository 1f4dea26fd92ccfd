"""Two Pulsar clusters that replicate to each other and share a configuration store, and a Kafka cluster beside them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from confluent_kafka.admin import NewTopic

from lab.airflow.settings import connection_to, connection_to_kafka
from lab.cluster import running_lab
from lab.faults.clients.python import quiet_client
from lab.faults.real.ground import COMMON_SETTINGS
from lab.faults.real.operator import operator_of, shown_topics
from lab.kafka.cluster import running_kafka
from lab.link import Link
from lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import pulsar

    from lab.cluster import Lab
    from lab.kafka.cluster import KafkaLab

EAST, WEST, EVENTS = "east", "west", "events"
"""Names of the clusters; the last one is Kafka."""

CLUSTERS = (EAST, WEST, EVENTS)

NAMESPACE = "shop/orders"
TOPIC = f"persistent://{NAMESPACE}/paid"
WAITING = 5
"""Messages that wait at each end once the links are cut."""

PARTITIONS = 6
SOON_S = 180.0


class Fleet:
    """Three running clusters. Use `running_fleet`.

    Attributes:
        east: A Pulsar cluster of one broker.
        west: Another one behind the same configuration store.
        kafka: A Kafka cluster of three brokers.
    """

    def __init__(self, east: Lab, west: Lab, kafka: KafkaLab, links: tuple[Link, Link]) -> None:
        self.east, self.west, self.kafka = east, west, kafka
        self._links = links
        self._producers: list[pulsar.Producer] = []

    @property
    def connections(self) -> dict[str, str]:
        """Documents of the Airflow connections ``pulsar_admin_<cluster>``, by these names."""
        variables = (
            connection_to(self.east, EAST)
            | connection_to(self.west, WEST)
            | connection_to_kafka(self.kafka.servers, EVENTS)
        )
        named = {name.removeprefix("AIRFLOW_CONN_").lower(): document for name, document in variables.items()}
        return {name: document for name, document in named.items() if name.startswith("pulsar_admin_")}

    @contextlib.contextmanager
    def replicating(self) -> Iterator[None]:
        """Has a topic replicated both ways for a ``with`` block, by links, and returns once both ends show it."""
        admin = operator_of(self.east)
        for lab, link in zip((self.east, self.west), self._links, strict=True):
            (broker,) = lab.brokers
            link.target = (broker.host, broker.service_port)
            admin.lead_to(lab.cluster, broker.admin_url, link.port)
        admin.create_tenant(NAMESPACE.partition("/")[0], EAST, WEST)
        admin.create_namespace(NAMESPACE, 4, replication_clusters=[EAST, WEST])
        with contextlib.ExitStack() as clients:
            for lab in (self.east, self.west):
                client = quiet_client(lab.service_url, lab.token)
                clients.callback(_close, client)
                self._producers.append(client.create_producer(TOPIC, batching_enabled=False))
                self._producers[-1].send(b"replicated")
                # Lookups of a bundle at the same moment all get the first one's answer, whatever listener they ask by:
                # a client at the other end that came now would have the replicator connect past its link.
                self._await_shown(f"{lab.cluster} replicates", (lab,), connected=True)
            both = (self.east, self.west)
            self._await_shown("the topic is replicated both ways", both, connected=True, replicationBacklog=0)
            yield

    def cut_links(self) -> None:
        """Cuts the links, and returns once both ends show that they are not connected; both clusters go on."""
        for link in self._links:
            link.cut()
        for producer in self._producers:
            for _ in range(WAITING):
                producer.send(b"waits")
        self._await_shown("the cut is shown", (self.east, self.west), connected=False)

    def kill_west(self) -> None:
        """Ends the broker and the bookie of `west` by SIGKILL."""
        self.west.kill_broker(self.west.brokers[0].broker_id)
        self.west.kill_bookie(1)

    def _await_shown(self, what: str, labs: Sequence[Lab], **figures: object) -> None:
        def told() -> list[dict[str, object]]:
            ends = [(lab, WEST if lab is self.east else EAST) for lab in labs]
            return [shown_topics(lab).get(TOPIC, {}).get("replication", {}).get(other, {}) for lab, other in ends]

        wait_until(lambda: all(figures.items() <= each.items() for each in told()), what, SOON_S, 0.5, instead=told)


def _close(client: pulsar.Client) -> None:
    with contextlib.suppress(Exception):  # the client raises bare errors where its brokers are gone
        client.close()


@contextlib.contextmanager
def running_fleet(home: Path, progress: Callable[[str], None]) -> Iterator[Fleet]:
    """The three clusters for the length of a ``with`` block, with a topic that is replicated, and one of Kafka.

    Args:
        home: An empty folder for them.
        progress: Told what happens, a line at a time.

    Raises:
        LabError: One could not be started; nothing of them runs then.
    """
    common = dict(COMMON_SETTINGS)
    folder = home / EVENTS
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as running:
        links = running.enter_context(Link()), running.enter_context(Link())
        # Kafka first: its brokers have found each other once the others are there.
        kafka = running.enter_context(running_kafka(folder, progress))
        admin = kafka.admin()  # kept until its answer is there
        admin.create_topics([NewTopic("clicks", PARTITIONS, 3)])["clicks"].result()
        east = running.enter_context(
            running_lab(
                EAST,
                home=home,
                progress=progress,
                cluster=EAST,
                brokers=1,
                link_port=links[0].port,
                broker_settings=common,
            )
        )
        west = running.enter_context(
            east.second_cluster(WEST, brokers=1, link_port=links[1].port, broker_settings=common)
        )
        fleet = Fleet(east, west, kafka, links)
        running.enter_context(fleet.replicating())
        yield fleet
