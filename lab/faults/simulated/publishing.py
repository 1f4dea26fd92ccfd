"""Publishing that is slow, each time for another cause; and the same causes where nobody waits."""

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import DAY_S, at, busy_topic, cluster, strained
from lab.simulator import ClusterSpec, LatencySpec, LoadSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

SLOW = LatencySpec(800.0, slow_percent=15, stalled_percent=3)
QUICK = LatencySpec(800.0, slow_percent=0.5)

NO_HEAP = "a broker of the lab with too small a heap dies, or answers nobody, before it publishes slowly"
NO_ROOM = "one machine has no room for so many clients, so much throughput or so many acknowledgements a minute"
NO_HANGING = "no call makes a broker's threads hang, or fills its direct memory, so that it still answers"


def _names(cause: str, number: int) -> Expected:
    """The cause that is named first, of a broker that publishes slowly."""
    return Expected("publish-slow", at(number), f"cause: {cause}")


def _holey(holes: int) -> NamespaceSpec:
    """A subscription with so many ack holes, on the first broker."""
    reader = SubscriptionSpec("index", consumers=9, backlog=9_000, unacked=8_000, ack_holes=holes, rate_out=50.0)
    topic = TopicSpec("carts", producers=2, subscriptions=(reader,), message_bytes=300, rate_in=50.0)
    return NamespaceSpec("shop/carts", bundles=4, topics=(topic,), owner=0)


def _hot(publishes: LatencySpec) -> ClusterSpec:
    """One topic of 60 MB/s in and out on the first broker, and as much for each other broker in many bundles."""
    out = SubscriptionSpec("index", consumers=4, backlog=100, unacked=80, rate_out=30_000.0)
    hot = TopicSpec("clicks", producers=8, subscriptions=(out,), message_bytes=1_000, rate_in=30_000.0)
    search = NamespaceSpec("shop/search", bundles=4, topics=(hot,), owner=0)
    owners = tuple(1 + number % 2 for number in range(64))
    web = NamespaceSpec("shop/web", bundles=64, topics=(busy_topic("views", 200, rate=560.0),), owners=owners)
    return cluster(search, web, broker_0=strained(publishes=publishes))


def _one_topic(stalled: int) -> ClusterSpec:
    """A topic of which so many entries a minute take over a second, among many that are quick."""
    topic = TopicSpec("slips", producers=1, rate_in=10.0, message_bytes=200, stalled_entries=stalled)
    return cluster(NamespaceSpec("shop/print", bundles=4, topics=(topic,)))


def _at_one(name: str, about: str, cause: str, check: str, load: LoadSpec, why: str, **usual: int) -> SimulatedFault:
    """One cause on the second broker, which another check finds as well."""
    return SimulatedFault(
        name=name,
        about=about,
        expected=(Expected(check, at(1)), _names(cause, 1)),
        specs=(cluster(usual=strained(**usual), broker_1=load),),
        why=why,
    )


TROUBLES = (
    SimulatedFault(
        name="publishing-slow-for-collections",
        about="A broker spends a quarter of its time in collections: so its writes and what it publishes seem slow.",
        expected=(
            Expected("gc-pressure", at(1)),
            Expected("bookie-thread-busy", at(1)),
            _names("garbage collection", 1),
        ),
        specs=(cluster(broker_1=strained(gc_seconds=DAY_S / 4, gc_count=400_000, writes=SLOW)),),
        why="the same for real is `broker-collects-again-and-again`; here every figure is known",
        quick=True,
    ),
    SimulatedFault(
        name="publishing-slow-for-a-full-heap",
        about="Full collections take a quarter of a broker's time, and leave its heap 97 % full; it publishes slowly.",
        expected=(
            Expected("heap-pressure", at(1)),
            Expected("gc-pressure", at(1)),
            _names("a heap that stays full", 1),
        ),
        specs=(
            cluster(
                broker_1=strained(
                    heap_mb=7600,
                    left_mb=0.97 * 8192 * 2 / 3,
                    full_gc_seconds=DAY_S / 4,
                    full_gc_count=40_000,
                    publishes=SLOW,
                )
            ),
        ),
        why=NO_HEAP,
    ),
    SimulatedFault(
        name="publishing-slow-for-busy-processors",
        about="The processors of a broker are busy in two looks, and it publishes slowly.",
        expected=(Expected("cpu-busy", at(1)), _names("busy processors", 1)),
        specs=(cluster(broker_1=strained(cpu_percent=194.0, publishes=SLOW)),),
        observations=2,
        why=NO_ROOM,
    ),
    SimulatedFault(
        name="publishing-slow-for-the-metadata-store",
        about="The metadata store is slow, and so are ledger switches, for which publishing waits; writes are quick.",
        expected=(
            *(Expected("metadata-latency", at(number)) for number in range(3)),
            *(Expected("ledger-switch-slow", at(number)) for number in range(3)),
            *(_names("the metadata store", number) for number in range(3)),
        ),
        specs=(
            cluster(
                usual=strained(
                    metadata_reads=40_000,
                    metadata_read_ms=400.0,
                    metadata_wait_ms=350.0,
                    ledger_switches=LatencySpec(0.5, slow_percent=40, stalled_percent=30),
                    writes=QUICK,
                    publishes=SLOW,
                )
            ),
        ),
        why="the same for real is `zookeeper-stops-and-goes`; here every figure is known",
    ),
    SimulatedFault(
        name="publishing-slow-for-ledger-switches",
        about="One broker switches ledgers slowly, with a quick metadata store and quick bookies.",
        expected=(Expected("ledger-switch-slow", at(1)), _names("switches to new ledgers", 1)),
        specs=(
            cluster(
                broker_1=strained(
                    ledger_switches=LatencySpec(0.5, slow_percent=40, stalled_percent=30), writes=QUICK, publishes=SLOW
                )
            ),
        ),
        why="with a quick metadata store no switch can be made slow from outside",
    ),
    _at_one(
        "publishing-slow-for-debug-logging",
        "A broker logs a hundred lines a second at DEBUG, and publishes slowly.",
        "logging at DEBUG",
        "logging-debug",
        strained(debug_lines=100 * DAY_S, publishes=SLOW),
        "the same for real is `broker-at-debug-into-a-slow-log`; here every figure is known",
        debug_lines=0,
    ),
    _at_one(
        "publishing-slow-for-direct-memory",
        "A broker has 97 % of its direct memory in use, and publishes slowly.",
        "direct memory",
        "direct-memory-pressure",
        strained(direct_mb=7950, publishes=SLOW),
        NO_HANGING,
    ),
    _at_one(
        "publishing-slow-for-stuck-threads",
        "Threads of a broker wait for locks, lookups pile up, and it publishes slowly.",
        "stuck threads",
        "io-threads-stuck",
        strained(blocked_threads=40, pending_lookups=9_000, open_files=17_500, publishes=SLOW),
        NO_HANGING,
    ),
    SimulatedFault(
        name="publishing-slow-for-ack-holes",
        about="A subscription has 70 % of the ack holes that a broker persists, and that broker publishes slowly.",
        expected=(Expected("ack-holes", "^persistent://shop/carts/"), _names("ack holes", 0)),
        specs=(cluster(_holey(7_000), broker_0=strained(publishes=SLOW)),),
        why=NO_ROOM,
    ),
    SimulatedFault(
        name="publishing-slow-for-a-hot-bundle",
        about="A bundle of one topic carries thirty times what others do, and its broker publishes slowly.",
        expected=(_names("a hot bundle", 0),),
        specs=(_hot(SLOW),),
        why=NO_ROOM,
    ),
    SimulatedFault(
        name="publishing-slow-for-no-known-cause",
        about="A broker publishes slowly, and nothing that it tells says why.",
        expected=(Expected("publish-slow", at(1), "No other check names a cause"),),
        specs=(cluster(broker_1=strained(publishes=SLOW)),),
        why="what Steward does not know of cannot be made on purpose",
    ),
    SimulatedFault(
        name="one-topic-publishes-slowly",
        about="In two looks a sixth of one topic's entries took over a second, while its broker as a whole is quick.",
        expected=(Expected("publish-slow", "^persistent://shop/print/slips$"),),
        specs=(_one_topic(100),),
        observations=2,
        why="which ledger is written to slowly cannot be chosen",
    ),
)

HEALTHY = (
    SimulatedFault(
        name="publishing-is-quick-all-the-same",
        about="Healthy: five entries of a thousand take over 200 ms; a broker collects, logs and fills memory a bit.",
        specs=(
            cluster(
                _holey(2_000),
                usual=strained(debug_lines=0, writes=QUICK, publishes=QUICK),
                broker_1=strained(
                    debug_lines=60_000, gc_seconds=DAY_S / 50, gc_count=40_000, direct_mb=4500, publishes=QUICK
                ),
            ),
        ),
        why=NO_ROOM,
        twin_of=tuple(fault.name for fault in TROUBLES if fault.name.startswith("publishing-slow-for-")),
    ),
    SimulatedFault(
        name="one-minute-of-slow-publishing",
        about="Healthy enough: in one look seven entries in a hundred took over 200 ms, none of them over a second.",
        specs=(cluster(usual=strained(publishes=LatencySpec(210.0, slow_percent=7))),),
        why=NO_ROOM,
        twin_of=("publishing-slow-for-no-known-cause",),
    ),
    SimulatedFault(
        name="one-topic-stood-still-once",
        about="Healthy enough: a sixth of one topic's entries took over a second, which the look before does not show.",
        specs=(_one_topic(0), _one_topic(100)),
        observations=2,
        why="which ledger is written to slowly cannot be chosen",
        twin_of=("one-topic-publishes-slowly",),
    ),
)

FAULTS = (*TROUBLES, *HEALTHY)
