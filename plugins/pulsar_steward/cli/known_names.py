"""Names of clusters that are known here: a misspelt one is refused, as its halt would stop nothing."""

import difflib
import os
from collections.abc import Collection
from contextlib import suppress

from sqlalchemy import Engine

from pulsar_steward.cli.airflow_process import airflow_is_set_up, ask_airflow
from pulsar_steward.cli.paths import snapshots_uri
from pulsar_steward.errors import LedgerError, SnapshotError
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.notify.variable import HaltsAsked, HaltsTold
from pulsar_steward.snapshots.latest import SnapshotShelf

CLUSTER = "STEWARD_CLUSTER"

SECONDS = 60
"""Time in which Airflow says whether it has a connection; without an answer it has none."""


def known_names(engine: Engine) -> frozenset[str]:
    """Clusters that the ledger or the snapshots know, or that this environment observes; none of what cannot be read.

    A halt has to be possible whatever is broken.
    """
    known = {each.strip() for each in os.environ.get(CLUSTER, "").split(",")} - {""}
    with suppress(LedgerError):
        known |= LedgerReader(engine).clusters()
    with suppress(SnapshotError):
        known |= set(SnapshotShelf(snapshots_uri()).clusters())
    return frozenset(known)


def is_connected(name: str, known: Collection[str]) -> bool:
    """True if the Airflow of this environment has a connection to a cluster of this name.

    One in the environment is found by upper and lower case alike, so that a name that differs from a known one in case
    only is taken for misspelt.
    """
    if name.casefold() in {each.casefold() for each in known} or not airflow_is_set_up():
        return False
    told = ask_airflow("halts", HaltsAsked(clusters=(), names=(name,)), HaltsTold, SECONDS)
    return told is not None and name in told.connected


def nearest(name: str, known: Collection[str]) -> str:
    """Clause with the known name that may be meant, and all of them."""
    folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(name.casefold(), sorted(folded), n=1)
    names = ", ".join(sorted(known))
    return f"did you mean {folded[near[0]]}? Known are {names}" if near else f"known are {names}"
