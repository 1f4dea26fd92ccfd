"""Planners of business bundles: too large bundles are split, and overloaded brokers give some away."""
