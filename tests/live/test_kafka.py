"""A real Kafka cluster of three brokers: faults are found, their healthy twins are clear, and its client only reads."""

from __future__ import annotations

import json
import socketserver
import subprocess
import sys
import threading
from itertools import count
from typing import TYPE_CHECKING

import pytest
import yaml

from lab.testing import need_kafka
from lab.waiting import wait_until
from pulsar_steward.cli.snapshot import Target, look
from pulsar_steward.collect.kafka.reader import KafkaReader
from pulsar_steward.collect.kafka.settings import KafkaSettings
from pulsar_steward.errors import KafkaUnreachable
from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.policy.schema import KafkaPolicy, Policy
from pulsar_steward.snapshots.read import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.kafka.cluster import KafkaLab
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.snapshots.read import Snapshot

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended(
        "tests/unit/collect/test_kafka.py::test_a_snapshot_tells_partitions_brokers_and_groups",
        "tests/checks/kafka/test_kafka_checks.py::test_a_broker_that_is_down",
        "tests/checks/kafka/test_kafka_checks.py::test_leaders_on_one_broker",
        "tests/checks/kafka/test_kafka_checks.py::test_a_group_that_lags",
    ),
]

LOW = {"kafka_leaders_uneven": {"minimum_leaders": 10}, "kafka_replicas_uneven": {"minimum_replicas": 30}}
HOURS_OLD = 3
MESSAGES = 600
SEEN_WITHIN_S = 20.0


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaLab]:
    """A cluster with a topic whose leaders are even."""
    need_kafka()
    from lab.kafka.cluster import running_kafka  # noqa: PLC0415 - needs confluent-kafka

    with running_kafka(tmp_path_factory.mktemp("kafka"), print) as lab:
        written(lab, "even", [[n % 3 + 1, (n + 1) % 3 + 1, (n + 2) % 3 + 1] for n in range(12)])
        yield lab


def written(lab: KafkaLab, topic: str, replicas: list[list[int]]) -> None:
    """A topic with these replicas, and old messages in each partition."""
    hands = lab.hands()
    hands.create(topic, replicas)
    hands.publish(topic, MESSAGES, partitions=len(replicas), seconds_ago=HOURS_OLD * 3600)


_LOOKS = count(1)


def looked_at(lab: KafkaLab, folder: Path) -> Snapshot:
    """A snapshot of the cluster."""
    policy = Policy.model_validate(LOW)
    target = Target(urls=(), cluster=f"k{next(_LOOKS)}", policy=policy, kafka=KafkaSettings(servers=lab.servers))
    return open_snapshot(look(target, folder, print))


def found(snapshot: Snapshot) -> dict[tuple[str, str], Finding]:
    """Findings by check and subject."""
    return {(each.check_id, each.subject): each for each in snapshot.findings()}


class Closes(socketserver.BaseRequestHandler):
    """Closes a connection once something was said, as a port for TLS does."""

    answer = b""

    def handle(self) -> None:
        """Says the answer."""
        self.request.recv(1_000)
        self.request.sendall(self.answer)


class SpeaksHttp(Closes):
    """Answers as a web server."""

    answer = b"HTTP/1.1 400 Bad Request\r\n\r\n"


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (None, "Connection refused"),
        (Closes, "closed at once, as by a port that wants TLS or a login"),
        (SpeaksHttp, "the port answers in another protocol, such as HTTP or TLS"),
    ],
)
def test_nobody_there(
    server: type[Closes] | None, why: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Why no connection was made is told, long before the time for a request is over."""
    need_kafka()
    monkeypatch.setattr("pulsar_steward.collect.kafka.reader.CONNECTED_WITHIN_S", 1.0)
    port = 1
    if server is not None:
        listening = socketserver.ThreadingTCPServer(("127.0.0.1", 0), server)
        request.addfinalizer(listening.server_close)
        request.addfinalizer(listening.shutdown)
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        port = listening.server_address[1]
    reader = KafkaReader(KafkaSettings(servers=f"127.0.0.1:{port}"), KafkaPolicy(request_timeout_seconds=60))
    with pytest.raises(KafkaUnreachable, match=rf"at 127.0.0.1:{port} answered within 1 s: .*{why}$"):
        reader.metadata()


def test_faults_are_found_and_their_twins_are_clear(kafka: KafkaLab, tmp_path: Path) -> None:
    """Leaders on one broker and a lagging group, told in a fleet; a killed broker, until it is back."""
    kafka.hands().commit("current", "even", [MESSAGES // 12] * 12)
    healthy = looked_at(kafka, tmp_path)
    assert (found(healthy), healthy.meta().unread) == ({}, ())
    alone = [each.check_id for each in healthy.verdicts() if each.outlook is not Outlook.CLEAR]
    assert alone == ["kafka-replicas-flapping"]  # which compares two looks

    written(kafka, "leaning", [[1, 2, 3]] * 12)
    kafka.hands().commit("slow", "leaning", [0] * 6)
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(LOW), encoding="utf-8")
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(yaml.safe_dump({"clusters": [{"name": "events", "kafka": kafka.servers}]}), encoding="utf-8")
    command = [sys.executable, "-m", "pulsar_steward.cli", "checkup", "--fleet", str(fleet), "--json", "-"]
    ended = subprocess.run(
        [*command, "--policy", str(tmp_path / "policy.yaml")], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 1, ended.stderr
    (events,) = json.loads(ended.stdout)["clusters"]
    troubles = {each["check_ids"][0]: each for each in events["checkup"]["troubles"]}
    assert {name: each["subjects"] for name, each in troubles.items()} == {
        "kafka-group-lag": ["group slow"],
        "kafka-leaders-uneven": ["broker 1"],
    }
    assert "2 h old or older; it is 300 messages behind on 6 partitions" in json.dumps(events)
    servers = kafka.servers
    assert f"kafka-leader-election.sh --bootstrap-server {servers} " in troubles["kafka-leaders-uneven"]["to_do"][0]
    assert troubles["kafka-group-lag"]["proposal"] == "No plan: people have to act."

    kafka.kill(3)
    out = found(looked_at(kafka, tmp_path))["kafka-replicas-out-of-sync", "broker 3"]
    assert (out.severity, out.figures["out"]) == (Severity.WARNING, out.figures["replicas"])
    kafka.start_node(3)
    kafka.wait_for([1, 2, 3])

    def in_sync() -> bool:
        return not any(check == "kafka-replicas-out-of-sync" for check, _ in found(looked_at(kafka, tmp_path)))

    wait_until(in_sync, "all replicas are in sync again", SEEN_WITHIN_S, 1)
