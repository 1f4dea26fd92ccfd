"""Thresholds and limits: what counts as trouble, and how much may be changed at once."""
