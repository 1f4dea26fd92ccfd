"""Carries out what was approved, and nothing else. Only this package may change a cluster."""
