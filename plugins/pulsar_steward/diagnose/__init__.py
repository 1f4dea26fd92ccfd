"""Diagnosis of a snapshot: runs the checks' queries on its shards, and writes the results."""
