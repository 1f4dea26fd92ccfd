"""Forgeries by somebody with access to the ledger's database, in the rows of one plan; each a way to permit more."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import delete, insert, select, update

from pulsar_steward.ledger import tables
from pulsar_steward.ledger.chain import key_columns, row_key
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.plan import approval_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, RowMapping, Table

    from pulsar_steward.model.plan import Plan

Forged = tuple[str, str, str]
"""Damage, table and key, as `steward ledger verify` names them."""

LATER = datetime(2999, 1, 1, tzinfo=UTC)


def _last(connection: Connection, table: Table, plan: Plan) -> RowMapping | None:
    rows = connection.execute(select(table).where(table.c.plan_id == plan.plan_id)).mappings().all()
    return rows[-1] if rows else None


def _changing(table: Table, **values: object) -> Callable[[Connection, Plan], Forged | None]:
    def change(connection: Connection, plan: Plan) -> Forged | None:
        row = _last(connection, table, plan)
        if row is None:
            return None
        named = [table.c[name] == row[name] for name in key_columns(table)]
        connection.execute(update(table).where(*named).values(values))
        return "changed", table.name, row_key(table, row)

    return change


def _removing(table: Table) -> Callable[[Connection, Plan], Forged | None]:
    def remove(connection: Connection, plan: Plan) -> Forged | None:
        row = _last(connection, table, plan)
        if row is None:
            return None
        connection.execute(delete(table).where(*[table.c[name] == row[name] for name in key_columns(table)]))
        return "removed", table.name, row_key(table, row)

    return remove


def _another_plan(connection: Connection, plan: Plan) -> Forged | None:
    """The document, with the digest that it has now."""
    forged = msgspec.structs.replace(plan, notes=("forged",))
    return _changing(tables.PLANS, document=forged.encoded().decode(), digest=forged.digest)(connection, plan)


def _an_approval(connection: Connection, plan: Plan, run: str) -> Forged | None:
    """A row of their own, right in every field."""
    steps = [step.step_id for step in plan.batches[0].steps]
    row = {
        "plan_id": plan.plan_id,
        "batch_id": "b1",
        "run": run,
        "decision": Decision.APPROVED.value,
        "answered_by": "mallory",
        "answered_at": plan.taken_at,
        "expires_at": LATER,
        "comment": "",
        "step_ids": msgspec.json.encode(steps).decode(),
        "digest": approval_digest(plan, "b1", steps),
        "reason": "",
        "voice": 1,
    }
    connection.execute(insert(tables.ANSWERS), row)
    added = _last(connection, tables.ANSWERS, plan)
    assert added is not None
    return "inserted", "answers", row_key(tables.ANSWERS, added)


def forgeries(run: str) -> dict[str, Callable[[Connection, Plan], Forged | None]]:
    """Each by its name; None of it where the plan has no such row.

    Args:
        run: For which run an approval is forged.
    """
    return {
        "expiry put off": _changing(tables.ANSWERS, expires_at=LATER),
        "approved by another": _changing(tables.ANSWERS, answered_by="mallory", decision="approved"),
        "approval inserted": lambda connection, plan: _an_approval(connection, plan, run),
        "plan changed": _another_plan,
        "use removed": _removing(tables.ANSWER_USES),
        "use given to another run": _changing(tables.ANSWER_USES, run="mallory/1/0"),
        "supersession removed": _removing(tables.SUPERSESSIONS),
        "question removed": _removing(tables.QUESTIONS),
        "question's end removed": _removing(tables.QUESTION_ENDS),
        "confirmed for ever": _changing(tables.CONFIRMATIONS, taken_at=LATER),
        "asked as a whole": _changing(tables.PLANS, asked_by_batch=False),
        "before-values changed": _changing(tables.INTENTS, before="{}"),
        "attempt changed": _changing(tables.INTENTS, attempt=99),
        "outcome changed": _changing(tables.OUTCOMES, outcome="forged"),
    }
