"""Snapshots on storage, read without Spark: what `collect` and `diagnose` wrote, as typed rows."""
