"""The ledger's tables from version to version: what was kept before comes through, chained, and none goes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.ledger.chain import Appending, locked_head
from pulsar_steward.ledger.migrations.migrate import FIRST, VERSIONS, Migrations
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.silences import SilenceEnd, take_back
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.tables import ANSWERS, PLANS, metadata
from pulsar_steward.ledger.verify import verify_ledger
from tests.unit.ledger.test_records import AT, PLAN, RUN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import URL, Engine

_PLAN = text(
    "INSERT INTO plans (plan_id, cluster, snapshot_id, created_at, digest, proposal_digest, document)"
    " VALUES (:plan_id, :cluster, :snapshot_id, '2026-01-01 12:00:00.123456+00:00', :digest, :proposal, :document)"
)
_ANSWER = text(
    "INSERT INTO answers (plan_id, batch_id, run, decision, answered_at, comment, step_ids, reason)"
    " VALUES (:plan_id, 'b1', :run, 'rejected', '2026-01-01 12:00:00.123456+00:00', '', '[]', 'no')"
)


@pytest.fixture
def old(url: URL) -> Iterator[Engine]:
    """A ledger of the time before versions were kept, with a plan and an answer."""
    engine = create_engine(url)
    with engine.begin() as connection:
        Migrations(connection).run(FIRST)
        connection.execute(text(f"DROP TABLE {VERSIONS}"))
        values = {"plan_id": PLAN.plan_id, "cluster": PLAN.cluster, "snapshot_id": PLAN.snapshot_id}
        digests = {"digest": PLAN.digest, "proposal": PLAN.proposal_digest, "document": PLAN.encoded().decode()}
        connection.execute(_PLAN, {**values, **digests})
        connection.execute(_ANSWER, {"plan_id": PLAN.plan_id, "run": RUN})
    yield engine
    engine.dispose()


@pytest.mark.usefixtures("old")
def test_a_ledger_of_before_is_brought_up_to_date(url: URL) -> None:
    """A ledger from before versions were kept is upgraded with the same rows, and all of them are chained."""
    engine = open_ledger(url)
    ledger = LedgerReader(engine)
    assert ledger.plan(PLAN.plan_id) == PLAN
    assert ledger.plan_row(PLAN.plan_id).created_at == AT
    assert [answer.reason for answer in ledger.answers(PLAN.plan_id, "b1")] == ["no"]
    verdict = verify_ledger(engine)
    assert (verdict.rows, verdict.head.sequence, verdict.tampered) == (2, 2, ())
    engine.dispose()


def test_who_only_reads_brings_nothing_up_to_date(old: Engine, url: URL) -> None:
    """Opening an older ledger without an upgrade is refused with the command to upgrade it, and changes no tables."""
    before = inspect(old).get_table_names()
    with pytest.raises(ConfigurationError, match="steward ledger upgrade"):
        open_ledger(url, make=False)
    assert inspect(old).get_table_names() == before


def test_a_later_stewards_ledger_is_left_alone(engine: Engine, url: URL) -> None:
    """A ledger of a later version of Steward is refused when it is opened, and stays as it is."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE steward_version SET version_num = '9999'"))
    before = inspect(engine).get_table_names()
    with pytest.raises(ConfigurationError, match="of a later Steward"):
        open_ledger(url)
    assert inspect(engine).get_table_names() == before
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT version_num FROM steward_version")) == "9999"


def test_the_versions_lead_to_the_tables_that_are_used(engine: Engine) -> None:
    """The migrations create exactly the tables that the code defines."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSIONS, "compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_a_ledger_of_version_3_is_brought_up_to_date(url: URL) -> None:
    """A plan in a ledger of version 3 is the same after the upgrade, without questions, and its hashes verify."""
    engine = create_engine(url)
    with engine.begin() as connection:
        Migrations(connection).run("0003")
        rows = {"plan_id": PLAN.plan_id, "cluster": PLAN.cluster, "snapshot_id": PLAN.snapshot_id}
        digests = {"digest": PLAN.digest, "proposal": PLAN.proposal_digest, "document": PLAN.encoded().decode()}
        connection.execute(_PLAN, {**rows, **digests})
        stored = connection.execute(text("SELECT * FROM plans")).mappings().one()
        chain = Appending(connection, locked_head(connection))
        chain.chain(PLANS, {**stored, "created_at": AT})
    engine.dispose()
    upgraded = open_ledger(url)
    ledger = LedgerReader(upgraded)
    assert verify_ledger(upgraded).tampered == ()
    assert ledger.plan(PLAN.plan_id) == PLAN
    assert (ledger.questions.asked_in(PLAN.plan_id), ledger.questions.over(PLAN.plan_id, "b1")) == (None, None)
    assert ledger.questions.plans_without(PLAN.cluster) == (PLAN.plan_id,)
    upgraded.dispose()


def test_a_ledger_of_version_5_is_brought_up_to_date(url: URL) -> None:
    """A rejection in a ledger of version 5 can be taken back after the upgrade, and its hashes verify."""
    engine = create_engine(url)
    with engine.begin() as connection:
        Migrations(connection).run("0005")
        values = {"plan_id": PLAN.plan_id, "cluster": PLAN.cluster, "snapshot_id": PLAN.snapshot_id}
        digests = {"digest": PLAN.digest, "proposal": PLAN.proposal_digest, "document": PLAN.encoded().decode()}
        connection.execute(_PLAN, {**values, **digests})
        connection.execute(_ANSWER, {"plan_id": PLAN.plan_id, "run": RUN})
        chain = Appending(connection, locked_head(connection))
        for table, named in ((PLANS, "created_at"), (ANSWERS, "answered_at")):
            rows = text(f"SELECT * FROM {table.name}")  # noqa: S608 - a table of ours, and no column of later on
            stored = connection.execute(rows).mappings().one()
            chain.chain(table, {**stored, named: AT})
    engine.dispose()
    upgraded = open_ledger(url)
    (answer,) = LedgerReader(upgraded).answers(PLAN.plan_id, "b1")
    assert (answer.reason, answer.silent_until, answer.policy_entry) == ("no", None, None)
    assert take_back(upgraded, SilenceEnd(answer_id=answer.answer_id, at=AT, said_by="bob", reason="it may"))
    assert verify_ledger(upgraded).tampered == ()
    upgraded.dispose()
