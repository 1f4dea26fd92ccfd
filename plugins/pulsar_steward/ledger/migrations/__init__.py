"""The ledger's tables from version to version, by Alembic. A version that was published is never edited."""
