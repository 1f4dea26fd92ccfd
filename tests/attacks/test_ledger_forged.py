"""The ledger is what was written: whoever has hands on its database changes nothing that is acted on unseen."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest
from sqlalchemy import delete, select, text, update
from typer.testing import CliRunner

from pulsar_steward.apply.applied import choose_applied
from pulsar_steward.apply.verify import verify
from pulsar_steward.cli.ledger import app
from pulsar_steward.errors import LedgerTampered, Refused
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.chain import Head
from pulsar_steward.ledger.noted_heads import FILE, ledger_name, note_in_file, noted_in_file
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.orchestration import rolling_back
from pulsar_steward.orchestration.batches import BatchRef, apply_batch
from pulsar_steward.orchestration.context import open_context
from pulsar_steward.orchestration.ledger_heads import VARIABLE, LedgerHeads
from tests.apply.worksite import RUN, said
from tests.builders import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection, Table

    from pulsar_steward.model.plan import Plan
    from tests.apply.worksite import Worksite
    from tests.attacks.conftest import Connect

CHAIN = tables.CHAIN


def hide(connection: Connection, table: Table, key: str, other_plan: str) -> None:
    """Removes a row, and says of its link that it is of another plan: the chain's hashes still fit."""
    of_row = (CHAIN.c.table_name == table.name, CHAIN.c.row_key == key)
    connection.execute(delete(table).where(table.c[_first_key(table)] == msgspec.json.decode(key)[0]))
    connection.execute(update(CHAIN).where(*of_row).values(plan_id=other_plan))


def _first_key(table: Table) -> str:
    return next(iter(table.primary_key.columns)).name


def reject(site: Worksite, plan: Plan) -> str:
    """A person says no after all; returns the row's key."""
    answer = site.approval(plan, decision=Decision.REJECTED, reason="on second thought")
    return f"[{site.writes.record_answer(answer)}]"


def supersede(site: Worksite, plan: Plan) -> str:
    """A newer plan takes the plan's place; returns the row's key."""
    newer = site.plan(site.move(3))
    site.writes.record_plan(newer, site.clock(), supersede=[plan.plan_id])
    return f'["{plan.plan_id}"]'


def end(site: Worksite, plan: Plan) -> str:
    """The question ends; returns the row's key."""
    site.end(plan)
    return f"[{site.question_of(plan)}]"


HIDDEN = [(reject, tables.ANSWERS), (supersede, tables.SUPERSESSIONS), (end, tables.QUESTION_ENDS)]


@pytest.mark.parametrize(("withdraw", "table"), HIDDEN)
def test_a_withdrawal_cannot_be_hidden_behind_another_plan(
    site: Worksite, withdraw: Callable[[Worksite, Plan], str], table: Table
) -> None:
    """The removal of a withdrawal is detected even if its chain link was changed to name another plan."""
    other, plan = site.plan(site.move(2)), site.asked(site.move(0))
    key = withdraw(site, plan)
    with site.engine.begin() as connection:
        hide(connection, table, key, other.plan_id)
    with pytest.raises(LedgerTampered, match=f"of {table.name}"):
        site.carry_out(plan)
    assert site.untouched()


@pytest.mark.parametrize(("withdraw", "table"), HIDDEN)
def test_a_withdrawal_cannot_be_hidden_in_the_middle_of_a_batch(
    site: Worksite, withdraw: Callable[[Worksite, Plan], str], table: Table
) -> None:
    """A withdrawal that is recorded and hidden between two steps is detected, and the second step is not called."""
    other, plan = site.plan(site.move(2)), site.asked(site.move(0), site.move(1))

    def forge(_: object) -> None:
        key = withdraw(site, plan)
        with site.engine.begin() as connection:
            hide(connection, table, key, other.plan_id)

    with pytest.raises(LedgerTampered, match=f"of {table.name}"):
        site.carry_out(plan, after=forge)
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]


def test_a_link_that_names_another_plan_is_found(site: Worksite) -> None:
    """A link of the chain that was changed to name another plan is reported as tampering."""
    other, plan = site.plan(site.move(2)), site.approved(site.move(0))
    with site.engine.begin() as connection:
        connection.execute(update(CHAIN).where(CHAIN.c.table_name == "answers").values(plan_id=other.plan_id))
    with pytest.raises(LedgerTampered, match=r"says that row \[1\] of answers is of plan"):
        site.carry_out(plan)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [(tables.INTENTS, "before", '{"owner":"broker-x:8080","topic":"t"}'), (tables.OUTCOMES, "outcome", "failed")],
)
@pytest.mark.usefixtures("home")
def test_a_way_back_rests_on_what_was_written(
    site: Worksite, connect: Connect, table: Table, column: str, value: str
) -> None:
    """A rollback is refused as tampering if the recorded intent or outcome was changed."""
    connect(site.simulator, no_policy_file=True)
    plan = site.approved(site.move(0))
    assert said(site.carry_out(plan)) == ["done"]
    with site.engine.begin() as connection:
        connection.execute(update(table).values({column: value}))
    if table is tables.INTENTS:
        with pytest.raises(LedgerTampered, match="of intents"):
            choose_applied(site.ledger, CLUSTER, plan.plan_id, "b1")
    with pytest.raises(LedgerTampered, match=f"of {table.name}"):
        rolling_back.choose(rolling_back.RollbackParams(cluster=CLUSTER, plan_id=plan.plan_id, batch_id="b1"), RUN)


TRIGGERS = {
    "of the answers": "CREATE TRIGGER yes AFTER INSERT ON answers BEGIN UPDATE answers SET decision = 'approved'; END",
    "of the chain": "CREATE TRIGGER yes AFTER INSERT ON chain BEGIN UPDATE answers SET decision = 'approved'; END",
    "of the head": "CREATE TRIGGER yes AFTER UPDATE ON chain_head BEGIN UPDATE answers SET decision = 'approved'; END",
}


@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=list(TRIGGERS))
def test_a_trigger_cannot_turn_a_no_into_a_yes(site: Worksite, trigger: str) -> None:
    """A trigger that turns a rejection into an approval is detected, on recording or at the gate."""
    plan = site.plan(site.move(0))
    site.ask(plan)
    with site.engine.begin() as connection:
        connection.execute(text(trigger))
    with suppress(LedgerTampered):
        site.writes.record_answer(site.approval(plan, decision=Decision.REJECTED))
    with pytest.raises((LedgerTampered, Refused), match=r"of answers .* was changed|holds no answer"):
        site.carry_out(plan)
    assert site.untouched()


def test_a_rule_of_a_server_cannot_either(postgres_ledger: str, site: Worksite, request: pytest.FixtureRequest) -> None:
    """A PostgreSQL trigger that turns a rejection into an approval is detected, and no answer is recorded."""
    engine = open_ledger(postgres_ledger)
    request.addfinalizer(engine.dispose)
    site = replace(site, engine=engine)
    plan = site.plan(site.move(0))
    site.ask(plan)
    with site.engine.begin() as connection:
        connection.execute(
            text(
                "CREATE FUNCTION yes() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN NEW.decision := 'approved'; RETURN NEW; END $$"
            )
        )
        connection.execute(text("CREATE TRIGGER yes BEFORE INSERT ON answers FOR EACH ROW EXECUTE FUNCTION yes()"))
    with pytest.raises(LedgerTampered, match="a trigger or rule changes rows"):
        site.writes.record_answer(site.approval(plan, decision=Decision.REJECTED))
    assert site.ledger.answers(plan.plan_id, "b1") == ()


# -- an older ledger, put back


@pytest.fixture
def put_back(site: Worksite, home: Path, connect: Connect) -> Plan:
    """A plan whose approval was rejected later, in a ledger of which the copy from before was put back."""
    connect(site.simulator, no_policy_file=True)
    site.policy = type(site.policy)()
    plan = site.approved(site.move(0))
    _checkpointed(site)
    shutil.copy(home / "ledger.db", home / "older.db")
    with open_context(CLUSTER, RUN) as shop:
        shop.ledger_writer.record_answer(site.approval(plan, decision=Decision.REJECTED))
    _checkpointed(site)
    site.engine.dispose()
    for rest in ("-wal", "-shm"):
        (home / f"ledger.db{rest}").unlink(missing_ok=True)
    shutil.copy(home / "older.db", home / "ledger.db")
    site.engine = open_ledger(f"sqlite:///{home / 'ledger.db'}")
    assert verify_ledger(site.engine).tampered == ()
    return plan


def _checkpointed(site: Worksite) -> None:
    with site.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.parametrize("kept", ["both", "the file", "the variable"])
def test_an_older_ledger_that_was_put_back_permits_nothing(
    site: Worksite, home: Path, variables: dict[str, str], put_back: Plan, kept: str
) -> None:
    """An older ledger is refused if the end of the newer chain is noted in the file, in the variable or in both."""
    if kept == "the file":
        variables.clear()
    if kept == "the variable":
        (home / FILE).unlink()
    with pytest.raises(LedgerTampered, match="older ledger"):
        apply_batch(BatchRef(plan_id=put_back.plan_id, batch_id="b1", label=""), RUN)
    assert site.untouched()


@pytest.mark.usefixtures("put_back")
def test_the_command_compares_with_the_noted_end_without_being_asked(home: Path) -> None:
    """`steward ledger verify` ends with 1 if an older ledger was put back."""
    ended = CliRunner().invoke(app, ["verify", "--ledger", f"sqlite:///{home / 'ledger.db'}"])
    assert ended.exit_code == 1, ended.output
    assert "an older ledger was put back" in ended.output


def test_a_note_that_cannot_be_read_permits_nothing(
    site: Worksite, home: Path, connect: Connect, variables: dict[str, str]
) -> None:
    """A noted end of the chain that cannot be read is reported as tampering."""
    connect(site.simulator, no_policy_file=True)
    for place in ("file", "variable"):
        if place == "file":
            (home / FILE).write_text("{", encoding="utf-8")
        else:
            (home / FILE).unlink()
            variables[VARIABLE] = "[]"
        with pytest.raises(LedgerTampered, match="cannot be read"), open_context(CLUSTER, RUN):
            pass


def test_a_later_end_is_never_replaced_by_an_earlier_one(site: Worksite, home: Path, variables: dict[str, str]) -> None:
    """A noted end of a chain is not replaced by an earlier one, and each ledger has its own."""
    heads, name = LedgerHeads(site.engine.url), ledger_name(site.engine.url)
    heads.note(Head(7, "a" * 64))
    heads.note(Head(3, "b" * 64))
    note_in_file(home, "other", Head(1, "c" * 64))
    assert heads.noted() == (Head(7, "a" * 64), Head(7, "a" * 64))
    assert noted_in_file(home, "other") == Head(1, "c" * 64)
    assert noted_in_file(home, name) == Head(7, "a" * 64)
    assert (home / FILE).stat().st_mode & 0o077 == 0
    assert list(variables) == [VARIABLE]


FILLED = {
    "answer_uses",
    "answers",
    "batches",
    "intents",
    "outcomes",
    "plans",
    "policies",
    "proofs",
    "requests",
}
"""Tables that a batch fills which is approved, carried out and verified."""


def test_what_is_given_is_what_is_kept(site: Worksite) -> None:
    """The chain links all kinds of rows that an approved, executed and verified batch adds, and none is tampered."""
    plan = site.approved(site.move(0))
    assert said(site.carry_out(plan)) == ["done"]
    with site.context() as context:
        verify(context, plan.plan_id, "b1")
    assert verify_ledger(site.engine).tampered == ()
    with site.engine.connect() as connection:
        linked = set(connection.execute(select(CHAIN.c.table_name)).scalars())
    assert linked == FILLED
    assert LedgerWriter(site.engine).head == Head(0, "0" * 64)
