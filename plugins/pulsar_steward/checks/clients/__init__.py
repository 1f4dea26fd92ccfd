"""Consumers, producers and acknowledgements."""

from __future__ import annotations

from pulsar_steward.checks.clients import views

TITLE = "Clients and acknowledgements"
"""Title of this section of the guide."""

VIEWS = views.VIEWS
"""Views that these checks' questions use besides `pulsar_steward.checks.views`, in order of dependence."""
