"""Backlog, quotas, retention and expiry."""

from __future__ import annotations

from pulsar_steward.checks.backlog import policies, quotas, retention

TITLE = "Backlog, retention and expiry"
"""What this part of the guide is called."""

VIEWS = (*policies.VIEWS, *quotas.VIEWS, *retention.VIEWS)
"""What the questions of these checks select from beside `pulsar_steward.checks.views`, in the order of dependence."""
