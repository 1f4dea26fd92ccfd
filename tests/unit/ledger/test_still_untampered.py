"""Between two calls only what was added since is walked, and what the permit rests on is compared all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import delete, insert, select, update

from pulsar_steward.errors import LedgerTampered
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.chain import key_columns
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.verify import require_still_untampered, require_untampered, verify_ledger
from tests.cases import cases
from tests.unit.ledger.forging import filled, forging, mended, other_value, written_anew
from tests.unit.ledger.test_records import APPROVED, AT, NEWER, PLAN

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

    from pulsar_steward.ledger.verify import VerifiedChain
    from pulsar_steward.ledger.write import LedgerWriter

CHAIN = tables.CHAIN

IN_SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
"""Where every table is tried in every way: what the database does is the same for all of them."""


COMPARED = [table for table in tables.CHAINED if table not in tables.TOLD]
"""Tables whose rows are compared again before each call."""


@pytest.fixture(params=["before", "after"])
def walked(request: pytest.FixtureRequest, full: Engine, filled_early: VerifiedChain) -> VerifiedChain:
    """State of the ledger that was verified before, or after, everything but the plan was added."""
    return filled_early if request.param == "before" else require_untampered(full, PLAN.plan_id)


def another_halt(ledger: Engine) -> None:
    """A row that somebody else adds."""
    say(ledger, Halt(cluster="west", at=AT, halted=True, said_by="bob", reason="elsewhere"))


def test_what_is_added_meanwhile_is_no_tampering(engine: Engine, write: LedgerWriter, walked: VerifiedChain) -> None:
    """Rows that Steward adds after the first check do not count as tampering."""
    require_still_untampered(engine, walked)
    write.record_answer(APPROVED)
    write.record_dry_run(NEWER.plan_id, "another run", "PUT ...", AT)
    another_halt(engine)
    require_still_untampered(engine, walked)


@IN_SQLITE
@cases("mend", ("the row", False), ("its link too", True))
@pytest.mark.parametrize("table", COMPARED, ids=str)
def test_a_changed_row_is_found(engine: Engine, walked: VerifiedChain, table: Table, *, mend: bool) -> None:
    """A changed row of the plan or of a table without plans is found, also if its link was made to fit."""
    with forging(engine) as connection:
        changed(connection, table, mend=mend)
    with pytest.raises(LedgerTampered):
        require_still_untampered(engine, walked)


@IN_SQLITE
@pytest.mark.parametrize("table", tables.CHAINED, ids=str)
def test_a_chain_that_was_written_anew_is_found(full: Engine, table: Table) -> None:
    """A changed row in a chain that was rewritten to fit is found by comparison with the earlier state."""
    engine, walked = full, require_untampered(full, PLAN.plan_id)
    with forging(engine) as connection:
        changed(connection, table, mend=True)
        written_anew(connection)
    assert verify_ledger(engine).tampered == ()
    with pytest.raises(LedgerTampered):
        require_still_untampered(engine, walked)


def test_an_inserted_row_is_found(engine: Engine, walked: VerifiedChain) -> None:
    with engine.begin() as connection:
        row = connection.execute(select(tables.ANSWERS).where(tables.ANSWERS.c.answer_id == 1)).mappings().one()
        connection.execute(insert(tables.ANSWERS), {**row, "answer_id": 77})
    with pytest.raises(LedgerTampered, match="inserted by another hand"):
        require_still_untampered(engine, walked)


@IN_SQLITE
@cases("link", ("the row", False), ("its link", True))
@pytest.mark.parametrize("table", COMPARED, ids=str)
def test_what_was_removed_is_found(engine: Engine, walked: VerifiedChain, table: Table, *, link: bool) -> None:
    with forging(engine) as connection:
        connection.execute(delete(CHAIN).where(CHAIN.c.table_name == table.name) if link else delete(table))
    with pytest.raises(LedgerTampered):
        require_still_untampered(engine, walked)


def test_an_end_that_was_cut_off_is_found(engine: Engine, write: LedgerWriter) -> None:
    """A chain whose end was removed is found by the earlier head, although what is left of it verifies."""
    write.record_plan(PLAN, AT)
    walked = require_untampered(filled(engine), PLAN.plan_id)
    with forging(engine) as connection:
        connection.execute(delete(tables.HALTS))
        connection.execute(delete(CHAIN).where(CHAIN.c.table_name == tables.HALTS.name))
        written_anew(connection)
    assert verify_ledger(engine).tampered == ()
    with pytest.raises(LedgerTampered, match=f"link {walked.head.sequence} of the chain is not"):
        require_still_untampered(engine, walked)


def test_what_no_permit_rests_on_is_not_walked_again(engine: Engine, write: LedgerWriter) -> None:
    """A changed link of another plan's row is found only when the whole chain is checked."""
    write.record_plan(PLAN, AT)
    walked = require_untampered(filled(engine), PLAN.plan_id)
    with engine.begin() as connection:
        connection.execute(update(CHAIN).where(CHAIN.c.plan_id == NEWER.plan_id).values(row_digest="0" * 64))

    require_still_untampered(engine, walked)
    with pytest.raises(LedgerTampered, match="does not follow"):
        require_untampered(engine, PLAN.plan_id)
    assert "chain" in {each.table for each in verify_ledger(engine).tampered}


@IN_SQLITE
@pytest.mark.parametrize("table", tables.TOLD, ids=str)
def test_what_people_were_told_is_compared_with_the_whole(engine: Engine, write: LedgerWriter, table: Table) -> None:
    """A changed message or delivery is found only when the whole ledger is checked."""
    write.record_plan(PLAN, AT)
    walked = require_untampered(filled(engine), PLAN.plan_id)
    with forging(engine) as connection:
        changed(connection, table, mend=False)

    require_still_untampered(engine, walked)
    with pytest.raises(LedgerTampered, match=table.name):
        require_untampered(engine, PLAN.plan_id)


def test_what_was_added_meanwhile_of_another_plan_is_compared(engine: Engine, write: LedgerWriter) -> None:
    """A row of another plan that was added after the walk, and changed then, is found before the next call."""
    write.record_plan(PLAN, AT)
    walked = require_untampered(filled(engine), PLAN.plan_id)
    write.record_dry_run(NEWER.plan_id, "another run", "PUT ...", AT)
    dry_runs = tables.DRY_RUNS
    with forging(engine) as connection:
        connection.execute(update(dry_runs).where(dry_runs.c.run == "another run").values(text="DELETE ..."))
    with pytest.raises(LedgerTampered, match=f"{dry_runs.name} .* was changed after it was written"):
        require_still_untampered(engine, walked)


def changed(connection: Connection, table: Table, *, mend: bool) -> None:
    """Changes a value of a row of the plan, or of a table that knows no plans, and where told to its link."""
    column = next(each for each in table.c if each.name not in key_columns(table) and not each.foreign_keys)
    of_plan = [table.c.plan_id == PLAN.plan_id] if "plan_id" in table.c else []
    row = connection.execute(select(table).where(*of_plan)).mappings().first()
    assert row is not None
    named = [table.c[name] == row[name] for name in key_columns(table)]
    connection.execute(update(table).where(*named).values({column.name: other_value(row, column)}))
    if mend:
        mended(connection, table, connection.execute(select(table).where(*named)).mappings().one())
