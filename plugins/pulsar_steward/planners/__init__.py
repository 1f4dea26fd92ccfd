"""Planners: pure functions from a snapshot's facts, its findings and the policy to the proposed steps."""
