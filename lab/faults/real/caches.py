"""Brokers whose settings promise more of their memory than there is."""

from lab.faults.fault import Expected, RealFault

FAULTS = (
    RealFault(
        name="direct-memory-promised-twice",
        about="Brokers with 256 MiB of direct memory, of which 200 may go to entry caches and 128 to publishing.",
        expected=(Expected("entry-cache-size", evidence="328 MiB of direct memory, of 256 MiB"),),
        settings=(("managedLedgerCacheSizeMB", "200"),),
        alone=True,
    ),
)
