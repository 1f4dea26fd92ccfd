"""What Alembic runs: the versions, on the connection that it was handed, in that connection's transaction."""

from __future__ import annotations

from alembic import context

from pulsar_steward.ledger.migrations.migrate import VERSIONS
from pulsar_steward.ledger.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, version_table=VERSIONS)
context.run_migrations()
