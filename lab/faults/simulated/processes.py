"""Processes whose heap stays full, or that have no processor time left; and such as only look like it."""

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import DAY_S, at, cluster, server, strained
from lab.simulator import BookieSpec, ZooKeeperSpec

NO_FULL_HEAP = "a heap of the lab that stays full ends its process, or the machine's other work"
NO_IDLE_PROCESSORS = "the lab has all processors of its machine: a process that takes them slows down what looks"

FAULTS = (
    SimulatedFault(
        name="heap-stays-full",
        about="A broker's last full collection left 97 % of its old generation in use.",
        expected=(Expected("heap-pressure", at(1), "left 97 % of it in use"),),
        specs=(cluster(broker_1=strained(heap_mb=7600, left_mb=0.97 * 8192 * 2 / 3)),),
        why=NO_FULL_HEAP,
        quick=True,
    ),
    SimulatedFault(
        name="heap-of-zookeeper-stays-full",
        about="A ZooKeeper server's last full collection left nine tenths of its old generation in use.",
        expected=(Expected("heap-pressure", server(2), "left 90 % of it in use"),),
        specs=(cluster(),),
        servers=((BookieSpec(), ZooKeeperSpec(), ZooKeeperSpec(heap_mb=470, left_mb=0.9 * 512 * 2 / 3)),),
        why=NO_FULL_HEAP,
    ),
    SimulatedFault(
        name="heap-full-of-garbage",
        about="Healthy: heaps are nearly full at the moment of a look, and their last full collection left a third.",
        specs=(cluster(broker_1=strained(heap_mb=8000, left_mb=2000)),),
        servers=((BookieSpec(heap_mb=500, left_mb=120), ZooKeeperSpec(), ZooKeeperSpec(heap_mb=500, left_mb=120)),),
        why=NO_FULL_HEAP,
        twin_of=("heap-stays-full", "heap-of-zookeeper-stays-full"),
    ),
    SimulatedFault(
        name="broker-without-processor-time",
        about="In two looks a broker reports 97 % of its processors busy.",
        expected=(Expected("cpu-busy", at(2), "97 % of its processors busy, and 97 %"),),
        specs=(cluster(broker_2=strained(cpu_percent=194.0)),),
        observations=2,
        why=NO_IDLE_PROCESSORS,
        quick=True,
    ),
    SimulatedFault(
        name="bookie-without-processor-time",
        about="One of three bookies of four processors has used 3.9 of them for a day.",
        expected=(Expected("cpu-busy", server(0), "3.9 processors busy itself of 4"),),
        specs=(cluster(),),
        servers=((BookieSpec(cpu_seconds=3.9 * DAY_S), BookieSpec(), BookieSpec()),),
        policy={"cpu_busy": {"bookie_processors": 4}},
        why=NO_IDLE_PROCESSORS,
    ),
    SimulatedFault(
        name="processors-half-busy",
        about="Healthy: a broker is at 97 % in one look and idle in the next, a bookie of four processors uses two.",
        specs=(cluster(broker_2=strained(cpu_percent=194.0)), cluster(broker_2=strained(cpu_percent=60.0))),
        servers=((BookieSpec(cpu_seconds=2.0 * DAY_S), BookieSpec(), BookieSpec()),),
        observations=2,
        policy={"cpu_busy": {"bookie_processors": 4}},
        why=NO_IDLE_PROCESSORS,
        twin_of=("broker-without-processor-time", "bookie-without-processor-time"),
    ),
)
