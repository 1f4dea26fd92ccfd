"""Delayed messages and the capacity of a cluster."""

from __future__ import annotations

from pulsar_steward.checks.delayed import views

TITLE = "Delayed messages and capacity"
"""Title of this section of the guide."""

VIEWS = views.VIEWS
"""Views that these checks' questions use besides `pulsar_steward.checks.views`, in order of dependence."""
