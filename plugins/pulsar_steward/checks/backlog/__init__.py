"""Backlog, quotas, retention and expiry."""

from __future__ import annotations

from pulsar_steward.checks.backlog import policies, quotas, replicators, retention

TITLE = "Backlog, retention and expiry"
"""Title of this section of the guide."""

VIEWS = (*policies.VIEWS, *quotas.VIEWS, *retention.VIEWS, *replicators.VIEWS)
"""Views that these checks' questions use besides `pulsar_steward.checks.views`, in order of dependence."""
