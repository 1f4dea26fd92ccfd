"""Load of made-up processes, a broker's above all: frozen descriptions, by default of an idle broker of the lab."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LatencySpec:
    """Latencies in the last statistics period (a minute).

    Attributes:
        per_second: How often it happened.
        slow_percent: Of these, took from 200 ms to a second.
        stalled_percent: Of these, took longer.
        usual_ms: How long all others took; None: as is usual for what is measured.
    """

    per_second: float = 0.0
    slow_percent: float = 0.0
    stalled_percent: float = 0.0
    usual_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """A Java process of any kind of server: limits as in the lab, 512 MB heap and 256 MB direct memory.

    Attributes:
        left_mb: Of the old generation, what its last full collection left in use; 0: there was none.
        cpu_seconds: Processor time since the start; None: that of an idle process.
        uptime_s: Since its start, when it was made up; a broker that comes later has only just started.
        gc_seconds: Spent in collections of the young generation since the start, in ``gc_count`` of them.
        full_gc_seconds: The same of full collections, in ``full_gc_count``.
        collectors: Names of the collectors of both; of ZGC the second runs beside the process.
        deadlocked_threads: Threads in a deadlock.
        blocked_threads: Threads that wait for a lock.
        open_files: Files and sockets, of ``most_files``.
        debug_lines: Log lines at DEBUG since the start; None: no appender counts any.
    """

    heap_mb: float = 128.0
    heap_limit_mb: float = 512.0
    direct_mb: float = 16.0
    direct_limit_mb: float = 256.0
    left_mb: float = 24.0
    cpu_seconds: float | None = None
    uptime_s: float = 86_400.0
    gc_seconds: float = 30.0
    gc_count: int = 3_000
    full_gc_seconds: float = 0.4
    full_gc_count: int = 3
    collectors: tuple[str, str] = ("Copy", "MarkSweepCompact")
    deadlocked_threads: int = 0
    blocked_threads: int = 0
    open_files: int = 400
    most_files: int = 20_000
    debug_lines: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec(ProcessSpec):
    """One broker's process, on the lab's two cores.

    Attributes:
        network_percent: Of the network's bandwidth, each way.
        usage_ratio: What `ExtensibleLoadManagerImpl` compares, averaged over time; None: as its resources are.
        clock_ahead_s: By how much its clock, and so the ``Date`` of its answers, is ahead of this machine's.
        metadata_reads: Reads of the metadata store since the start, of ``metadata_read_ms`` on average; half as many
            writes take as long.
        metadata_slow_reads: Of the reads, those that took over a second.
        metadata_wait_ms: How long an operation waited in the broker before it was sent, on average.
        writes: To bookies; None: one for each message that comes in, all of them quick.
        publishes: Entries, from when they came until they were written; None: as `writes`, of which they are part.
        ledger_switches: Of topics to new ledgers.
        cursor_writes: Of cursors to bookies, a second.
        client_queues: Tasks that wait for each thread of the BookKeeper client, which a broker tells where
            ``bookkeeperClientExposeStatsToPrometheus`` is on.
        pending_lookups: Lookups under way.
        pending_topic_loads: Topic loads under way.
        connections: Open ones; None: five of the cluster's own, and one for each producer and consumer.
        connections_replaced: Those that were opened and closed again since the start.
        connections_failed: Handshakes that failed since the start.
        connections_throttled: Those that are not read from now.
        lookups_failed: Since the start.
    """

    cpu_percent: float = 20.0
    cpu_limit_percent: float = 200.0
    network_percent: float = 0.0
    usage_ratio: float | None = None
    clock_ahead_s: float = 0.0
    metadata_reads: int = 1_000
    metadata_read_ms: float = 5.0
    metadata_slow_reads: int = 0
    metadata_wait_ms: float = 4.0
    writes: LatencySpec | None = None
    publishes: LatencySpec | None = None
    ledger_switches: LatencySpec = LatencySpec()
    cursor_writes: float = 0.0
    client_queues: tuple[int, ...] = (0, 0)
    pending_lookups: int = 0
    pending_topic_loads: int = 0
    connections: int | None = None
    connections_replaced: int = 0
    connections_failed: int = 0
    connections_throttled: int = 0
    lookups_failed: int = 0
