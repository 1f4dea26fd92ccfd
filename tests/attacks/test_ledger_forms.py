"""A value counts as written only in the very form that Steward writes: SQL finds what is held, not what it reads as."""

from __future__ import annotations

import base64
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from pulsar_steward.errors import LedgerError, LedgerTampered
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.verify import Damage, require_untampered, verify_ledger
from pulsar_steward.ledger.write import LedgerWriter
from tests.ledgers import ledger_at
from tests.unit.ledger.forging import filled, forging
from tests.unit.ledger.test_records import AT, PLAN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Column, Engine, Table

    from tests.apply.worksite import Worksite

ALIKE = {
    "BOOLEAN": ("2", "-1", "1.5", "'maybe'", "' '", "x'01'", "''", "x''", "NOT {0}"),
    "DATETIME": (
        "replace({0}, ' ', char(9))",
        "replace({0}, ' ', 'T')",
        "{0} || '+00:00'",
        "{0} || 'Z'",
        "replace({0}, '.', ',')",
        "substr({0}, 1, 23)",
        "cast({0} AS BLOB)",
        "'yesterday'",
        "julianday({0})",
    ),
    "INTEGER": ("{0} + 0.5", "cast({0} AS BLOB)", "'some'", "cast({0} AS TEXT) || ' '"),
    "TEXT": ("cast({0} AS BLOB)", "5", "{0} || char(0)", "x'ff'"),
}
"""Other forms of a value, by the kind of its column: some read as the same, others cannot be read."""


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A ledger in SQLite with a row in every table."""
    engine = ledger_at(f"sqlite:///{tmp_path_factory.mktemp('forms') / 'ledger.db'}")
    LedgerWriter(engine).record_plan(PLAN, AT)
    yield filled(engine)
    engine.dispose()


def forms_of(column: Column[object]) -> tuple[str, ...]:
    """Other forms of the values of a column, as SQL."""
    kind = str(column.type.compile())
    return ALIKE["TEXT" if kind.startswith(("VARCHAR", "TEXT")) else kind]


@dataclass(frozen=True)
class Forger:
    """Somebody with SQLite's own program, whom no constraint stops."""

    connection: sqlite3.Connection

    def change(self, column: Column[object], form: str) -> Callable[[], object] | None:
        """Writes the first value of a column in another form; returns how to undo it; None: nothing came of it."""
        table, name = column.table.name, column.name
        first = f'SELECT rowid, "{name}" FROM {table} WHERE "{name}" IS NOT NULL ORDER BY 1'  # noqa: S608 - own names
        if (held := self.connection.execute(first).fetchone()) is None:
            return None
        row, before = held
        change = f'UPDATE {table} SET "{name}" = {{0}} WHERE rowid = {row}'  # noqa: S608 - own names
        with suppress(sqlite3.IntegrityError):  # the number by which SQLite itself knows a row
            self.connection.execute(change.format(form.format(f'"{name}"')))
        _, after = self.connection.execute(first).fetchone()
        if (type(after), after) == (type(before), before):
            return None
        return lambda: self.connection.execute(change.format("?"), (before,))


@pytest.fixture
def forger(full: Engine) -> Iterator[Forger]:
    """A forger of the ledger."""
    with closing(sqlite3.connect(str(full.url.database), isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        yield Forger(connection)


@pytest.mark.parametrize("table", [*tables.CHAINED, tables.CHAIN, tables.HEAD], ids=str)
def test_no_column_takes_another_form_of_a_value(full: Engine, forger: Forger, table: Table) -> None:
    """In every column of every table of the chain, another form of a value is found, and nothing is permitted."""
    tried = 0
    for column in table.columns:
        for form in forms_of(column):
            undo = forger.change(column, form)
            if undo is None:
                continue
            tried += 1
            found = {each.table for each in verify_ledger(full).tampered}
            with pytest.raises(LedgerTampered):
                require_untampered(full, PLAN.plan_id)
            undo()
            assert found & {table.name, "chain"}, (column.name, form)
    assert tried >= len(table.columns)
    assert verify_ledger(full).tampered == ()


def test_text_that_reads_as_its_own_code_is_found(full: Engine, forger: Forger) -> None:
    """Bytes in place of text are found, although JSON writes these bytes as that very text."""
    say(full, Halt(cluster="west", at=AT, halted=True, said_by="bob", reason="stop"))
    (row,) = forger.connection.execute("SELECT max(halt_id) FROM halts").fetchone()
    coded = (base64.b64decode("west"), row)
    forger.connection.execute("UPDATE halts SET cluster = ? WHERE halt_id = ?", coded)
    (found,) = verify_ledger(full).tampered
    forger.connection.execute("UPDATE halts SET cluster = 'west' WHERE halt_id = ?", (row,))
    assert (found.damage, found.table, found.key) == (Damage.CHANGED, "halts", f"[{row}]")
    assert "in cluster" in found.words


def test_a_second_row_of_the_same_key_is_found(full: Engine, forger: Forger) -> None:
    """A row beside the one that the chain means is found, where somebody took the constraint away."""
    forger.connection.executescript(
        "BEGIN; ALTER TABLE answers RENAME TO real; CREATE TABLE answers AS SELECT * FROM real;"
        " UPDATE answers SET decision = 'approved'; INSERT INTO answers SELECT * FROM real; COMMIT"
    )
    found = verify_ledger(full).tampered
    forger.connection.executescript("BEGIN; DROP TABLE answers; ALTER TABLE real RENAME TO answers; COMMIT")
    assert any(each.damage is Damage.INSERTED and "is there twice" in each.words for each in found)


def test_a_trigger_that_changes_a_form_is_found_as_the_row_is_added(site: Worksite) -> None:
    """A trigger that has a halt read as one, and yet not be found, is detected as the halt is recorded."""
    trigger = "CREATE TRIGGER two AFTER INSERT ON halts BEGIN UPDATE halts SET halted = 2; END"
    with forging(site.engine) as connection:
        connection.execute(text(trigger))
    with pytest.raises(LedgerTampered, match="a trigger or rule changes rows"):
        say(site.engine, Halt(cluster=site.cluster, at=site.clock(), halted=True, said_by="bob", reason="disks"))


HIDDEN = {"a halt": "UPDATE halts SET halted = 2", "a call": "UPDATE intents SET at = replace(at, ' ', char(9))"}


@pytest.mark.parametrize("forge", HIDDEN.values(), ids=list(HIDDEN))
def test_a_halt_or_call_cannot_be_hidden_between_two_steps(site: Worksite, forge: str) -> None:
    """A halt, or a call that guards look for, that no query finds any more is detected before the next call."""
    plan = site.approved(site.move(0), site.move(1))

    def hide(_: object) -> None:
        say(site.engine, Halt(cluster=site.cluster, at=site.clock(), halted=True, said_by="bob", reason="disks"))
        with forging(site.engine) as connection:
            connection.execute(text(forge))

    with pytest.raises(LedgerTampered, match="a value that Steward never writes there"):
        site.carry_out(plan, after=hide)
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]


RETYPED = {
    "a number": "ALTER TABLE halts ALTER halted TYPE integer USING 2",
    "text": "ALTER TABLE halts ALTER at TYPE text USING replace(at::text, ' ', chr(9))",
    "no zone": "ALTER TABLE halts ALTER at TYPE timestamp",
    "never": "UPDATE halts SET at = 'infinity'",
}


@pytest.mark.parametrize("forge", RETYPED.values(), ids=list(RETYPED))
def test_a_server_keeps_to_the_forms_too(postgres_ledger: str, forge: str, request: pytest.FixtureRequest) -> None:
    """In PostgreSQL a column of another type, or a time that no clock shows, is found as well."""
    engine = ledger_at(postgres_ledger)
    request.addfinalizer(engine.dispose)
    say(engine, Halt(cluster="east", at=AT, halted=True, said_by="bob", reason="disks"))
    with engine.begin() as connection:
        connection.execute(text(forge))
    with pytest.raises(LedgerError):
        require_untampered(engine, "none")
