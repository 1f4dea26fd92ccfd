"""Backlog, quotas, retention and expiry."""

from __future__ import annotations

from pulsar_steward.checks.backlog import policies, replication_stopped

TITLE = "Backlog, retention and expiry"
"""Title of this group of checks."""

VIEWS = (*policies.VIEWS, *replication_stopped.VIEWS)
"""Views that the queries of these checks use besides `pulsar_steward.checks.views`; later ones may use earlier ones."""
