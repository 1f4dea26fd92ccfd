"""Alembic's environment: runs the migrations on the given connection, in its transaction."""

from __future__ import annotations

from alembic import context

from pulsar_steward.ledger.migrations.migrate import VERSIONS
from pulsar_steward.ledger.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, version_table=VERSIONS)
context.run_migrations()
