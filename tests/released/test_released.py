"""What released versions left behind: a ledger is upgraded, snapshots and policies are read."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import URL

from pulsar_steward import __version__
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.verify import require_untampered, verify_ledger
from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.load import load_policy
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.checkup.compose import checkup_of
from pulsar_steward.snapshots.read import open_snapshot
from tests.released.write import HERE, LEDGER, POLICY, SNAPSHOTS

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = sorted(folder.name for folder in HERE.iterdir() if (folder / LEDGER).exists())


def test_there_are_files_of_this_release() -> None:
    """The version that `pulsar_steward` names left its files, so that the next one is tried on them."""
    assert __version__ in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_ledger_is_upgraded_and_whole(version: str, tmp_path: Path) -> None:
    """A ledger keeps its chain after the upgrade, and its plans, questions and outcomes are read."""
    file = tmp_path / LEDGER
    shutil.copy(HERE / version / LEDGER, file)
    engine = open_ledger(URL.create("sqlite", database=str(file)))
    ledger = LedgerReader(engine)
    assert verify_ledger(engine).tampered == ()
    (cluster,) = ledger.clusters()
    plan_id = ledger.plans(cluster)[-1].plan_id
    require_untampered(engine, plan_id)
    assert ledger.plan(plan_id).batches
    batch = ledger.batch(plan_id, "b1")
    assert batch.requests
    assert batch.answers
    assert batch.outcomes
    assert batch.proofs
    engine.dispose()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_snapshot_is_read_and_planned_upon(version: str) -> None:
    """A snapshot's findings are reported, and what is proposed for them is a plan."""
    (folder,) = (HERE / version / SNAPSHOTS).glob("*/*")
    snapshot = open_snapshot(str(folder))
    assert "tc-skew" in {finding.check_id for finding in snapshot.findings()}
    plan = make_plan(planning_facts_of(snapshot, Policy(), Moves()))
    assert plan.batches
    assert checkup_of(snapshot, plan, Policy()).checks


@pytest.mark.parametrize("version", VERSIONS)
def test_a_policy_holds(version: str) -> None:
    """A policy is read without an error; no key of a release is taken away."""
    assert load_policy(HERE / version / POLICY) != Policy()
