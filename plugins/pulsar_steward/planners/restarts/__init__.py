"""Restart of a broker: whether it may be restarted now, and the reasons."""
