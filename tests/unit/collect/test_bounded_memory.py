"""A broker whose document is far larger than the memory that reading it may take, and a topic with many consumers."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow.parquet as pq
import pytest

from pulsar_steward.collect.broker import BrokerTask, ReadScope, read_brokers
from pulsar_steward.collect.reading import TableFiles
from pulsar_steward.model.tables import SHARDED
from pulsar_steward.policy.schema import AdminPolicy, CollectPolicy
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.pulsar.statistics import PATH
from tests.http_serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT_BYTES = 500_000_000
MEMORY_BYTES = 250_000_000
"""What may be allocated to read it; what is mapped of a file is not, as the kernel takes it back when it likes."""

TOPICS_A_BUNDLE = 1_000
CONSUMERS = 10_000
NAMESPACE = "acme/large"
CLIENT = {
    "msgRateOut": 1.5,
    "availablePermits": 1000,
    "unackedMessages": 3,
    "blockedConsumerOnUnackedMsgs": False,
    "consumerName": "c",
    "address": "/10.1.2.3:40000",
    "connectedSince": "2026-01-01T00:00:00Z",
    "clientVersion": "Pulsar-Java-v4.0.7",
    "metadata": {"unused": "x" * 200},
}


def subscription(consumers: int) -> dict[str, object]:
    """A subscription as brokers write it, with fields that are not read."""
    names = [CLIENT | {"consumerName": f"c-{number}"} for number in range(consumers)]
    return {"consumers": names, "type": "Shared", "msgBacklog": 5, "unackedMessages": 3, "unused": "x" * 300}


def topic(consumers: int = 2) -> bytes:
    document = {
        "publishers": [{"connectedSince": "2026-01-01T00:00:00Z", "metadata": {"unused": "x" * 100}}],
        "subscriptions": {"s": subscription(consumers)},
        "replication": {},
        "producerCount": 1,
        "storageSize": 1000,
        "backlogSize": 500,
    }
    return msgspec.json.encode(document)


def bundles() -> Iterator[tuple[str, bytes]]:
    """Ranges and what a document says of them, until it is large enough; the last has one topic with many consumers."""
    small, large, size = topic(), topic(CONSUMERS), 0
    for bundle in count():
        last = size > DOCUMENT_BYTES
        names = ["many"] if last else [f"{bundle:08d}-{number:04d}" for number in range(TOPICS_A_BUNDLE)]
        topics = (f'"persistent://{NAMESPACE}/{name}":'.encode() + (large if last else small) for name in names)
        text = b'{"persistent":{' + b",".join(topics) + b"}}"
        yield f"0x{bundle:08x}_0x{bundle + 1:08x}", text
        size += len(text)
        if last:
            return


class Broker(BaseHTTPRequestHandler):
    """Answers what every broker must, a bundle at a time, and 404 to all else."""

    ranges: tuple[str, ...]

    def do_GET(self) -> None:
        """One answer."""
        if self.path == PATH:
            self._answer(200)
            parts = bundles()
            self._write(b'{"' + NAMESPACE.encode() + b'":{')
            for number, (name, text) in enumerate(parts):
                self._write((b"," if number else b"") + f'"{name}":'.encode() + text)
            self._write(b"}}")
        elif self.path.endswith("ownedNamespaces"):
            self._answer(200)
            self._write(msgspec.json.encode({f"{NAMESPACE}/{name}": {} for name in self.ranges}))
        else:
            self._answer(404)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()

    def _write(self, text: bytes) -> None:
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Suppresses the log of the server."""


@contextmanager
def peak_of_memory() -> Iterator[list[int]]:
    """The most bytes that this process had allocated during the block, over what it had before it."""
    ended, before, peak = threading.Event(), allocated(), [0]

    def watch() -> None:
        while not ended.wait(0.01):
            peak[0] = max(peak[0], allocated() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def allocated() -> int:
    """Bytes of anonymous memory of this process."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


@pytest.mark.extended(
    "tests/unit/collect/test_files.py", "tests/unit/collect/test_files.py::test_row_groups_are_neither_tiny_nor_endless"
)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told by Linux's /proc only")
def test_a_document_of_500_megabytes_is_read_in_half_of_it(tmp_path: Path) -> None:
    """A document of 500 MB is read in less than 250 MB, with all its topics and a bounded number of clients."""
    settings = AdminSettings(urls=("http://127.0.0.1:1",), limits=AdminPolicy(read_attempts=1))
    scope = ReadScope(datetime(2026, 1, 1, 0, 5, tzinfo=UTC), CollectPolicy(clients_per_subscription=3))
    Broker.ranges = tuple(name for name, _ in bundles())
    with serving(Broker) as broker, peak_of_memory() as peak, TableFiles(tmp_path, "part.parquet", SHARDED) as files:
        rows = read_brokers(settings, [BrokerTask(broker, "local", leader=False)], scope)
        rest = [piece for piece in rows if not files.takes(piece)]
        list(files.written())

    (itself,) = (piece.rows.to_pylist()[0] for piece in rest if piece.table.name == "brokers")
    topics = pq.read_table(tmp_path / "topics", columns=["topic", "consumers"])
    assert itself["read"]
    assert itself["topics"] == topics.num_rows == TOPICS_A_BUNDLE * (len(Broker.ranges) - 1) + 1
    assert itself["consumers"] == 2 * (topics.num_rows - 1) + CONSUMERS
    clients = pq.read_table(tmp_path / "clients", filters=[("topic", "=", f"persistent://{NAMESPACE}/many")])
    assert clients.num_rows == 3
    assert 0 < peak[0] < MEMORY_BYTES
