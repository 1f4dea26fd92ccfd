"""Made-up bookies and ZooKeeper servers: the Prometheus metrics of each on a port of its own, and nothing else.

The names of series are those that BookKeeper's and ZooKeeper's own providers of Prometheus metrics write.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Literal

from lab.simulator.load import ProcessSpec
from lab.simulator.metrics import process
from lab.simulator.metrics.text import counted, family, gauge, sample

NO_LABELS: dict[str, str] = {}
FULL_PERCENT = 95
AUDITOR = "replication_auditor"
COPYING = "replication_replication_worker_rereplicate"
COPY_MS = 200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditorSpec:
    """Series of the one bookie that was elected as the auditor, since its start.

    Attributes:
        found: Ledgers that it found to have too few copies, each as often as an audit found it.
        audits: Audits that found any: a lost bookie is audited twice within a second.
        no_copy: Ledgers without any copy of an entry, by its last periodic check.
        below_ack_quorum: Ledgers with fewer copies of an entry than the ack quorum, by the same.
        below_write_quorum: Ledgers with fewer than the write quorum.
        overdue: Ledgers that have waited longer than the grace period.
    """

    found: int = 0
    audits: int = 0
    no_copy: int = 0
    below_ack_quorum: int = 0
    below_write_quorum: int = 0
    overdue: int = 0

    def lines(self) -> Iterator[str]:
        """Yields the auditor's series."""
        name = f"{AUDITOR}_NUM_UNDER_REPLICATED_LEDGERS"
        yield family(name, "summary")
        for success, audits, found in ((False, 0, 0), (True, self.audits, self.found)):
            yield from counted(name, {"success": str(success).lower()}, audits, found)
        gauges = {
            "NUM_LEDGERS_HAVING_NO_REPLICA_OF_AN_ENTRY": self.no_copy,
            "NUM_LEDGERS_HAVING_LESS_THAN_AQ_REPLICAS_OF_AN_ENTRY": self.below_ack_quorum,
            "NUM_LEDGERS_HAVING_LESS_THAN_WQ_REPLICAS_OF_AN_ENTRY": self.below_write_quorum,
            "NUM_UNDERREPLICATED_LEDGERS_ELAPSED_RECOVERY_GRACE_PERIOD": self.overdue,
        }
        for series, value in gauges.items():
            yield from gauge(f"{AUDITOR}_{series}", NO_LABELS, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class BookieSpec(ProcessSpec):
    """A bookie, by its figures.

    Attributes:
        writable: False: it is read-only.
        queues: Tasks that wait for each thread that writes entries.
        disks_percent: In use, of the disk of each ledger directory.
        auditor: Its figures as the auditor; None: another one is.
        journal_ms: Time that one in a thousand entries took to be on the journal's disk, or more, in the last minute.
        copied: Ledgers of which it made the copies that were missing, since its start.
        copies_failed: Tries after which a ledger still had too few.
    """

    kind: ClassVar[Literal["bookie"]] = "bookie"
    writable: bool = True
    queues: tuple[int, ...] = (0, 0)
    disks_percent: tuple[float, ...] = (40.0,)
    auditor: AuditorSpec | None = None
    journal_ms: float = 12.0
    copied: int = 0
    copies_failed: int = 0

    def lines(self) -> Iterator[str]:
        """Yields the series that only bookies have."""
        yield from gauge("bookie_SERVER_STATUS", NO_LABELS, int(self.writable))
        for number, percent in enumerate(self.disks_percent):
            yield from gauge(f"bookie_ledger_dir__pulsar_ledgers_{number}_usage", NO_LABELS, percent)
        writable = sum(percent < FULL_PERCENT for percent in self.disks_percent)
        yield from gauge("bookie_ledger_writable_dirs", NO_LABELS, writable)
        yield from gauge("bookie_ledger_num_dirs", NO_LABELS, len(self.disks_percent))
        yield family("bookkeeper_server_thread_executor_queue", "gauge")
        for number, queued in enumerate(self.queues):
            thread = {"thread": f"BookieWriteThreadPool-OrderedExecutor-{number}-0"}
            yield sample("bookkeeper_server_thread_executor_queue", thread, queued)
        for name in ("JOURNAL_ADD_ENTRY", "JOURNAL_SYNC"):
            yield family(f"bookie_journal_{name}", "summary")
            for quantile, share in (("0.5", 0.1), ("0.99", 0.5), ("0.999", 1.0)):
                labels = {"success": "true", "quantile": quantile}
                yield sample(f"bookie_journal_{name}", labels, self.journal_ms * share)
        if self.auditor is not None:
            yield from self.auditor.lines()
        yield family(COPYING, "summary")
        for success, count in ((False, self.copies_failed), (True, self.copied)):
            yield from counted(COPYING, {"success": str(success).lower()}, count, count * COPY_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSpec(ProcessSpec):
    """A ZooKeeper server, by its figures since its start.

    Attributes:
        reads: Requests that only read, which took ``reading_ms`` in all.
        updates: Requests that write, which took ``updating_ms`` in all.
        fsyncs: Times that the transaction log was forced to its disk, which took ``syncing_ms`` in all.
        outstanding: Requests that wait now.
        znodes: Nodes of its tree.
    """

    kind: ClassVar[Literal["zookeeper"]] = "zookeeper"
    reads: int = 40_000
    reading_ms: float = 20_000.0
    updates: int = 20_000
    updating_ms: float = 80_000.0
    fsyncs: int = 15_000
    syncing_ms: float = 45_000.0
    outstanding: int = 0
    znodes: int = 2_000

    def lines(self) -> Iterator[str]:
        """Yields the series that only ZooKeeper has."""
        timed = {
            "readlatency": (self.reads, self.reading_ms),
            "updatelatency": (self.updates, self.updating_ms),
            "fsynctime": (self.fsyncs, self.syncing_ms),
        }
        for series, (count, milliseconds) in timed.items():
            yield family(series, "summary")
            yield from counted(series, NO_LABELS, count, milliseconds)
        yield from gauge("outstanding_requests", NO_LABELS, self.outstanding)
        yield from gauge("znode_count", NO_LABELS, self.znodes)


ServerSpec = BookieSpec | ZooKeeperSpec


class MadeUpServers:
    """Servers that tell their figures, until they are told to tell others; `running_servers` makes them.

    Attributes:
        specs: The figures of each; with as many as there were from the start.
        metrics_urls: How `collect.metrics_urls` names them, in the same order.
    """

    def __init__(self, *specs: ServerSpec) -> None:
        now = time.time()
        self.specs = specs
        self.metrics_urls: tuple[str, ...] = ()
        self._started_s = [now - spec.uptime_s for spec in specs]

    def show(self, *specs: ServerSpec) -> None:
        """Has them tell other figures from now on, of the same servers: the time of their start stays.

        Raises:
            ValueError: There are not as many, or of other kinds.
        """
        if [spec.kind for spec in specs] != [spec.kind for spec in self.specs]:
            raise ValueError("a fault's servers must be the same in each observation: as many, in the same order")
        self.specs = specs

    def text(self, number: int) -> str:
        """The metrics of one server, 0 for the first."""
        spec = self.specs[number]
        return "".join((*process.lines(NO_LABELS, spec, self._started_s[number]), *spec.lines()))


@contextmanager
def running_servers(*specs: ServerSpec) -> Iterator[MadeUpServers]:
    """Servers with these figures for the length of a ``with`` block, on 127.0.1.1, 127.0.1.2 and so on."""
    servers = MadeUpServers(*specs)
    with ExitStack() as running:
        ports = [running.enter_context(_listening(servers, number)) for number in range(len(specs))]
        servers.metrics_urls = tuple(
            f"{spec.kind}=http://{_host(number)}:{port}/metrics"
            for number, (spec, port) in enumerate(zip(specs, ports, strict=True))
        )
        yield servers


def _host(number: int) -> str:
    """A host of its own for each, so that the label of a fault can say which; Linux only."""
    return f"127.0.1.{number + 1}"


@contextmanager
def _listening(servers: MadeUpServers, number: int) -> Iterator[int]:
    """Serves one server's metrics; yields its port."""

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = servers.text(number).encode()
            self.send_response(200 if self.path == "/metrics" else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer((_host(number), 0), Metrics) as server:
        thread = threading.Thread(target=server.serve_forever, name=f"made-up-server-{number}")
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
