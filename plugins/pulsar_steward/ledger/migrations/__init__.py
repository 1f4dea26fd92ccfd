"""Migrations of the ledger's tables, by Alembic. A version that was published is never edited."""
