"""Snapshots on storage, read without Spark: the tables written by `collect` and `diagnose`, as typed rows."""
