"""Has one row confirm all questions of a plan that an observation proposed again."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Adds a column; rows that are there already confirm one question each, and keep their hashes."""
    op.add_column("confirmations", Column("batch_ids", Text))
