"""A row that somebody changed, removed or inserted is found, in the whole ledger and between two calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from sqlalchemy import Connection, Engine, Table, delete, event, func, insert, select, text, update

from pulsar_steward.errors import LedgerTampered
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.chain import Head, key_columns
from pulsar_steward.ledger.halts import Halt, halt_of, say
from pulsar_steward.ledger.verify import (
    Damage,
    VerifiedChain,
    exported,
    require_still_untampered,
    require_untampered,
    verify_ledger,
)
from tests.cases import cases
from tests.ledgers import ledger_at
from tests.unit.ledger.forging import filled, forging, mended, other_value, written_anew
from tests.unit.ledger.test_records import APPROVED, AT, LATER, NEWER, PLAN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pulsar_steward.ledger.write import LedgerWriter


def test_what_was_written_verifies(full: Engine, write: LedgerWriter) -> None:
    """All rows of all chained tables verify, and the chain's head is the one that the writer knows."""
    verdict = verify_ledger(full)
    with full.connect() as connection:
        counts = [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables.CHAINED]
    assert verdict.tampered == ()
    assert all(counts)
    assert verdict.rows == sum(counts) == verdict.head.sequence
    assert write.record_answer(APPROVED)
    assert verify_ledger(full).head == write.head


def test_rows_that_are_added_meanwhile_are_no_tampering(full: Engine) -> None:
    """Rows that others add during a verification do not count as tampering, and it does not see them."""
    other = ledger_at(full.url)

    def add(*_: object) -> None:
        say(other, Halt(cluster=PLAN.cluster, at=AT, halted=False, said_by="bob", reason="meanwhile"))

    event.listen(full, "after_cursor_execute", add)
    verdict = verify_ledger(full)
    grown = verify_ledger(other).head
    walked = require_untampered(full, PLAN.plan_id)
    assert verdict.tampered == ()
    assert verdict.head.sequence < grown.sequence
    assert walked.head.sequence < verify_ledger(other).head.sequence
    other.dispose()


_COLUMNS = [
    (table, column.name)
    for table in tables.CHAINED
    for column in table.columns
    if not column.primary_key and not column.foreign_keys
]


def test_a_changed_value_is_found(full: Engine) -> None:
    """A changed value in any column of a chained table is found, and none is found after it is changed back."""
    for table, column in _COLUMNS:
        with forging(full) as connection:
            first = connection.execute(select(table).order_by(table.c[column])).mappings().first()
            assert first is not None
            other = other_value(first, table.c[column])
            _set(connection, table, first, column, other)
        found = verify_ledger(full).tampered
        assert {each.table for each in found} == {table.name}, column
        damages = {each.damage for each in found}
        assert Damage.CHANGED in damages or damages == {Damage.REMOVED, Damage.INSERTED}, (table.name, column)
        with forging(full) as connection:
            _set(connection, table, {**first, column: other}, column, first[column])
    assert verify_ledger(full).tampered == ()


def _set(connection: Connection, table: Table, row: Mapping[Any, Any], column: str, value: object) -> None:
    named = [table.c[name] == row[name] for name in key_columns(table)]
    connection.execute(update(table).where(*named).values({column: value}))


@pytest.mark.parametrize("table", tables.CHAINED, ids=str)
def test_a_removed_row_is_found(full: Engine, table: Table) -> None:
    with forging(full) as connection:
        connection.execute(delete(table))
    found = verify_ledger(full).tampered
    assert {(each.damage, each.table) for each in found} == {(Damage.REMOVED, table.name)}
    assert all("was removed" in each.words for each in found)


def test_an_inserted_row_is_found(full: Engine) -> None:
    row = {**msgspec.structs.asdict(APPROVED), "step_ids": '["b1.s01"]'}
    with full.begin() as connection:
        connection.execute(insert(tables.ANSWERS), row)
    (found,) = verify_ledger(full).tampered
    assert (found.damage, found.table, found.sequence) == (Damage.INSERTED, "answers", None)


def test_a_value_of_another_type_is_found(tmp_path: Path) -> None:
    """In SQLite, a value of a type that Steward never writes is found as a change."""
    engine = ledger_at(f"sqlite:///{tmp_path / 'typed.db'}")
    say(engine, Halt(cluster="east", at=AT, halted=True, said_by="bob", reason="a test"))
    with engine.begin() as connection:
        connection.execute(text("UPDATE halts SET at = 'yesterday'"))
    (found,) = verify_ledger(engine).tampered
    engine.dispose()
    assert (found.damage, found.table) == (Damage.CHANGED, "halts")
    assert "Steward never writes there" in found.words


def test_a_link_that_was_mended_breaks_the_next(full: Engine) -> None:
    """A changed row whose own link was made to fit is found by the link after it."""
    with full.begin() as connection:
        connection.execute(update(tables.PROOFS).values(proved=False))
        link = mended(connection, tables.PROOFS, connection.execute(select(tables.PROOFS)).mappings().one())
    (found,) = verify_ledger(full).tampered
    assert (found.table, found.sequence) == ("chain", link + 1)


@pytest.mark.parametrize("which", [1, 5])
@pytest.mark.parametrize("row_too", [False, True])
def test_a_missing_link_is_found(full: Engine, which: int, *, row_too: bool) -> None:
    """A link that is missing from the chain is found and named by its number, also where its row is missing too."""
    of_link = tables.CHAIN.c.sequence == which
    with forging(full) as connection:
        link = connection.execute(select(tables.CHAIN).where(of_link)).mappings().one()
        connection.execute(delete(tables.CHAIN).where(of_link))
        if row_too:
            table = next(each for each in tables.CHAINED if each.name == link["table_name"])
            key = zip(key_columns(table), msgspec.json.decode(link["row_key"]), strict=True)
            assert connection.execute(delete(table).where(*(table.c[name] == value for name, value in key))).rowcount
    found = {each.words: each.damage for each in verify_ledger(full).tampered}
    assert found.pop(f"link {which} of the chain is missing") is Damage.REMOVED
    assert list(found.values()) == ([] if row_too else [Damage.INSERTED])


def test_an_end_that_was_cut_off_is_found(full: Engine, write: LedgerWriter) -> None:
    """A removed last link is found by the stored head, or by a noted head when the stored one was set back."""
    noted = verify_ledger(full).head
    with full.begin() as connection:
        connection.execute(delete(tables.HALTS))
        connection.execute(delete(tables.CHAIN).where(tables.CHAIN.c.sequence == noted.sequence))
    assert [each.damage for each in verify_ledger(full).tampered] == [Damage.REMOVED]
    with pytest.raises(LedgerTampered, match="does not end where"):
        write.record_answer(APPROVED)
    with full.begin() as connection:
        last = connection.execute(select(tables.CHAIN).order_by(tables.CHAIN.c.sequence.desc())).mappings().first()
        assert last is not None
        connection.execute(update(tables.HEAD).values(sequence=last["sequence"], hash=last["hash"]))
    assert verify_ledger(full).tampered == ()
    (found,) = verify_ledger(full, noted=[noted]).tampered
    assert "not the one that was noted" in found.words


def test_whatever_was_changed_stops_every_plan(full: Engine) -> None:
    with full.begin() as connection:
        connection.execute(update(tables.PLANS).where(tables.PLANS.c.plan_id == NEWER.plan_id).values(digest="0" * 64))
    for plan in (PLAN, NEWER):
        with pytest.raises(LedgerTampered, match=r"of plans .* was changed after it was written"):
            require_untampered(full, plan.plan_id)


def test_a_broken_chain_stops_every_plan(full: Engine) -> None:
    """A plan is stopped when the stored head of the chain does not match its end."""
    with full.begin() as connection:
        connection.execute(update(tables.HEAD).values(sequence=Head(3, "").sequence))
    with pytest.raises(LedgerTampered, match="the chain ends at link"):
        require_untampered(full, PLAN.plan_id)


def test_a_halt_that_was_removed_stops_every_plan(full: Engine) -> None:
    """A removed halt stops every plan as tampering, and a new halt can still be recorded."""
    say(full, Halt(cluster=PLAN.cluster, at=AT, halted=True, said_by="bob", reason="stop"))
    with forging(full) as connection:
        connection.execute(delete(tables.HALTS))
    for plan in (PLAN, NEWER):
        with pytest.raises(LedgerTampered, match=r"row \[1\] of halts"):
            require_untampered(full, plan.plan_id)
    say(full, Halt(cluster=PLAN.cluster, at=AT, halted=True, said_by="bob", reason="stop, I said"))
    assert halt_of(full, PLAN.named_cluster) is not None


def test_what_was_removed_is_not_written_again(full: Engine, write: LedgerWriter) -> None:
    """A removed row cannot be written again, and nothing of that transaction is kept."""
    with forging(full) as connection:
        connection.execute(delete(tables.SUPERSESSIONS))
    before = verify_ledger(full)
    with pytest.raises(LedgerTampered, match=r"of supersessions was there before \(link \d+\) and removed"):
        write.record_plan(NEWER, LATER, supersede=[PLAN.plan_id])
    assert verify_ledger(full) == before


def test_an_export_holds_every_row_in_order(full: Engine) -> None:
    lines = [msgspec.json.decode(line) for line in exported(full)]
    assert [line["sequence"] for line in lines] == list(range(1, verify_ledger(full).head.sequence + 1))
    assert [line["table_name"] for line in lines[:2]] == ["cluster_names", "plans"]
    assert lines[1]["row"]["plan_id"] == PLAN.plan_id
    assert [line["row"]["said_by"] for line in lines if line["table_name"] == "halts"] == ["bob"]


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


def test_a_row_that_is_inserted_meanwhile_is_found(engine: Engine, walked: VerifiedChain) -> None:
    with engine.begin() as connection:
        row = connection.execute(select(tables.ANSWERS).where(tables.ANSWERS.c.answer_id == 1)).mappings().one()
        connection.execute(insert(tables.ANSWERS), {**row, "answer_id": 77})
    with pytest.raises(LedgerTampered, match="inserted by another hand"):
        require_still_untampered(engine, walked)


@IN_SQLITE
@cases("link", ("the row", False), ("its link", True))
@pytest.mark.parametrize("table", COMPARED, ids=str)
def test_what_was_removed_is_found(engine: Engine, walked: VerifiedChain, table: Table, *, link: bool) -> None:
    """A removed row, or a removed link of the chain, is found when the ledger is compared again."""
    with forging(engine) as connection:
        connection.execute(delete(CHAIN).where(CHAIN.c.table_name == table.name) if link else delete(table))
    with pytest.raises(LedgerTampered):
        require_still_untampered(engine, walked)


def test_an_end_that_is_cut_off_meanwhile_is_found(engine: Engine, write: LedgerWriter) -> None:
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
