"""Delayed messages and the capacity of a cluster."""

from __future__ import annotations

from pulsar_steward.checks.delayed import views

TITLE = "Delayed messages and capacity"
"""What this part of the guide is called."""

VIEWS = views.VIEWS
"""What the questions of these checks select from beside `pulsar_steward.checks.views`, in the order of dependence."""
