"""Delayed messages and the capacity of a cluster."""

from __future__ import annotations

from pulsar_steward.checks.delayed import views

TITLE = "Delayed messages and capacity"
"""Title of this group of checks."""

VIEWS = views.VIEWS
"""Views that the queries of these checks use besides `pulsar_steward.checks.views`; later ones may use earlier ones."""
