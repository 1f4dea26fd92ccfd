"""A namespace moved between two real clusters with clients, by the calls that are printed; a link that is cut."""

from __future__ import annotations

import json
import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pulsar
import pytest
import yaml

from lab.errors import AdminCallError
from lab.faults.clients.python import quiet_client
from lab.faults.real.ground import COMMON_SETTINGS
from lab.faults.real.operator import Operator, operator_of, shown_topics
from lab.waiting import wait_until
from pulsar_steward.cli.main import run
from tests.unit.planners.clusters.members import Held, write_member

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended("tests/unit/cli/test_whatif.py", "tests/unit/cli/test_fleet.py"),
]

EAST, WEST = "local", "west"
NAMESPACE, TOPIC, READER = "moving/orders", "persistent://moving/orders/paid", "billing"
SOON_S, TIMEOUT_MS = 60.0, 20_000


@pytest.fixture(scope="module")
def clusters(labs: LabPool) -> Iterator[tuple[Lab, Lab]]:
    """Two clusters of one broker behind one configuration store."""
    east = labs.lab(brokers=1, broker_settings=dict(COMMON_SETTINGS))
    with east.second_cluster(WEST, brokers=1, broker_settings=dict(COMMON_SETTINGS)) as west:
        yield east, west
    labs.discard(east)


@pytest.fixture
def fleet(clusters: tuple[Lab, Lab], tmp_path: Path) -> Path:
    """File of both."""
    file = tmp_path / "fleet.yaml"
    members = [
        {"name": name, "admin_url": list(lab.admin_urls)} for name, lab in zip((EAST, WEST), clusters, strict=True)
    ]
    file.write_text(yaml.safe_dump({"clusters": members}), encoding="utf-8")
    return file


class Mover:
    """A person who looks at the stages, and makes the calls that are printed."""

    def __init__(self, clusters: tuple[Lab, Lab], fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._admins = {lab.admin_urls[0]: operator_of(lab) for lab in clusters}
        self._fleet = fleet
        self._capsys = capsys

    def look(self) -> list[dict[str, Any]]:
        """The stages, as they are now."""
        options = ["--fleet", str(self._fleet), "--snapshots", str(self._fleet.parent), "--empty-minutes", "0"]
        run(["move-namespace", NAMESPACE, "--to", WEST, *options, "--json"])
        stages: list[dict[str, Any]] = json.loads(self._capsys.readouterr().out)["stages"]
        return stages

    def standings(self) -> list[str]:
        """State of each stage."""
        return [stage["standing"] for stage in self.look()]

    def until_ready(self, *numbers: int) -> None:
        """Makes the printed calls of these stages, looking again after each round, until they are ready."""

        def ready() -> bool:
            stages = [stage for stage in self.look() if stage["number"] in numbers]
            for call in [call for stage in stages for point in stage["points"] for call in point["calls"]]:
                self.perform(call)
            return not any(point["standing"] == "not yet" for stage in stages for point in stage["points"])

        wait_until(ready, f"stages {numbers} are ready", SOON_S, 1.0, instead=self.look)

    def perform(self, call: str) -> None:
        """Makes one printed call, by the same request that ``pulsar-admin`` would send."""
        program, option, url, *words = shlex.split(call)
        assert (program, option) == ("pulsar-admin", "--admin-url")
        _perform(self._admins[url], words)


def _perform(admin: Operator, words: list[str]) -> None:
    match words:
        case ["tenants", "update", tenant, "--allowed-clusters", names]:
            admin.update_tenant(tenant, *names.split(","))
        case ["namespaces", "set-clusters", namespace, "--clusters", names]:
            admin.set_policy(namespace, "replication", names.split(","))
        case ["topics", "create-partitioned-topic", topic, "--partitions", number]:
            admin.create_partitions(topic, int(number))
        case ["topics", "create-subscription", topic, "--subscription", name, "--messageId", "earliest"]:
            try:
                admin.create_subscription(topic, name, from_first=True)
            except AdminCallError as error:  # its replicated position may have made it since the look
                if "already exists" not in str(error):
                    raise
        case ["topics", "set-replicated-subscription-status", topic, "--subscription", name, "--enable"]:
            admin.replicate_subscription(topic, name)
        case ["topics", "stats", topic]:
            admin.load_topic(topic)
        case _:
            raise AssertionError(f"a call that nobody expected: {words}")


def taken(consumer: pulsar.Consumer, count: int) -> list[str]:
    """Contents of so many messages, each acknowledged."""
    found = []
    for _ in range(count):
        message = consumer.receive(TIMEOUT_MS)
        consumer.acknowledge(message)
        found.append(message.data().decode())
    return found


def test_a_cut_link_is_one_trouble(clusters: tuple[Lab, Lab], fleet: Path, tmp_path: Path) -> None:
    """The other cluster ends while something is published for it: told once, of both."""
    east, west = clusters
    admin, topic = operator_of(east), "persistent://linked/orders/paid"
    admin.create_tenant("linked", EAST, WEST)
    admin.create_namespace("linked/orders", 4, replication_clusters=[EAST, WEST])

    def shown(**figures: object) -> bool:
        told = shown_topics(east).get(topic, {}).get("replication", {}).get(WEST, {})
        return all(told.get(name) == value for name, value in figures.items())

    client = quiet_client(east.service_url, east.token)
    try:
        producer = client.create_producer(topic, batching_enabled=False)
        producer.send(b"replicated")
        wait_until(lambda: shown(connected=True, replicationBacklog=0), "it is replicated", SOON_S)
        west.kill_broker(west.brokers[0].broker_id)
        for _ in range(7):
            producer.send(b"waits")
        wait_until(lambda: shown(connected=False, replicationBacklog=7), "it is cut", SOON_S)
        run(["checkup", "--fleet", str(fleet), "--seconds", "120", "--json", str(tmp_path / "out.json")])
    finally:
        client.close()
        west.start_broker(west.brokers[0].broker_id)
    document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    told = [each for each in document["in_common"] if each["check_id"] == "replication-stopped"]
    assert [(each["severity"], set(each["clusters"])) for each in told] == [("warning", {EAST, WEST})]
    assert "is cut: 7 entries wait to be sent from local to west" in told[0]["words"]


def test_a_namespace_is_moved_by_the_printed_calls(
    clusters: tuple[Lab, Lab], fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a tenant that only one cluster may serve to an empty source: no message is lost.

    It comes last: the source's only broker is busy with its topics for a while after the last call.
    """
    east, west = clusters
    admin = operator_of(east)
    admin.create_tenant("moving", EAST)
    admin.create_namespace(NAMESPACE, 4, replication_clusters=[EAST])
    admin.create_partitions(TOPIC, 2)
    for name in (EAST, WEST):  # for the ceilings: those of this busy machine would be no fact of Pulsar's
        write_member(fleet.parent, name, {NAMESPACE: Held(2, 10, (EAST, WEST))})
    mover = Mover(clusters, fleet, capsys)
    with ExitStack() as stack:
        here, there = (quiet_client(lab.service_url, lab.token) for lab in clusters)
        for client in (here, there):
            stack.callback(client.close)
        consumer = here.subscribe(TOPIC, READER, pulsar.ConsumerType.Shared, replicate_subscription_state_enabled=True)
        producer = here.create_producer(TOPIC, batching_enabled=False)
        for number in range(10):
            producer.send(f"before-{number}".encode())
        taken(consumer, 10)
        begun = {0, 1, 2, 3, 5}
        wait_until(lambda: {mover.standings()[each] for each in begun} == {"not yet"}, "nothing is ready", SOON_S)

        mover.until_ready(1, 2, 3)
        sent = {f"at-east-{number}" for number in range(20)}
        for each in sorted(sent):
            producer.send(each.encode())
        mover.until_ready(1, 2, 3, 4, 5)
        left = sent - set(taken(consumer, 12))
        assert mover.look()[5]["standing"] == "not yet"
        consumer.close()
        producer.close()
        mover.until_ready(4, 5, 6)

        consumer = there.subscribe(TOPIC, READER, pulsar.ConsumerType.Shared, replicate_subscription_state_enabled=True)
        producer = there.create_producer(TOPIC, batching_enabled=False)
        for number in range(5):
            producer.send(f"at-west-{number}".encode())
        got: set[str] = set()
        while not got >= left | {f"at-west-{number}" for number in range(5)}:
            got |= set(taken(consumer, 1))
        found: list[dict[str, Any]] = []

        def all_ready() -> bool:
            found[:] = mover.look()
            return {stage["standing"] for stage in found} == {"ready"}

        wait_until(all_ready, "all is ready", SOON_S, 1.0, instead=mover.look)
        (last,) = [call for point in found[7]["points"] for call in point["calls"]]
        mover.perform(last)
        assert operator_of(west).policies(NAMESPACE)["replication_clusters"] == [WEST]
        producer.send(b"after")
        assert "after" in taken(consumer, 1)
