"""Reads snapshots without Spark: what `collect` and `diagnose` wrote, as typed rows."""
