"""Writes the files that this version leaves behind, for tests of later versions: ``python -m tests.released.write``.

A ledger with rows in all of its tables, a snapshot of a simulated cluster, and the example of a policy. Run it for a
release, once; what a released version wrote does not change any more.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from sqlalchemy import URL

from benchmarks.observing import observe
from lab.simulator import running_simulator
from pulsar_steward import __version__
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.policy.schema import Policy
from tests.apply.worksite import SKEWED
from tests.unit.ledger.forging import filled
from tests.unit.ledger.test_records import AT, PLAN

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "docs" / "policy.example.yaml"
LEDGER, SNAPSHOTS, POLICY = "ledger.db", "snapshots", "policy.yaml"


def write(folder: Path) -> None:
    """Writes all of it into a new folder."""
    folder.mkdir()
    shutil.copy(EXAMPLE, folder / POLICY)
    engine = open_ledger(URL.create("sqlite", database=str(folder / LEDGER)))
    LedgerWriter(engine).record_plan(PLAN, AT)
    filled(engine).dispose()
    with running_simulator(SKEWED) as cluster:
        observe(cluster, Policy(), cluster="east", out=folder / SNAPSHOTS, taken_at=AT.replace(microsecond=0))


if __name__ == "__main__":
    write(HERE / __version__)
