"""Upgrade of a running cluster to a newer Pulsar: what changes, what is gone, what is in the way."""
