"""Planner of namespaces' settings: backlog quotas, retention and time to live, which only make sense together."""
