"""Frozen data: what a cluster looks like, what was found, and what is proposed. No I/O."""
