"""Chains every row by hash, and keeps halts, second voices and who started a run."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, DateTime, Integer, String, Text, UniqueConstraint, insert, inspect, select

from pulsar_steward.ledger.chain import GENESIS, HEAD_NAME, Appending, Head, key_columns
from pulsar_steward.ledger.tables import HEAD, metadata

revision = "0002"
down_revision = "0001"

CHAINED_THEN = (
    "plans",
    "batches",
    "supersessions",
    "requests",
    "answers",
    "answer_uses",
    "intents",
    "outcomes",
    "proofs",
    "dry_runs",
    "halts",
)
"""The tables of this version, in the order in which their rows are chained."""


def upgrade() -> None:
    """Adds the tables and columns, then chains the rows that are there already, as they are."""
    op.add_column("requests", Column("voice", Integer))
    op.add_column("requests", Column("requested_by", String(200)))
    op.add_column("answers", Column("voice", Integer))
    op.add_column("answer_uses", Column("plan_id", String(200)))
    op.create_index(op.f("ix_answer_uses_plan_id"), "answer_uses", ["plan_id"])
    op.create_table(
        "halts",
        Column("halt_id", Integer, primary_key=True, autoincrement=True),
        Column("cluster", String(200), nullable=False, index=True),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("halted", Boolean, nullable=False),
        Column("said_by", String(200), nullable=False),
        Column("reason", Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "chain",
        Column("sequence", Integer, primary_key=True, autoincrement=False),
        Column("table_name", String(50), nullable=False),
        Column("row_key", String(500), nullable=False),
        Column("plan_id", String(200), index=True),
        Column("row_digest", String(64), nullable=False),
        Column("hash", String(64), nullable=False),
        UniqueConstraint("table_name", "row_key"),
    )
    op.create_table(
        "chain_head",
        Column("name", String(20), primary_key=True),
        Column("sequence", Integer, nullable=False),
        Column("hash", String(64), nullable=False),
    )
    _begin_chain()


def _begin_chain() -> None:
    connection = op.get_bind()
    connection.execute(insert(HEAD), {"name": HEAD_NAME, "sequence": 0, "hash": GENESIS})
    chain = Appending(connection, Head(0, GENESIS))
    for name in CHAINED_THEN:
        table = metadata.tables[name]
        # Columns of later versions are not there yet.
        present = [table.c[column["name"]] for column in inspect(connection).get_columns(name)]
        in_order = select(*present).order_by(*(table.c[key] for key in key_columns(table)))
        for row in connection.execute(in_order).mappings().all():
            chain.chain(table, row)
