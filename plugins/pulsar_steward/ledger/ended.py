"""Batches that ended lately, from the ledger's rows. Cannot write."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import JSON, cast, select, type_coerce, union

from pulsar_steward.decoding import decode
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.rows import Decision, Outcome, from_row
from pulsar_steward.ledger.waiting import of_batches, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, RowMapping


class StepEnd(msgspec.Struct, frozen=True, kw_only=True):
    """End of one step; `level` is the level of health after it, or None."""

    step_id: str
    at: datetime
    outcome: Outcome
    reason: str
    level: str | None


class BatchEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded steps and proof of one batch in one run.

    Attributes:
        run: The run, ``dag/run/map index``.
        approved: Number of approved steps; 0: the run has no recorded approval.
        steps: Ends of its steps, in order of time.
        proved: Result of the verification; None: there is none yet.
        proof_reason: Reason of the result.
        proof_at: Time of the verification, or None.
    """

    cluster: str
    plan_id: str
    batch_id: str
    kind: str
    title: str
    run: str
    approved: int
    steps: tuple[StepEnd, ...]
    proved: bool | None
    proof_reason: str
    proof_at: datetime | None


Key = tuple[str, str, str]
"""Plan, batch and run."""


def ended_batches(connection: Connection, since: datetime) -> tuple[BatchEnd, ...]:
    """Batches with a step or verification that ended since `since`, with all of their steps."""
    outcomes, proofs = tables.OUTCOMES, tables.PROOFS
    recent = union(*(select(each.c.plan_id).where(each.c.at >= since) for each in (outcomes, proofs)))
    plans = list(connection.execute(recent).scalars())
    if not plans:
        return ()
    steps, verified, approved = _steps(connection, plans), _proofs(connection, plans), _approved(connection, plans)
    found = (_end(key, steps.get(key, ()), verified.get(key), approved.get(key, 0)) for key in {**verified, **steps})
    return tuple(end for end, at in found if at >= since)


def _end(key: Key, steps: Sequence[RowMapping], proof: RowMapping | None, approved: int) -> tuple[BatchEnd, datetime]:
    """A batch in one run, from its steps and proof (at least one of them), and the time of its newest row."""
    some = [*steps, *([proof] if proof is not None else [])]
    plan_id, batch_id, run = key
    end = BatchEnd(
        cluster=some[0]["cluster"],
        plan_id=plan_id,
        batch_id=batch_id,
        kind=some[0]["kind"],
        title=some[0]["title"],
        run=run,
        approved=approved,
        steps=tuple(from_row(row, StepEnd) for row in steps),
        proved=None if proof is None else proof["proved"],
        proof_reason="" if proof is None else proof["reason"],
        proof_at=None if proof is None else proof["at"],
    )
    return end, max(row["at"] for row in some)


def _proofs(connection: Connection, plans: Sequence[str]) -> dict[Key, RowMapping]:
    """The last proof of each batch in each run."""
    proofs = tables.PROOFS
    query = of_batches(proofs, proofs.c.plan_id, proofs.c.batch_id, proofs.c.run, proofs.c.at, proofs.c.proved)
    rows = query.add_columns(proofs.c.reason, tables.BATCHES.c.title).where(proofs.c.plan_id.in_(plans))
    return {_key(row): row for row in rows_of(connection, rows.order_by(proofs.c.proof_id))}


def _steps(connection: Connection, plans: Sequence[str]) -> dict[Key, list[RowMapping]]:
    outcomes = tables.OUTCOMES
    sqlite = connection.dialect.name == "sqlite"
    proof: Any = type_coerce(outcomes.c.proof, JSON) if sqlite else cast(outcomes.c.proof, JSON)
    columns = (outcomes.c.plan_id, outcomes.c.batch_id, outcomes.c.run, outcomes.c.step_id, outcomes.c.at)
    query = of_batches(outcomes, *columns, outcomes.c.outcome, outcomes.c.reason).add_columns(
        tables.BATCHES.c.title, proof["health"]["level"].as_string().label("level")
    )
    found: defaultdict[Key, list[RowMapping]] = defaultdict(list)
    for row in rows_of(connection, query.where(outcomes.c.plan_id.in_(plans)).order_by(outcomes.c.outcome_id)):
        found[_key(row)].append(row)
    return found


def _approved(connection: Connection, plans: Sequence[str]) -> dict[Key, int]:
    """Number of approved steps in the last approval of each run."""
    answers = tables.ANSWERS
    query = select(answers.c.plan_id, answers.c.batch_id, answers.c.run, answers.c.step_ids)
    approvals = query.where(answers.c.plan_id.in_(plans), answers.c.decision == Decision.APPROVED.value)
    rows = rows_of(connection, approvals.order_by(answers.c.answer_id))
    return {_key(row): len(decode(row["step_ids"], tuple[str, ...])) for row in rows}


def _key(row: RowMapping) -> Key:
    return row["plan_id"], row["batch_id"], row["run"]
