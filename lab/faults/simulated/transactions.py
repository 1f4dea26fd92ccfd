"""Transactions that nobody ends, and a coordinator that answers nobody; and the same clients where all is well."""

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import cluster
from lab.simulator import ClusterSpec, CoordinatorSpec

TOO_LONG = "the default half hour; where a minute is enough they are made for real (transactions-stay-open)"
NO_WAY = "no call makes a coordinator of a healthy cluster fail to load"


def _used(look: int, *, timed_out: int = 0, without: int | None = None) -> ClusterSpec:
    """A cluster whose 16 coordinators open 600 transactions between two looks."""
    return cluster(
        transactions={
            number: CoordinatorSpec(opened=10_000 + 600 * look, still_open=3, timed_out=timed_out * look)
            for number in range(16)
            if number != without
        }
    )


def _idle(look: int, still_open: int) -> ClusterSpec:
    """A cluster whose coordinators open two transactions each between two looks."""
    return cluster(
        transactions={number: CoordinatorSpec(opened=1_000 + 2 * look, still_open=still_open) for number in range(16)}
    )


FAULTS = (
    SimulatedFault(
        name="transactions-left-open",
        about="Three transactions of each coordinator are open, and in 40 minutes only two were opened there.",
        expected=(Expected("transactions-open", evidence="At least 16 transactions of 16 coordinators"),),
        observations=2,
        minutes_apart=40,
        specs=(_idle(0, 3), _idle(1, 3)),
        why=TOO_LONG,
        quick=True,
    ),
    SimulatedFault(
        name="transactions-come-and-go",
        about="Healthy: two transactions of each coordinator are open, and as many were opened there in 40 minutes.",
        observations=2,
        minutes_apart=40,
        specs=(_idle(0, 2), _idle(1, 2)),
        why=TOO_LONG,
        twin_of=("transactions-left-open",),
    ),
    SimulatedFault(
        name="transactions-time-out",
        about="Of 600 transactions that each coordinator opened in 40 minutes 90 timed out.",
        expected=(Expected("transactions-open", evidence="1,440 transactions timed out"),),
        observations=2,
        minutes_apart=40,
        specs=(_used(0, timed_out=90), _used(1, timed_out=90)),
        why=TOO_LONG,
    ),
    SimulatedFault(
        name="some-transactions-time-out",
        about="Healthy: of 600 transactions that each coordinator opened in 40 minutes ten timed out.",
        observations=2,
        minutes_apart=40,
        specs=(_used(0, timed_out=10), _used(1, timed_out=10)),
        why=TOO_LONG,
        twin_of=("transactions-time-out",),
    ),
    SimulatedFault(
        name="coordinator-answers-nobody",
        about="Clients use 15 of 16 coordinators; coordinator 7 is told of by no broker, in two looks.",
        expected=(Expected("transactions-open", "-partition-7$"),),
        observations=2,
        minutes_apart=40,
        specs=(_used(0, without=7), _used(1, without=7)),
        why=NO_WAY,
    ),
    SimulatedFault(
        name="coordinator-is-loaded-again",
        about="Healthy: coordinator 7 was moved and is not loaded again at one look; it was before.",
        observations=2,
        minutes_apart=40,
        specs=(_used(0), _used(1, without=7)),
        why=NO_WAY,
        twin_of=("coordinator-answers-nobody",),
    ),
)
