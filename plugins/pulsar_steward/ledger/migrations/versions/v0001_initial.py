"""The tables of the first release, 0.2.0."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, DateTime, ForeignKey, Integer, String, Text, UniqueConstraint

from pulsar_steward.ledger.chain import GENESIS, HEAD_NAME

revision = "v0001"
down_revision = None


def upgrade() -> None:
    """Makes the tables, and the end of a chain without rows."""
    op.create_table(
        "cluster_names",
        Column("name_id", Integer, primary_key=True, autoincrement=True),
        Column("cluster", String(200), nullable=False),
        Column("pulsar_cluster", String(200), nullable=False),
        Column("metadata_id", String(16)),
        Column("brokers", Text, nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
    )
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
        Column("asked_by_batch", Boolean, nullable=False),
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
        Column("by_plan_id", String(200), nullable=False),
        Column("taken_at", DateTime(timezone=True), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("batch_ids", Text, nullable=False),
    )
    op.create_table(
        "requests",
        Column("request_id", Integer, primary_key=True, autoincrement=True),
        _plan_column(),
        Column("batch_id", String(50), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("ends_at", DateTime(timezone=True), nullable=False),
        Column("run", String(500), nullable=False),
        Column("plan_digest", String(64), nullable=False),
        Column("voice", Integer, nullable=False),
        Column("requested_by", String(200)),
        Column("origin", String(20), nullable=False),
        Column("policy_digest", String(64), nullable=False),
        Column("asked_digest", String(64), nullable=False),
    )
    op.create_table(
        "answers",
        Column("answer_id", Integer, primary_key=True, autoincrement=True),
        _plan_column(),
        Column("batch_id", String(50), nullable=False),
        Column("run", String(500), nullable=False),
        Column("decision", String(20), nullable=False),
        Column("answered_by", String(200)),
        Column("answered_at", DateTime(timezone=True), nullable=False, index=True),
        Column("expires_at", DateTime(timezone=True)),
        Column("comment", Text, nullable=False),
        Column("step_ids", Text, nullable=False),
        Column("digest", String(64)),
        Column("reason", Text, nullable=False),
        Column("voice", Integer, nullable=False),
        Column("answered_by_id", String(200)),
        Column("silent_until", DateTime(timezone=True)),
        Column("until_worse", Boolean),
        Column("policy_entry", Text),
        Column("asked_digest", String(64)),
        Column("contents", Text),
    )
    op.create_table(
        "answer_uses",
        Column("answer_id", Integer, ForeignKey("answers.answer_id"), primary_key=True),
        Column("run", String(500), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("plan_id", String(200), nullable=False, index=True),
    )
    op.create_table(
        "silence_ends",
        Column("answer_id", Integer, ForeignKey("answers.answer_id"), primary_key=True),
        _plan_column(),
        Column("batch_id", String(50), nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("said_by", String(200), nullable=False),
        Column("reason", Text, nullable=False),
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
        Column("name_id", Integer),
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
        "policies",
        Column("digest", String(64), primary_key=True),
        Column("at", DateTime(timezone=True), nullable=False),
        Column("document", Text, nullable=False),
    )
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
    head = op.create_table(
        "chain_head",
        Column("name", String(20), primary_key=True),
        Column("sequence", Integer, nullable=False),
        Column("hash", String(64), nullable=False),
    )
    op.create_table(
        "leases",
        Column("cluster", String(200), primary_key=True),
        Column("holder", String(500), nullable=False),
        Column("fence", Integer, nullable=False),
        Column("expires_at", DateTime(timezone=True), nullable=False),
        Column("name_id", Integer),
    )
    op.bulk_insert(head, [{"name": HEAD_NAME, "sequence": 0, "hash": GENESIS}])


def _plan_column() -> Column[str]:
    return Column("plan_id", String(200), ForeignKey("plans.plan_id"), nullable=False, index=True)
