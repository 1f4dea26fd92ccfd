"""Planners of business bundles: those too large are split, and brokers that carry too much give some away."""
