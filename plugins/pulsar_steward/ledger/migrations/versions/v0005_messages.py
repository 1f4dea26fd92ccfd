"""Keeps what people are told, and each try to send it."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, DateTime, Integer, String, Text, UniqueConstraint

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Adds two tables; rows that are there already stay as they are."""
    op.create_table(
        "messages",
        Column("notice_id", Integer, primary_key=True, autoincrement=True),
        Column("notice_key", String(64), nullable=False),
        Column("recipient", String(100), nullable=False),
        Column("message_id", String(64), nullable=False, index=True),
        Column("cluster", String(200), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("document", Text, nullable=False),
        UniqueConstraint("notice_key", "recipient"),
    )
    op.create_table(
        "deliveries",
        Column("delivery_id", Integer, primary_key=True, autoincrement=True),
        Column("message_id", String(64), nullable=False),
        Column("attempt", Integer, nullable=False),
        Column("state", String(20), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("reason", Text, nullable=False),
        UniqueConstraint("message_id", "attempt", "state"),
    )
