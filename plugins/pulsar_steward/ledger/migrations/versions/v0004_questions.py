"""Makes each batch a question that stands by itself, with later observations that confirm it, and its end."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, DateTime, ForeignKey, Integer, String, Text, UniqueConstraint

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Adds tables and a column; plans that are there already have no questions, and keep their hashes."""
    op.add_column("plans", Column("asked_by_batch", Boolean))
    op.create_table(
        "questions",
        Column("question_id", Integer, primary_key=True, autoincrement=True),
        Column("cluster", String(200), nullable=False, index=True),
        _plan_column(),
        Column("batch_id", String(50), nullable=False),
        Column("content_digest", String(64), nullable=False),
        Column("goal", Text, nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        UniqueConstraint("plan_id", "batch_id"),
    )
    op.create_table(
        "question_ends",
        Column("question_id", Integer, ForeignKey("questions.question_id"), primary_key=True),
        _plan_column(),
        Column("batch_id", String(50), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("reason", String(50), nullable=False),
        Column("by_plan_id", String(200), ForeignKey("plans.plan_id")),
        Column("by_batch_id", String(50)),
        Column("words", Text, nullable=False),
    )
    op.create_table(
        "confirmations",
        Column("confirmation_id", Integer, primary_key=True, autoincrement=True),
        Column("question_id", Integer, ForeignKey("questions.question_id"), nullable=False, index=True),
        _plan_column(),
        Column("batch_id", String(50), nullable=False),
        Column("by_plan_id", String(200), nullable=False),
        Column("taken_at", DateTime(timezone=True), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
    )


def _plan_column() -> Column[str]:
    return Column("plan_id", String(200), ForeignKey("plans.plan_id"), nullable=False, index=True)
