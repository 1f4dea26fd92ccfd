"""Changes of a ledger behind Steward's back, as by somebody with the database's password."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, text, update

from benchmarks.chaos.plans import BATCH
from pulsar_steward.ledger import tables
from pulsar_steward.model.plan import approval_digest

if TYPE_CHECKING:
    from random import Random

    from sqlalchemy import Engine

    from pulsar_steward.model.plan import Plan

YES = "LANGUAGE plpgsql AS $$ BEGIN NEW.decision := 'approved'; RETURN NEW; END $$"
TRIGGERS = {
    "sqlite": ["CREATE TRIGGER yes AFTER INSERT ON answers BEGIN UPDATE answers SET decision = 'approved'; END"],
    "postgresql": [
        f"CREATE FUNCTION yes() RETURNS trigger {YES}",
        "CREATE TRIGGER yes BEFORE INSERT ON answers FOR EACH ROW EXECUTE FUNCTION yes()",
    ],
}


def with_trigger(engine: Engine) -> None:
    """Adds a trigger that turns every answer into an approval, as somebody with the database's password could."""
    with engine.begin() as connection:
        for statement in TRIGGERS[engine.dialect.name]:
            connection.execute(text(statement))


def tampered_with(engine: Engine, plan: Plan, how: str, random: Random) -> bool:
    """Changes the ledger behind Steward's back, as somebody with the database's password could; True."""
    answers, chain = tables.ANSWERS, tables.CHAIN
    with engine.begin() as connection:
        match how:
            case "plan tampered with":
                forged = plan.encoded().decode().replace(plan.batches[0].steps[0].why, "forged")
                connection.execute(update(tables.PLANS).values(document=forged))
            case "answer tampered with":
                value = random.choice(
                    (
                        {"expires_at": datetime(2999, 1, 1, tzinfo=UTC)},
                        {"answered_by": "mallory"},
                        {"comment": "as agreed"},
                        {"digest": approval_digest(plan, BATCH, [plan.batches[0].steps[0].step_id])[::-1]},
                    )
                )
                connection.execute(update(answers).values(value))
            case "row removed":
                gone = random.choice((delete(tables.REQUESTS), delete(chain).where(chain.c.table_name == "batches")))
                connection.execute(gone)
            case "row inserted":
                row = dict(connection.execute(select(answers)).mappings().first() or {})
                row.pop("answer_id")
                connection.execute(insert(answers), {**row, "answered_by": "mallory"})
            case _:
                raise ValueError(how)
    return True
