"""Backlog, quotas, retention and expiry."""

from __future__ import annotations

from pulsar_steward.checks.backlog import policies, quotas, replicators, retention

TITLE = "Backlog, retention and expiry"
"""Title of this group of checks."""

VIEWS = (*policies.VIEWS, *quotas.VIEWS, *retention.VIEWS, *replicators.VIEWS)
"""Views that the queries of these checks use besides `pulsar_steward.checks.views`; later ones may use earlier ones."""
