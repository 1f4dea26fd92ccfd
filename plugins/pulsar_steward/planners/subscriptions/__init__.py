"""Planner of deletions of abandoned subscriptions, and its facts."""
