"""Keeps the policies under which was planned and asked, how a run was started, and Airflow's id of who answered."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, DateTime, String, Text

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Adds a table and columns; rows that are there already have nothing in them, and keep their hashes."""
    op.create_table(
        "policies",
        Column("digest", String(64), primary_key=True),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("document", Text, nullable=False),
    )
    op.add_column("requests", Column("origin", String(20)))
    op.add_column("requests", Column("policy_digest", String(64)))
    op.add_column("answers", Column("answered_by_id", String(200)))
