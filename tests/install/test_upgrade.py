"""An upgrade: ledger, snapshots and policy as Steward 0.1 left them are read, shown, and gone on with."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from airflow.sdk import Variable
from sqlalchemy import create_engine, make_url

from benchmarks.observing import observe
from lab.postgres import binaries, create_database
from lab.simulator import ClusterSpec, running_simulator
from pulsar_steward.errors import Refused
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Decision, Outcome
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.orchestration import observing
from pulsar_steward.orchestration.batches import BatchRef, apply_batch, was_approved
from pulsar_steward.policy.load import load_policy
from pulsar_steward.snapshots.read import open_snapshot
from tests.command import steward

if TYPE_CHECKING:
    from sqlalchemy import URL

CARRIED_OUT_BY = "pulsar_remediate/manual__1/0"
LEFT = Path(__file__).parents[1] / "fixtures" / "steward-0.1"
CLUSTER, BATCH = "local", "b1"
CARRIED_OUT, NOTHING_MORE = "local-20261123T044207Z-523135ab470c", "local-20261123T044303Z-a0849f99ba8a"
ROWS = 17
STOOD_SINCE = datetime(2026, 11, 23, 4, 42, 7, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`STEWARD_HOME` of that time, with its SQLite ledger; Airflow's variables are in memory."""
    folder = tmp_path / "home"
    shutil.copytree(LEFT / "home", folder)
    with closing(sqlite3.connect(folder / "ledger.db")) as ledger:
        ledger.executescript((LEFT / "ledger.sqlite.sql").read_text(encoding="utf-8"))
    kept: dict[str, str] = {}
    monkeypatch.setattr(Variable, "get", lambda key, default=None: kept.get(key, default))
    monkeypatch.setattr(Variable, "set", lambda key, value, **_: kept.__setitem__(key, value))
    monkeypatch.setenv("STEWARD_HOME", str(folder))
    return folder


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, home: Path) -> URL:
    """The ledger of that time: the file in `home`, or a database of PostgreSQL."""
    if request.param == "sqlite":
        return make_url(f"sqlite:///{home / 'ledger.db'}")
    server, folder = request.getfixturevalue("postgres"), binaries()
    assert folder is not None
    create_database(folder, server, "upgraded")
    database = make_url(server.url("upgraded"))
    engine = create_engine(database)
    with engine.begin() as connection:
        connection.exec_driver_sql((LEFT / "ledger.postgresql.sql").read_text(encoding="utf-8").replace("%", "%%"))
    engine.dispose()
    return database


def dumped(home: Path) -> list[str]:
    """Tables and rows of the SQLite ledger."""
    with closing(sqlite3.connect(home / "ledger.db")) as ledger:
        return list(ledger.iterdump())


def test_the_ledger_is_read_whole(url: URL) -> None:
    """A ledger of Steward 0.1 is read with all its rows, and its plans, answer, outcomes and proof are as written."""
    engine = open_ledger(url)
    verdict = verify_ledger(engine)
    assert (verdict.rows, verdict.head.sequence, verdict.tampered) == (ROWS, ROWS, ())

    ledger = LedgerReader(engine)
    assert [row.plan_id for row in ledger.plans(CLUSTER)] == [NOTHING_MORE, CARRIED_OUT]
    assert ledger.plan_row(CARRIED_OUT).superseded_by == NOTHING_MORE
    plan = ledger.plan(CARRIED_OUT)
    steps = tuple(step.step_id for step in plan.batch(BATCH).steps)
    [answer] = ledger.answers(CARRIED_OUT, BATCH)
    assert (answer.decision, answer.answered_by, answer.step_ids) == (Decision.APPROVED, "alice", steps)
    assert answer.comment == "half of them tonight — grüße"
    outcomes = ledger.outcomes(CARRIED_OUT, BATCH)
    assert [(each.step_id, each.outcome) for each in outcomes] == [(step, Outcome.DONE) for step in steps]
    [proof] = ledger.proofs(CARRIED_OUT)
    assert proof.proved
    engine.dispose()


def test_the_command_line_reads_it(home: Path) -> None:
    """An old ledger is left unchanged and the upgrade command is named; after the upgrade it is verified and shown."""
    ledger = ("--ledger", f"sqlite:///{home / 'ledger.db'}")
    before = dumped(home)
    ended = steward(home, "ledger", "verify", *ledger)
    assert (ended.returncode, "steward ledger upgrade" in ended.stderr) == (2, True)
    assert dumped(home) == before

    assert steward(home, "ledger", "upgrade", *ledger).returncode == 0
    verified = steward(home, "ledger", "verify", *ledger)
    assert (verified.returncode, f"as written: {ROWS} rows compared" in verified.stdout) == (0, True)
    shown = steward(home, "show", CARRIED_OUT, *ledger)
    assert shown.returncode == 0, shown.stderr
    assert all(word in shown.stdout for word in ("alice", "approved", "b1.s04", "done"))
    assert steward(home, "show", NOTHING_MORE, *ledger).returncode == 0
    dry = steward(home, "ledger", "dry-runs", CARRIED_OUT, *ledger)
    assert (dry.returncode, "unload?destinationBroker=" in dry.stdout) == (0, True)


def test_the_policy_holds(home: Path) -> None:
    """A policy of version 0.1 still applies to its cluster, tenants and namespaces."""
    policy = load_policy(home / "policy.yaml")
    assert policy.for_cluster(CLUSTER).tc_skew.warning_spread_coordinators == 4
    assert policy.for_cluster(CLUSTER).apply.protected_namespaces == ("payments/live",)
    assert policy.for_cluster("east").brokers.draining == ("broker-7:8080",)
    ended = steward(home, "policy", "show", "--policy", str(home / "policy.yaml"), "east", "payments/live")
    assert ended.returncode == 0, ended.stderr


def test_an_observation_goes_on_from_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An observation after the upgrade keeps the age of a finding, and its plan replaces that of the older version."""
    with running_simulator(ClusterSpec(tc_owner=0)) as cluster:
        connection = {"conn_type": "http", "extra": {"urls": cluster.admin_urls}}
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR_ADMIN_LOCAL", json.dumps(connection))
        policy = load_policy(home / "policy.yaml").for_cluster(CLUSTER)
        now = datetime.now(UTC).replace(microsecond=0)
        uri = observe(cluster, policy, cluster=CLUSTER, out=home / "snapshots", taken_at=now)
        snapshot = open_snapshot(uri)
        assert [each.meta().taken_at for each in snapshot.earlier(12)] == [STOOD_SINCE]
        [finding] = [each for each in snapshot.findings() if each.check_id == "tc-skew"]
        assert finding.first_seen == STOOD_SINCE

        planned = observing.plan_snapshot(CLUSTER, uri, "pulsar_observe/manual__3")
        assert planned.plan_id is not None
        engine = open_ledger(f"sqlite:///{home / 'ledger.db'}")
        assert LedgerReader(engine).plan_row(NOTHING_MORE).superseded_by == planned.plan_id
        assert verify_ledger(engine).tampered == ()
        engine.dispose()

        with pytest.raises(Refused):
            apply_batch(BatchRef(plan_id=CARRIED_OUT, batch_id=BATCH, label=""), "pulsar_remediate/manual__3/0")
        assert {record.method for record in cluster.requests.all()} == {"GET"}


OLDER = ("delete from outcomes", "delete from answer_uses")
"""The same run, cut short: its calls have no outcome, or nothing says that it acted."""


@pytest.mark.parametrize("cut_short", [(), *((each,) for each in OLDER)], ids=["done", "no outcomes", "not used"])
def test_a_retry_of_a_run_of_that_time_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, cut_short: tuple[str, ...]
) -> None:
    """A retry of a run of version 0.1 is refused with a remedy and no changing call, however far the run came."""
    changed_then(home, *cut_short)
    with running_simulator(ClusterSpec(tc_owner=0)) as cluster:
        connection = {"conn_type": "http", "extra": {"urls": cluster.admin_urls}}
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR_ADMIN_LOCAL", json.dumps(connection))
        ref = BatchRef(plan_id=CARRIED_OUT, batch_id=BATCH, label="")
        with pytest.raises(Refused, match=r"superseded by the newer plan .* answer that one"):
            apply_batch(ref, CARRIED_OUT_BY)
        assert was_approved(ref, CARRIED_OUT_BY)
        assert {record.method for record in cluster.requests.all()} <= {"GET"}


def test_a_plan_that_cannot_be_read_any_more_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that was recorded without `taken_at` is refused, and the error says to observe again."""
    with closing(sqlite3.connect(home / "ledger.db")) as ledger:
        [(document,)] = ledger.execute("select document from plans where plan_id = ?", [CARRIED_OUT])
        older = json.loads(document)
        del older["taken_at"]
        written = json.dumps(older, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        recorded = (written, sha256(written.encode()).hexdigest(), CARRIED_OUT)
        ledger.execute("update plans set document = ?, digest = ? where plan_id = ?", recorded)
        ledger.commit()
    ref = BatchRef(plan_id=CARRIED_OUT, batch_id=BATCH, label="")
    with pytest.raises(Refused, match=r"recorded by another version of Steward.*`taken_at`.*Observe again"):
        apply_batch(ref, CARRIED_OUT_BY)
    assert was_approved(ref, CARRIED_OUT_BY)


def changed_then(home: Path, *statements: str) -> None:
    """Has the ledger of that time say something else."""
    with closing(sqlite3.connect(home / "ledger.db")) as ledger:
        for each in statements:
            ledger.execute(each)
        ledger.commit()
