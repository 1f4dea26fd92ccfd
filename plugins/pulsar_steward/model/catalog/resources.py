"""Checks of the resources of brokers and bookies: garbage collection, memory, metadata, ledgers, threads."""

from __future__ import annotations

from pulsar_steward.model.catalog.info import CheckInfo

GC_PRESSURE = CheckInfo(
    check_id="gc-pressure",
    title="Garbage collection takes too much of a process's time",
    advice=(
        "Look whether it still does, as the figures are since its start: `jstat -gcutil PID 1000 10` on that machine.",
        "Look at what fills the heap (`jmap -histo PID | head -30`): delayed messages kept in memory, cursors, topics.",
        "Give the process a larger heap, or spread its topics over more brokers.",
        "Restart it outside peak hours when full collections no longer free anything; its clients reconnect.",
    ),
    source="docs/knowledge.md C, step 1: resources and GC",
)

DIRECT_MEMORY_PRESSURE = CheckInfo(
    check_id="direct-memory-pressure",
    title="Direct memory is nearly used up",
    advice=(
        "Raise `-XX:MaxDirectMemorySize`, within what the machine or container has.",
        "On a broker, lower `managedLedgerCacheSizeMB` or `maxMessagePublishBufferSizeInMB`, which are taken from it.",
        "On a bookie, lower `dbStorage_writeCacheMaxSizeMb` or `dbStorage_readAheadCacheMaxSizeMb`.",
        "Look for `OutOfDirectMemoryError` in its log: then writes are already failing.",
    ),
    source="docs/knowledge.md C, step 1: resources; apache/pulsar#21168",
)

METADATA_LATENCY = CheckInfo(
    check_id="metadata-latency",
    title="The metadata store answers slowly",
    advice=(
        "Ask each ZooKeeper server: `echo mntr | nc HOST 2181` (zk_avg_latency, zk_outstanding_requests, zk_fsync...).",
        "Give ZooKeeper's transaction log a disk of its own, and look at the collector pauses of its process.",
        "Where most of the time is spent waiting in the broker, look at that broker's CPU and collections first.",
        "Upgrade ZooKeeper 3.4 (ZOOKEEPER-2044).",
    ),
    source="docs/knowledge.md C; ZOOKEEPER-2044",
)

LEDGER_SWITCH_SLOW = CheckInfo(
    check_id="ledger-switch-slow",
    title="Switching to a new ledger is slow: producers wait meanwhile",
    advice=(
        "Look at the metadata store first (check metadata-latency): a switch is mostly writes to it.",
        "Look at the bookies' health and their number: a new ledger needs a whole ensemble.",
        "Make ledgers last longer: `managedLedgerMaxEntriesPerLedger`, `managedLedgerMinLedgerRolloverTimeMinutes`.",
    ),
    source="docs/knowledge.md C: slow ledger switch",
)

BOOKIE_THREAD_BUSY = CheckInfo(
    check_id="bookie-thread-busy",
    title="A thread of BookKeeper, or a bookie as a whole, cannot keep up",
    advice=(
        "Find the thread: `top -H -p PID`, then `jstack PID`, for BookKeeperClientWorker, bookkeeper-io, BookieWrite*.",
        "Look for full collections of bookies and ZooKeeper first (check gc-pressure), then at the journal's disk.",
        "One ledger is always served by one thread: give the busiest topics more partitions.",
        "Give more threads: `bookkeeperClientNumWorkerThreads`, `bookkeeperClientNumIoThreads`.",
        "At bookies: `numAddWorkerThreads`, `numJournalCallbackThreads`; and look at E, QW and QA.",
    ),
    source="docs/knowledge.md C: one busy bookkeeper-io thread",
)

IO_THREADS_STUCK = CheckInfo(
    check_id="io-threads-stuck",
    title="A broker's threads may be stuck (indirect signs, except deadlocks)",
    advice=(
        "Confirm: `jstack PID | grep -A 20 pulsar-io` three times, 10 s apart: the same stack each time is stuck.",
        "Confirm: `ss -tn state close-wait sport = :6650 | wc -l` on the broker: sockets that nobody closes.",
        "Save the three thread dumps, then restart that broker; its clients reconnect elsewhere.",
        "With CPU to spare and threads that are busy rather than stuck, raise `numIOThreads`.",
    ),
    source="docs/knowledge.md C: pulsar-io threads stuck",
)

CHECKS = (
    GC_PRESSURE,
    DIRECT_MEMORY_PRESSURE,
    METADATA_LATENCY,
    LEDGER_SWITCH_SLOW,
    BOOKIE_THREAD_BUSY,
    IO_THREADS_STUCK,
)
"""In the order in which reports list them."""
