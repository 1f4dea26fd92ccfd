"""Consumers, producers and acknowledgements."""

from __future__ import annotations

from pulsar_steward.checks.clients import views

TITLE = "Clients and acknowledgements"
"""What this part of the guide is called."""

VIEWS = views.VIEWS
"""What the questions of these checks select from beside `pulsar_steward.checks.views`, in the order of dependence."""
