"""The ledger is what was written: whoever has hands on its database changes nothing that is acted on unseen."""

from __future__ import annotations

import hashlib
import re
import shutil
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from sqlalchemy import delete, event, insert, make_url, select, text, update
from typer.testing import CliRunner

from pulsar_steward.apply.applied import choose_applied
from pulsar_steward.apply.verify import verify
from pulsar_steward.cli.ledger import app
from pulsar_steward.errors import LedgerTampered, Refused
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.chain import Head
from pulsar_steward.ledger.noted_heads import FILE, ledger_names, note_in_file, noted_in_file
from pulsar_steward.ledger.past import GUARDED_BY
from pulsar_steward.ledger.rows import Decision, Proof
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.plan import BROKER_DRAIN
from pulsar_steward.orchestration import rolling_back
from pulsar_steward.orchestration.batches import BatchRef, apply_batch
from pulsar_steward.orchestration.context import open_context
from pulsar_steward.orchestration.ledger_heads import VARIABLE, LedgerHeads
from tests.apply.refusals import assert_refused
from tests.apply.worksite import RUN, quick_policy, said
from tests.builders import CLUSTER, a_batch, a_plan, a_step
from tests.ledgers import ledger_at
from tests.unit.ledger.forging import forging

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection, Table

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Change
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
    assert_refused(site, plan, f"of {table.name}", error=LedgerTampered)


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


# -- what guards and the pace go by


def unproved(site: Worksite) -> Plan:
    """A batch that changed the cluster, of which no proof is there yet."""
    plan = site.approved(site.move(0))
    assert said(site.carry_out(plan)) == ["done"]
    return plan


def not_proved(site: Worksite) -> Plan:
    """A batch that changed the cluster and was found not to show there."""
    plan = unproved(site)
    found = {"batch_id": "b1", "run": RUN, "at": site.clock(), "reason": "it is not there", "shown": {}}
    site.writes.record_proof(msgspec.convert({**found, "plan_id": plan.plan_id, "proved": False}, Proof))
    return plan


def moved(site: Worksite) -> Plan:
    """A bundle that was moved, so that it rests."""
    return site.proved(unproved(site))


def circled(site: Worksite) -> Plan:
    """A bundle that was moved away and back: the plan that moved it away."""
    site.policy = quick_policy(tc_skew={"cooldown_minutes": 0})
    plan, there = moved(site), site.move(0)
    back = site.approved(msgspec.structs.replace(there, source=there.target, target=there.source))
    assert said(site.carry_out(back)) == ["done"]
    site.proved(back)
    return plan


def prove(connection: Connection, plan: Plan) -> None:
    """Inserts a proof."""
    values = {"batch_id": "b1", "run": RUN, "at": datetime.now(UTC), "proved": True, "reason": "", "shown": "{}"}
    connection.execute(insert(tables.PROOFS), {**values, "plan_id": plan.plan_id})


def prove_after_all(connection: Connection, plan: Plan) -> None:
    """Turns what was found into a proof."""
    connection.execute(update(tables.PROOFS).where(tables.PROOFS.c.plan_id == plan.plan_id).values(proved=True))


def forget(connection: Connection, plan: Plan) -> None:
    """Removes a call."""
    connection.execute(delete(tables.INTENTS).where(tables.INTENTS.c.plan_id == plan.plan_id))


def long_ago(connection: Connection, plan: Plan) -> None:
    """Dates a call back."""
    then = datetime(2020, 1, 1, tzinfo=UTC)
    connection.execute(update(tables.INTENTS).where(tables.INTENTS.c.plan_id == plan.plan_id).values(at=then))


def drained(connection: Connection, plan: Plan) -> None:
    """Has a batch be one that emptied a broker, which makes no circle."""
    of_plan = tables.BATCHES.c.plan_id == plan.plan_id
    connection.execute(update(tables.BATCHES).where(of_plan).values(kind=BROKER_DRAIN))


def nameless(connection: Connection, _: Plan) -> None:
    """Has the names be those of another cluster."""
    connection.execute(update(tables.CLUSTER_NAMES).values(pulsar_cluster="another one"))


def of_before(site: Worksite, change: Change) -> Plan:
    """An approved plan that was made before all of that, so that it has not seen what came of it."""
    made = a_plan(a_batch(a_step(change)), cluster=site.cluster, taken_at=site.clock() - timedelta(minutes=1))
    return site.approve(site.record(made))


@pytest.mark.parametrize(
    ("before", "forge"),
    [
        (unproved, prove),
        (not_proved, prove_after_all),
        (moved, forget),
        (moved, long_ago),
        (circled, drained),
        (circled, forget),
        (moved, nameless),
    ],
)
@pytest.mark.parametrize("name", ["east", "west"])
def test_what_a_guard_goes_by_cannot_be_forged_during_a_run(
    site: Worksite, before: Callable[[Worksite], Plan], forge: Callable[[Connection, Plan], None], name: str
) -> None:
    """A proof, a call or a name that is forged after the ledger was verified opens nothing, also by another name."""
    earlier, there, mine = before(site), site.move(0), replace(site, cluster=name)
    back = msgspec.structs.replace(there, source=there.target, target=there.source)
    plan = of_before(mine, back if before is moved else site.move(1))
    site.simulator.requests.clear()
    seen = ["used"]

    def during_the_run(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("INSERT INTO answer_uses"):  # with it the permit is claimed
            seen.clear()
        if not seen and "FROM outcomes" in statement:
            seen.append(statement)
            with forging(site.engine) as connection:
                forge(connection, earlier)

    event.listen(site.engine, "before_cursor_execute", during_the_run)
    with suppress(LedgerTampered):
        (outcome,) = mine.carry_out(plan)
        assert outcome.outcome == "refused"
    assert seen != ["used"]
    assert mine.untouched()


NEEDS_NO_COMPARISON = {tables.ANSWERS.name, tables.ANSWER_USES.name}
"""A no that is added meanwhile is compared as whatever is added is; one from before was heard by the permit. Uses are
those of the plan's own answers, by their numbers."""


def test_all_that_a_call_goes_by_is_compared_with_the_chain(site: Worksite) -> None:
    """Between the permit and the intent no row about another plan is read that is not compared with the chain."""
    moved(site)
    plan, read, state = of_before(site, site.move(1)), set[str](), ["before"]

    def note(_c: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        if statement.startswith(("INSERT INTO answer_uses", "INSERT INTO intents")):
            state.append(statement)
        # The newest row's time is only a lower bound of the present: where one is gone, others bound it.
        if len(state) == 2 and "UNION ALL" not in statement and plan.plan_id not in str(parameters):
            names = re.findall(r"\b(?:FROM|JOIN) (\w+)", statement)
            read.update(name for name in names if "plan_id" in tables.metadata.tables[name].c)

    event.listen(site.engine, "before_cursor_execute", note)
    assert said(site.carry_out(plan)) == ["done"]
    assert read == {table.name for table in GUARDED_BY} | {CHAIN.name} | NEEDS_NO_COMPARISON


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
    assert_refused(site, plan, r"of answers .* was changed|holds no answer", error=(LedgerTampered, Refused))


def test_a_rule_of_a_server_cannot_either(postgres_ledger: str, site: Worksite, request: pytest.FixtureRequest) -> None:
    """A PostgreSQL trigger that turns a rejection into an approval is detected, and no answer is recorded."""
    engine = ledger_at(postgres_ledger)
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
    site.engine = ledger_at(f"sqlite:///{home / 'ledger.db'}")
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
    heads, names = LedgerHeads(site.engine.url), ledger_names(site.engine.url)
    heads.note(Head(7, "a" * 64))
    heads.note(Head(3, "b" * 64))
    note_in_file(home, ["other"], Head(1, "c" * 64))
    assert heads.noted() == (Head(7, "a" * 64), Head(7, "a" * 64))
    assert noted_in_file(home, ["other"]) == (Head(1, "c" * 64),)
    assert noted_in_file(home, names) == (Head(7, "a" * 64),)
    assert (home / FILE).stat().st_mode & 0o077 == 0
    assert list(variables) == [VARIABLE]


@pytest.mark.parametrize("noted", ["real", "linked"])
@pytest.mark.parametrize("asked", ["real", "linked", "real/../real", "linked/../real"])
def test_a_noted_end_is_found_however_the_file_is_spelled(tmp_path: Path, noted: str, asked: str) -> None:
    """The noted end of a SQLite ledger is found by every path that leads to its file, links among them."""
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    urls = [make_url(f"sqlite:///{tmp_path / each / 'ledger.db'}") for each in (noted, asked)]
    note_in_file(tmp_path, ledger_names(urls[0]), Head(7, "a" * 64))
    assert noted_in_file(tmp_path, ledger_names(urls[1])) == (Head(7, "a" * 64),)


def test_a_noted_end_is_found_with_and_without_the_port() -> None:
    """A PostgreSQL ledger has one name whether or not its URL says the port that is meant without one."""
    first, *_ = ledger_names(make_url("postgresql://Host/x"))
    assert first in ledger_names(make_url("postgresql+psycopg://u@host:5432/x"))


def test_an_end_that_was_noted_under_a_link_still_counts(tmp_path: Path) -> None:
    """An end that an earlier Steward noted under the path of a link is still compared."""
    (tmp_path / "linked").symlink_to(tmp_path)
    file = tmp_path / "linked" / "ledger.db"
    note_in_file(tmp_path, [hashlib.sha256(f"sqlite\n\n\n{file}".encode()).hexdigest()[:16]], Head(7, "a" * 64))
    assert noted_in_file(tmp_path, ledger_names(make_url(f"sqlite:///{file}"))) == (Head(7, "a" * 64),)


FILLED = {
    *("answer_uses", "answers", "batches", "cluster_names", "intents", "outcomes", "plans", "policies"),
    *("proofs", "requests"),
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
