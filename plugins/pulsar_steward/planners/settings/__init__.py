"""Planners of settings: backlog quotas, retention and time to live of namespaces, and the size quotas of topics."""
