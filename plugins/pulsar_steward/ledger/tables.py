"""The ledger's tables. All but `LEASES` and `HEAD` are append-only: a later event adds a row, and edits none.

::

    plans ─┬─ batches                 proposed changes: the whole document, and a list of its batches
           ├─ supersessions           a newer rollback that replaces this one
           ├─ questions ─┬─ question_ends  a batch that is asked by itself, and why it no longer is
           │             └─ confirmations  later observations that proposed the same
           ├─ requests                approval requests, with the policy in force and the digest of what was shown
           ├─ answers ─┬─ answer_uses   answers with the people who gave them, and the run that acts on each
           │           └─ silence_ends  snoozes and other noes that a person took back, so that it is asked again
           ├─ intents ── outcomes     calls about to be made, with the before-values; their results
           ├─ proofs                  state of the brokers after a batch
           └─ dry_runs                calls that would have been made
    policies                          thresholds and limits in force for plans and requests
    cluster_names                     names in Steward's connections, and the Pulsar cluster that each leads to
    halts                             halts of all changes in a cluster, and their ends
    messages ── deliveries            what people are told, by recipient; each try to send it
    chain ── chain_head               every row above, in the order in which it was added, chained by hash
    leases                            the present writer of each cluster

The tables are created and changed by `pulsar_steward.ledger.migrations`; a test compares the two. A later column
must be nullable: a row's hash leaves out null values, so that the hashes of older rows stay the same.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

if TYPE_CHECKING:
    from sqlalchemy import Dialect

LONGEST_CLUSTER = 200
"""Maximum length of a cluster's name in the ledger, in characters."""

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


class Utc(TypeDecorator[datetime]):
    """Times with a time zone, stored as UTC also by databases without time zones (SQLite)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    @property
    def python_type(self) -> type[datetime]:
        """Type of its values; SQLAlchemy 2.0 does not derive it for a decorated type."""
        return datetime

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Converts a time to UTC.

        Raises:
            ValueError: If the time has no zone.
        """
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone: the ledger keeps UTC")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Returns a stored time in UTC, with its zone even if the database returned none."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


CLUSTER_NAMES = Table(
    "cluster_names",
    metadata,
    Column("name_id", Integer, primary_key=True, autoincrement=True),
    Column("cluster", String(LONGEST_CLUSTER), nullable=False),
    Column("pulsar_cluster", String(200), nullable=False),
    Column("metadata_id", String(16)),
    # The cluster's list of brokers, as a JSON list.
    Column("brokers", Text, nullable=False),
    Column("at", Utc, nullable=False),
)


def _plan_column() -> Column[str]:
    return Column("plan_id", String(200), ForeignKey("plans.plan_id"), nullable=False, index=True)


PLANS = Table(
    "plans",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("plan_id", String(200), nullable=False, unique=True),
    Column("cluster", String(LONGEST_CLUSTER), nullable=False, index=True),
    Column("snapshot_id", String(200), nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("proposal_digest", String(64), nullable=False),
    Column("document", Text, nullable=False),
    # True if each batch is a separate question; False for rollbacks.
    Column("asked_by_batch", Boolean, nullable=False),
)

BATCHES = Table(
    "batches",
    metadata,
    _plan_column(),
    Column("batch_id", String(50), nullable=False),
    Column("position", Integer, nullable=False),
    Column("kind", String(50), nullable=False),
    Column("title", Text, nullable=False),
    Column("steps", Integer, nullable=False),
    UniqueConstraint("plan_id", "batch_id"),
)

SUPERSESSIONS = Table(
    "supersessions",
    metadata,
    Column("plan_id", String(200), ForeignKey("plans.plan_id"), primary_key=True),
    Column("by_plan_id", String(200), ForeignKey("plans.plan_id"), nullable=False),
    Column("at", Utc, nullable=False),
)

QUESTIONS = Table(
    "questions",
    metadata,
    Column("question_id", Integer, primary_key=True, autoincrement=True),
    Column("cluster", String(LONGEST_CLUSTER), nullable=False, index=True),
    _plan_column(),
    Column("batch_id", String(50), nullable=False),
    Column("content_digest", String(64), nullable=False),
    Column("goal", Text, nullable=False),
    Column("at", Utc, nullable=False),
    UniqueConstraint("plan_id", "batch_id"),
)

QUESTION_ENDS = Table(
    "question_ends",
    metadata,
    Column("question_id", Integer, ForeignKey("questions.question_id"), primary_key=True),
    _plan_column(),
    Column("batch_id", String(50), nullable=False),
    Column("at", Utc, nullable=False),
    Column("reason", String(50), nullable=False),
    Column("by_plan_id", String(200), ForeignKey("plans.plan_id")),
    Column("by_batch_id", String(50)),
    Column("words", Text, nullable=False),
)

CONFIRMATIONS = Table(
    "confirmations",
    metadata,
    Column("confirmation_id", Integer, primary_key=True, autoincrement=True),
    Column("question_id", Integer, ForeignKey("questions.question_id"), nullable=False, index=True),
    _plan_column(),
    # No foreign key: a plan that asks nothing new is not recorded.
    Column("by_plan_id", String(200), nullable=False),
    Column("taken_at", Utc, nullable=False),
    Column("at", Utc, nullable=False),
    # JSON list of the confirmed batches of the plan.
    Column("batch_ids", Text, nullable=False),
)

REQUESTS = Table(
    "requests",
    metadata,
    Column("request_id", Integer, primary_key=True, autoincrement=True),
    _plan_column(),
    Column("batch_id", String(50), nullable=False),
    Column("at", Utc, nullable=False),
    Column("ends_at", Utc, nullable=False),
    Column("run", String(500), nullable=False),
    Column("plan_digest", String(64), nullable=False),
    Column("voice", Integer, nullable=False),
    Column("requested_by", String(200)),
    Column("origin", String(20), nullable=False),
    Column("policy_digest", String(64), nullable=False),
    Column("asked_digest", String(64), nullable=False),
)

ANSWERS = Table(
    "answers",
    metadata,
    Column("answer_id", Integer, primary_key=True, autoincrement=True),
    _plan_column(),
    Column("batch_id", String(50), nullable=False),
    Column("run", String(500), nullable=False),
    Column("decision", String(20), nullable=False),
    Column("answered_by", String(200)),
    Column("answered_at", Utc, nullable=False, index=True),
    Column("expires_at", Utc),
    Column("comment", Text, nullable=False),
    Column("step_ids", Text, nullable=False),
    Column("digest", String(64)),
    Column("reason", Text, nullable=False),
    Column("voice", Integer, nullable=False),
    Column("answered_by_id", String(200)),
    Column("silent_until", Utc),
    Column("until_worse", Boolean),
    Column("policy_entry", Text),
    Column("asked_digest", String(64)),
    # JSON list of digests of the rejected or silenced changes, one for each part of the batch; null: not a no.
    Column("contents", Text),
)

ANSWER_USES = Table(
    "answer_uses",
    metadata,
    Column("answer_id", Integer, ForeignKey("answers.answer_id"), primary_key=True),
    Column("run", String(500), nullable=False),
    Column("at", Utc, nullable=False),
    Column("plan_id", String(200), nullable=False, index=True),
)

SILENCE_ENDS = Table(
    "silence_ends",
    metadata,
    Column("answer_id", Integer, ForeignKey("answers.answer_id"), primary_key=True),
    _plan_column(),
    Column("batch_id", String(50), nullable=False),
    Column("at", Utc, nullable=False),
    Column("said_by", String(200), nullable=False),
    Column("reason", Text, nullable=False),
)

INTENTS = Table(
    "intents",
    metadata,
    Column("intent_id", Integer, primary_key=True, autoincrement=True),
    _plan_column(),
    Column("cluster", String(LONGEST_CLUSTER), nullable=False, index=True),
    Column("batch_id", String(50), nullable=False),
    Column("step_id", String(50), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("answer_id", Integer, ForeignKey("answers.answer_id"), nullable=False),
    Column("fence", Integer, nullable=False),
    Column("at", Utc, nullable=False),
    Column("change", Text, nullable=False),
    Column("clients", Integer, nullable=False),
    Column("before", Text, nullable=False),
    # Row of `cluster_names` under which the call was made; null: the Pulsar cluster was not known. No foreign key, as
    # SQLite cannot add one to an existing table.
    Column("name_id", Integer),
    UniqueConstraint("plan_id", "step_id", "attempt"),
)

OUTCOMES = Table(
    "outcomes",
    metadata,
    Column("outcome_id", Integer, primary_key=True, autoincrement=True),
    _plan_column(),
    Column("batch_id", String(50), nullable=False),
    Column("step_id", String(50), nullable=False),
    Column("intent_id", Integer, ForeignKey("intents.intent_id"), unique=True),
    Column("run", String(500), nullable=False),
    Column("at", Utc, nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("proof", Text, nullable=False),
)

PROOFS = Table(
    "proofs",
    metadata,
    Column("proof_id", Integer, primary_key=True, autoincrement=True),
    _plan_column(),
    Column("batch_id", String(50), nullable=False),
    Column("run", String(500), nullable=False),
    Column("at", Utc, nullable=False),
    Column("proved", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("shown", Text, nullable=False),
)

DRY_RUNS = Table(
    "dry_runs",
    metadata,
    Column("dry_run_id", Integer, primary_key=True, autoincrement=True),
    _plan_column(),
    Column("run", String(500), nullable=False),
    Column("at", Utc, nullable=False),
    Column("text", Text, nullable=False),
)

POLICIES = Table(
    "policies",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("at", Utc, nullable=False),
    Column("document", Text, nullable=False),
)

HALTS = Table(
    "halts",
    metadata,
    Column("halt_id", Integer, primary_key=True, autoincrement=True),
    Column("cluster", String(LONGEST_CLUSTER), nullable=False, index=True),
    Column("at", Utc, nullable=False),
    Column("halted", Boolean, nullable=False),
    Column("said_by", String(200), nullable=False),
    Column("reason", Text, nullable=False),
    # Without it, SQLite would reuse the number of a removed row, which the chain contains already. A halt must be
    # possible even in a damaged ledger.
    sqlite_autoincrement=True,
)

MESSAGES = Table(
    "messages",
    metadata,
    Column("notice_id", Integer, primary_key=True, autoincrement=True),
    Column("notice_key", String(64), nullable=False),
    Column("recipient", String(100), nullable=False),
    Column("message_id", String(64), nullable=False, index=True),
    Column("cluster", String(LONGEST_CLUSTER), nullable=False),
    Column("at", Utc, nullable=False),
    Column("document", Text, nullable=False),
    UniqueConstraint("notice_key", "recipient"),
)

DELIVERIES = Table(
    "deliveries",
    metadata,
    Column("delivery_id", Integer, primary_key=True, autoincrement=True),
    Column("message_id", String(64), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("state", String(20), nullable=False),
    Column("at", Utc, nullable=False),
    Column("reason", Text, nullable=False),
    UniqueConstraint("message_id", "attempt", "state"),
)

CHAIN = Table(
    "chain",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("table_name", String(50), nullable=False),
    Column("row_key", String(500), nullable=False),
    Column("plan_id", String(200), index=True),
    Column("row_digest", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    UniqueConstraint("table_name", "row_key"),
)

HEAD = Table(
    "chain_head",
    metadata,
    Column("name", String(20), primary_key=True),
    Column("sequence", Integer, nullable=False),
    Column("hash", String(64), nullable=False),
)

CHAINED = (
    POLICIES,
    CLUSTER_NAMES,
    PLANS,
    BATCHES,
    SUPERSESSIONS,
    QUESTIONS,
    QUESTION_ENDS,
    CONFIRMATIONS,
    REQUESTS,
    ANSWERS,
    ANSWER_USES,
    SILENCE_ENDS,
    INTENTS,
    OUTCOMES,
    PROOFS,
    DRY_RUNS,
    HALTS,
    MESSAGES,
    DELIVERIES,
)
"""Tables with rows in the chain; a row is chained when it is added."""

TOLD = (MESSAGES, DELIVERIES)
"""Tables of messages to people. No permit depends on them, so they are not verified again before each call."""

LEASES = Table(
    "leases",
    metadata,
    Column("cluster", String(LONGEST_CLUSTER), primary_key=True),
    Column("holder", String(500), nullable=False),
    Column("fence", Integer, nullable=False),
    Column("expires_at", Utc, nullable=False),
    # Row of `cluster_names`, as in `INTENTS`.
    Column("name_id", Integer),
)
