"""Brokers whose process, metadata store or bookies are in trouble."""

from dataclasses import replace

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import DAY_S, at, cluster, server, strained
from lab.simulator import BookieSpec, LatencySpec, ZooKeeperSpec

NO_CHOKING = "a JVM of the lab cannot be made to collect for hours without stopping the machine's other work"
A_DAY_OF_LINES = "a broker that has logged for a day takes a day; for a minute it is `broker-at-debug`, for real"
NO_SLOW_DISK = "the lab's bookie and ZooKeeper share a disk that nothing here can slow down for one of them"

ZOOKEEPER_LATER = ZooKeeperSpec(
    reads=48_000, reading_ms=24_000.0, updates=24_000, updating_ms=96_000.0, fsyncs=18_000, syncing_ms=54_000.0
)
"""A server some minutes after `ZooKeeperSpec()`: quick as before."""

SLOW_LOG = replace(ZOOKEEPER_LATER, updating_ms=80_000.0 + 4_000 * 270.0, syncing_ms=45_000.0 + 3_000 * 250.0)

FAULTS = (
    SimulatedFault(
        name="collecting-a-quarter-of-the-time",
        about="A broker spends a quarter of its life in short collections.",
        expected=(Expected("gc-pressure", at(1)),),
        specs=(cluster(broker_1=strained(gc_seconds=DAY_S / 4, gc_count=400_000)),),
        why=NO_CHOKING,
        quick=True,
    ),
    SimulatedFault(
        name="full-collections-of-half-a-minute",
        about="A broker stands still for 25 s whenever it collects its whole heap, forty times a day.",
        expected=(Expected("gc-pressure", at(2)),),
        specs=(cluster(broker_2=strained(full_gc_seconds=1000.0, full_gc_count=40, heap_mb=7900)),),
        why=NO_CHOKING,
    ),
    SimulatedFault(
        name="bookie-collecting-a-quarter-of-the-time",
        about="One bookie of two spends a quarter of its life in short collections, and tells so in its own metrics.",
        expected=(Expected("gc-pressure", server(1)),),
        specs=(cluster(),),
        servers=((BookieSpec(), BookieSpec(gc_seconds=DAY_S / 4, gc_count=400_000), ZooKeeperSpec()),),
        why=NO_CHOKING,
    ),
    SimulatedFault(
        name="direct-memory-used-up",
        about="A broker has 97 % of its direct memory in use.",
        expected=(Expected("direct-memory-pressure", at(0)),),
        specs=(cluster(broker_0=strained(direct_mb=7950)),),
        why="filling direct memory for real makes a broker refuse connections, and with it the snapshot",
    ),
    SimulatedFault(
        name="slow-metadata-store",
        about="The metadata store takes 0.4 s on average to answer, whichever broker asks.",
        expected=tuple(Expected("metadata-latency", at(number)) for number in range(3)),
        specs=(cluster(usual=strained(metadata_reads=40_000, metadata_read_ms=400.0, metadata_wait_ms=350.0)),),
        why=NO_SLOW_DISK,
        quick=True,
    ),
    SimulatedFault(
        name="metadata-store-with-a-long-tail",
        about="One read of the metadata store in thirty takes seconds, though the mean is fine.",
        expected=tuple(Expected("metadata-latency", at(number)) for number in range(3)),
        specs=(cluster(usual=strained(metadata_reads=3_000, metadata_read_ms=80.0, metadata_slow_reads=100)),),
        why=NO_SLOW_DISK,
    ),
    SimulatedFault(
        name="slow-transaction-log",
        about="Since the snapshot before, one ZooKeeper server of three takes a quarter of a second to force its log.",
        expected=(Expected("zookeeper-slow", server(0), "250 ms on average to force its transaction log"),),
        specs=(cluster(),),
        servers=((ZooKeeperSpec(),) * 3, (SLOW_LOG, ZOOKEEPER_LATER, ZOOKEEPER_LATER)),
        observations=2,
        why=NO_SLOW_DISK,
        quick=True,
    ),
    SimulatedFault(
        name="slow-ledger-switches",
        about="Of thirty ledger switches a minute on one broker, seven in ten take over 200 ms, many over a second.",
        expected=(Expected("ledger-switch-slow", at(1)),),
        specs=(
            cluster(
                usual=strained(ledger_switches=LatencySpec(0.5)),
                broker_1=strained(ledger_switches=LatencySpec(0.5, slow_percent=40, stalled_percent=30)),
            ),
        ),
        why=NO_SLOW_DISK,
    ),
    SimulatedFault(
        name="slow-bookie",
        about="One write to bookies in five takes over 200 ms: a thread or disk of a bookie is too busy.",
        expected=(
            *(Expected("bookie-thread-busy", at(number)) for number in range(3)),
            *(Expected("publish-slow", at(number), "^.* cause: bookies") for number in range(3)),
        ),
        specs=(cluster(usual=strained(writes=LatencySpec(800.0, slow_percent=18, stalled_percent=3))),),
        why=NO_SLOW_DISK,
        quick=True,
    ),
    SimulatedFault(
        name="busy-client-thread",
        about="One of the two threads of a broker's BookKeeper client has 7,000 tasks waiting, the other one none.",
        expected=(Expected("bookie-thread-busy", at(0)),),
        specs=(
            cluster(
                broker_0=strained(client_queues=(7_000, 0)),
                configuration={"bookkeeperClientExposeStatsToPrometheus": "true"},
            ),
        ),
        why="which thread a topic is with is up to its name, and none can be slowed down",
    ),
    SimulatedFault(
        name="stuck-io-threads",
        about="A broker answers nobody: threads wait for locks, lookups pile up, sockets stay half closed.",
        expected=(Expected("io-threads-stuck", at(2)),),
        specs=(cluster(broker_2=strained(blocked_threads=40, pending_lookups=9_000, open_files=17_500)),),
        why="no call makes a broker's IO threads hang; a paused process does not answer the collector either",
    ),
    SimulatedFault(
        name="deadlock",
        about="Two threads of a broker wait for each other for ever.",
        expected=(Expected("io-threads-stuck", at(0)),),
        specs=(cluster(broker_0=strained(deadlocked_threads=2, blocked_threads=3)),),
        why="no deadlock of a broker can be had at will",
    ),
    SimulatedFault(
        name="debug-logging",
        about="A broker has logged a hundred lines a second at DEBUG since it started, a day ago.",
        expected=(Expected("logging-debug", at(1)),),
        specs=(cluster(usual=strained(debug_lines=0), broker_1=strained(debug_lines=100 * DAY_S)),),
        why=A_DAY_OF_LINES,
        quick=True,
    ),
    SimulatedFault(
        name="a-little-debug-logging",
        about="Healthy: somebody had a broker log at DEBUG for a few minutes today.",
        specs=(cluster(usual=strained(debug_lines=0), broker_1=strained(debug_lines=60_000)),),
        why=A_DAY_OF_LINES,
        twin_of=("debug-logging",),
    ),
    SimulatedFault(
        name="collecting-now-and-then",
        about="Healthy: a broker spends one second in fifty in short collections, and collected its heap three times.",
        specs=(
            cluster(broker_1=strained(gc_seconds=DAY_S / 50, gc_count=40_000, full_gc_seconds=2.4, full_gc_count=3)),
        ),
        why=NO_CHOKING,
        twin_of=("collecting-a-quarter-of-the-time", "full-collections-of-half-a-minute"),
    ),
    SimulatedFault(
        name="bookie-collecting-now-and-then",
        about="Healthy: bookies and ZooKeeper spend a second in fifty in short collections.",
        specs=(cluster(),),
        servers=(
            (
                BookieSpec(gc_seconds=DAY_S / 50, gc_count=40_000),
                BookieSpec(gc_seconds=DAY_S / 50, gc_count=40_000),
                ZooKeeperSpec(gc_seconds=DAY_S / 50, gc_count=40_000),
            ),
        ),
        why=NO_CHOKING,
        twin_of=("bookie-collecting-a-quarter-of-the-time",),
    ),
    SimulatedFault(
        name="direct-memory-half-used",
        about="Healthy: a broker has 55 % of its direct memory in use.",
        specs=(cluster(broker_0=strained(direct_mb=4500)),),
        why="filling direct memory for real makes a broker refuse connections, and with it the snapshot",
        twin_of=("direct-memory-used-up",),
    ),
    SimulatedFault(
        name="quick-metadata-store",
        about="Healthy: the metadata store takes 20 ms on average, and a second or more once in many thousand times.",
        specs=(cluster(usual=strained(metadata_reads=40_000, metadata_read_ms=20.0, metadata_slow_reads=5)),),
        why=NO_SLOW_DISK,
        twin_of=("slow-metadata-store", "metadata-store-with-a-long-tail"),
    ),
    SimulatedFault(
        name="requests-wait-for-an-instant",
        about="Healthy: at the moment of a look 400 requests wait in a ZooKeeper server, which answers quickly.",
        specs=(cluster(),),
        servers=((ZooKeeperSpec(),) * 3, (replace(ZOOKEEPER_LATER, outstanding=400), ZOOKEEPER_LATER, ZOOKEEPER_LATER)),
        observations=2,
        why=NO_SLOW_DISK,
        twin_of=("slow-transaction-log",),
    ),
    SimulatedFault(
        name="quick-bookies",
        about="Healthy: one write to bookies in a hundred takes over 200 ms, and one ledger switch in fifty.",
        specs=(
            cluster(
                usual=strained(
                    writes=LatencySpec(800.0, slow_percent=1), ledger_switches=LatencySpec(0.5, slow_percent=2)
                )
            ),
        ),
        why=NO_SLOW_DISK,
        twin_of=("slow-ledger-switches", "slow-bookie"),
    ),
    SimulatedFault(
        name="one-minute-of-slow-writes",
        about="Healthy enough: in one look seven writes in a hundred took over 200 ms, none of them over a second.",
        specs=(cluster(usual=strained(writes=LatencySpec(210.0, slow_percent=7))),),
        why=NO_SLOW_DISK,
        twin_of=("slow-bookie",),
    ),
    SimulatedFault(
        name="busy-client-threads",
        about="Healthy: both threads of a broker's BookKeeper client have some tasks waiting.",
        specs=(
            cluster(
                broker_0=strained(client_queues=(40, 35)),
                configuration={"bookkeeperClientExposeStatsToPrometheus": "true"},
            ),
        ),
        why="which thread a topic is with is up to its name, and none can be slowed down",
        twin_of=("busy-client-thread",),
    ),
    SimulatedFault(
        name="busy-io-threads",
        about="Healthy: two threads of a broker wait for locks, a few lookups are pending, a thousand files are open.",
        specs=(cluster(broker_2=strained(blocked_threads=2, pending_lookups=5, open_files=1_000)),),
        why="no call makes a broker's IO threads hang; a paused process does not answer the collector either",
        twin_of=("stuck-io-threads", "deadlock"),
    ),
)
