"""Keeps until when a goal is silent, the policy entry that a never proposes, and who took a silence back."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, DateTime, ForeignKey, Integer, String, Text

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Adds columns that may be null, so that answers which are there already keep their hashes, and a table."""
    op.add_column("answers", Column("silent_until", DateTime(timezone=True)))
    op.add_column("answers", Column("until_worse", Boolean))
    op.add_column("answers", Column("policy_entry", Text))
    op.create_table(
        "silence_ends",
        Column("answer_id", Integer, ForeignKey("answers.answer_id"), primary_key=True),
        Column("plan_id", String(200), ForeignKey("plans.plan_id"), nullable=False, index=True),
        Column("batch_id", String(50), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("said_by", String(200), nullable=False),
        Column("reason", Text, nullable=False),
    )
