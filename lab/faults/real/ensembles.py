"""Settings that promise more than there is: bookies for a namespace's ledgers, and memory of brokers."""

from collections.abc import Callable

from lab.faults.fault import Expected, RealFault
from lab.faults.real.backlogs import backlog
from lab.faults.real.ground import Ground, fault_of_namespace


def _spread_over(bookies: int) -> Callable[[Ground], None]:
    """A loaded topic, whose ledger is there already, and then a namespace with ensembles of so many bookies."""

    def arrange(here: Ground) -> None:
        backlog(here, here.topic(), 10, 100)
        quorum = {"bookkeeperWriteQuorum": bookies, "bookkeeperAckQuorum": bookies}
        document = {"bookkeeperEnsemble": bookies, **quorum, "managedLedgerMaxMarkDeleteRate": 0.0}
        here.admin.set_policy(here.namespace, "persistence", document)

    return arrange


FAULTS = (
    fault_of_namespace(
        "ensemble-of-three",
        "A namespace whose new ledgers are to be spread over three bookies, of which the lab has one.",
        _spread_over(3),
        "ensemble-too-large",
        quick=True,
    ),
    fault_of_namespace(
        "ensemble-of-one",
        "Healthy: a namespace whose ledgers are on one bookie, as the lab has no other.",
        _spread_over(1),
        twin_of=("ensemble-of-three",),
        quick=True,
    ),
    RealFault(
        name="direct-memory-promised-twice",
        about="Brokers with 256 MiB of direct memory, of which 200 may go to entry caches and 128 to publishing.",
        expected=(Expected("entry-cache-size", evidence="328 MiB of direct memory, of 256 MiB"),),
        settings=(("managedLedgerCacheSizeMB", "200"),),
        alone=True,
    ),
)
