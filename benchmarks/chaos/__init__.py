"""Seeded faults at random points of remediations on a real cluster, and what held: ``make chaos``."""
