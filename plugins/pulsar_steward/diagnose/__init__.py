"""Carries checks out on a snapshot: asks their questions of its shards, and writes what they say."""
