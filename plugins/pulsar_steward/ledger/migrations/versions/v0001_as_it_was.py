"""The tables before versions were kept: plans, questions, answers, intents, outcomes, proofs, dry runs and leases."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, DateTime, ForeignKey, Integer, String, Text, UniqueConstraint

revision = "0001"
down_revision = None


def _plan_column() -> Column[str]:
    return Column("plan_id", String(200), ForeignKey("plans.plan_id"), nullable=False, index=True)


def upgrade() -> None:
    """Makes them."""
    op.create_table(
        "plans",
        Column("sequence", Integer, primary_key=True, autoincrement=True),
        Column("plan_id", String(200), nullable=False, unique=True),
        Column("cluster", String(200), nullable=False, index=True),
        Column("snapshot_id", String(200), nullable=False),
        Column("created_at", DateTime(timezone=True), nullable=False),
        Column("digest", String(64), nullable=False),
        Column("proposal_digest", String(64), nullable=False),
        Column("document", Text, nullable=False),
    )
    op.create_table(
        "batches",
        _plan_column(),
        Column("batch_id", String(50), nullable=False),
        Column("position", Integer, nullable=False),
        Column("kind", String(50), nullable=False),
        Column("title", Text, nullable=False),
        Column("steps", Integer, nullable=False),
        UniqueConstraint("plan_id", "batch_id"),
    )
    op.create_table(
        "supersessions",
        Column("plan_id", String(200), ForeignKey("plans.plan_id"), primary_key=True),
        Column("by_plan_id", String(200), ForeignKey("plans.plan_id"), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "requests",
        Column("request_id", Integer, primary_key=True, autoincrement=True),
        _plan_column(),
        Column("batch_id", String(50), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("run", String(500), nullable=False),
        Column("plan_digest", String(64), nullable=False),
    )
    op.create_table(
        "answers",
        Column("answer_id", Integer, primary_key=True, autoincrement=True),
        _plan_column(),
        Column("batch_id", String(50), nullable=False),
        Column("run", String(500), nullable=False),
        Column("decision", String(20), nullable=False),
        Column("answered_by", String(200)),
        Column("answered_at", DateTime(timezone=True), nullable=False),
        Column("expires_at", DateTime(timezone=True)),
        Column("comment", Text, nullable=False),
        Column("step_ids", Text, nullable=False),
        Column("digest", String(64)),
        Column("reason", Text, nullable=False),
    )
    op.create_table(
        "answer_uses",
        Column("answer_id", Integer, ForeignKey("answers.answer_id"), primary_key=True),
        Column("run", String(500), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "intents",
        Column("intent_id", Integer, primary_key=True, autoincrement=True),
        _plan_column(),
        Column("cluster", String(200), nullable=False, index=True),
        Column("batch_id", String(50), nullable=False),
        Column("step_id", String(50), nullable=False),
        Column("attempt", Integer, nullable=False),
        Column("answer_id", Integer, ForeignKey("answers.answer_id"), nullable=False),
        Column("fence", Integer, nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("change", Text, nullable=False),
        Column("clients", Integer, nullable=False),
        Column("before", Text, nullable=False),
        UniqueConstraint("plan_id", "step_id", "attempt"),
    )
    op.create_table(
        "outcomes",
        Column("outcome_id", Integer, primary_key=True, autoincrement=True),
        _plan_column(),
        Column("batch_id", String(50), nullable=False),
        Column("step_id", String(50), nullable=False),
        Column("intent_id", Integer, ForeignKey("intents.intent_id"), unique=True),
        Column("run", String(500), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("outcome", String(20), nullable=False),
        Column("reason", Text, nullable=False),
        Column("proof", Text, nullable=False),
    )
    op.create_table(
        "proofs",
        Column("proof_id", Integer, primary_key=True, autoincrement=True),
        _plan_column(),
        Column("batch_id", String(50), nullable=False),
        Column("run", String(500), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("proved", Boolean, nullable=False),
        Column("reason", Text, nullable=False),
        Column("shown", Text, nullable=False),
    )
    op.create_table(
        "dry_runs",
        Column("dry_run_id", Integer, primary_key=True, autoincrement=True),
        _plan_column(),
        Column("run", String(500), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("text", Text, nullable=False),
    )
    op.create_table(
        "leases",
        Column("cluster", String(200), primary_key=True),
        Column("holder", String(500), nullable=False),
        Column("fence", Integer, nullable=False),
        Column("expires_at", DateTime(timezone=True), nullable=False),
    )
