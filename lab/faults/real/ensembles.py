"""Namespaces whose ledgers are to be spread over more bookies than a lab has, and such as its one bookie does for."""

from collections.abc import Callable

from lab.faults.real.backlogs import backlog
from lab.faults.real.ground import Ground
from lab.faults.real.on_ground import fault_of_namespace


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
)
