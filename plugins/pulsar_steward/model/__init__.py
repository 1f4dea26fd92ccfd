"""Frozen data of a cluster, its findings, and proposed changes. No I/O."""
