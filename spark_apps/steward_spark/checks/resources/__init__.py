"""The resources of brokers and bookies: garbage collection, memory, metadata, ledgers, threads."""

from steward_spark.checks.resources.bookie_thread_busy import CHECK as BOOKIE_THREAD_BUSY
from steward_spark.checks.resources.direct_memory_pressure import CHECK as DIRECT_MEMORY_PRESSURE
from steward_spark.checks.resources.gc_pressure import CHECK as GC_PRESSURE
from steward_spark.checks.resources.io_threads_stuck import CHECK as IO_THREADS_STUCK
from steward_spark.checks.resources.ledger_switch_slow import CHECK as LEDGER_SWITCH_SLOW
from steward_spark.checks.resources.metadata_latency import CHECK as METADATA_LATENCY

CHECKS = (
    GC_PRESSURE,
    DIRECT_MEMORY_PRESSURE,
    METADATA_LATENCY,
    LEDGER_SWITCH_SLOW,
    BOOKIE_THREAD_BUSY,
    IO_THREADS_STUCK,
)
"""In the order in which they are carried out."""
